"""Decides which plan a run of a guided search has, and learns from what it reaches.

Runs are divided into generations. The plans of a generation depend on the seeds, and on the traces
of earlier generations only, so a search has the same runs for any number of jobs.
"""

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from harness.app import plan_resolution
from harness.app.search import broker_draw, draw, single_run
from harness.app.search.coverage import Coverage
from harness.app.search.guided import changes
from harness.app.search.guided.corpus import Corpus, Trace, reached
from harness.app.search.guided.phases import Phases
from harness.app.search.outcome import RunResult
from model.plan import Plan
from nemesis.schedule import DrawSettings

GENERATION = 8
"""The number of runs of a generation."""
FRESH_P = 0.25
"""The share of runs whose plans are drawn as in a search without guidance."""

RunPlan = Callable[[Plan, Path, Phases], RunResult]
"""Runs a plan in a folder, and reports the phases of the run."""


class Chosen(NamedTuple):
    """The plan of a run."""

    plan: Plan
    parent: int | None = None
    """The seed of the run whose plan was changed; ``None`` for a plan that was drawn."""
    how: str = ""


class Guide:
    """The state of a guided search."""

    def __init__(
        self,
        pinned: Mapping[str, Any],
        first: int,
        coverage: Coverage,
        place: Path,
        run: RunPlan | None = None,
    ) -> None:
        """``first`` is the first seed; ``place`` is a folder for the traces of runs."""
        self.corpus = Corpus()
        self._pinned = pinned
        self._first = first
        self._recorder = coverage.recorder
        self._probes = coverage.probes_of_rules
        self._place = place
        self._run = run or single_run.of_plan
        self._added = first
        """All runs below this seed are part of the corpus."""
        self._traces: dict[int, Trace | None] = {}
        """The traces of the runs that have ended and are not part of the corpus."""

    def each(self, seed: int, pinned: Mapping[str, Any], folder: Path) -> RunResult:
        """Run a seed, and leave its trace; called in a child, after the recorder has begun."""
        chosen = self.choose(seed)
        try:
            ran = self._run(chosen.plan, folder, Phases(self._recorder.enter))
        finally:
            trace = Trace(chosen.plan, reached(self._recorder.phases, self._probes), chosen.parent)
            self._file(seed).write_bytes(msgspec.msgpack.encode(trace))
        return msgspec.structs.replace(ran, seed=seed, parent=chosen.parent, change=chosen.how)

    def may_begin(self, seed: int) -> bool:
        """Return whether all runs of earlier generations are part of the corpus."""
        return self._added >= self._begin(seed)

    def take(self, seed: int) -> None:
        """Take the trace of a run that has ended; one that crashed has left none."""
        path = self._file(seed)
        self._traces[seed] = None
        if path.exists():
            self._traces[seed] = msgspec.msgpack.decode(path.read_bytes(), type=Trace)
            path.unlink()
        following = self._begin(self._added) + GENERATION
        if all(each in self._traces for each in range(self._added, following)):
            for number in range(self._added, following):
                if (trace := self._traces.pop(number)) is not None:
                    self.corpus.add(number, trace)
            self._added = following

    def choose(self, seed: int) -> Chosen:
        """Return the plan of a seed, which is the same until the next generation is added."""
        rng = random.Random(f"{seed}:guided")
        entry = None if rng.random() < FRESH_P else self.corpus.choose(rng)
        if entry is None:
            return Chosen(draw.plan_of(seed, self._pinned))
        moment_s = self.corpus.moment(entry, rng)
        fresh = plan_resolution.resolve(
            msgspec.structs.replace(entry.plan, schedule=None, seed=rng.getrandbits(31)),
            DrawSettings(rng.choice(draw.PAUSE_SCALES), rng.choice(draw.REPEAT_TARGET_PS)),
            may_be_quiet=True,
        )
        change = changes.draw(entry.plan, moment_s, fresh.schedule or (), rng)
        plan = plan_resolution.resolve(change.plan, may_be_quiet=True)
        plan = broker_draw.guarded(plan, self._pinned.get("broker", {}))
        return Chosen(plan, entry.number, change.how)

    def _begin(self, seed: int) -> int:
        """Return the first seed of a seed's generation."""
        return seed - (seed - self._first) % GENERATION

    def _file(self, seed: int) -> Path:
        return self._place / f"trace{seed}"
