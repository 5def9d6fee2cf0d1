"""Finds for operations the longest known order that ends with each of them.

The search for an order of all operations leaves one that explains every result before the blocked
operation. Its beginnings are orders, too. So is a beginning in which an operation takes effect
later, after operations that were concurrent with it, as long as all results stay legal. An
operation that is not in the order may have a place after a beginning of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from checkers.linearizability import explanation
from checkers.linearizability.models import Inconsistent, Model, State
from checkers.linearizability.operations import Operation
from checkers.linearizability.search import Illegal
from model.text import brief

TRIED = 200
"""After how many beginnings of the order an operation is tried that is not in it."""
REFUSALS = 3
"""How many reasons are named."""


@dataclass(frozen=True)
class Placement:
    """Where an operation has a place."""

    order: tuple[int, ...]
    """The longest known order that ends with it; without a place, the order that it cannot
    follow."""
    has_place: bool
    says: tuple[str, ...]
    """What it did and how the state changes, and why it has no place in a longer order."""


def of(
    operations: Sequence[Operation], outcome: Illegal, model: Model, rows: Sequence[int]
) -> dict[int, Placement]:
    """Return where each of the operations ``rows`` has a place.

    All of them must have been invoked before the blocked one was completed.
    """
    replay = _Replay(operations, outcome, model.inner, rows)
    return {row: replay.placed(row) for row in rows}


class _Replay:
    """The order that was found, with the states that matter."""

    def __init__(
        self,
        operations: Sequence[Operation],
        outcome: Illegal,
        model: Model,
        rows: Sequence[int],
    ) -> None:
        self._operations, self._outcome, self._model = operations, outcome, model
        self._order = outcome.prefix
        self._place = {row: place for place, row in enumerate(self._order)}
        count = len(self._order)
        kept = {self._place[row] for row in rows if row in self._place}
        kept.update(range(max(0, count - TRIED), count + 1))
        self._states: dict[int, State] = {}
        """By how many operations of the order took effect."""
        state = model.initial
        for place in range(count + 1):
            if place in kept:  # each of many states may be large
                self._states[place] = state
            if place < count:
                after = self._step(state, self._order[place])
                assert not isinstance(after, Inconsistent), "the order was found by the same steps"
                state = after

    def _step(self, state: State, row: int) -> State | Inconsistent:
        return self._model.step(state, self._operations[row])

    def placed(self, row: int) -> Placement:
        """Return where an operation has a place."""
        place = self._place.get(row)
        return self._added(row) if place is None else self._delayed(row, place)

    def _delayed(self, row: int, place: int) -> Placement:
        """Return the longest beginning of the order that an operation of it can follow."""
        one = self._operations[row]
        end, before = place, self._states[place]
        state = before
        for later in range(place + 1, len(self._order)):
            other = self._operations[self._order[later]]
            if other.call > one.end or other.process == one.process:
                break
            passed = self._step(state, self._order[later])
            if isinstance(passed, Inconsistent):
                break
            state = passed
            if not isinstance(self._step(state, row), Inconsistent):
                end, before = later, state
        others = (*self._order[:place], *self._order[place + 1 : end + 1])
        after = self._step(before, row)
        return Placement((*others, row), True, (self._said(row, before, after),))

    def _added(self, row: int) -> Placement:
        """Return the longest beginning of the order that another operation can follow."""
        count = len(self._order)
        for place in range(count, max(self._first(row), count - TRIED, 0) - 1, -1):
            after = self._step(self._states[place], row)
            if not isinstance(after, Inconsistent):
                blocked = [self._refused(row)] if row == self._outcome.blocked else []
                says = (*blocked, self._said(row, self._states[place], after))
                order = (*self._order[:place], row)
                return Placement(order, True, (*says, *self._next(row, place, after)))
        return Placement(self._order, False, (self._refused(row),))

    def _first(self, row: int) -> int:
        """Return how many operations of the order must precede another one."""
        one = self._operations[row]
        return max(
            (
                place + 1
                for place, each in enumerate(self._order)
                if self._operations[each].end < one.call
                or self._operations[each].process == one.process
            ),
            default=0,
        )

    def _next(self, row: int, place: int, state: State) -> list[str]:
        """Say why an order that ends with an operation goes no further."""
        if row != self._outcome.blocked and place == len(self._order):
            return ["No result needs it."]
        for then in self._order[place:]:
            after = self._step(state, then)
            if isinstance(after, Inconsistent):
                other = explanation.described(self._operations[then])
                return [f"After it, {other} is illegal: {after.why}."]
            state = after
        return []

    def _said(self, row: int, before: State, after: State) -> str:
        """Say how an operation changes the state."""
        change = (
            f"the state stays {brief(before)}"
            if after == before
            else f"the state {brief(before)} becomes {brief(after)}"
        )
        return f"{explanation.described(self._operations[row])}: {change}."

    def _refused(self, row: int) -> str:
        """Say why an operation has no place after any beginning of the order."""
        if row == self._outcome.blocked:
            reasons = [refusal.why for refusal in self._outcome.refusals]
        else:
            refusal = self._step(self._states[len(self._order)], row)
            reasons = [refusal.why] if isinstance(refusal, Inconsistent) else []
        why = "; or ".join([*dict.fromkeys(reasons)][:REFUSALS])
        return f"{explanation.described(self._operations[row])} has no place: {why}."
