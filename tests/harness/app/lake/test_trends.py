"""Trends find what became worse, and nothing where nothing did."""

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from harness.app.lake import trends
from harness.app.lake.series import MEASURES, Run, Series
from harness.app.lake.trends import Trends
from harness.app.refused import Refused
from tests.harness.app.lake import made_rows
from tests.harness.app.lake.made_rows import commit, rows, slower_from, steady


def find(
    tmp_path: Path, *groups: object, suite: str | None = None, baseline: str | None = None
) -> Trends:
    lake = made_rows.lake(tmp_path / "lake", *groups)  # type: ignore[arg-type]
    return trends.find(lake, suite, baseline)[0]


def changes(found: Trends) -> list[tuple[str, str, bool]]:
    return [(c.measure, c.verdict, c.is_latest) for c in found.comparisons if c.verdict != "same"]


def test_a_slow_down_is_found_where_it_began(tmp_path: Path) -> None:
    """Of all figures only the one that changed is reported, with its first version."""
    found = find(tmp_path, rows(range(10), 12, slower_from(6)))
    (worse,) = found.worse
    assert (worse.measure, worse.versions_after[0]) == ("outage_s", commit(6))
    assert worse.ratio == pytest.approx(1.0, abs=0.4)
    assert "longest time without an acknowledgement" in trends.describe(found)
    assert trends.describe(found).startswith("WORSE")


def test_noise_is_no_change(tmp_path: Path) -> None:
    """The near miss: the same runs without the slow-down have no change."""
    found = find(tmp_path, rows(range(10), 12, steady))
    assert changes(found) == []
    assert trends.describe(found).startswith("NOT WORSE")


@pytest.mark.parametrize("factor", [0.3, 1.06])
def test_what_is_better_or_hardly_different_is_not_worse(factor: float, tmp_path: Path) -> None:
    """An improvement is reported and is not worse; a difference of 6 % is not reported."""
    found = find(tmp_path, rows(range(8), 30, slower_from(4, factor)))
    assert found.worse == []
    assert bool(changes(found)) is (factor < 1)


def test_what_was_repaired_is_not_worse(tmp_path: Path) -> None:
    """A slow-down that ended is reported as earlier, and the latest versions are better."""

    def outage(version: int, rng: np.random.Generator) -> float:
        return made_rows.noise(rng) * (3.0 if 4 <= version < 8 else 1.0)

    found = find(tmp_path, rows(range(12), 20, outage))
    assert changes(found) == [("outage_s", "worse", False), ("outage_s", "better", True)]
    assert found.worse == []


def test_a_commit_as_baseline(tmp_path: Path) -> None:
    """The latest commit is compared with the named one, also by its first digits."""
    lake = made_rows.lake(tmp_path / "lake", rows(range(6), 30, slower_from(3)))
    for name, is_worse in ((commit(0), True), (commit(1)[:9], True), (commit(4), False)):
        found, _ = trends.find(lake, None, name)
        assert bool(found.worse) is is_worse, name
        assert {each.versions_after for each in found.comparisons} == {(commit(5),)}


def test_a_release_as_baseline(tmp_path: Path) -> None:
    """Each other release of the same system is compared with the baseline."""

    def of(name: str, factor: float) -> object:
        return rows([1], 30, slower_from(0, factor), system="apache-kafka", release=name)

    found = find(tmp_path, of("3.9.1", 1.0), of("4.0.0", 1.0), of("4.1.0", 2.0),
                 rows([1], 4, steady), baseline="3.9.1")  # fmt: skip
    assert [(each.measure, each.versions_after) for each in found.worse] == [
        ("outage_s", ("4.1.0",))
    ]
    assert {each.versions_after[0] for each in found.comparisons} == {"4.0.0", "4.1.0"}


def test_anomalies_are_compared(tmp_path: Path) -> None:
    """More runs with an illegal anomaly are worse; a single one among many is not enough."""
    good = list(rows(range(4), 20, steady))
    late = [row for row in good if row["commit"] == commit(3)]
    late[0]["verdict"] = "invalid"
    assert find(tmp_path / "a", iter(good)).worse == []
    for row in late[:12]:
        row["verdict"] = "invalid"
    (worse,) = find(tmp_path / "b", iter(good)).worse
    assert (worse.measure, worse.before, worse.after, worse.ratio) == ("invalid", 0.0, 0.6, None)
    assert "0.0% → 60.0%" in trends.sentence(worse)


def test_scenarios_without_a_counterpart_are_not_compared(tmp_path: Path) -> None:
    """Versions that ran nothing in common, and a lake with one version, have no comparison."""
    apart = find(
        tmp_path / "a",
        rows([1], 10, steady, configuration="x"),
        rows([2], 10, slower_from(0, 9.0), configuration="y"),
    )
    assert (apart.comparisons, apart.runs) == ((), 20)
    assert find(tmp_path / "b", rows([1], 10, steady)).comparisons == ()
    assert find(tmp_path / "c").comparisons == ()


def test_wrong_requests(tmp_path: Path) -> None:
    """A suite or a baseline that no run has is refused; so is a commit of too few digits."""
    lake = made_rows.lake(tmp_path / "lake", rows(range(2), 4, steady))
    with pytest.raises(Refused, match="--suite weekly"):
        trends.find(lake, "weekly", None)
    for name in ("3.9.1", "fffffffff", commit(0)[:3]):
        with pytest.raises(Refused, match="--baseline"):
            trends.find(lake, "nightly", name)


def test_versions_are_shortened() -> None:
    """A commit is shortened and keeps its suffix; a release stays as it is."""
    assert trends.short(f"{'a1' * 20}-dirty") == "a1a1a1a1a-dirty"
    assert trends.short("3.9.1") == "3.9.1"


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_promised() -> None:
    """In series without a change, places that PELT proposes are not taken for changes too often.

    At the level of 5 %, at most so many of 60 series have one as chance explains.
    """
    level, count = 0.05, 60
    alarms = sum(_alarms(seed, level) for seed in range(count))
    assert alarms <= count * level + 3 * np.sqrt(count * level * (1 - level))


def _alarms(seed: int, level: float) -> bool:
    rng = np.random.default_rng(seed)
    figures = [measure for measure in MEASURES if not measure.is_share]
    runs = [
        Run(
            made_rows.FIRST + timedelta(days=version, minutes=number),
            commit(version),
            (str(number % 3),),
            {each.name: float(rng.lognormal(3 + number % 3, 0.5)) for each in figures},
        )
        for version in range(10)
        for number in range(9)
    ]
    tests = list(trends._by_change_points(Series("quick", "kafka", runs)))
    return any(change.p <= level for change in trends._judged(tests))
