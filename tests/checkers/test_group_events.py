from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from checkers import history_file, table_builder
from checkers.kernels.rows import FAIL, INFO, OK, UNKNOWN
from checkers.kernels.steps import (
    ANY,
    ASSIGNED,
    COMMIT,
    FETCH,
    FOREVER,
    HIGH,
    LOST,
    REVOKED,
    STABLE,
    START,
    Steps,
)
from model.op import Op, OpType


def steps(histories: Any, text: str, key: str = "x-0") -> Steps:
    made = histories.tables(text)
    found: Steps = made.steps.where(made.step_key == made.keys.index(key))
    return found


def test_a_row_for_each_key_of_a_micro_operation(histories: Any) -> None:
    """Each partition of a micro-operation has a row, in order, with its offset."""
    text = "m1:x p1:^x-0@3,x-1#1|x-0=a@3 k1:x-0@4,x-1@0 f:x-0@4 f:x-1 p1:-x-0#1|~x-1#1| l1:"
    found = steps(histories, text)
    assert found.kind.tolist() == [ASSIGNED, COMMIT, FETCH, REVOKED]
    assert found.offset.tolist() == [3, 4, 4, UNKNOWN]
    assert found.process.tolist() == [1, 1, 9, 1]
    other = steps(histories, text, "x-1")
    assert other.kind.tolist() == [ASSIGNED, COMMIT, FETCH, LOST]
    assert other.offset.tolist() == [UNKNOWN, 0, UNKNOWN, UNKNOWN]


def test_ends_of_a_log_have_a_row_each(histories: Any) -> None:
    """Each log end that was reported has a row."""
    found = steps(histories, "w:x-0@2/9/7 w:x-0@/9/ w!:x-0@1/1/1")
    assert found.kind.tolist() == [START, HIGH, STABLE, HIGH]
    assert found.offset.tolist() == [2, 9, 7, 9]
    assert set(found.group.tolist()) == {UNKNOWN}


LISTENER = "m1:x#listener "


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (LISTENER + "p1:^x-0@0#1| p1:!x-0@1|-x-0#1|^x-1@0#2|", 2),
        (LISTENER + "p1:^x-0@0#1| p1:!x-0@1|-x-0#1| p1:^#2|", 2),
        (LISTENER + "p1:^x-0@0#1| p1:!x-0@1|-x-0#1|", UNKNOWN),
        ("m1:x p1:^x-0@0#1| k1:x-0@1 p1:-x-0#1|^#2|", UNKNOWN),  # it may have joined already
    ],
)
def test_what_a_listener_committed_before_it_joined_again(
    histories: Any, text: str, after: int
) -> None:
    """A listener's commit is known to the generation that its member joined then, and no other
    commit is."""
    found = steps(histories, text)
    commit = found.where((found.kind == COMMIT) & (found.offset != ANY))
    assert commit.after.tolist() == [after]


def test_a_listener_commits_at_any_time_since_the_poll_before(histories: Any) -> None:
    """A listener's commit may have happened at any time since the previous poll, and was
    acknowledged."""
    for phase, outcome in (("", OK), ("?", INFO)):
        text = LISTENER + f"p1:^x-0@0#1| f1:x-0 p1{phase}:!x-0@1|-x-0#1|"
        found = steps(histories, text)
        commit = found.where((found.kind == COMMIT) & (found.offset != ANY))
        assert (commit.invoked.tolist(), commit.op.tolist()) == ([2], [7])
        assert commit.outcome.tolist() == [outcome]


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("m1:x p1:^x-0@0#1| k1:x-0@1 f1:x-0 p1:-x-0#1|", [0, 2, 2, 2]),
        ("m1:x p1: p2: p1:^x-0@0#1|", [2]),
        ("m1:x t1:|+y-0=a k1:y-0@1 p1:^x-0@0#1|", [2]),
    ],
)
def test_what_a_poll_tells_may_have_happened_since_the_one_before(
    histories: Any, text: str, since: list[int]
) -> None:
    """What a poll reports may have happened since the beginning of the poll before it."""
    assert steps(histories, text).since.tolist() == since


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("k1:x-0@1", 1),
        ("k1?:x-0@1", FOREVER),
        ("i1:t@1.0 t1?:|!x-0@1 i2:t@1.1", 5),  # a takeover of its transactional id ends it
        ("i1:t@1.0 t1?:|!x-0@1 i2:u@1.1", FOREVER),
        ("i1:t@1.0 t1?:|!x-0@1 i2?:t", FOREVER),
        ("i1:t@1.0 t1:|!x-0@1", FOREVER),  # its end is acknowledged before it takes effect
        ("i1:t@1.0 t1:|!x-0@1 i2:t@1.1 t1:|", 5),
    ],
)
def test_a_commit_may_take_effect_late(histories: Any, text: str, until: int) -> None:
    """A commit in doubt or of a transaction may take effect later than its completion."""
    found = steps(histories, text)
    assert found.until[found.kind == COMMIT].tolist() == [until]


def test_an_assignment_holds_until_a_poll_ends_badly(histories: Any) -> None:
    """An assignment counts until a poll ends badly, because then not all that it delivered is
    known."""
    text = "m1:x p1:^x-0@0#1| k1!:x-0@1 p1: p1!: p1:^x-0@0#2| p1?: m2:x p2:^x-0@0#3|"
    assert steps(histories, text).until[[0, 2, 3]].tolist() == [9, 13, FOREVER]


