"""Many drawn runs of ensembles, in several processes, and what they show together."""

import logging
import multiprocessing
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from bench.ensembles.one_run import Outcome, drawn, run
from bench.ensembles.rig import Shape
from harness.simulation import determinism

FAULTS_S = 12.0
"""The virtual time in which faults begin."""


def shape_of(seed: int, voters: int, observers: int) -> Shape:
    """Return an ensemble of this size, with settings drawn from the seed.

    Few kept transactions and frequent snapshots make the leader synchronize its learners in
    different ways: by transactions from memory or from its log, by a truncation, or by its state.
    """
    rng = random.Random(f"{seed} shape")
    return Shape(
        voters=voters,
        observers=observers,
        snap_count=rng.choice((8, 40, 1000)),
        window=rng.choice((4, 25, 500)),
    )


def one(seed: int, *, voters: int, observers: int, planted: Sequence[str]) -> Outcome:
    """Simulate the run of a seed."""
    return run(seed, shape_of(seed, voters, observers), drawn(FAULTS_S), planted=planted)


def outcomes(
    seeds: Iterable[int],
    *,
    voters: int,
    observers: int,
    planted: Sequence[str] = (),
    workers: int = 1,
) -> Iterator[Outcome]:
    """Yield the outcomes of these seeds, as they end."""
    work = partial(one, voters=voters, observers=observers, planted=planted)
    if workers == 1:
        yield from map(work, seeds)
        return
    with multiprocessing.get_context("fork").Pool(workers, _begin) as pool:
        yield from pool.imap_unordered(work, seeds, chunksize=1)


def _begin() -> None:
    logging.disable(logging.CRITICAL)


@dataclass(slots=True)
class Summary:
    """The figures of a campaign."""

    runs: int = 0
    epochs: int = 0
    operations: int = 0
    acknowledged: int = 0
    snapshots: int = 0
    virtual_s: float = 0.0
    bad_seeds: list[int] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)
    """How many runs have shown each violation."""
    began_s: float = field(default_factory=determinism.real_s)

    def add(self, outcome: Outcome) -> None:
        """Count a run."""
        self.runs += 1
        self.epochs += outcome.epochs
        self.operations += outcome.operations
        self.acknowledged += outcome.acknowledged
        self.snapshots += outcome.snapshots
        self.virtual_s += outcome.virtual_s
        if outcome.violations:
            self.bad_seeds.append(outcome.seed)
            self.names.update(outcome.names)

    @property
    def leader_changes(self) -> float:
        """How often a run had another leader than before, on average."""
        return (self.epochs - self.runs) / self.runs if self.runs else 0.0

    def lines(self) -> Iterator[str]:
        """Yield the figures as text."""
        seconds = determinism.real_s() - self.began_s
        yield f"runs               {self.runs} in {seconds:.0f} s ({self.runs / seconds:.2f}/s)"
        yield f"leader changes     {self.leader_changes:.2f} per run"
        yield (
            f"operations         {self.operations / self.runs:.0f} per run, "
            f"{100 * self.acknowledged / max(1, self.operations):.1f} % acknowledged"
        )
        yield f"snapshots          {self.snapshots / self.runs:.0f} per run"
        yield f"virtual time       {self.virtual_s / self.runs:.1f} s per run"
        yield f"violations         in {len(self.bad_seeds)} runs"
        for name, count in self.names.most_common():
            yield f"  {name}: {count} runs"
