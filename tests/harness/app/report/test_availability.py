from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.app.report import availability, columns, faults


@pytest.mark.parametrize(
    ("times", "window", "silence"),
    [
        ([0, 1, 2, 9, 10], (3, 5), 7),  # the gap around the fault, whole
        ([0, 1, 2, 9, 10], (9, 12), 1),  # the gap ended as the fault began
        ([0, 5, 6, 7], (5, 7), 1),  # the gap before it is not its doing
        ([0, 1], (5, 9), 0),  # nothing came after: nothing to measure
        ([], (5, 9), 0),
    ],
)
def test_silence(times: list[int], window: tuple[int, int], silence: int) -> None:
    """The longest gap that reaches into the fault's window counts."""
    assert availability.silence_ns(np.array(times, dtype=np.int64), window) == silence


@pytest.mark.parametrize(
    ("times", "healed", "recovery"),
    [
        ([[1, 10, 14], [1, 12]], 9, 3),  # the slowest partition decides
        ([[1, 9]], 9, 0),
        ([[1, 10], [1, 8]], 9, None),  # one never came back
        ([], 9, None),
        ([[1, 10]], None, None),
    ],
)
def test_recovery(times: list[list[int]], healed: int | None, recovery: int | None) -> None:
    """From the healing to the first acknowledgement of the last partition."""
    found = [np.array(each, dtype=np.int64) for each in times]
    assert availability.recovery_ns(found, healed) == recovery


def test_impacts_of_a_run(run_folder: Callable[..., Path]) -> None:
    """A fault that stops a partition for three seconds is shown with these three seconds."""
    folder = run_folder("valid", sends=4000)
    struck = faults.load(folder / "schedule.jsonl")
    found = availability.impacts(columns.load(folder / "history.jsonl"), struck)
    assert [impact.fault for impact in found] == struck
    for impact in found:
        assert impact.silence_s is not None
        assert 2.5 < impact.silence_s < 4.5
        assert impact.silent_key.startswith("orders-")
        assert impact.recovery_s is not None
        assert impact.recovery_s < 1.5
        assert impact.acked_per_s is not None
        assert 20 < impact.acked_per_s < 80
