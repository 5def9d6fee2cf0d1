import dataclasses
from typing import Any

import msgspec
import pytest

from checkers.kernels.faults import FaultInterval
from checkers.kernels.progress import stuck_groups, stuck_producers
from model.op import Op

GROUP = "g"
SECOND = 1_000_000_000
SENDS = "s:x-0=a@0,x-0=b@1 p8:x-0=a@0,x-0=b@1 "
JOINED = "m1:x p1:^x-0@0#1|x-0=a@0 "


@pytest.mark.parametrize(
    ("text", "stuck"),
    [
        (SENDS + JOINED + "z:40 p1:", True),
        (SENDS + JOINED + "z:20 p1:", False),
        (SENDS + JOINED + "z:40 p1!:", False),  # the poll's result is unknown
        (SENDS + JOINED + "z:40 p1:x-0=b@1 z:40 p1:", False),
        (SENDS + JOINED + "p1:x-0=b@1 z:40 p1:", False),  # all was delivered before
        (SENDS + JOINED + "k1:x-0@2 z:40 p1:", False),  # … or was committed
        (SENDS + JOINED + "z:40 m2:x p1:", False),  # a member has just joined
        (SENDS + JOINED + "z:40 m2:x z:40 p1:", True),
        (SENDS + JOINED + "m2:x z:40 l2: p1:", False),
        (SENDS + "m1:y p1:^y-0@0#1| z:40 p1:", False),  # of other topics
        ("s:x-0=a@0,x-0=b@1 " + JOINED + "z:40 p1:", False),  # the records may be unreadable
        (JOINED.replace("x-0=a@0", "") + "z:40 " + SENDS + "p1:", False),  # it was sent just now
    ],
)
def test_a_group_that_gives_nobody_anything(histories: Any, text: str, stuck: bool) -> None:
    """A group is stuck if its members poll for long and receive nothing that others could read."""
    log = histories.log(text, "x-0")
    found = stuck_groups(log)
    assert bool(found) == stuck
    if found:
        assert found[0].also[0] >= 40
    late = FaultInterval(1, 0, 40 * SECOND)
    assert stuck_groups(dataclasses.replace(log, faults=(late,))) == [] or "m2" in text
    assert stuck_groups(dataclasses.replace(log, faults=(FaultInterval(1, 0, None),))) == []
    assert stuck_groups(dataclasses.replace(log, is_deleted=True)) == []


def test_a_group_is_stuck_wherever_others_are(histories: Any) -> None:
    """What another group has received or committed does not show that this one goes on."""
    ops = histories.events(SENDS + JOINED + "m2:x p2:^x-0@2#1| k2:x-0@2 z:40 p1:")

    def of_other(op: Op) -> Op:
        value = [["h" if part == GROUP else part for part in what] for what in op.value or ()]
        return msgspec.structs.replace(op, value=value) if op.process == 2 else op

    assert [f.group for f in stuck_groups(histories.log(ops, "x-0"))] == []
    found = stuck_groups(histories.log([of_other(op) for op in ops], "x-0"))
    assert [f.group for f in found] == [GROUP]


@pytest.mark.parametrize(
    ("text", "stuck"),
    [
        ("i1:t@1.0 t1!:+x=a z:20 t1!:+x=b z:20 t1!:+x=c", True),
        ("i1:t@1.0 t1!:+x=a z:10 t1!:+x=b z:10 t1!:+x=c", False),
        ("i1:t@1.0 t1!:+x=a z:40 t1!:+x=b", False),  # too few attempts
        ("i1:t@1.0 t1!:+x=a z:20 t1:+x=b z:20 t1!:+x=c", False),
        ("i1:t@1.0 t1!: z:20 t1!: z:20 t1!:", False),  # the read may be what fails
        ("i1?:t z:20 i2?:t z:20 i3?:t", True),  # no process gets the id
        ("i1!:t z:20 i1!:t z:20 i1!:t", True),
        ("i1:t@1.0 i2:t@1.1 t1!:+x=a z:20 t1!:+x=b z:20 t1!:+x=c", False),  # it is fenced
        ("t1?:+x=a z:20 t2?:+x=b z:20 t3?:+x=c", True),  # no id is reported
    ],
)
def test_a_producer_that_gets_nothing_done(histories: Any, text: str, stuck: bool) -> None:
    """A producer is stuck if it tries for long and fails although no process has taken over its
    id."""
    found = stuck_producers(histories.tables(text))
    assert bool(found) == stuck
    if found:
        assert found[0].also[0] >= 40


def test_a_producer_that_aborts_on_purpose_works(histories: Any) -> None:
    """A producer that aborts on purpose is not stuck."""
    ops = histories.events("i1:t@1.0 t1!:+x=a|abort z:20 t1!:+x=b|abort z:20 t1!:+x=c|abort")
    aborted = [
        Op(**{f: getattr(op, f) for f in op.__struct_fields__} | {"error": "aborted"})
        if op.type == "fail"
        else op
        for op in ops
    ]
    assert stuck_producers(histories.tables(ops)) != []
    assert stuck_producers(histories.tables(aborted)) == []
