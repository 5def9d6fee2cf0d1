"""Finds what became better or worse from version to version of what a lake has."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from harness.app.gate.trends import written
from harness.app.lake import series as series_
from harness.app.lake import significance
from harness.app.lake.series import MEASURES, Measure, Series
from harness.app.lake.significance import ALPHA, RATIO_MIN, Sample
from harness.app.lake.store import Lake
from harness.app.refused import Refused

PREFIX_MIN = 4
"""A commit may be named by so many of its first digits, or more."""
SHORT = 9


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of two groups of runs in one measure."""

    suite: str
    system: str
    measure: str
    versions_before: tuple[str, ...]
    versions_after: tuple[str, ...]
    runs_before: int
    runs_after: int
    before: float
    """The median of the runs before, or their share."""
    after: float
    ratio: float | None
    """By which part the figure is greater afterwards, compared within each scenario; negative if it
    is less; ``None`` for shares."""
    p: float
    """The probability of such a difference by chance, corrected for the number of comparisons."""
    verdict: str
    """``worse``, ``better`` or ``same``."""
    is_latest: bool
    """True if the runs after are those of the latest versions, or of a release."""


class Trends(msgspec.Struct, frozen=True, kw_only=True):
    """The result: all comparisons that were made."""

    baseline: str | None
    runs: int
    series: int
    comparisons: tuple[Change, ...]

    @property
    def worse(self) -> list[Change]:
        """The latest changes for the worse: they decide the exit status."""
        return [each for each in self.comparisons if each.is_latest and each.verdict == "worse"]


class _Test(NamedTuple):
    """A comparison before its p-value is known to the correction."""

    of: Series
    measure: Measure
    sample: Sample
    """The runs of both groups."""
    versions: Sequence[str]
    split: int
    """The versions from this place on are those after."""
    is_latest: bool
    whole: Sample | None = None
    """All runs, if the place was found in them: they must differ as a whole, too."""


def find(lake: Lake, suite: str | None, baseline: str | None) -> tuple[Trends, list[Series]]:
    """Compare the runs of a lake; also return their series.

    Without a baseline the versions from the last change point on are compared with those between it
    and the one before; with a commit, the latest commit is compared with that; with a release,
    each other release of the same system. Raises :class:`~harness.app.refused.Refused` if the lake
    has no such suite or baseline.
    """
    with lake.reading() as paths:
        found = series_.load(paths, suite)
        releases = [] if baseline is None else series_.load(paths, suite, by_release=True)
    if not found and suite is not None:
        raise Refused(f"--suite {suite}: the lake {lake.folder} has no runs of such a suite")
    tests: list[_Test]
    if baseline is None:
        tests = [test for each in found for test in _by_change_points(each)]
    elif any(baseline in each.versions for each in releases):
        found = [each for each in releases if baseline in each.versions]
        tests = [test for each in found for test in _against_release(each, baseline)]
    else:
        named = _commits(found, baseline)
        if not named:
            raise Refused(f"--baseline {baseline}: no run in {lake.folder} has this commit"
                          " or release")  # fmt: skip
        tests = [test for each in found for test in _against_commit(each, named)]
    trends = Trends(
        baseline=baseline,
        runs=sum(len(each.runs) for each in found),
        series=len(found),
        comparisons=tuple(_judged(tests)),
    )
    return trends, found


def _commits(found: Sequence[Series], baseline: str) -> set[str]:
    if len(baseline) < PREFIX_MIN:
        return set()
    return {name for each in found for name in each.versions if name.startswith(baseline)}


def _by_change_points(of: Series) -> Iterator[_Test]:
    """Yield a test of each proposed change point, with the segments on both sides of it.

    Without a proposal the latest version is compared with all before it.
    """
    versions = of.versions
    for measure in MEASURES:
        sample = _sample(of, measure, versions)
        values = significance.aligned(sample, measure.least)
        points = significance.change_points(sample, values) or [len(versions) - 1]
        ends = [0, *points, len(versions)]
        for begin, split, end in zip(ends, ends[1:], ends[2:], strict=False):
            if 0 < split < len(versions):
                window = sample.between(begin, end)
                is_latest = end == len(versions)
                place = split - begin
                yield _Test(of, measure, window, versions[begin:end], place, is_latest, sample)


def _against_commit(of: Series, named: set[str]) -> Iterator[_Test]:
    """Yield a test of each measure of the latest commit against the named one."""
    before = [name for name in of.versions if name in named]
    after = of.versions[-1:]
    if before and after[0] not in named:
        yield from _pair(of, before[-1], after[0])


def _against_release(of: Series, baseline: str) -> Iterator[_Test]:
    for other in of.versions:
        if other != baseline:
            yield from _pair(of, baseline, other)


def _pair(of: Series, before: str, after: str) -> Iterator[_Test]:
    for measure in MEASURES:
        sample = _sample(of, measure, [before, after])
        yield _Test(of, measure, sample, [before, after], 1, is_latest=True)


