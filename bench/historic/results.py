"""The results: a JSON file with each run's figures, from which the page is generated.

A run is stored as soon as it has ended, so that measuring can be interrupted and continued.
"""

import fcntl
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from bench.historic.stories import Part, Place, Story
from harness.app import files, private

DATA = "historic.json"
Valid = bool | Literal["unknown"]


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The figures of a run."""

    system: str
    mutants: tuple[str, ...] = ()
    seed: int
    digest: str
    """Identifies the plan file as it was."""
    status: int
    """The exit status of ``faultline run``."""
    valid: Valid
    anomalies: dict[str, int] = {}
    """The number of illegal findings by anomaly."""
    allowed: dict[str, int] = {}
    acknowledged: int = 0
    read: int = 0
    faults: int = 0
    """The number of faults."""
    effective: int = 0
    """The number of faults that were proved to have had an effect."""
    seconds: float = 0.0
    load: float = 0.0
    """The load average of the machine when the run ended."""
    commit: str = ""
    why: tuple[str, ...] = ()
    """Why the verdict is unknown, or the last lines of a command that failed."""

    def is_as_expected(self, story: Story, place: Place) -> bool:
        """True if a faulty system was convicted of the story's anomaly, or a correct one acquitted.

        An anomaly that does not belong to the story is not expected either.
        """
        if place.has_bug:
            shown = set(self.anomalies) & set(story.anomalies)
            return self.valid is False and self.status == 1 and bool(shown)
        return self.valid is True and self.status == 0


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All runs: by story, by part, by seed."""

    runs: dict[str, dict[Part, dict[str, Run]]] = {}

    def of(self, story: Story, place: Place, digest: str) -> Mapping[int, Run]:
        """Return the runs of the plan as it is now at this place, by seed."""
        stored = self.runs.get(story.name, {}).get(place.part, {}).values()
        current = (place.system, place.mutants, digest)
        found = [run for run in stored if (run.system, run.mutants, run.digest) == current]
        return {run.seed: run for run in sorted(found, key=lambda run: run.seed)}

    def with_run(self, story: Story, place: Place, run: Run) -> "Results":
        """Return the results with this run; it replaces the one of its seed, and outdated ones."""
        kept = self.of(story, place, run.digest)
        runs = {str(seed): each for seed, each in sorted({**kept, run.seed: run}.items())}
        parts = {**self.runs.get(story.name, {}), place.part: runs}
        return Results(runs={**self.runs, story.name: parts})


def read(path: Path) -> Results:
    """Return what was measured so far; raises :class:`msgspec.MsgspecError` for another file."""
    if not path.exists():
        return Results()
    return msgspec.json.decode(path.read_bytes(), type=Results)


def add(path: Path, story: Story, place: Place, run: Run) -> Results:
    """Add a run to the file, and return what is there now.

    Several commands may measure at the same time, and add their runs one after the other.
    """
    with private.as_asked(), path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = read(path).with_run(story, place, run)
        document = msgspec.json.format(msgspec.json.encode(results), indent=2)
        files.replace(path, document + b"\n")
    return results
