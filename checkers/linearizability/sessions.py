"""Consistency by sessions: sequential consistency, and the promise of ZooKeeper.

A session is a process: it does one operation after the other. Both promises are about all keys
together, because an order for each key alone says nothing about what a session saw of two keys.

*Sequential*: one order explains all results, and it has the operations of each session in their
order. Real time does not count. (Lamport 1979.)

An operation in doubt takes effect after those before it in its session, and does not hold up those
after it: it may happen at any later time, or never.

*ZooKeeper*: updates are linearizable; the reads of a session see states that never go back, and
never one before the session's own last update. A read may be stale, and sees no update that was
invoked after the read had ended.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from checkers.linearizability.models import Inconsistent, Model, State
from checkers.linearizability.operations import NEVER, Operation
from checkers.linearizability.search import ENTRY_BYTES, Illegal, Linearized, Search
from checkers.linearizability.steps import Steps


@dataclass(frozen=True)
class Together(Model):
    """The objects of a model with keys as one object, whose state has those of all keys."""

    of: Model

    initial: State = ()
    """Pairs of keys and states that are not the initial one, sorted by the texts of the keys."""

    def only_reads(self, operation: Operation) -> bool:
        return self.of.only_reads(operation)

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        key, alone = self.of.part(operation)
        inner, states = self.of.inner, dict(state)
        after = inner.step(states.get(key, inner.initial), alone)
        if isinstance(after, Inconsistent):
            return after if key is None else Inconsistent(f"of key {key}: {after.why}")
        states[key] = after
        return tuple(
            sorted(
                ((k, each) for k, each in states.items() if each != inner.initial),
                key=lambda pair: str(pair[0]),
            )
        )


def predecessors(operations: Sequence[Operation]) -> list[int]:
    """Return for each operation the last completed one before it in its session, or -1."""
    last: dict[Hashable, int] = {}
    found = []
    for row, operation in enumerate(operations):
        found.append(last.get(operation.process, -1))
        if not operation.is_pending:
            last[operation.process] = row
    return found


def of_zookeeper(model: Model, operations: Sequence[Operation]) -> Search:
    """Return a search for an order that keeps ZooKeeper's promise.

    A read may take effect since the operation before it in its session took effect, so that it
    begins with that one.
    """
    before = predecessors(operations)
    stretched: list[Operation] = []
    for row, operation in enumerate(operations):
        if model.only_reads(operation):
            begin = stretched[before[row]].call if before[row] >= 0 else -NEVER
            operation = operation._replace(call=begin)
        stretched.append(operation)
    return Search(model, stretched, before)


class SequentialSearch:
    """Searches for one order of all operations, with those of each session in their order.

    A configuration is how far each session got, and the state. An operation that never changes any
    state takes effect as soon as it is legal. An operation in doubt that is not the last one of its
    session is a session of its own, which begins when the other one has got there.
    """

    def __init__(self, model: Model, operations: Sequence[Operation]) -> None:
        sessions: dict[Hashable, list[int]] = {}
        apart: list[tuple[int, Hashable, int]] = []
        for row, operation in enumerate(operations):
            rows = sessions.setdefault(operation.process, [])
            if rows and operations[rows[-1]].is_pending:
                apart.append((rows.pop(), operation.process, len(rows)))
            rows.append(row)
        number = {process: place for place, process in enumerate(sessions)}
        self._sessions = [*sessions.values(), *([row] for row, _, _ in apart)]
        self._begins = [
            *((place, 0) for place in range(len(sessions))),
            *((number[process], place) for _, process, place in apart),
        ]
        """By session, another one and how far that must have got before it begins."""
        self._operations = operations
        self._only_reads = [model.only_reads(each) for each in operations]
        self._steps = Steps(model, operations)
        self._met: set[tuple[tuple[int, ...], int]] = set()
        self._path: list[tuple[tuple[int, ...], list[int], Iterator[tuple[int, int, int]]]] = []
        self._best: tuple[int, tuple[int, ...], tuple[int, ...], int] = (-1, (), (), 0)
        self.steps = 0
        """How many configurations were entered."""
        self.outcome: Linearized | Illegal | None = None
        self._enter((0,) * len(self._sessions), self._steps.initial, [])

    @property
    def size(self) -> int:
        """How many operations there are."""
        return len(self._operations)

    @property
    def bytes(self) -> int:
        """About how much memory the configurations take that were met."""
        return len(self._met) * (ENTRY_BYTES + 16 * len(self._sessions))

    def run(self, steps: int) -> Linearized | Illegal | None:
        """Search for so many steps, and return the outcome, if there is one by then."""
        end = self.steps + steps
        while self.outcome is None and self.steps < end:
            if not self._path:
                self.outcome = self._illegal()
                break
            places, _, choices = self._path[-1]
            choice = next(choices, None)
            if choice is None:
                self._path.pop()
                continue
            session, row, state = choice
            moved = (*places[:session], places[session] + 1, *places[session + 1 :])
            self._enter(moved, state, [row])
        return self.outcome

    def _enter(self, places: tuple[int, ...], state: int, taken: list[int]) -> None:
        self.steps += 1
        at = list(places)
        choices: list[tuple[int, int, int]] = []
        for session, rows in enumerate(self._sessions):
            other, least = self._begins[session]
            while at[other] >= least and at[session] < len(rows):
                row = rows[at[session]]
                after = self._steps.next(state, self._steps.kinds[row])
                if after < 0 or not self._only_reads[row]:
                    if after >= 0:
                        choices.append((session, row, after))
                    break
                taken.append(row)
                at[session] += 1
        places = tuple(at)
        if self._is_over(places):
            order = [row for _, rows, _ in self._path for row in rows]
            self.outcome = Linearized((*order, *taken))
            return
        if (places, state) in self._met:
            return
        self._met.add((places, state))
        self._path.append((places, taken, iter(choices)))
        if sum(places) > self._best[0]:
            prefix = tuple(row for _, rows, _ in self._path for row in rows)
            self._best = sum(places), places, prefix, state

    def _is_over(self, places: tuple[int, ...]) -> bool:
        """Return whether nothing is left that certainly took effect."""
        return all(
            place == len(rows) or self._operations[rows[place]].is_pending
            for place, rows in zip(places, self._sessions, strict=True)
        )

    def _illegal(self) -> Illegal:
        _, places, prefix, state = self._best
        heads = [
            rows[place]
            for place, rows in zip(places, self._sessions, strict=True)
            if place < len(rows) and not self._operations[rows[place]].is_pending
        ]
        blocked = min(heads, key=lambda row: self._operations[row].end)
        refusal = self._steps.refusal(state, blocked)
        return Illegal(blocked, prefix, (refusal,))
