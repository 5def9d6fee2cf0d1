from model.ensemble_snapshot import Entries, MemberState
from tests.checkers.invariants.ensemble.members import (
    entries,
    leading,
    member,
    serving,
    violated,
    zxid,
)

TWO = entries((1, 1), (1, 2))
THREE = entries((1, 1), (1, 2), (1, 3))


def test_what_is_committed_is_durable_on_a_majority() -> None:
    """A transaction is applied once a majority of the voters has it on disk (I8)."""
    assert violated({1: leading(TWO), 2: serving(TWO)}) == []
    assert violated({1: leading(TWO), 2: serving(entries((1, 1)))}) == ["commit-quorum"]
    unsynced = entries((1, 1), (1, 2), durable=1)
    assert violated({1: leading(TWO), 2: serving(unsynced)}) == ["commit-quorum"]
    not_applied = leading(TWO, applied=zxid(1, 1))
    assert violated({1: not_applied, 2: serving(entries((1, 1)))}) == []


def test_an_observer_does_not_count() -> None:
    """What an observer has is not on a majority of the voters."""
    assert violated({1: leading(TWO), 4: serving(TWO, role="observing")}) == ["commit-quorum"]


def test_a_server_that_is_down_counts() -> None:
    """A voter that has had a transaction on its disk counts while it is down."""
    first = {1: leading(TWO, applied=zxid(1, 1)), 2: member(TWO)}
    assert violated(first, {1: leading(TWO)}) == []


def test_servers_apply_one_order() -> None:
    """What a server has applied is a prefix of what others have (I4)."""
    quorum = {1: leading(THREE), 2: serving(THREE)}
    assert violated(quorum, quorum | {3: serving(TWO)}) == []
    gap = entries((1, 1), (1, 3))
    assert "agreement" in violated(quorum, quorum | {3: serving(gap)})
    back = entries((1, 1), (1, 2), (1, 1))
    assert "agreement" in violated(quorum, quorum | {3: serving(back, applied=zxid(1, 2))})
    other = entries((1, 1), (1, 2), (2, 1))
    later = serving(other, epoch=2)
    assert "agreement" in violated(quorum, {2: later, 3: later})


def until(log: Entries, count: int) -> Entries:
    """The first entries of a log, which grows from one look to the next."""
    return Entries(log.all, count, count)


def test_a_server_that_got_the_state_is_compared_after_the_others() -> None:
    """What it has not in its log may be in the logs of the others only since the last look."""
    log = entries((1, 1), (1, 2), (1, 3), (1, 4))
    before = {1: leading(until(log, 1)), 2: serving(until(log, 1))}
    joined = serving(entries((1, 4)), base=zxid(1, 3))
    assert violated(before, before | {1: leading(log), 2: serving(log), 3: joined}) == []
    other = serving(entries((1, 4), crc=5), base=zxid(1, 3))
    assert "agreement" in violated(before, before | {1: leading(log), 2: serving(log), 3: other})


def test_what_no_look_has_seen_may_be_seen_later() -> None:
    """A leader can end before it is seen with what a server has got from it."""
    log = entries((1, 1), (1, 2), (1, 3), (1, 4))
    before = {1: leading(until(log, 1)), 2: serving(until(log, 1))}
    joined = serving(entries((1, 4)), base=zxid(1, 3))
    behind = {2: serving(log, applied=zxid(1, 1)), 3: joined}
    assert violated(before, behind, behind | {2: serving(log)}) == []
    other = entries((1, 1), (1, 2), (1, 3), (1, 4), crc=5)
    assert "agreement" in violated(before, behind, behind | {2: serving(other)})


def test_only_servers_that_serve_have_committed() -> None:
    """What a server without a leader has in its log may be in no other log."""
    quorum = {1: leading(TWO), 2: serving(TWO)}
    assert violated(quorum, quorum | {3: member(entries((1, 1), (1, 2), (1, 3)))}) == []


def test_what_is_applied_is_in_the_log() -> None:
    """A server does not apply what its log lacks (M8)."""
    quorum = {1: leading(TWO), 2: serving(TWO)}
    lacking = serving(entries((1, 1)), applied=zxid(1, 2))
    assert violated(quorum, quorum | {3: lacking}) == ["agreement"]


def test_a_leader_has_all_that_was_committed() -> None:
    """A leader has all that was ever committed in earlier epochs (I6)."""
    quorum = {1: leading(TWO), 2: serving(TWO)}

    def then(log: MemberState) -> list[str]:
        return violated(quorum, {3: log})

    assert then(leading(TWO, epoch=2)) == []
    assert then(leading(entries((1, 1)), epoch=2)) == ["leader-completeness"]
    assert then(leading(entries(), epoch=2, base=zxid(1, 2), applied=zxid(1, 2))) == []
    electing = leading(entries((1, 1)), epoch=2, has_quorum=False, is_established=False)
    assert then(electing) == []


def test_a_later_leader_has_what_a_former_one_commits() -> None:
    """A former leader may still commit what the quorum of the next one has, and nothing else."""
    before = leading(TWO, applied=zxid(1, 1))
    behind = {1: before, 2: serving(TWO, applied=zxid(1, 1)), 3: leading(TWO, epoch=2, applied=0)}
    assert violated(behind, behind | {1: leading(TWO)}) == []
    short = behind | {3: leading(entries((1, 1)), epoch=2, applied=0)}
    assert violated(short, short | {1: leading(TWO)}) == ["leader-completeness"]


def test_a_committed_transaction_is_not_removed() -> None:
    """What is durable on a server and committed stays there (I10)."""
    quorum = {1: leading(TWO), 2: serving(TWO)}
    cut = serving(entries((1, 1)))
    assert violated(quorum, {2: cut}) == ["committed-truncated"]
    state = member(entries(), base=zxid(1, 2), accepted_epoch=1, current_epoch=1)
    assert violated(quorum, {2: state}) == []
    uncommitted = quorum | {3: serving(THREE, applied=zxid(1, 2))}
    assert violated(uncommitted, uncommitted | {3: serving(TWO)}) == []
    unsynced = quorum | {3: serving(entries((1, 1), (1, 2), durable=1))}
    assert violated(unsynced, unsynced | {3: serving(entries((1, 1)))}) == []
