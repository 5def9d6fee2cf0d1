"""Defects of groups, and near misses, are found in slices as in the whole history.

Every partition is a slice. Every line is a chunk of its own, or there are two chunks, or one: then
what a slice needs is between other operations of its process.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkers import history_file, pieces, table_builder
from checkers.columns import Columns
from checkers.distributed import chunk_tasks, chunks, group_context, plan, slices
from checkers.distributed.chunk_tasks import Prepared
from checkers.distributed.here import Here
from model import history
from model.op import Op
from model.transform import output
from tests.checkers.distributed.test_plan import at_once, in_chunks

SENDS = "s:x-0=a@0,x-0=b@1,x-0=c@2 p8:x-0=a@0,x-0=b@1,x-0=c@2 "
TWO = SENDS + "m1:x m2:x p1:^x-0@0#1| "
HELD = SENDS + "k9:x-0@0 m1:x m2:x p1:^x-0@0#1| "
"""The group has an offset before a member is assigned the partition, so it is not deleted."""
LATER = TWO + "p2: p2:^x-0@0#2| "
OWNER = TWO + "p1:x-0=a@0,x-0=b@1 k1:x-0@1 "
LISTENER = SENDS + "k9:x-0@0 m1:x#listener m2:x p1:^x-0@0,x-1@0#1| "
FROZEN = (
    SENDS + "m1:x#listener m3:x#listener p3: p1:^x-0@0#1|x-0=a@0 "
    "p1:!x-0@1|-x-0#1|^x-0@1#2| p3:^x-0@0#7|x-0=a@0"
)
"""Process 3 reports late what generation 7 assigned to it; process 1 is in generations 1 and 2."""
TAKEN = SENDS + "m1:x i1:t@1.0 p1:^x-0@0#1| t1:x-0=a@0|!x-0@1 "


def eos(process: str, value: int, offset: int, place: int, n: int) -> str:
    """A transaction that makes an output of an input, and commits the position behind that."""
    made = output(value, n)
    return f"t{process}:x-0={value}@{offset}|+out-0={made}@{place}|!x-0@{offset + 1} "


INPUTS = "s:x-0=1@0,x-0=2@1,x-0=3@2 p8:x-0=1@0,x-0=2@1,x-0=3@2 m1:x m2:x p1:^x-0@0#1| "
EOS = INPUTS + eos("1", 1, 0, 0, 7) + eos("1", 2, 1, 1, 8)
SHOWN = (
    f"a7:out-0 p7:out-0={output(1, 7)}@0,out-0={output(2, 8)}@1,out-0={output(2, 9)}@2 c7:out-0@3 "
)
SHOWN_2 = f"a7:out-0 p7:out-0={output(2, 8)}@1 c7:out-0@2 "


@pytest.mark.parametrize(
    ("text", "anomalies"),
    [
        (OWNER + "f:x-0@1", []),
        (OWNER + "f:x-0", ["lost-commit"]),
        (OWNER + "k1:x-0@2 f:x-0@1", ["commit-regression"]),
        (OWNER + "k1:x-0@2,x-1@0 f:x-0@1,x-1@0", ["commit-regression"]),
        (OWNER + ">k1:x-0@2 f:x-0@1 <k1:x-0@2", []),
        (OWNER + "f:x-0@2", ["commit-ahead"]),
        (OWNER + "k1:x-0@2%7 f:x-0@2%8", ["commit-mismatch"]),
        (OWNER + "k1:x-0@2%7 f:x-0@2%7", []),
        (HELD + "p2:^x-0@0#1|", ["double-owner"]),
        (TWO + "p2:^x-0@0#1|", []),  # the group had no offset, and may have ended without members
        (HELD + "p2:^x-0@0#2|", []),
        (HELD + "k:x-0 p2:^x-0@0#1|", []),  # the group may have ended with that offset
        (HELD + "k:x-1 p2:^x-0@0#1|", ["double-owner"]),
        (HELD + "k!:x-1 p2:^x-0@0#1|", ["double-owner"]),
        (HELD + "k:x-1 k9:x-0@0 p1: p2: p2:^x-0@0#1| p1:^x-0@0#1|",
         ["double-owner"]),
        (LATER + "k1:x-0@1 p1:-x-0#1|", ["commit-ahead", "double-owner"]),
        (LATER + "k1:x-1@1 p1:-x-0#1|", []),
        (TWO + "p1:x-0=a@0 k1:x-0@1 p2: p2:^x-0@0#2|x-0=a@0", ["resume-overlap"]),
        (TWO + "p1:x-0=a@0 k1:x-0@1 p2:^x-0@1#2|x-0=b@1", []),
        (TWO + "p1:x-0=a@0 k1:x-0@1 p2:^x-0@2#2|x-0=c@2", ["resume-gap"]),
        (OWNER + "k:x-0 k1:x-0@2 p1: p1:-x-0#1|", ["subscribed-deletion"]),
        (OWNER + "k:x-0 p1: p1:-x-0#1|", []),
        (TWO + "p1:x-0=a@0 z:400 p1:", ["stuck-group"]),
        (TWO + "p1:x-0=a@0 z:400 p1!:", []),
        (TWO + "p1:x-0=a@0 z:400 m3:x p1:", []),
        (TWO + "p1:x-0=a@0 z:400 p1: p1!:", ["stuck-group"]),
        (TWO + "p1:x-0=a@0 s2:x-1=q@0 z:400 s2?:x-1=r p1:", []),  # a member has just left
        (TWO + "p1:x-0=a@0 s2:x-1=q@0 z:400 s2:x-1=r@1 p1:", ["stuck-group"]),
        # the group may have ended since the first operation of a member that never joined
        (SENDS + "s2:x-1=q@0 k:x-1 p2:^x-0@0#1| p1:^x-0@0#1|", []),
        ("s2:x-1=q@0 k:x-1 s2:x-1=r@1 " + SENDS + "p2:^x-0@0#1| p1:^x-0@0#1|" + " p8:" * 2, []),
        # … and may not have ended since its last poll, which failed
        (
            "m2:x p2!: k:x-1 k9:x-0@0 p2!: s2:x-1=q@0 "
            + SENDS
            + "p2:^x-0@0#1| p1:^x-0@0#1| p8: p8:",
            ["double-owner"],
        ),
        (SENDS + "k:x-1 k9:x-0@0 s2:x-1=q@0 p2:^x-0@0#1| p1:^x-0@0#1|", ["double-owner"]),
        # what a member received since a poll that failed is unknown
        (SENDS + "m1:x p1:^x-0@0#1|x-0=a@0 p8: p8: p8: p1: p1!: p1: k1:x-0@3 p1:", []),
        (
            SENDS + "m1:x p1:^x-0@0#1|x-0=a@0 p8: p8: p8: p1: p1: p1: k1:x-0@3 p1:",
            ["commit-ahead"],
        ),
        (SENDS + "w:x-0@0/3/3 w:x-0@0/2/2", ["acked-above-end", "hw-regress", "lso-regress"]),
        (SENDS + "w:x-0@0/3/3 w:x-0@0/3/3", []),
        # a listener commits before its member joins again, and in a poll that ends in doubt
        (LISTENER + "p1:x-0=a@0,x-1=k@0 p1:!x-0@1|-x-0#1|^x-1@0#2| p2:^x-0@0#2|x-0=a@0",
         ["phantom", "resume-overlap"]),
        (LISTENER + "p1:x-0=a@0 p1?: p2:^x-0@1#2|x-0=b@1", []),
        # all members of a later generation see that commit, but the generations of a group that
        # has ended may be higher
        (FROZEN, []),
        ("k9:x-0@0 " + FROZEN, ["resume-overlap"]),
        # a transaction has ended once another process takes over its id
        (TAKEN + "p2: i2:t@1.1 p2: f:x-0", ["lost-commit"]),
        (TAKEN + "p2: i2:u@1.1 p2: f:x-0", []),
        (TAKEN + "t1:|!x-1@0 p1: f:x-0", ["lost-commit"]),
        # exactly once
        (EOS, []),
        (EOS + eos("2", 2, 1, 2, 9), ["eos-mismatch"]),
        (EOS + eos("2!", 2, 1, 2, 9), []),
        (EOS + eos("2?", 2, 1, 2, 9), []),
        (EOS + eos("2?", 2, 1, 2, 9) + SHOWN, ["eos-mismatch"]),
        (INPUTS + eos("1", 1, 0, 0, 7) + eos("1", 3, 2, 1, 8), ["eos-mismatch", "poll-skip"]),
        (INPUTS + eos("1", 1, 0, 0, 7) + eos("2!", 2, 1, 2, 9) + eos("1", 3, 2, 1, 8),
         ["eos-mismatch", "poll-skip"]),
        (INPUTS + eos("1", 1, 0, 0, 7) + eos("2?", 2, 1, 2, 9) + eos("1", 3, 2, 1, 8),
         ["poll-skip"]),
        (INPUTS + "p2:^x-0@0#2| t2?:|!? " + eos("1", 2, 1, 1, 8), ["resume-gap"]),
        (INPUTS + "p2:^x-0@0#2| t2?:|!? " + eos("1", 2, 1, 1, 8) + SHOWN_2,
         ["eos-mismatch", "resume-gap"]),
    ],
)  # fmt: skip
def test_defects_and_near_misses(
    histories: Any, tmp_path: Path, text: str, anomalies: list[str]
) -> None:
    """The illegal findings are those of the whole history, and these."""
    path = tmp_path / "history.jsonl"
    history.write(path, histories.events(text))
    whole = at_once(path)
    assert sorted({f.anomaly for f in whole[0] if not f.legal}) == anomalies
    size = path.stat().st_size
    for cut in (1, size // 2, size):
        assert in_chunks(path, cut) == whole


def prepared(path: Path, folder: Path) -> list[Prepared]:
    return [
        chunk_tasks.prepare(chunk, folder / f"{number}.parquet")
        for number, chunk in enumerate(chunks.of_file(path, size=1))
    ]


def test_a_process_that_is_frozen_over_a_border(tmp_path: Path) -> None:
    """The chunk in which a process begins to act again is not that of its operation's events."""
    freeze = [["freeze", "g", 1000]]
    events = [
        Op(index=0, time_ns=0, process=1, type="invoke", f="freeze", value=freeze),
        Op(index=1, time_ns=500_000_000, process=2, type="invoke", f="poll", value=[["poll"]]),
        Op(index=2, time_ns=2_000_000_000, process=1, type="ok", f="freeze", value=freeze),
    ]
    path = tmp_path / "history.jsonl"
    history.write(path, events)
    assert [each.moments_ns for each in prepared(path, tmp_path)] == [[950_000_000], [], []]