def test_a_commit_that_nobody_told(histories: Any) -> None:
    """A transaction in doubt may have committed an offset of any partition that its process
    owned."""
    text = "m1:x p1:^x-0@0,x-1@0#1| p1:-x-1#1| t1?:|!?"
    found = steps(histories, text)
    assert found.offset[found.kind == COMMIT].tolist() == [ANY]
    assert found.outcome[found.kind == COMMIT].tolist() == [INFO]
    other = steps(histories, text, "x-1")
    assert COMMIT not in other.kind
    for certain in ("t1:|!?", "t1!:|!?"):
        assert COMMIT not in steps(histories, f"m1:x p1:^x-0@0#1| {certain}").kind


def test_a_transaction_that_polled_nothing_commits_nothing(histories: Any) -> None:
    """A transaction that reports its polls and no commit has committed nothing, unless it is in
    doubt."""
    for kind, offsets in (("ok", []), ("info", [ANY])):
        *rest, asked, done = histories.events("m1:x p1:^x-0@0#1| t1:|!?")
        asked = msgspec.structs.replace(asked, value=[["poll"], ["commit", "g", None]])
        told = None if kind == "info" else [["poll", {}]]
        done = msgspec.structs.replace(done, type=kind, value=told)
        (log,) = [log for log in histories.tables([*rest, asked, done]).logs() if log.key == "x-0"]
        assert log.steps.offset[log.steps.kind == COMMIT].tolist() == offsets


@pytest.mark.parametrize(
    ("text", "invoked"),
    [
        ("p1:^x-0@0#1| p1?:", [2]),
        ("p1:^x-0@0#1| >p1:", [2]),
        ("p1:^x-0@0#1| p1:-x-0#1|", []),
        ("p1:^x-0@0#1| p1?:-x-0#1|", [2]),  # the commit may have been the last step
        # a poll that ended well has reported every commit, and only polls call listeners
        ("p1:^x-0@0#1| k1:x-0@1", [4]),
        ("p1:^x-0@0#1| k1?:x-0@1", [4]),
        ("p1:^x-0@0#1| l1:", []),
        ("p1:^x-0@0#1| l1?:", []),
    ],
)
def test_a_listener_may_commit_in_a_poll_that_ends_in_doubt(
    histories: Any, text: str, invoked: list[int]
) -> None:
    """A poll that ends in doubt may have committed any partition that its member still has."""
    found = steps(histories, LISTENER + text)
    assert found.invoked[found.kind == COMMIT].tolist() == invoked
    assert COMMIT not in steps(histories, "m1:x p1:^x-0@0#1| p1?:").kind


def test_a_completion_that_tells_no_commit(histories: Any) -> None:
    """A commit that only the invocation names was tried, and may have happened."""
    *rest, asked, done = histories.events("m1:x p1:^x-0@0#1| k1?:x-0@1")
    outcomes: dict[OpType, int] = {"info": INFO, "fail": FAIL}
    for kind, outcome in outcomes.items():
        end = Op(index=done.index, time_ns=done.time_ns, process=1, type=kind, f="commit")
        made = histories.tables([*rest, asked, end])
        commit = made.steps.where(made.steps.kind == COMMIT)
        assert commit.outcome.tolist() == [outcome]
        assert commit.offset.tolist() == [1]


def test_a_transaction_of_which_something_was_read(histories: Any) -> None:
    """A transaction of which a value was read has happened, and so have its commits."""
    text = "s1:x-0=a@0 m1:x p1:^x-0@0#1| t1?:x-0=a@0|+y-0=b|!x-0@1 "
    assert steps(histories, text).proven.tolist() == [False, False]
    assert steps(histories, text + "p:y-0=b@7").proven.tolist() == [False, True]


def test_a_group_as_a_whole(histories: Any) -> None:
    """A group has its members, how they commit, and when it changed and polled for the last
    time."""
    made = histories.tables("m1:x#i m2:x,y#auto p1:^x-0@0#1| p2: l2: p1: p: s1:x-0=a")
    (group,) = made.groups
    assert group.name == "g"
    assert group.members == {1: "i", 2: None}
    assert group.commits_alone
    assert group.topics == {"x", "y"}
    assert (group.changed_ns, group.polled_ns) == (9_000_000_000, 11_000_000_000)
    (other,) = histories.tables("m1:x p1:^x-0@0#1| p1?:").groups
    assert not other.commits_alone
    assert (other.changed_ns, other.polled_ns) == (5_000_000_000, 3_000_000_000)


def test_a_rebalance_gives_up_positions(histories: Any) -> None:
    """A rebalance gives up positions from the operation on that reports it, for its process and
    partition."""
    made = histories.tables("m1:x m2:x p1:^x-0@0#1|x-0=a@0 p2:^x-1@0#1| p1:-x-0#1|^x-0@0#2|x-0=a@0")
    resets = next(log.resets for log in made.logs() if log.key == "x-0")
    assert sorted(zip(resets.process.tolist(), resets.op.tolist(), strict=True)) == [
        (1, 1),
        (1, 4),
        (1, 8),
        (1, 8),
    ]


def test_parquet_holds_groups_too(histories: Any, tmp_path: Path) -> None:
    """The rows of groups are the same after a history was written to Parquet and read again."""
    ops = histories.events("i1:t@1.0 m1:x#i p1:^x-0@0#1| k1:x-0@1 f:x-0 w:x-0@0/1/1 l1:")
    histories.tables(ops)
    table = history_file.read(histories.file, lambda done: None)
    pq.write_table(table, tmp_path / "history.parquet")
    again = history_file.read(tmp_path / "history.parquet", lambda done: None)
    assert again.equals(table)
    one, other = table_builder.of_history(table), table_builder.of_history(again)
    assert [c.tolist() for c in one.steps] == [c.tolist() for c in other.steps]
    assert one.groups == other.groups
