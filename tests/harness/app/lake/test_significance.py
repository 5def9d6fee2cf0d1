"""Differences are found where they are more than noise, and the probability of an error is kept."""

import numpy as np
import pytest

from harness.app.lake import significance
from harness.app.lake.significance import ALPHA, Sample


def sample(seed: int, versions: int, runs: int, factor: float = 1.0, at: int = 1) -> Sample:
    """Runs of two scenarios of very different length; from version ``at`` on by ``factor`` more."""
    rng = np.random.default_rng(seed)
    version = np.repeat(np.arange(versions), runs)
    scenario = np.arange(versions * runs) % 2
    values = rng.lognormal(0.0, 0.4, versions * runs) * np.where(scenario, 20.0, 1.0)
    return Sample(values * np.where(version >= at, factor, 1.0), version, scenario)


def p_of(each: Sample, orders: int = 999) -> float:
    values = significance.aligned(each, 0.001)
    return significance.p_value(each, values, orders=orders)


def test_a_difference_is_found() -> None:
    """Values that are half as much again are found among 20 runs of each version."""
    assert p_of(sample(1, 2, 20, factor=2.0), 9999) <= ALPHA / 5
    assert p_of(sample(1, 2, 20), 9999) > ALPHA


def test_errors_are_as_rare_as_promised() -> None:
    """Where the version does not matter, p-values below a level are as rare as that level."""
    found = np.array([p_of(sample(seed, 6, 6), 199) for seed in range(200)])
    for level in (0.05, 0.2):
        assert (found <= level).mean() <= level + 3 * np.sqrt(level * (1 - level) / len(found))


def test_a_scenario_that_ran_more_often_is_no_change() -> None:
    """A version that ran more of the slow scenario is not slower; without scenarios it would be."""
    rng = np.random.default_rng(3)
    scenario = np.repeat([0, 1, 0, 1], [40, 10, 10, 40])
    version = np.repeat([0, 1], 50)
    values = rng.lognormal(0.0, 0.1, 100) * np.where(scenario, 10.0, 1.0)
    assert p_of(Sample(values, version, scenario)) > ALPHA
    assert p_of(Sample(values, version, np.zeros(100, dtype=np.int64)), 9999) <= ALPHA


def test_one_outlier_is_no_change() -> None:
    """A run that took a thousand times as long does not make its version worse."""
    each = sample(5, 2, 20)
    each.values[-1] *= 1000
    assert p_of(each) > ALPHA


def test_change_points_are_proposed() -> None:
    """The version from which on values differ is proposed, also the last one; noise has few."""
    for at in (4, 9):
        each = sample(2, 10, 20, factor=3.0, at=at)
        assert at in significance.change_points(each, significance.aligned(each, 0.001))
    assert significance.change_points(sample(1, 1, 5), np.zeros(5)) == []
    assert significance.change_points(sample(1, 3, 5), np.zeros(15)) == []


def test_without_two_versions_nothing_differs() -> None:
    """One version, or none, has the p-value 1."""
    assert p_of(sample(1, 1, 5)) == 1.0
    empty = np.zeros(0, dtype=np.int64)
    assert p_of(Sample(np.zeros(0), empty, empty)) == 1.0


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([], []),
        ([0.02], [0.02]),
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.5, 0.9], [1.0, 1.0]),
    ],
)
def test_holm(raw: list[float], expected: list[float]) -> None:
    """Holm's step-down procedure: the smallest counts for all, and none is below a smaller one."""
    assert significance.corrected(raw) == pytest.approx(expected)


def test_enough_orders_are_drawn() -> None:
    """With many comparisons the least p-value, corrected, is still below the level."""
    for tests in (1, 6, 600):
        assert tests / (1 + significance.orders_for(tests)) < ALPHA
