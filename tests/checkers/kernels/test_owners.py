from typing import Any

import msgspec
import pytest

from checkers.kernels.found import Found
from checkers.kernels.owners import kernel


def told(histories: Any, text: Any) -> list[str]:
    found = kernel(histories.log(text, "x-0"))
    return [f"{f.anomaly} {f.variant} {place(f)} {f.ops}".replace("  ", " ") for f in found]


def place(f: Found) -> str:
    return f"offset {f.offset}" if f.generation is None else f"generation {f.generation}"


TWO = "m1:x m2:x k1:x-0@0 p1: p1:^x-0@0#1| p2: "
"""Process 1 commits an offset, and is assigned the partition after that."""
NO_COMMIT = "m1:x m2:x p1: p1:^x-0@0#1| p2: "
BOTH = ["double-owner generation 1 (9, 13)"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (TWO + "p2:^x-1@0#1|", []),
        (TWO + "p2:^x-0@0#1|", BOTH),
        (TWO + "p2:^x-0@0#2|", []),  # the other has not heard of it
        (TWO + "p2:^x-0@0|", []),
        (TWO + "p1:-x-0#1|^x-0@0#2| p2:^x-0@0#1|", ["double-owner generation 1 (9, 15)"]),
        ("m1:x#i m2:x#i k1:x-0@0 p1: p1:^x-0@0#1| p2:^x-0@0#1|", []),  # one static member, returned
        (
            "m1:x#i m2:x#j k1:x-0@0 p1: p1:^x-0@0#1| p2:^x-0@0#1|",
            ["double-owner generation 1 (9, 11)"],
        ),
        (TWO + "p1:^x-0@0#1|", []),  # reported twice
        # A group ends with its last offset, and the next one begins with generation 1.
        (TWO + "k:x-0 p2:^x-0@0#1|", []),
        (TWO + "k?:x-0 p2:^x-0@0#1|", []),
        (TWO + ">k:x-0 p2:^x-0@0#1| <k:x-0", []),
        (TWO + "k!:x-0 p2:^x-0@0#1|", ["double-owner generation 1 (9, 15)"]),
        (TWO + "k:x-1 p2:^x-0@0#1|", ["double-owner generation 1 (9, 15)"]),  # x-0 has an offset
        (TWO + "p2:^x-0@0#1| k:x-0", BOTH),
        ("k:x-0 " + TWO + "p2:^x-0@0#1|", ["double-owner generation 1 (11, 15)"]),
        (TWO + "k:x-0 p2:^x-0@0#1| p1:^x-0@0#1|", []),  # p2 may have joined before the deletion
        (
            TWO + "k:x-0 k3:x-0@1 p1: p2: p2:^x-0@0#1| p1:^x-0@0#1|",
            ["double-owner generation 1 (21, 23)"],
        ),
        # It has no offset until the first commit, and none after a deletion.
        (NO_COMMIT + "p2:^x-0@0#1|", []),
        (NO_COMMIT + "k3:x-0@0 p2:^x-0@0#1|", []),
        (TWO + "k:x-0 p1: p2: p2:^x-0@0#1| p1:^x-0@0#1|", []),
        # A fetch shows an offset, but a former coordinator may still know one that was deleted.
        ("m1:x m2:x f:x-0@0 p1: p1:^x-0@0#1| p2: p2:^x-0@0#1|", BOTH),
        ("m1:x m2:x k3:x-0@0 k:x-0 f:x-0@0 p1: p1:^x-0@0#1| p2: p2:^x-0@0#1|", []),
        # The topic may have been deleted with its offsets.
        ("m1:x m2:x k3:x-0@0 p1: x:x p1:^x-0@0#1| p2: p2:^x-0@0#1|", []),
        # The member committed, so it was a member until then, and the group has an offset since.
        (
            NO_COMMIT + "k1:x-0@1 p2:^x-0@0#1| p1: p1:~x-0|",
            ["double-owner generation 1 (7, 13)"],
        ),
        (NO_COMMIT + "k1!:x-0@1 p2:^x-0@0#1| p1: p1:~x-0|", []),
        # A member may report a revocation before it asks the coordinator.
        (NO_COMMIT + "p2:^x-0@0#1| p1: p1:-x-0#1|", []),
        # A member that was assigned the partition again is another one.
        (
            NO_COMMIT + "p1:~x-0| p1:^x-0@0#1| k1:x-0@1 p2:^x-0@0#1|",
            ["double-owner generation 1 (13, 17)"],
        ),
    ],
)
def test_one_generation_gives_a_key_to_one_member(
    histories: Any, text: str, found: list[str]
) -> None:
    """One generation assigns a partition to one member, whenever the members hear of it."""
    assert told(histories, text) == found