def needed(path: Path) -> list[int]:
    """Return the last events of the operations of a chunk that every slice has."""
    columns = Columns(history_file.read(path, lambda done: None))
    operations = table_builder.operations_of(columns)
    found = group_context.of_chunk(columns, operations, np.arange(len(operations.first)), ())
    return sorted(set(operations.op[found.everywhere].tolist()))


def test_slices_get_few_of_the_operations_of_other_partitions(
    histories: Any, tmp_path: Path
) -> None:
    """Polls and commits between the first and the last ones of a process stay in their slices."""
    path = tmp_path / "history.jsonl"
    history.write(
        path, histories.events("m1:x p1:^x-0@0#1| " + "p1:x-0=a@0 k1:x-0@1 " * 50 + "l1:")
    )
    assert needed(path) == [1, 3, 201, 205]


def test_a_history_without_groups_has_no_further_column(histories: Any, tmp_path: Path) -> None:
    """Slices of such a history are as they were."""
    path = tmp_path / "history.jsonl"
    history.write(path, histories.events(SENDS))
    assert not any(each.has_groups for each in prepared(path, tmp_path))
    names: list[list[str]] = []
    cut = slices.Slicer.slices

    def cut_slices(self: Any, *args: Any) -> Any:
        for number, events in cut(self, *args):
            names.append(events.column_names)
            yield number, events

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices.Slicer, "slices", cut_slices)
        (tmp_path / "scratch").mkdir()
        plan.judge(path, chunks.of_file(path, size=1), Here(), tmp_path / "scratch")
    assert names
    assert all(each == pieces.SCHEMA.names for each in names)
