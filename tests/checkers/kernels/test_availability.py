import dataclasses
from typing import Any

import pytest

from checkers.kernels.availability import Outage, Recovery, longest_outage, recoveries, stuck
from checkers.kernels.faults import FaultInterval
from checkers.kernels.log import Log

SECOND = 1_000_000_000


def with_fault(log: Log, from_s: int, to_s: int | None) -> Log:
    interval = FaultInterval(3, from_s * SECOND, None if to_s is None else to_s * SECOND)
    return dataclasses.replace(log, faults=(interval,))


@pytest.mark.parametrize(
    ("text", "outage"),
    [
        # b and c are pending from 2 on and never acknowledged; d is acknowledged at 9
        ("s:x=a@0 s?:x=b s1?:x=c p: s2:x=d@1 s2:x=e@2", (2, 9)),
        ("s:x=a@0 p: p: p: s:x=b@1", (0, 1)),  # no write was pending in between
        (">s:x=a p: p: <s:x=a@0 s:x=b@1", (0, 5)),
        ("s?:x=a s1?:x=b", (0, 3)),
    ],
)
def test_the_longest_outage(histories: Any, text: str, outage: tuple[int, int]) -> None:
    """An outage is a time in which writes were pending and none was acknowledged; polls do not
    matter."""
    begin, end = outage
    assert longest_outage(histories.log(text)) == Outage("x", begin * SECOND, end * SECOND)


def test_a_key_that_is_only_read_has_no_outage(histories: Any) -> None:
    """A partition that is only read has no outage."""
    assert longest_outage(histories.log("p:x=a@0")) is None


@pytest.mark.parametrize(
    ("healed_s", "expected"),
    [
        (3, [Recovery(3, "x", 4.0)]),  # c is pending; d is acknowledged at 7
        (8, [Recovery(3, "x", 1.0)]),  # no write before 12, and e is acknowledged at 13
        (13, [Recovery(3, "x", None)]),  # f is never acknowledged
        (15, []),  # no further write
        (None, []),
    ],
)
def test_recovery(histories: Any, healed_s: int | None, expected: list[Recovery]) -> None:
    """Recovery takes from the heal, or from the first pending write after it, to the next
    acknowledgement."""
    log = histories.log("s:x=a@0 >s1:x=c p: <s1?:x=c s2:x=d@1 p: p: s2:x=e@2 s2?:x=f p:")
    assert recoveries(with_fault(log, 0, healed_s)) == expected


def test_stuck_is_a_key_that_takes_nothing_long_after_the_last_heal(histories: Any) -> None:
    """A partition is stuck after half a minute of failed writes; less, one success, or an active
    fault is no proof."""
    tries = " ".join(f"s{n}?:x={n}" for n in range(2, 18))
    log = histories.log(f"s:x=a@0 {tries}")
    (found,) = stuck(with_fault(log, 0, 2))
    assert (found.anomaly, found.ops) == ("stuck", (3, 33))
    assert stuck(with_fault(log, 0, 4)) == []
    assert stuck(with_fault(log, 0, None)) == []
    assert stuck(log) == []
    assert stuck(with_fault(histories.log(f"s:x=a@0 {tries} s1:x=z@1"), 0, 2)) == []


def test_a_deleted_topic_is_not_stuck(histories: Any) -> None:
    """A partition whose topic was or may have been deleted may accept nothing."""
    tries = " ".join(f"s{n}?:x={n}" for n in range(2, 18))
    log = with_fault(histories.log(f"s:x=a@0 {tries}"), 0, 2)
    assert len(stuck(log)) == 1
    assert stuck(dataclasses.replace(log, is_deleted=True)) == []
