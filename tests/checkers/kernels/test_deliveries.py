from typing import Any

import pytest

from checkers.kernels.deliveries import kernel

SENDS = "s:x-0=a@0 s:x-0=b@1 s:x-0=c@4 s:x-0=d@5 p8:x-0=a@0,x-0=b@1,x-0=c@4,x-0=d@5 "
"""Ten events; no reader receives the offsets 2 and 3."""


def told(histories: Any, text: str) -> list[str]:
    found = kernel(histories.log(SENDS + text, "x-0"))
    return [f"{f.anomaly} {f.variant} {f.offset} {f.ops}".replace("  ", " ") for f in found]


MEMBER = "m1:x p1:^x-0@0#1|x-0=a@0,x-0=b@1 "


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (MEMBER + "k1:x-0@1", []),
        (MEMBER + "k1:x-0@2", []),
        (MEMBER + "k1:x-0@4", []),  # no reader receives what is between
        (MEMBER + "k1:x-0@5", ["commit-ahead 5 (15,)"]),
        (MEMBER + "k1:x-0@77", ["commit-ahead 77 (15,)"]),
        (MEMBER + "k1!:x-0@77", []),
        (MEMBER + "k1?:x-0@77", []),
        (MEMBER + "k1:x-0@5 k1:x-0@5 p1:x-0=c@4 k1:x-0@5", ["commit-ahead 5 (15,)"]),
        (MEMBER + "k1:x-0@2 p1:x-0=c@4 k1:x-0@5", []),
        (MEMBER + "k3:x-0@5", []),  # process 3 is no member
        ("m1:x p1:^x-0@0#1| p1:x-0=a@0|x-0=b@1 k1:x-0@2", []),
        ("k3:x-0@5 m1:x p1:^x-0@5#1| k1:x-0@5", []),  # it began there
        ("m1:x p1:^x-0@0#1| k1:x-0@5", ["commit-ahead 5 (15,)"]),
        ("m1:x p1:^x-0#1| k1:x-0@5", []),  # where it began is unknown
        # deliveries to other members of the group count, those to other processes do not
        (MEMBER + "k1:x-0@2 m2:x p2:^x-0@2#2|x-0=c@4 p1:-x-0#1|^x-0@2#3| k1:x-0@5", []),
        (MEMBER + "p3:x-0=c@4 k1:x-0@5", ["commit-ahead 5 (17,)"]),
        # a poll that ended badly may have delivered it
        (MEMBER + "p1!: k1:x-0@5", []),
        # in a transaction
        (MEMBER + "t1:x-0=c@4|!x-0@5", []),
        (MEMBER + "t1:x-0=c@4|!x-0@6", ["commit-ahead 6 (15,)"]),
        # after an automatic commit, a later member begins too far on
        (
            "m1:x#auto m2:x#auto p1:^x-0@0#1|x-0=a@0 p2:^x-0@5#2|",
            ["commit-ahead alone 5 (17,)"],
        ),
        ("m1:x#auto m2:x#auto p1:^x-0@0#1|x-0=a@0 p2:^x-0@1#2|", []),
        ("m1:x#auto m2:x#auto p1:^x-0@0#1|x-0=a@0,x-0=b@1 p2:^x-0@4#2|", []),
    ],
)
def test_commit_ahead(histories: Any, text: str, found: list[str]) -> None:
    """A commit is ahead if its offset is beyond what any member of the group received."""
    assert told(histories, text) == found


