"""The plans of earlier runs that have reached rare states, and which of them is changed next.

A state that few runs have reached is worth more than a common one: a plan is chosen in proportion
to the sum over its states of ``1 / runs²``, divided by how often it was changed before, so that
plans with states of their own come first and none is used for all runs.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from model.plan import Plan

RUNS_MAX = 3
"""A state is rare as long as it was reached in no more runs than this."""


class State(NamedTuple):
    """A branch of a rule, by the number of its probe, in a phase of a run."""

    phase: str
    probe: int


class Reached(msgspec.Struct, frozen=True):
    """The branches that were reached in one phase of a run."""

    phase: str
    began_s: float
    probes: tuple[int, ...]


class Trace(msgspec.Struct, frozen=True):
    """What a run has reached: its phases in order, and the plan that led there."""

    plan: Plan
    phases: tuple[Reached, ...]
    parent: int | None = None
    """The number of the run whose plan was changed; ``None`` for a plan that was drawn."""


@dataclass(slots=True)
class Entry:
    """A plan that has reached rare states."""

    number: int
    """The number of its run in the search."""
    plan: Plan
    states: Mapping[State, float]
    """The states that were rare when the run was added, with the second of the run at which their
    phase began."""
    changes: int = 0
    """How often the plan was changed."""


@dataclass
class Corpus:
    """The entries so far, and in how many runs each state was reached."""

    entries: dict[int, Entry] = field(default_factory=dict)
    """By the number of their runs."""
    runs: Counter[State] = field(default_factory=Counter)

    def add(self, number: int, trace: Trace) -> None:
        """Count the states of a run, and keep its plan if some of them are rare."""
        if trace.parent is not None:
            self.entries[trace.parent].changes += 1
        begun_s: dict[State, float] = {}
        for phase in trace.phases:
            for probe in phase.probes:
                begun_s.setdefault(State(phase.phase, probe), phase.began_s)
        self.runs.update(begun_s.keys())
        rare = {state: at_s for state, at_s in begun_s.items() if self.is_rare(state)}
        if rare:
            self.entries[number] = Entry(number, trace.plan, rare)

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of entries and of states."""
        return len(self.entries), len(self.runs)

    def is_rare(self, state: State) -> bool:
        """Return whether few runs have reached a state."""
        return self.runs[state] <= RUNS_MAX

    def choose(self, rng: random.Random) -> Entry | None:
        """Draw an entry by its weight; ``None`` if there is none."""
        if not self.entries:
            return None
        entries = list(self.entries.values())
        return rng.choices(entries, [self.weight(entry) for entry in entries])[0]

    def weight(self, entry: Entry) -> float:
        """Return the weight of an entry."""
        return sum(map(self._worth, entry.states)) / (1 + entry.changes)

    def _worth(self, state: State) -> float:
        return 1 / self.runs[state] ** 2

    def moment(self, entry: Entry, rng: random.Random) -> float:
        """Draw the second at which a phase of the entry began that has reached a rare state."""
        states: Sequence[State] = list(entry.states)
        [state] = rng.choices(states, [self._worth(state) for state in states])
        return entry.states[state]


def reached(
    phases: Iterable[tuple[str, float, Sequence[int]]], probes: Collection[int]
) -> tuple[Reached, ...]:
    """Return which of some probes were reached in each phase.

    A phase has a name, the second at which it began, and one byte for each probe.
    """
    return tuple(
        Reached(name, began_s, tuple(probe for probe in probes if hits[probe]))
        for name, began_s, hits in phases
    )
