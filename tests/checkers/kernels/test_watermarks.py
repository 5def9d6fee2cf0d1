import dataclasses
from typing import Any

import pytest

from checkers.kernels.faults import FaultInterval
from checkers.kernels.watermarks import kernel

SECOND = 1_000_000_000
ENDED = FaultInterval(1, 0, 0)
"""A fault that has been over for more than a minute."""


def told(histories: Any, text: str, *faults: FaultInterval) -> list[str]:
    log = dataclasses.replace(histories.log(text, "x"), faults=faults)
    return [
        f"{f.anomaly} {f.variant} {f.offset} {f.ops}".replace("  ", " ")
        + (f" +{f.folded}" if f.folded else "")
        for f in kernel(log)
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("w:x@0/5/5 w:x@0/7/6", []),
        ("w:x@0/5/5 w:x@0/5/5", []),
        ("w:x@0/7/5 w:x@0/5/5", ["hw-regress 5 (1, 3)"]),
        ("w:x@0/7/5 w:x@0/7/4", ["lso-regress 4 (1, 3)"]),
        ("w:x@3/7/5 w:x@0/7/5", ["log-start-regress 0 (1, 3)"]),
        ("w:x@0/7/ w:x@0//5 w:x@0/5/", ["hw-regress 5 (1, 5)"]),
        ("w:x@0/9/5 w:x@0/7/5 w:x@0/8/5 w:x@0/3/5", ["hw-regress 3 (1, 7) +2"]),
        ("w:x@0/7/5 w:y@0/5/5", []),
        # probes that overlap may be answered in any order
        ("w1:x@0/5/5 >w2:x@0/5/5 w3:x@0/7/5 <w2:x@0/5/5", []),
        (">w1:x@0/7/5 >w2:x@0/5/5 <w1:x@0/7/5 <w2:x@0/5/5", []),
        ("w!:x@0/7/5 w:x@0/5/5", []),
        # what was acknowledged or read is below
        ("s:x=a@4 w:x@0/5/5", []),
        ("s:x=a@5 w:x@0/5/5", ["acked-above-end 5 (1, 3)"]),
        ("s?:x=a@5 w:x@0/5/5", []),
        (">s:x=a w:x@0/5/5 <s:x=a@5", []),
        ("s:x=a w:x@0/0/0", []),
        ("s:x=a@5 s:x=b@7 w:x@0/5/5 w:x@0/8/5", ["acked-above-end 7 (3, 5)"]),
        (
            "s1:x=a@5 p:x=a@5 w:x@0/5/5",
            ["acked-above-end 5 (1, 5)", "acked-above-end read 5 (3, 5)"],
        ),
        ("s1?:x=a p:x=a@5 w:x@0/5/5", ["acked-above-end read 5 (3, 5)"]),
        ("w:x@0/5/5 s:x=a@5", []),
    ],
)
def test_ends_only_grow(histories: Any, text: str, found: list[str]) -> None:
    """Log ends only grow between probes that did not overlap."""
    assert told(histories, text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("d:x@3/3 w:x@3/7/7", []),
        ("d:x@3/4 w:x@3/7/7", ["log-start-regress 3 (1, 3)"]),
        ("d:x@3/3 d:x@2/3", []),
        ("d:x@5/5 d:x@2/3 w:x@5/7/7", []),  # another replica is back from a fault
        ("d8?:x@3 w:x@3/7/7 w:x@0/7/7", []),  # only one leader may know of it
        ("w:x@3/7/7 w:x@0/7/7 d?:x@3", []),
        ("d!:x@3 w:x@3/7/7 w:x@0/7/7", ["log-start-regress 0 (3, 5)"]),  # that deletion failed
        (">w1:x@0/7/7 d:x@3/3 <w1:x@0/7/7", []),
        # a reader that begins later does not receive deleted records
        ("d:x@3/3 a:x p:x=a@3", []),
        ("d:x@3/3 a:x p:x=a@2", ["log-start-regress read 2 (1, 5)"]),
        ("d8?:x@3 a:x p:x=a@2", []),
        ("a:x d:x@3/3 p:x=a@2", []),
        (">a:x d1:x@3/3 <a:x p:x=a@2", []),
        ("a:x d:x@3/3 a:x,y p:x=a@2", []),  # it keeps its position
        ("a:x d:x@3/3 a:y a:x p:x=a@2", ["log-start-regress read 2 (3, 9)"]),
        ("d:x@3/3 p:x=a@2", []),  # unknown when it began
    ],
)
def test_what_was_deleted_stays_so(histories: Any, text: str, found: list[str]) -> None:
    """Records stay deleted once a deletion was answered."""
    assert told(histories, text) == found


def test_a_former_leader_still_has_what_was_deleted(histories: Any) -> None:
    """A deleted record from a former leader has a variant of its own."""
    cut_off = FaultInterval(1, 0, None)
    assert told(histories, "d:x@3/3 a:x p:x=a@2", cut_off) == ["log-start-regress stale 2 (1, 5)"]


def test_an_end_from_memory(histories: Any) -> None:
    """An end from a leader that was cut off, and may not know its successor, has a variant of its
    own."""
    text = "s:x=a@6 w:x@0/7/5 w:x@0/5/5 z:60 w:x@0/6/6"
    assert told(histories, text, ENDED) == [
        "hw-regress stale 5 (3, 5)",
        "hw-regress 6 (3, 7)",
        "acked-above-end stale 6 (1, 5)",
        "acked-above-end 6 (1, 7)",
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("w:x@0/7/5 z:40 w:x@0/7/5", ["stuck-lso 5 (1, 3)"]),
        ("w:x@0/7/5 z:20 w:x@0/7/5", []),
        ("w:x@0/5/5 z:40 w:x@0/5/5", []),
        ("w:x@0/7/5 z:40 w:x@0/7/6", []),
        ("w:x@0/7/4 z:20 w:x@0/7/5 z:20 w:x@0/7/5", []),
        ("w:x@0/7/4 w:x@0/7/5 z:40 w:x@0/9/5", ["stuck-lso 5 (3, 5)"]),
        ("w:x@0/7/5 z:40 w:y@0/7/5", []),
    ],
)
def test_a_transaction_that_nobody_ends(histories: Any, text: str, found: list[str]) -> None:
    """A transaction that is never ended holds the last stable offset where it began."""
    assert told(histories, text) == found
    assert told(histories, text, ENDED) == found
    assert told(histories, text, FaultInterval(1, 0, None)) == []
    assert told(histories, text, FaultInterval(1, 0, 30 * SECOND)) == []


def test_how_long_it_was_stuck_is_told(histories: Any) -> None:
    """The time for which the last stable offset was stuck is reported in whole seconds."""
    (found,) = kernel(histories.log("w:x@0/7/5 z:40 w:x@0/7/5", "x"))
    assert found.also == (41,)