def _sample(of: Series, measure: Measure, versions: Sequence[str]) -> Sample:
    """Return the runs of these versions that have the measure."""
    places = {name: place for place, name in enumerate(versions)}
    runs = [run for run in of.runs if run.version in places and measure.name in run.values]
    scenarios = {name: place for place, name in enumerate({run.scenario for run in runs})}
    return Sample(
        np.array([run.values[measure.name] for run in runs], dtype=np.float64),
        np.array([places[run.version] for run in runs], dtype=np.int64),
        np.array([scenarios[run.scenario] for run in runs], dtype=np.int64),
    )


def _judged(tests: Sequence[_Test]) -> Iterator[Change]:
    """Yield the comparisons that both sides have runs for, with corrected p-values."""
    tests = [test for test in tests if _has_both(test)]
    orders = significance.orders_for(len(tests))
    aligned = [significance.aligned(test.sample, test.measure.least) for test in tests]
    raw = [
        max(_p_of_whole(test, orders), significance.p_value(test.sample, values, orders=orders))
        for test, values in zip(tests, aligned, strict=True)
    ]
    for test, values, p in zip(tests, aligned, significance.corrected(raw), strict=True):
        yield _change(test, values, p)


def _p_of_whole(test: _Test, orders: int) -> float:
    """Return the p-value of the whole series, in which a change point was found.

    The runs next to a proposed change point were chosen because they differ, so their own p-value
    alone would be too small. That of the whole series does not depend on the proposals.
    """
    if test.whole is None or len(test.whole.values) == len(test.sample.values):
        return 0.0
    values = significance.aligned(test.whole, test.measure.least)
    return significance.p_value(test.whole, values, orders=orders)


def _has_both(test: _Test) -> bool:
    """Return whether a scenario has runs on both sides: others cannot be compared."""
    after = test.sample.versions >= test.split
    scenarios = test.sample.scenarios
    return bool(set(scenarios[after]) & set(scenarios[~after]))


def _change(test: _Test, aligned: significance.Floats, p: float) -> Change:
    measure, sample = test.measure, test.sample
    after = sample.versions >= test.split
    middle = np.mean if measure.is_share else np.median
    old, new = float(middle(sample.values[~after])), float(middle(sample.values[after]))
    ratio = float(np.expm1(np.median(aligned[after]) - np.median(aligned[~after])))
    is_great = abs(new - old) >= measure.least and (measure.is_share or abs(ratio) >= RATIO_MIN)
    verdict = "same"
    if p <= ALPHA and is_great:
        verdict = "better" if (new > old) is measure.is_better_higher else "worse"
    return Change(
        suite=test.of.suite,
        system=test.of.system,
        measure=measure.name,
        versions_before=tuple(test.versions[: test.split]),
        versions_after=tuple(test.versions[test.split :]),
        runs_before=int((~after).sum()),
        runs_after=int(after.sum()),
        before=old,
        after=new,
        ratio=None if measure.is_share else ratio,
        p=p,
        verdict=verdict,
        is_latest=test.is_latest,
    )


def describe(trends: Trends) -> str:
    """Return the result for a terminal: first what is worse."""
    order = {"worse": 0, "better": 1}
    shown = [each for each in trends.comparisons if each.verdict in order]
    shown.sort(key=lambda each: (not each.is_latest, order[each.verdict]))
    lines = [f"{_word(each):9}{sentence(each)}" for each in shown]
    if not trends.worse:
        lines.insert(0, "NOT WORSE")
    lines.append(
        f"{trends.runs:,} runs, {trends.series:,} series, {len(trends.comparisons):,} comparisons"
    )
    return "\n".join(lines)


def _word(change: Change) -> str:
    return change.verdict.upper() if change.is_latest else "earlier"


def sentence(change: Change) -> str:
    """Describe a comparison in one line."""
    measure = next(each for each in MEASURES if each.name == change.measure)
    since, before = short(change.versions_after[0]), short(change.versions_before[-1])
    if len(change.versions_before) + len(change.versions_after) == 2:
        where = f"from {before} to {since}"
    else:
        where = f"from {since} on, compared with {before} and earlier"
    return (
        f"{change.suite} · {change.system}: {measure.title.lower()}"
        f" {shown(measure, change.before)} → {shown(measure, change.after)}{_by(change)} {where}"
        f" ({change.runs_before} and {change.runs_after} runs, p {_p(change.p)})"
    )


def shown(measure: Measure, value: float) -> str:
    """Format a value of a measure with its unit."""
    return f"{value:.1%}" if measure.is_share else written(value, measure.unit)


def short(version: str) -> str:
    """Shorten a commit; a release stays as it is."""
    is_commit = len(version) >= 40 and all(digit in "0123456789abcdef" for digit in version[:40])
    return version[:SHORT] + version[40:] if is_commit else version


def _by(change: Change) -> str:
    return "" if change.ratio is None else f" ({change.ratio:+.0%})"


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"