TWO = "m1:x m2:x p1:^x-0@0#1|x-0=a@0,x-0=b@1 k1:x-0@2 "
"""Twenty events."""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (TWO + "p2: p2:^x-0@2#2|x-0=c@4", []),
        (TWO + "p2: p2:^x-0@2#2|x-0=d@5", ["resume-gap 5 (21,)"]),
        (TWO + "p2: p2:^x-0@4#2|x-0=c@4", []),  # the next existing record
        (TWO + "p2: p2:^x-0@5#2|x-0=d@5", ["resume-gap 5 (17, 21)"]),
        (TWO + "p2: p2:^x-0@0#2|", ["resume-overlap 0 (17, 21)"]),
        (TWO + "p2: p2:^x-0@1#2|x-0=b@1", ["resume-overlap 1 (17, 21)"]),
        (TWO + "p2: p2:^x-0@2#2|x-0=b@1", ["resume-overlap 1 (21,)"]),
        (TWO + "p2:^x-0@0#2|", []),  # it looked up that commit
        (TWO + "k1?:x-0@5 p2: p2:^x-0@5#2|x-0=d@5", []),  # in doubt
        (TWO + "k1?:x-0@5 p2: p2:^x-0@2#2|x-0=c@4", []),
        (TWO + "k1?:x-0@5 p2: p2:^x-0@2#2|x-0=c@4 f:x-0@5", []),  # the next coordinator reads it
        (TWO + "k1?:x-0@5 f:x-0@5 p2: p2:^x-0@2#2|", ["resume-overlap 2 (19, 25)"]),
        # the position is not reported, but the first record is
        (TWO + "p2: p2:^x-0#2|x-0=c@4", []),
        (TWO + "p2: p2:^x-0#2| p2:x-0=d@5", ["resume-gap 5 (17, 21, 23)"]),
        (TWO + "p2: p2:^x-0#2| p2:x-0=b@1", ["resume-overlap 1 (17, 21, 23)"]),
        (TWO + "p2: p2:^x-0#2| p2!: p2:x-0=d@5", []),  # the poll between may have delivered it
        (TWO + "p2: p2:^x-0#2|-x-0#2|^x-0#3| p2:x-0=c@4", []),
        (TWO + "p2: p2:^x-0@2#2| p2:-x-0#2|^x-0@2#3|x-0=d@5", ["resume-gap 5 (23,)"]),
        # without a committed offset, a member begins at the start of the log
        ("m1:x p1:^x-0@5#1|x-0=d@5", ["resume-gap start 5 (13,)"]),
        ("m1:x p1:^x-0#1| p1:x-0=b@1", ["resume-gap start 1 (13, 15)"]),
        ("m1:x p1:^x-0@4#1|x-0=d@5", ["resume-gap start 4 (13,)", "resume-gap 5 (13,)"]),
        ("m1:x p1:^x-0#1| p1:x-0=a@0", []),
        ("k3?:x-0@5 m1:x p1:^x-0@5#1|x-0=d@5", []),  # the log may have begun there
        ("k3?:x-0@4 m1:x p1:^x-0@5#1|x-0=d@5", ["resume-gap start 5 (15,)"]),
        ("k3!:x-0@5 m1:x p1:^x-0@5#1|x-0=d@5", ["resume-gap start 5 (15,)"]),
        ("m1:x p1:^x-0@5#1|x-0=d@5 k3:x-0@5", ["resume-gap start 5 (13,)"]),
        ("m1:x >p1: k3:x-0@5 <p1:^x-0@5#1|x-0=d@5", []),
        (TWO + "k1:x-0 p2: p2:^x-0@0#2|", []),
        (TWO + "k1:x-0 p2: p2:^x-0@2#2|", ["resume-gap start 2 (23,)"]),
        ("p1:^x-0@5#1|x-0=d@5", []),  # it may have committed without a record
        ("m1:x#latest p1:^x-0@5#1|x-0=d@5", []),
        ("m1:x#auto p1:^x-0@5#1|x-0=d@5", []),
        # the log begins later
        ("d:x-0@4/4 m1:x p1:^x-0@4#1|x-0=c@4", []),
        ("d?:x-0@4 m1:x p1:^x-0@4#1|x-0=c@4", []),
        ("d!:x-0@4 m1:x p1:^x-0@4#1|x-0=c@4", ["resume-gap start 4 (15,)"]),
        ("m1:x p1:^x-0@4#1|x-0=c@4 d:x-0@4/4", ["resume-gap start 4 (13,)"]),
        ("w:x-0@4/6/6 m1:x p1:^x-0@4#1|x-0=c@4", []),
        ("m1:x p1:^x-0@4#1|x-0=c@4 w:x-0@4/6/6", []),  # by retention, perhaps before
        ("m1:x p1:^x-0@4#1|x-0=c@4 w:x-0@1/6/6", ["resume-gap start 4 (13,)"]),
        (TWO + "d:x-0@5/5 p2: p2:^x-0@5#2|", []),  # what was committed is out of range
        ("m1:x p1:^x-0@0#1|x-0=b@1", ["resume-gap 1 (13,)"]),
        # a listener's commit is known to the generation that its member joins
        (
            "k9:x-0@0 m1:x#listener m2:x >p2: p1:^x-0@0#1|x-0=a@0,x-0=b@1"
            " p1:!x-0@2|-x-0#1|^x-1@0#2| <p2:^x-0@0#2|",
            ["resume-overlap 0 (20, 21)"],
        ),
        (  # without an offset before, generation 2 may be one of an earlier group
            "m1:x#listener m2:x >p2: p1:^x-0@0#1|x-0=a@0,x-0=b@1 p1:!x-0@2|-x-0#1|^x-1@0#2|"
            " <p2:^x-0@0#2|",
            [],
        ),
        (
            "m1:x#listener m2:x >p2: p1:^x-0@0#1|x-0=a@0,x-0=b@1 p1:!x-0@2|-x-0#1|^x-1@0#2|"
            " <p2:^x-0@2#2|",
            [],
        ),
        # … unless a static member returns into its former generation, or the group begins again
        ("m1:x#listener p1:^x-0@0#1|x-0=a@0 p1:!x-0@1|-x-0#1| p1:^x-0@1#1|", []),
        ("m1:x#listener p1:^x-0@0#5|x-0=a@0 p1:!x-0@1|-x-0#5| p1:^x-0@1#1|", []),
        # clients that commit automatically may have committed any offset they received
        ("m1:x#auto m2:x p1:^x-0@0#1|x-0=a@0,x-0=b@1 k1:x-0@2 p2: p2:^x-0@1#2|", []),
    ],
)
def test_resumption(histories: Any, text: str, found: list[str]) -> None:
    """A member begins at the record behind what was committed."""
    assert told(histories, text) == found


def test_a_gap_of_records_that_are_not_certain_is_none(histories: Any) -> None:
    """A gap of aborted or unacknowledged records is no gap."""
    text = "s:x-0=a@0 s4?:x-0=b t5!:+x-0=c|abort s:x-0=d@3 p8:x-0=a@0,x-0=b@1,x-0=c@2,x-0=d@3 "
    member = "m1:x p1:^x-0@0#1|x-0=a@0 "
    log = histories.log(text + member + "k1:x-0@3 p1:-x-0#1|^x-0@3#2|x-0=d@3", "x-0")
    assert kernel(log) == []
    (found,) = kernel(histories.log(text + member + "k1:x-0@4", "x-0"))
    assert found.anomaly == "commit-ahead"
