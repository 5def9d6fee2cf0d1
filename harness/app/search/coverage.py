"""Records which branches of the rules the runs of a search reach, each in its own process."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.app import catalogue
from harness.app.rules import figures, recorder
from harness.app.rules.figures import Figures
from harness.app.search import workload_draw
from harness.app.search.outcome import RunResult
from harness.cluster import mutants

Each = Callable[[int, Mapping[str, Any], Path], RunResult]
"""Runs a seed with the pinned fields in a folder."""


class Coverage:
    """The figures of one search: its processes inherit the probes, and leave what they reached.

    The rules are those that bugs can replace in the system that the search tests.
    """

    def __init__(self, pinned: Mapping[str, Any], place: Path) -> None:
        """Put probes into this process; ``place`` is a folder for the results of runs."""
        workload = catalogue.WORKLOADS.get(pinned.get("workload", ""))
        system = workload.service if workload is not None else workload_draw.service_of(pinned)
        self._mutants = defaultdict[str, list[str]](list)
        for name, mutant in mutants.catalogue(system).items():
            self._mutants[mutant.of].append(name)
        self._place = place
        self.recorder = recorder.install(sorted({rule.split(":")[0] for rule in self._mutants}))
        self._counts = figures.Counts(self.recorder.rules, self.recorder.size)

    @property
    def probes_of_rules(self) -> tuple[int, ...]:
        """The numbers of the probes of all rules: of their beginnings and their branches."""
        return tuple(
            rule.function.number + place
            for rule in self.recorder.rules
            if rule.name in self._mutants
            for place in range(1 + len(rule.function.branches))
        )

    def of_each(self, each: Each) -> Each:
        """Return a function that also leaves what its run reached; it is called in a child."""

        def recorded(seed: int, pinned: Mapping[str, Any], folder: Path) -> RunResult:
            self.recorder.begin()
            try:
                return each(seed, pinned, folder)
            finally:
                self._file(seed).write_bytes(self.recorder.reached())

        return recorded

    def take(self, seed: int) -> None:
        """Add what a run has reached; a process that crashed has left nothing."""
        path = self._file(seed)
        if path.exists():
            self._counts.add(seed, path.read_bytes())
            path.unlink()

    def figures(self) -> Figures:
        """Return the figures of the runs so far."""
        return self._counts.figures(self._mutants)

    def close(self) -> None:
        """Remove the probes from this process."""
        recorder.restore()

    def _file(self, seed: int) -> Path:
        return self._place / f"reached{seed}"
