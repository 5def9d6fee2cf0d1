from typing import Any

import pytest

from checkers.kernels.polls import poll_order

SENDS = "s:x=a@0 s:x=b@1 s:x=c@2 s:x=d@3 "


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("p:x=a@0 p:x=b@1", []),
        ("p:x=a@0 p:x=c@2", ["poll-skip 1 (1,)"]),
        ("p:x=a@0 p:x=d@3", ["poll-skip 1 (1, 2)"]),
        ("p:x=a@0 p2:x=c@2", []),  # another reader
        ("p:x=c@2", []),  # a reader may begin anywhere
        ("p:x=b@1 p:x=a@0", ["nonmonotonic-poll 0 ()"]),
        ("p:x=b@1 p:x=b@1", ["nonmonotonic-poll 1 ()"]),
        ("p:x=a@0 p: p:x=b@1", []),
        ("p:x=b@1 p:y=a@1 p:x=c@2", []),  # partitions have positions of their own
        # inside one operation
        ("p:x=a@0,x=b@1|x=c@2", []),
        ("p:x=a@0,x=c@2", ["int-poll-skip 1 (1,)"]),
        ("p:x=a@0|x=c@2", ["int-poll-skip 1 (1,)"]),
        ("p:x=b@1,x=a@0", ["int-nonmonotonic-poll 0 ()"]),
        ("p:x=b@1|x=b@1", ["int-nonmonotonic-poll 1 ()"]),
        # one record out of place is one finding
        ("p:x=a@0,x=c@2,x=b@1,x=d@3", ["int-nonmonotonic-poll 1 ()"]),
        # assignments
        ("p:x=b@1 a:y p:x=a@0", []),
        ("p:x=b@1 a!:y p:x=a@0", ["nonmonotonic-poll 0 ()"]),
        ("p:x=b@1 a:x,y p:x=a@0", ["nonmonotonic-poll 0 ()"]),
        ("p:x=b@1 a:y a:x p:x=a@0", []),
        ("p:x=b@1 a2:y p:x=a@0", ["nonmonotonic-poll 0 ()"]),  # of another process
        # rebalances
        ("p:x=b@1 p:-x#3|^x@0#4|x=a@0", []),
        ("p:^x@0#3|x=a@0|x=c@2", []),  # which poll it preceded is unknown
        ("p:^y@0#3|x=a@0|x=c@2", ["int-poll-skip 1 (1,)"]),  # of another partition
        # operations that did not end well
        ("p:x=a@0 t!:x=b@1 t:x=b@1", []),  # a failed transaction rewinds …
        ("p:x=a@0 t!:x=b@1 t:x=c@2", ["poll-skip 1 (1,)"]),  # … and must
        ("p:x=a@0 t?:x=c@2 p8:x=b@1", ["poll-skip 1 (1,)"]),  # the transaction may be what skips
        ("p:x=a@0 p!:x=b@1 p:x=b@1", []),  # a failed poll may have moved the position
        ("p:x=a@0 p!:x=b@1 p:x=c@2", []),
        # records that may have been deleted
        ("p8:x=b@1 p:x=a@0 d7:x@2/2 p:x=c@2", []),
        ("p8:x=b@1 p:x=a@0 d7?:x@2 p:x=c@2", []),
        ("p8:x=b@1 p:x=a@0 d7!:x@2 p:x=c@2", ["poll-skip 1 (1,)"]),
        ("p8:x=b@1 p:x=a@0 d7:x@1/1 p:x=c@2", ["poll-skip 1 (1,)"]),
        ("p8:x=b@1 p:x=a@0 p:x=c@2 d7:x@2/2", ["poll-skip 1 (1,)"]),  # deleted only later
    ],
)
def test_poll_order(histories: Any, text: str, found: list[str]) -> None:
    """A reader that keeps its assignment gets each record once, in order."""
    results = poll_order(histories.log(SENDS + text))
    assert [f"{f.anomaly} {f.offset} {f.also}" for f in results] == found


@pytest.mark.parametrize(
    ("text", "skips"),
    [
        ("s:x=a@0 s1:x=b@5 p:x=a@0 p:x=b@5", 0),  # nothing known is between
        ("s:x=a@0 s?:x=c@3 s1:x=b@5 p:x=a@0 p:x=b@5", 0),  # a claim in doubt
        ("s:x=a@0 s1:x=b@5 p:x=a@0 p:x=b@5 p2?:x=c@3", 1),  # another read shows it
        ("s:x=a@0 s:x=c@3 s1:x=b@5 p:x=a@0 p:x=b@5", 1),  # an acknowledgement shows it
    ],
)
def test_holes_that_nobody_can_fill_are_no_skips(histories: Any, text: str, skips: int) -> None:
    """Positions are compared by rank among the known offsets, so unknown offsets are no skips."""
    assert len(poll_order(histories.log(text))) == skips
