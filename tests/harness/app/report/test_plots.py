from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.app.report import columns, plots


def test_rates_lose_nothing(run_folder: Callable[..., Path]) -> None:
    """The rates over all bins add up to the records of the whole history."""
    events = columns.load(run_folder("valid", sends=300) / "history.jsonl")
    edges = plots.edges_s(events)
    for counted in (events.sent, events.read):
        rates = plots.per_second(events, edges, counted)
        assert float((rates * np.diff(edges)).sum()) == pytest.approx(int(counted.sum()))


def test_quantiles_are_those_of_each_bin() -> None:
    """Each bin is judged by its own values, unsorted as they come; an empty one has none."""
    edges = np.array([0.0, 1.0, 2.0, 3.0])
    times = np.array([2.5, 0.1, 0.9, 3.0, 0.5])
    values = np.array([7.0, 1.0, 3.0, 9.0, 2.0])
    middle, greatest = plots.quantiles(times, values, edges, (0.5, 1.0))
    np.testing.assert_array_equal(middle, [2.0, np.nan, 8.0])
    np.testing.assert_array_equal(greatest, [3.0, np.nan, 9.0])


def test_bins_of_a_run(tmp_path: Path) -> None:
    """A history without events has one bin, so that the axes can be drawn."""
    assert plots.edges_s(columns.load(tmp_path / "absent")).tolist() == [0.0, plots.BIN_S]
