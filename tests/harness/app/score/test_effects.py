"""In which runs a bug has an effect, with runs whose traces are given."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.app.score.effects import Each, Effects
from harness.app.search.outcome import RunResult

CORRECT = {"workload": "offsets", "mutants": ()}


class Runs:
    """Runs that change nothing but the seeds in ``differs``, when a bug is planted."""

    def __init__(self, place: Path, differs: tuple[int, ...] = ()) -> None:
        self.differs = differs
        self.searched: list[tuple[int, int]] = []
        self.effects = Effects(place, self.each, self.search)

    def each(self, seed: int, pinned: Mapping[str, Any], folder: Path) -> RunResult:
        has_effect = bool(pinned["mutants"]) and seed in self.differs
        return RunResult(seed=seed, status="valid", trace=f"{seed} {has_effect}")

    def search(self, pinned: Mapping[str, Any], first: int, runs: int, each: Each) -> None:
        self.searched.append((first, runs))
        for seed in range(first, first + runs):
            each(seed, pinned, Path())

    def reached(self, seeds: range, workload: str = "offsets") -> int:
        for seed in seeds:
            self.effects.each(seed, {"workload": workload, "mutants": ("bug",)}, Path())
        correct = CORRECT | {"workload": workload}
        return self.effects.reached(correct, seeds.start, len(seeds))


@pytest.mark.parametrize(("differs", "reached"), [((), 0), ((3,), 1), ((1, 4), 2), ((9,), 0)])
def test_only_runs_that_went_otherwise_count(
    tmp_path: Path, differs: tuple[int, ...], reached: int
) -> None:
    """A run with the same trace as without the bug is one in which it had no effect."""
    assert Runs(tmp_path, differs).reached(range(1, 6)) == reached
    assert not list(tmp_path.iterdir())


def test_runs_without_a_bug_are_run_once(tmp_path: Path) -> None:
    """Further bugs need further seeds only, unless the search has another workload."""
    runs = Runs(tmp_path)
    for seeds in (range(1, 4), range(1, 3), range(1, 8)):
        runs.reached(seeds)
    runs.reached(range(1, 3), "groups")
    assert runs.searched == [(1, 3), (4, 4), (1, 2)]


def test_a_run_without_a_trace_was_reached(tmp_path: Path) -> None:
    """A process that a bug has crashed leaves nothing; that is an effect of the bug."""
    runs = Runs(tmp_path)
    runs.effects.each(1, {"mutants": ("bug",)}, Path())
    assert runs.effects.reached(CORRECT, 1, 2) == 1
