import pytest

from broker_impl.coordinator.groups import rules
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode as E


@pytest.mark.parametrize(
    ("is_member", "instance", "holder", "error"),
    [
        (True, None, None, E.NONE),
        (False, None, None, E.UNKNOWN_MEMBER_ID),
        (True, "i", "m", E.NONE),
        (False, "i", None, E.UNKNOWN_MEMBER_ID),
        (False, "i", "other", E.FENCED_INSTANCE_ID),  # another member replaced it, and it is fenced
        # its id is valid, but its instance belongs to another member
        (True, "i", "other", E.FENCED_INSTANCE_ID),
    ],
)
def test_member_error(is_member: bool, instance: str | None, holder: str | None, error: E) -> None:
    """Static members are identified by instance id, dynamic members by member id (KIP-345)."""
    assert rules.member_error(is_member, instance, holder, "m") is error


@pytest.mark.parametrize(
    ("state", "error"),
    [
        (GroupStatus.EMPTY, E.NONE),
        (GroupStatus.PREPARING, E.NONE),
        (GroupStatus.COMPLETING, E.REBALANCE_IN_PROGRESS),
        (GroupStatus.STABLE, E.NONE),
        (GroupStatus.DEAD, E.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_commit_state_error(state: GroupStatus, error: E) -> None:
    """Members may commit until a new generation begins, and again once it is assigned."""
    assert rules.commit_state_error(state) is error


@pytest.mark.parametrize("state", GroupStatus)
def test_static_join_rebalances(state: GroupStatus) -> None:
    """A static member rejoins without a rebalance only in Stable and under the same protocol.

    While the leader assigns, its join starts another rebalance.
    """
    assert rules.static_join_rebalances(state, True) == (state is GroupStatus.COMPLETING)
    assert rules.static_join_rebalances(state, False) == (
        state in (GroupStatus.STABLE, GroupStatus.COMPLETING)
    )


@pytest.mark.parametrize(
    ("committed", "own", "unused_since", "at"),
    [
        (5, -1, -1, 105),  # counted from the commit
        (5, -1, 50, 150),  # counted from when the last member left
        (60, -1, 50, 160),
        (5, 30, 50, 30),  # the record has its own expiry (before KIP-211)
    ],
)
def test_expires_at_ms(committed: int, own: int, unused_since: int, at: int) -> None:
    """The retention of an offset is counted from its last use."""
    assert rules.expires_at_ms(committed, own, 100, unused_since) == at


@pytest.mark.parametrize(
    ("error", "of_assignment", "of_commit"),
    [
        (E.NONE, E.NONE, E.NONE),
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR, E.NOT_COORDINATOR),
        (E.NOT_ENOUGH_REPLICAS, E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_NOT_AVAILABLE),
        (E.REQUEST_TIMED_OUT, E.REBALANCE_IN_PROGRESS, E.REQUEST_TIMED_OUT),
        (E.MESSAGE_TOO_LARGE, E.UNKNOWN_SERVER_ERROR, E.INVALID_COMMIT_OFFSET_SIZE),
    ],
)
def test_errors_of_writes(error: E, of_assignment: E, of_commit: E) -> None:
    """Errors of the log are mapped to the errors that clients of groups know."""
    assert rules.assignment_error(error) is of_assignment
    assert rules.commit_error(error) is of_commit


def test_supersedes() -> None:
    """The later record counts, and reporting one record twice changes nothing (KAFKA-5247)."""
    assert rules.supersedes(3, None)
    assert rules.supersedes(3, 2)
    assert rules.supersedes(3, 3)
    assert not rules.supersedes(2, 3)


def test_is_subscribed() -> None:
    """An unknown subscription counts as one to every topic, to protect offsets (KAFKA-8954)."""
    assert rules.is_subscribed(frozenset({"t"}), "t")
    assert not rules.is_subscribed(frozenset({"t"}), "u")
    assert rules.is_subscribed(None, "u")


@pytest.mark.parametrize(
    ("is_writing", "is_pending", "is_settled"),
    [(False, False, True), (True, False, False), (False, True, False), (True, True, False)],
)
def test_settled(is_writing: bool, is_pending: bool, is_settled: bool) -> None:
    """Offsets are settled when no write is in flight and no transaction is pending."""
    assert rules.is_settled(is_writing=is_writing, is_pending=is_pending) is is_settled


@pytest.mark.parametrize(
    ("sent", "is_same"),
    [
        ({"range": b"1", "sticky": b"2"}, True),
        ({"sticky": b"2", "range": b"1"}, False),
        ({"range": b"1", "sticky": b"3"}, False),
        ({"range": b"1"}, False),
    ],
)
def test_is_same_subscription(sent: dict[str, bytes], is_same: bool) -> None:
    """The order of protocols counts, because it is the order of preference."""
    assert rules.is_same_subscription({"range": b"1", "sticky": b"2"}, sent) is is_same


@pytest.mark.parametrize(
    ("state", "is_unchanged", "is_leader", "rebalances"),
    [
        (GroupStatus.STABLE, True, False, False),
        (GroupStatus.STABLE, False, False, True),
        (GroupStatus.STABLE, True, True, True),
        (GroupStatus.COMPLETING, True, True, False),
        (GroupStatus.COMPLETING, False, False, True),
        (GroupStatus.PREPARING, True, False, True),
    ],
)
def test_rejoin_rebalances(
    state: GroupStatus, is_unchanged: bool, is_leader: bool, rebalances: bool
) -> None:
    """A member that has not got its answer gets it; others begin a generation."""
    found = rules.rejoin_rebalances(state, is_unchanged=is_unchanged, is_leader=is_leader)
    assert found is rebalances


def test_is_full() -> None:
    """A group has room up to its size and no further."""
    assert not rules.is_full(2, 3)
    assert rules.is_full(3, 3)
