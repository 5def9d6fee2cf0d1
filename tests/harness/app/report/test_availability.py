from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.app.report import availability, columns, faults


def ints(*numbers: int) -> columns.Ints:
    return np.array(numbers, dtype=np.int64)


def waits(*spans: tuple[int, int], acked: bool = True) -> availability.Waits:
    """Make waits, the last of them acknowledged or not."""
    ends = np.ones(len(spans), dtype=np.bool_)
    ends[-1:] = acked
    return availability.Waits(ints(*(a for a, _ in spans)), ints(*(b for _, b in spans)), ends)


@pytest.mark.parametrize(
    ("asked", "acked", "last", "spans", "all_acked"),
    [
        ([0, 10], [5, 30], 30, [(0, 5), (10, 30)], True),   # idle from 5 to 10: no wait
        ([0, 2, 4], [20], 20, [(0, 20)], True),             # the first of them began the wait
        ([0, 10, 15], [5], 25, [(0, 5), (10, 25)], False),  # the last writes failed at 25
        ([0], [], 9, [(0, 9)], False),                      # never acknowledged at all
        ([0, 1], [5], 5, [(0, 5)], True),
    ],
)  # fmt: skip
def test_between(
    asked: list[int], acked: list[int], last: int, spans: list[tuple[int, int]], *, all_acked: bool
) -> None:
    """A wait lasts from the first write to the next acknowledgement; idle time is no wait."""
    found = availability.between(ints(*asked), ints(*acked), last)
    assert list(zip(found.begin.tolist(), found.end.tolist(), strict=True)) == spans
    assert bool(found.acked.all()) is all_acked


@pytest.mark.parametrize(
    ("window", "longest"),
    [((0, 5), 0), ((3, 15), 10), ((15, 25), 30), ((21, 22), 30), ((51, 60), 0)],
)
def test_wait_touching_a_window(window: tuple[int, int], longest: int) -> None:
    """A wait counts fully if any part of it is in the window, and otherwise not at all."""
    assert availability.wait_ns(waits((10, 20), (20, 50)), window) == longest


def test_recovery() -> None:
    """The slowest partition decides; a partition without further writes does not count."""
    quick, slow = waits((0, 10), (90, 112)), waits((0, 5), (50, 140))
    idle = waits((0, 10), (100 + availability.RECOVERY_NS + 1, 10**12))
    assert availability.recovery_ns([quick, slow, idle], 100) == 40
    assert availability.recovery_ns([quick, waits((0, 10), (120, 150))], 100) == 30
    assert availability.recovery_ns([quick, slow], None) is None
    assert availability.recovery_ns([idle], 100) is None
    assert availability.recovery_ns([quick, waits((90, 140), acked=False)], 100) is None


def test_impacts_of_a_run(run_folder: Callable[..., Path]) -> None:
    """The impact of each applied fault is its acknowledgements, longest wait and recovery."""
    folder = run_folder("valid", sends=2000)
    events = columns.load(folder / "history.jsonl")
    struck = faults.load(folder / "schedule.jsonl")
    found = availability.impacts(events, struck)
    assert [impact.fault.id for impact in found] == [fault.id for fault in struck]
    for impact in found:
        assert impact.acked_per_s is not None
        assert impact.acked_per_s > 0
        assert impact.wait_s is not None
        assert impact.wait_s < 4
        assert impact.wait_key in events.key_names
        assert impact.recovery_s is not None
        assert impact.recovery_s < 4


def test_a_run_without_events_has_no_impacts(tmp_path: Path) -> None:
    """A fault in an empty history has no measures."""
    fault = faults.Fault(id=1, fault="kill", applied_ns=5, healed_ns=10)
    (impact,) = availability.impacts(columns.load(tmp_path / "absent"), [fault])
    assert (impact.wait_s, impact.wait_key, impact.recovery_s) == (None, "", None)
