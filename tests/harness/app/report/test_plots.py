from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.app.report import columns, plots
from harness.app.report.faults import Fault
from model import history
from model.op import Op


def test_rates_lose_nothing(run_folder: Callable[..., Path]) -> None:
    """The rates over all bins add up to the records of the whole history."""
    events = columns.load(run_folder("valid", sends=300) / "history.jsonl")
    edges = plots.edges_s(events)
    for counted in (events.sent, events.read):
        rates = plots.per_second(events, edges, counted)
        assert float((rates * np.diff(edges)).sum()) == pytest.approx(int(counted.sum()))


def test_quantiles_are_those_of_each_bin() -> None:
    """Each bin has the quantiles of its own values, given in any order; an empty one has none."""
    edges = np.array([0.0, 1.0, 2.0, 3.0])
    times = np.array([2.5, 0.1, 0.9, 3.0, 0.5])
    values = np.array([7.0, 1.0, 3.0, 9.0, 2.0])
    middle, greatest = plots.quantiles(times, values, edges, (0.5, 1.0))
    np.testing.assert_array_equal(middle, [2.0, np.nan, 8.0])
    np.testing.assert_array_equal(greatest, [3.0, np.nan, 9.0])


def test_bins_of_a_run(tmp_path: Path) -> None:
    """A history without events has one bin, so that the axes can be drawn."""
    assert plots.edges_s(columns.load(tmp_path / "absent")).tolist() == [0.0, plots.BIN_S]


def test_a_burst_does_not_flatten_the_rest() -> None:
    """A burst after the workload does not scale the axis; a sentence names what exceeds it."""
    edges = np.arange(0.0, 101.0)
    rates = {"acknowledged": np.full(100, 50.0), "read": np.full(100, 60.0)}
    quiet = plots.ceiling(rates, edges, 90.0)
    assert quiet == pytest.approx(69.0)
    assert plots.beyond(rates, edges, quiet) == ""
    rates["read"][95] = 200_000.0
    assert plots.ceiling(rates, edges, 90.0) == quiet
    assert plots.beyond(rates, edges, quiet).endswith("200,000 read per second at 95.0 s.")
    rates["acknowledged"][30] = 900.0
    assert plots.ceiling(rates, edges, 90.0) > 900


def test_a_crash_is_no_answer_in_doubt(tmp_path: Path) -> None:
    """The end of a client is not drawn among the operations whose outcome is unknown."""
    path = tmp_path / "history.jsonl"
    history.write(
        path,
        [
            Op(index=0, time_ns=10**8, process=0, type="info", f="crash"),
            Op(index=1, time_ns=10**8, process=1, type="info", f="send"),
        ],
    )
    events = columns.load(path)
    _, _, _, unknown = plots.rates(events, plots.edges_s(events))
    assert unknown.tolist() == [1 / plots.BIN_S]


def test_bands_are_the_times_of_faults() -> None:
    """A fault that was not applied has no band; one that was not healed lasts to the end."""
    struck = [
        Fault(id=0, fault="kill", applied_ns=10**9, healed_ns=3 * 10**9),
        Fault(id=1, fault="pause", asked_ns=10**9),
        Fault(id=2, fault="slow", applied_ns=4 * 10**9),
    ]
    colours = {"kill": "#111", "pause": "#222", "slow": "#333"}
    assert plots.bands(struck, colours, 9.0) == {
        "from": [1.0, 4.0],
        "to": [3.0, 9.0],
        "colour": ["#111", "#333"],
    }
    assert plots.bands([], colours, 9.0) == {"from": [], "to": [], "colour": []}


def test_unread_records_are_a_running_sum() -> None:
    """The curve of unread records starts at 0 and changes at the end of each second of the run."""
    seconds, count = plots.running({3: -2, 1: 5}, 10.0)
    assert (seconds.tolist(), count.tolist()) == ([0.0, 2.0, 4.0, 10.0], [0.0, 5.0, 3.0, 3.0])
    seconds, count = plots.running({3: 1}, 3.5)
    assert (seconds.tolist(), count.tolist()) == ([0.0, 3.5, 3.5], [0.0, 1.0, 1.0])
