"""Decides whether figures differ beyond noise, by permutation tests with a correction.

The figures of scenarios differ, and how often each ran may differ between versions. So each value
is first divided by the median of its scenario, and these ratios are ranked over all scenarios. If
the version does not matter, the ranks of a scenario could as well belong to its runs in any other
order. The test draws such orders, and counts in how many of them the ranks differ as much between
versions as they do in truth. It makes no assumption about the distribution of the figures, and one
outlier changes little.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import ruptures

ALPHA = 0.01
"""The probability with which at least one difference is reported although there is none."""
ORDERS_MIN = 9_999
"""So many random orders are drawn at least."""
ORDERS_AT_ONCE = 500
ENOUGH = 200
"""After so many orders that differ as much, no further ones are drawn: it is noise."""
RATIO_MIN = 0.1
"""Smaller relative changes are never reported."""
PENALTY = 3.0
"""For each change point, in units of the logarithm of the number of versions: as in the Bayesian
information criterion, with some margin."""
_SEED = 20261124

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Sample(NamedTuple):
    """The figures of runs; the arrays have one item for each run."""

    values: Floats
    versions: Ints
    """The place of each run's version in their order in time, from 0."""
    scenarios: Ints

    def between(self, begin: int, end: int) -> "Sample":
        """Return the runs of the versions from ``begin`` to before ``end``, counted from there."""
        inside = (self.versions >= begin) & (self.versions < end)
        versions = self.versions[inside] - begin
        return Sample(self.values[inside], versions, self.scenarios[inside])

    @property
    def version_count(self) -> int:
        """The number of versions."""
        return int(self.versions.max(initial=-1)) + 1


def aligned(sample: Sample, floor: float) -> Floats:
    """Return the logarithm of each value's ratio to the median of its scenario.

    ``floor`` is added to all values, so that ratios of values near 0 mean little.
    """
    logs = np.log(sample.values + floor)
    for scenario in np.unique(sample.scenarios):
        rows = sample.scenarios == scenario
        logs[rows] -= np.median(logs[rows])
    return np.asarray(logs, dtype=np.float64)


def p_value(sample: Sample, aligned_values: Floats, *, orders: int = ORDERS_MIN) -> float:
    """Return how probable a difference like that between the versions is by chance alone.

    The statistic is the greatest difference between all versions before and all versions from some
    version on, whichever that is: the search for the place is part of the test. It is two-sided.
    """
    if sample.version_count < 2:
        return 1.0
    rng = np.random.default_rng(_SEED)
    ranks = _ranks(aligned_values)
    places = [np.flatnonzero(sample.scenarios == each) for each in np.unique(sample.scenarios)]
    members = np.eye(sample.version_count)[sample.versions]
    truth = _statistic(ranks[None, :], members)[0]
    as_great = drawn_count = 0
    while drawn_count < orders:
        part = min(orders - drawn_count, ORDERS_AT_ONCE)
        drawn = np.tile(ranks, (part, 1))
        for rows in places:
            drawn[:, rows] = rng.permuted(drawn[:, rows], axis=1)
        as_great += int((_statistic(drawn, members) >= truth - 1e-9).sum())
        drawn_count += part
        if as_great >= ENOUGH:
            break
    return (1 + as_great) / (1 + drawn_count)


def _ranks(values: Floats) -> Floats:
    """Return the ranks, centred; equal values have the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    middle = last - (counts - 1) / 2
    return np.asarray(middle[inverse] - (len(values) + 1) / 2, dtype=np.float64)


def _statistic(ranks: Floats, members: Floats) -> Floats:
    """Return the greatest standardized difference over all splits, for each order of the ranks."""
    sums = np.cumsum(ranks @ members, axis=1)[:, :-1]
    before = np.cumsum(members.sum(axis=0))[:-1]
    after = len(members) - before
    weight = np.sqrt(before * after / len(members))
    means = sums / before - (ranks.sum(axis=1, keepdims=True) - sums) / after
    return np.asarray(np.abs(means * weight).max(axis=1), dtype=np.float64)


def change_points(sample: Sample, aligned_values: Floats) -> list[int]:
    """Return the versions from which on the figures seem to differ from those before them.

    These are proposals: whether they are more than noise is left to :func:`p_value`.
    """
    count = sample.version_count
    if count < 2:
        return []
    medians = np.array(
        [np.median(aligned_values[sample.versions == version]) for version in range(count)]
    )
    noise = float(np.median(np.abs(np.diff(medians)))) or float(medians.std()) or 1.0
    algorithm = ruptures.Pelt(model="l2", min_size=1, jump=1).fit((medians / noise).reshape(-1, 1))
    return [int(end) for end in algorithm.predict(pen=PENALTY * np.log(count))[:-1]]


def corrected(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected for their number by Holm's method.

    The probability that any true null hypothesis is below a level is at most that level.
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    found = [1.0] * len(p_values)
    least = 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, p_values[place] * (len(p_values) - rank)))
        found[place] = least
    return found


def orders_for(tests: int) -> int:
    """Return how many orders to draw, so that the correction can still reach :data:`ALPHA`."""
    return max(ORDERS_MIN, int(np.ceil(2 * tests / ALPHA)))
