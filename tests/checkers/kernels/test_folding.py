from typing import Any

import pytest

from checkers.anomalies import is_legal
from checkers.expectations import Contract
from checkers.kernels import key


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # a loss explains that readers pass over it, and that its place has another record
        ("s:x=a@0 s:x=b@1 s:x=c@2 p:x=a@0,x=c@2 p2:x=a@0 p2:x=c@2", ["lost-write 2 +2"]),
        ("s:x=a@0 s1:x=b@0 p:x=b@0", ["lost-write 1 +1"]),
        ("s:x=a@5 s:x=b@4 s:x=c@6 p:x=b@4,x=c@6", ["lost-write 1 +2"]),  # and its own disorder
        # a log that was truncated and written again: what was read of it before and after
        (
            "s:x=a@0 s:x=b@1 p:x=a@0,x=b@1 s1:x=c@1 s1:x=d@2 p:x=d@2 p2:x=a@0,x=c@1,x=d@2 c2:x@3",
            ["lost-write 2 +1"],
        ),
        # but not what happens elsewhere
        (
            "s:x=a@0 s:x=b@1 s:x=c@2 s:x=d@3 p:x=a@0 p:x=d@3 p2:x=a@0,x=c@2,x=d@3",
            ["lost-write 2 +1", "poll-skip 3"],
        ),
        # a duplicate explains the order that it disturbs
        ("s:x=a@0 s:x=b@1 p:x=a@0,x=b@1,x=a@2 p2:x=a@0,x=b@1", ["duplicate 1"]),
        ("s:x=a@2 s:x=b@1 p:x=a@0,x=b@1,x=a@2", ["duplicate 1 +1"]),
        # a phantom explains the hole that others do not see, and the conflict about its place
        ("s:x=a@0 s:x=b@2 p:x=a@0,x=z@1,x=b@2 p2:x=a@0,x=b@2", ["phantom 26 +1"]),
        ("s:x=a@0 s:x=b@1 p:x=a@0,x=b@1 p2:x=z@0,x=b@1", ["phantom 26 +1"]),
        # what was read of an aborted transaction is skipped by all others
        (
            "t1!:+x=a@0 s:x=b@1 s:x=c@3 p:x=a@0,x=b@1 p2:x=b@1,x=c@3 t3!:+x=d@2|x=b@1,x=d@2",
            ["G1a 1", "precommitted-read 4 +1"],
        ),
        # two values that were both read at one offset stand on their own
        (
            "s:x=a s1:x=b s2:x=c@1 p:x=a@0,x=c@1 p2:x=b@0,x=c@1",
            ["inconsistent-offsets 1"],
        ),
        ("s:x=a s1:x=b p:x=a@0 p:x=b@0", ["inconsistent-offsets 1 +1"]),
    ],
)
def test_what_a_finding_explains_is_counted_under_it(
    histories: Any, text: str, found: list[str]
) -> None:
    """A finding is folded if it is gone once the lost, duplicated or phantom record is removed."""
    report = key.judge(histories.log(text))
    assert not [receipt for receipt in report.checker_runs if receipt.crash]
    told = [
        f"{f.anomaly} {f.value}" + (f" +{f.folded}" if f.folded else "")
        for f in report.found
        if not f.anomaly.startswith("unseen")
    ]
    assert told == found


@pytest.mark.parametrize(
    ("text", "all_", "one"),
    [
        ("s:x=a@5 s1?:x=b p:x=b@5,x=a@9", False, True),  # the place that was acknowledged is b's
        ("s:x=a@5 s1?:x=b p:x=a@5,x=b@6,x=a@9", True, True),
        ("s:x=a@5 p:x=a@9", True, True),  # it may be at both places
        ("s:x=a@5 s1:x=z@6 d:x@6/6 s2?:x=b p:x=b@5,x=z@6,x=a@9", False, True),
    ],
)
def test_a_permitted_duplicate_explains_no_conflict_that_is_not(
    histories: Any, text: str, all_: bool, one: bool
) -> None:
    """A producer without idempotence sends again, but with acks=all the place of a record that was
    acknowledged is not given to another one."""
    found = [f for f in key.judge(histories.log(text)).found if f.anomaly == "duplicate"]
    assert [f.value for f in found] == [1]
    for acks, expected in (("all", all_), ("1", one)):
        assert is_legal(found[0], Contract(acks=acks, idempotent=False)) is expected
    assert not is_legal(found[0], Contract())