LATER = "m1:x m2:x p1:^x-0@0#1| p2: p2:^x-0@0#2| "


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (LATER + "k1:x-0@1 p1:-x-0#1|", ["double-owner commit offset 1 (5, 9, 11)"]),
        (LATER + "k1:x-0@1 p1:~x-0|", ["double-owner commit offset 1 (5, 9, 11)"]),
        (LATER + "k1!:x-0@1 p1:-x-0#1|", []),  # correctly rejected
        (LATER + "k1?:x-0@1", []),
        (LATER + "k1:x-1@1 p1:-x-0#1|", []),
        (LATER + "k1:x-0@1", []),  # it may have joined again, still unreported
        (LATER + "k1:x-0@1 p1:-x-0#1|^x-0@0#3|", []),  # it may have committed after this
        (
            LATER + "k1:x-0@1 p1:-x-0#1| p1:^x-0@0#3|",
            ["double-owner commit offset 1 (5, 9, 11)"],
        ),
        (LATER + "p1:-x-0#1|^x-0@0#3| k1:x-0@1 p1:-x-0#3|", []),
        (LATER + "t1:|!x-0@1 p1:-x-0#1|", []),  # a transaction may not say by which member
        # the other member was assigned it meanwhile
        ("m1:x m2:x p1:^x-0@0#1| >k1:x-0@1 p2:^x-0@0#2| <k1:x-0@1 p1:-x-0#1|", []),
        ("m1:x m2:x p2: p1:^x-0@0#2| p2:^x-0@0#1| k1:x-0@1 p1:-x-0#2|", []),  # reported late
        # the other member was assigned it by a former group of this name
        ("m1:x m2:x p2:^x-0@0#5| k:x-0 p1:^x-0@0#1| k1:x-0@1 p1:-x-0#1|", []),
        ("m1:x m2:x p2:^x-0@0#5| p1:^x-0@0#1| k1:x-0@1 p1:-x-0#1|", []),
        (
            "m1:x m2:x k1:x-0@0 p2: p1: p2:^x-0@0#5| p1:^x-0@0#1| k1:x-0@1 p1:-x-0#1|",
            ["double-owner commit offset 1 (13, 11, 15)"],
        ),
        # generations that were not reported
        (
            "m1:x m2:x p1:^x-0@0| p2: p2:^x-0@0| k1:x-0@1 p1:-x-0|",
            ["double-owner commit offset 1 (5, 9, 11)"],
        ),
        ("m1:x m2:x p2: p1:^x-0@0| p2:^x-0@0| k1:x-0@1 p1:-x-0|", []),
        ("m1:x#i m2:x#i p1:^x-0@0#1| p2:^x-0@0#2| k1:x-0@1 p1:-x-0#1|", []),
    ],
)
def test_a_former_owner_is_refused(histories: Any, text: str, found: list[str]) -> None:
    """A commit of a former owner is rejected, unless it may have become the owner again."""
    assert told(histories, text) == found


OWNED = "m1:x p1:^x-0@0#1| "
REVOKED = " p1: p1:-x-0#1|"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (OWNED + "k:x-0 k1:x-0@1" + REVOKED, ["subscribed-deletion offset 1 (3, 5, 7)"]),
        (
            OWNED + "k:x-0 k1:x-0@1 p1: p1:^x-1@0#2|",
            [],
        ),  # it still has it, or may have it again
        (
            OWNED + "k:x-0 k1:x-0@1 k1:x-0@2 p1: p1:~x-0|",
            ["subscribed-deletion offset 1 (3, 5, 7)"],
        ),
        (OWNED + "k!:x-0 k1:x-0@1" + REVOKED, []),  # correctly rejected
        (OWNED + "k?:x-0 k1:x-0@1" + REVOKED, []),
        (OWNED + "k:x-1 k1:x-0@1" + REVOKED, []),
        (OWNED + "k:x-0 k1!:x-0@1" + REVOKED, []),  # the owner may have been removed by then
        (OWNED + "k:x-0" + REVOKED, []),
        (OWNED + "k1:x-0@1 k:x-0" + REVOKED, []),
        (
            OWNED + "k:x-0 k1:x-0@1 p1:-x-0#1|",
            [],
        ),  # it may have joined again before its commit
        (OWNED + "k:x-0 k1:x-0@1", []),
        ("m1:x k:x-0 p1:^x-0@0#1| k1:x-0@1" + REVOKED, []),
        (OWNED + ">k:x-0 k1:x-0@1 <k:x-0" + REVOKED, []),
        (OWNED + "p1:-x-0#1| k:x-0 p1:^x-0@0#2| k1:x-0@1" + REVOKED, []),
        (OWNED + "k:x-0 t1:|!x-0@1" + REVOKED, []),  # a transaction may not say by which member
    ],
)
def test_nothing_is_deleted_that_somebody_owns(histories: Any, text: str, found: list[str]) -> None:
    """A committed offset is not deleted while a member certainly owns its partition."""
    assert told(histories, text) == found


@pytest.mark.parametrize(
    ("frozen_ms", "found"),
    [(0, []), (3000, []), (6000, ["double-owner commit offset 1 (9, 14, 17)"])],
)
def test_a_member_that_stood_still(histories: Any, frozen_ms: int, found: list[str]) -> None:
    """A frozen member commits only after it continues."""
    text = TWO + ">k1:x-0@1 >p2: <p2:^x-0@0#2| p2: <k1:x-0@1 p1:-x-0#1|"
    freeze = ["freeze", "g", frozen_ms]
    ops = [
        msgspec.structs.replace(op, value=[freeze, *op.value]) if op.f == "commit" else op
        for op in histories.events(text)
    ]
    assert told(histories, ops) == found
