"""Which faults were active at a moment, or which had ended last."""

import pytest

from harness.app.report.faults import Effect, Fault
from harness.app.report.proximity import near

S = 1_000_000_000


def fault(number: int, asked: float, applied: float | None, healed: float | None) -> Fault:
    return Fault(
        id=number,
        fault="kill",
        asked_ns=int(asked * S),
        applied_ns=None if applied is None else int(applied * S),
        healed_ns=None if healed is None else int(healed * S),
        effect=Effect(proved=applied is not None, how="seen"),
    )


FAULTS = [
    fault(1, 1.0, 2.0, 5.0),
    fault(2, 4.0, 4.5, 6.0),
    fault(3, 8.0, None, None),
    fault(4, 20.0, 20.0, None),
]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.5, []),
        (1.5, [(1, "was being applied: requested 500 ms before, in effect 500 ms later")]),
        (3.0, [(1, "had been in effect for 1.0 s, and was healed 2.0 s later")]),
        (4.75, [(1, "had been in effect for 2.8 s, and was healed 250 ms later"),
                (2, "had been in effect for 250 ms, and was healed 1.2 s later")]),
        (6.9, [(2, "was healed 900 ms before")]),
        (9.5, [(3, "ended without effect 1.5 s before")]),
        (30.0, [(4, "had been in effect for 10.0 s, and was never healed")]),
    ],
)  # fmt: skip
def test_near(seconds: float, told: list[tuple[int, str]]) -> None:
    """All active faults are named; if there are none, the last that had ended."""
    found = near(FAULTS, int(seconds * S))
    assert [(each.fault.id, each.relation) for each in found] == told


def test_a_fault_that_heals_as_an_event_happens_lasts_still() -> None:
    """A fault's window includes its end, because a response may have waited for the heal."""
    assert [each.fault.id for each in near(FAULTS, 6 * S)] == [2]


def test_a_fault_without_times_is_near_nothing() -> None:
    """A fault of the schedule without any times is near no event."""
    assert near([Fault(id=1, fault="kill")], 5) == []
