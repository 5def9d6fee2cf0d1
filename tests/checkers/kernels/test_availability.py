import dataclasses
from typing import Any

from checkers.kernels.availability import Outage, Recovery, longest_outage, recoveries, stuck
from checkers.kernels.rows import Band, Log

SECOND = 1_000_000_000


def with_fault(log: Log, from_s: int, to_s: int | None) -> Log:
    band = Band(3, from_s * SECOND, None if to_s is None else to_s * SECOND)
    return dataclasses.replace(log, faults=(band,))


def test_the_longest_outage_lies_between_acknowledgements(histories: Any) -> None:
    """From the last write taken before it to the first after it; polls do not matter."""
    log = histories.log("s:x=a@0 s?:x=b s1?:x=c p: s2:x=d@1 s2:x=e@2")
    assert longest_outage(log) == Outage("x", 1 * SECOND, 9 * SECOND)


def test_a_key_that_is_only_read_has_no_outage(histories: Any) -> None:
    """Without a write asked for there is nothing to be unavailable."""
    assert longest_outage(histories.log("p:x=a@0")) is None


def test_recovery_is_the_time_from_the_heal_to_the_next_acknowledgement(histories: Any) -> None:
    """Writes that were taken during the fault do not count; none afterwards is None."""
    log = histories.log("s:x=a@0 s:x=b@1 s1?:x=c s2:x=d@2")
    assert recoveries(with_fault(log, 0, 4)) == [Recovery(3, "x", 3.0)]
    assert recoveries(with_fault(log, 0, 8)) == [Recovery(3, "x", None)]
    assert recoveries(with_fault(log, 0, None)) == []


def test_stuck_is_a_key_that_takes_nothing_long_after_the_last_heal(histories: Any) -> None:
    """Half a minute of attempts convicts; less, one success, or a fault that goes on does not."""
    tries = " ".join(f"s{n}?:x={n}" for n in range(2, 18))
    log = histories.log(f"s:x=a@0 {tries}")
    (found,) = stuck(with_fault(log, 0, 2))
    assert (found.anomaly, found.ops) == ("stuck", (3, 33))
    assert stuck(with_fault(log, 0, 4)) == []
    assert stuck(with_fault(log, 0, None)) == []
    assert stuck(log) == []
    assert stuck(with_fault(histories.log(f"s:x=a@0 {tries} s1:x=z@1"), 0, 2)) == []
