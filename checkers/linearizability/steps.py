"""What operations do in each state, asked of the model once, with numbers for states."""

from collections.abc import Hashable, Sequence
from sys import getsizeof
from typing import NamedTuple

from checkers.linearizability.models import Inconsistent, Model, State, stepped
from checkers.linearizability.operations import Operation

ILLEGAL = -1
"""Stands for the state after an operation that is illegal."""
MEMO_STATES = 1024
"""Up to this number of states, the choices in each of them are noted at each completion."""
_STATE_BYTES, _NEXT_BYTES = 300, 60
"""Memory for what is known of a state, and for each operation of which it is known what it does."""


class Refusal(NamedTuple):
    """Why an operation cannot take effect in a state."""

    state: State
    why: str


class Steps:
    """What each kind of operation does in each state, asked of the model once."""

    def __init__(self, model: Model, operations: Sequence[Operation]) -> None:
        self._model, self._operations = model, operations
        number: dict[Hashable, int] = {}
        self.kinds = [
            number.setdefault(_kind(model, operation), len(number)) for operation in operations
        ]
        """A number for each operation, the same for those that do the same."""
        self._kinds = len(number)
        self._of_kind = {kind: operation for operation, kind in enumerate(self.kinds)}
        self._states: list[State] = []
        self._numbers: dict[State, int] = {}
        self._next: list[dict[int, int]] = []
        self.bytes = 0
        """About how much memory the states take, and what is known of them."""
        self.initial = self._number(model.initial)

    @property
    def are_few(self) -> bool:
        """Return whether there are so few states that each can be noted at each completion."""
        return len(self._states) <= MEMO_STATES

    def _number(self, state: State) -> int:
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self._states)
            self._states.append(state)
            self._next.append({})
            self.bytes += _STATE_BYTES + _size(state)
        return number

    def next(self, state: int, kind: int) -> int:
        """Return the state after an operation of a kind; -1 if it is illegal."""
        known = self._next[state].get(kind)
        if known is None:
            after = self._step(state, self._of_kind[kind])
            known = ILLEGAL if isinstance(after, Inconsistent) else self._number(after)
            self._next[state][kind] = known
            self.bytes += _NEXT_BYTES
        return known

    def ask(self, state: int, kind: int, must_change: bool = False) -> int:
        """Return a negative number for :meth:`asked`, so that a step is only done if needed."""
        return ~((state * self._kinds + kind) << 1 | must_change)

    def asked(self, number: int) -> int:
        """Return the state after the operation that :meth:`ask` was given; -1 if it is illegal, or
        if it must change the state and does not."""
        asked, must_change = divmod(~number, 2)
        state, kind = divmod(asked, self._kinds)
        after = self.next(state, kind)
        return ILLEGAL if must_change and after == state else after

    def refusal(self, state: int, operation: int) -> Refusal:
        """Return a state, and why an operation is illegal in it; "" if it is legal."""
        after = self._step(state, operation)
        why = after.why if isinstance(after, Inconsistent) else ""
        return Refusal(self._states[state], why)

    def forget(self) -> None:
        """Free the memory; nothing can be asked afterwards."""
        self._states, self._next, self._numbers, self.bytes = [], [], {}, 0

    def _step(self, state: int, operation: int) -> State | Inconsistent:
        return stepped(self._model, self._states[state], self._operations[operation])


def _size(state: State) -> int:
    """Return about how much memory a state takes; its elements are small, or shared."""
    size = getsizeof(state)
    if isinstance(state, tuple):
        size += sum(getsizeof(each) for each in state if isinstance(each, tuple))
    return size


def _kind(model: Model, operation: Operation) -> Hashable:
    """Return what makes an operation the same as another one."""
    process = operation.process if model.has_owners else None
    return (operation.f, repr(operation.value), operation.is_pending, process)
