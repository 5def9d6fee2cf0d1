"""The runs of the benchmark of lakes differ in what it plants, and in nothing else."""

from pathlib import Path

import pytest

from bench import lake
from bench.lake import FAST_MS, SLOW_MS, Night
from harness.app.lake.store import Lake
from tests.harness.app.lake import made_runs


def test_nights_differ_in_the_planted_setting_alone() -> None:
    """A night with the slow-down has the plans of the night without it, but for one setting."""
    fast, slow = (lake.plan_of(Night(3, ms), 5) for ms in (FAST_MS, SLOW_MS))
    assert dict(fast.broker.items() ^ slow.broker.items()).keys() == {
        "zookeeper.session.timeout.ms"
    }
    assert (fast.schedule, fast.seed, fast.commit) == (slow.schedule, slow.seed, slow.commit)
    assert fast.commit == lake.commit(3)


def test_no_two_runs_have_the_same_seed() -> None:
    """Runs of the same night, and of different nights, have seeds of their own."""
    seeds = {lake.plan_of(Night(night, FAST_MS), seed).seed for night in (0, 1) for seed in (0, 49)}
    assert len(seeds) == 4


@pytest.mark.slow
def test_runs_are_added_one_by_one(tmp_path: Path) -> None:
    """Each run is an addition of its own, of the benchmark's suite."""
    runs = [made_runs.make(tmp_path / f"20260101T02000{n}Z-x") for n in range(3)]
    into = Lake.create(tmp_path / "lake")
    assert len(lake.add_one_by_one(runs, into)) == 3
    assert len(made_runs.ids(into)) == 3
