"""Searches for an order of operations that explains their results: just-in-time linearization.

The search walks over the completions in their order. Before it passes one, that operation must have
taken effect, perhaps after others that were invoked already. A configuration is the next
completion, which of the pending operations took effect, and the state. One that was met before is
not entered again. (Wing and Gong 1993; Lowe, *Testing for linearizability*, 2017.)

Three rules leave out orders that cannot be the only explanation. An operation that never changes
any state takes effect as soon as it is legal. Of pending operations that do the same, the one that
ends first takes effect first. An operation that was never completed takes no effect where it would
not change the state.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from checkers.linearizability.models import Inconsistent, Model, State, stepped
from checkers.linearizability.operations import Operation

_ILLEGAL = -1
SHOWN = 10
"""How many of the states are kept in which an operation is illegal."""
ENTRY_BYTES = 260
"""Memory for a configuration that was met, measured for small integers in a set."""


class Refusal(NamedTuple):
    """Why an operation cannot take effect in a state."""

    state: State
    why: str


@dataclass(frozen=True)
class Linearized:
    """An order that explains every result."""

    order: tuple[int, ...]
    """Indices of operations. Operations that took no effect are not in it."""


@dataclass(frozen=True)
class Illegal:
    """No order explains the results up to the completion of ``blocked``."""

    blocked: int
    """The index of the first operation that has no place in any order."""
    prefix: tuple[int, ...]
    """One of the orders that explain all results before."""
    refusals: tuple[Refusal, ...]
    """States that the operations before can lead to, and why ``blocked`` is illegal in each."""
    more: int = 0
    """How many such states are not in ``refusals``."""


Outcome = Linearized | Illegal


class _Frame:
    """A configuration on the path of the search, and what is still to be tried from it."""

    __slots__ = ("at", "choices", "mask", "taken")

    def __init__(
        self, at: int, mask: int, taken: list[int], choices: Iterator[tuple[int, int, int]]
    ) -> None:
        self.at, self.mask, self.taken, self.choices = at, mask, taken, choices


class Search:
    """A search that can be continued, so that several can share a budget."""

    def __init__(
        self, model: Model, operations: Sequence[Operation], before: Sequence[int] | None = None
    ) -> None:
        """``before`` has for each operation another one that must take effect before it, or -1."""
        self._operations = operations
        self._before = before
        self._only_reads = [model.only_reads(each) for each in operations]
        self._is_pending = [each.is_pending for each in operations]
        self._steps = Steps(model, operations)
        self._pending = _Pending(operations)
        self._met: set[tuple[int, int, int]] = set()
        self._path: list[_Frame] = []
        self._best = _Best()
        self.steps = 0
        """How many configurations were entered."""
        self.outcome: Outcome | None = None
        self._enter(0, 0, self._steps.initial, [])

    @property
    def size(self) -> int:
        """How many operations there are."""
        return len(self._operations)

    @property
    def bytes(self) -> int:
        """About how much memory the configurations take that were met."""
        return len(self._met) * ENTRY_BYTES

    def run(self, steps: int) -> Outcome | None:
        """Search for so many steps, and return the outcome, if there is one by then."""
        end, path = self.steps + steps, self._path
        while self.outcome is None and self.steps < end:
            if not path:
                self.outcome = self._illegal()
                break
            frame = path[-1]
            choice = next(frame.choices, None)
            if choice is None:
                path.pop()
                continue
            operation, bit, state = choice
            self._enter(frame.at, frame.mask | bit, state, [operation])
        return self.outcome

    def _enter(self, at: int, mask: int, state: int, taken: list[int]) -> None:
        """Enter a configuration: pass completions, let what changes nothing take effect."""
        self.steps += 1
        pending, next_of, kinds = self._pending, self._steps.next, self._steps.kinds
        only_reads, is_pending = self._only_reads, self._is_pending
        while True:
            while at < pending.count and mask & pending.bits[at]:
                mask ^= pending.bits[at]
                at += 1
            if at == pending.count:
                self._path.append(_Frame(at, mask, taken, iter(())))
                order = tuple(each for frame in self._path for each in frame.taken)
                self.outcome = Linearized(order)
                return
            choices, before = [], mask
            for operation, bit in pending.at(at):
                if not mask & bit and self._may_begin(operation, at, mask):
                    after = next_of(state, kinds[operation])
                    if after == _ILLEGAL:
                        continue
                    if only_reads[operation]:
                        mask |= bit
                        taken.append(operation)
                    elif after != state or not is_pending[operation]:
                        choices.append((operation, bit, after))
            if mask == before:
                break
        if (at, mask, state) in self._met:
            return
        self._met.add((at, mask, state))
        if self._before is None:  # the second rule needs real time alone
            choices = _distinct(choices, kinds)
        frame = _Frame(at, mask, taken, iter(choices))
        self._path.append(frame)
        if at >= self._best.at:
            self._best.see(at, state, self._path)

    def _may_begin(self, operation: int, at: int, mask: int) -> bool:
        """Return whether the operation that must come before another one took effect."""
        if self._before is None or self._before[operation] < 0:
            return True
        return self._pending.is_done(self._before[operation], at, mask)

    def _illegal(self) -> Illegal:
        best = self._best
        blocked = self._pending.blocked(best.at)
        refusals = tuple(self._steps.refusal(state, blocked) for state in best.states[:SHOWN])
        return Illegal(blocked, best.prefix, refusals, len(best.states) - len(refusals))


def _distinct(
    choices: list[tuple[int, int, int]], kinds: Sequence[int]
) -> list[tuple[int, int, int]]:
    """Return the first choice of each kind."""
    if len(choices) < 2:
        return choices
    seen: set[int] = set()
    return [c for c in choices if not (kinds[c[0]] in seen or seen.add(kinds[c[0]]))]  # type: ignore[func-returns-value]


class _Best:
    """The configurations that got furthest."""

    def __init__(self) -> None:
        self.at = -1
        self.prefix: tuple[int, ...] = ()
        self._states: dict[int, None] = {}

    @property
    def states(self) -> list[int]:
        return list(self._states)

    def see(self, at: int, state: int, path: Sequence[_Frame]) -> None:
        """Note a configuration that got at least as far as the best one."""
        if at > self.at:
            self.at, self._states = at, {}
            self.prefix = tuple(each for frame in path for each in frame.taken)
        self._states[state] = None


class Steps:
    """What each kind of operation does in each state, asked of the model once."""

    def __init__(self, model: Model, operations: Sequence[Operation]) -> None:
        self._model, self._operations = model, operations
        number: dict[Hashable, int] = {}
        self.kinds = [
            number.setdefault(_kind(model, operation), len(number)) for operation in operations
        ]
        """A number for each operation, the same for those that do the same."""
        self._of_kind = {kind: operation for operation, kind in enumerate(self.kinds)}
        self._states: list[State] = []
        self._numbers: dict[State, int] = {}
        self._next: list[dict[int, int]] = []
        self.initial = self._number(model.initial)

    def _number(self, state: State) -> int:
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self._states)
            self._states.append(state)
            self._next.append({})
        return number

    def next(self, state: int, kind: int) -> int:
        """Return the state after an operation of a kind; -1 if it is illegal."""
        known = self._next[state].get(kind)
        if known is None:
            after = self._step(state, self._of_kind[kind])
            known = _ILLEGAL if isinstance(after, Inconsistent) else self._number(after)
            self._next[state][kind] = known
        return known

    def refusal(self, state: int, operation: int) -> Refusal:
        """Return a state, and why an operation is illegal in it; "" if it is legal."""
        after = self._step(state, operation)
        why = after.why if isinstance(after, Inconsistent) else ""
        return Refusal(self._states[state], why)

    def _step(self, state: int, operation: int) -> State | Inconsistent:
        return stepped(self._model, self._states[state], self._operations[operation])


def _kind(model: Model, operation: Operation) -> Hashable:
    """Return what makes an operation the same as another one."""
    process = operation.process if model.has_owners else None
    return (operation.f, repr(operation.value), operation.is_pending, process)


class _Pending:
    """Which operations are invoked and not completed at each completion.

    Each has a bit from its invocation to its completion, which another one gets afterwards.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        ends = sorted((each.end, n) for n, each in enumerate(operations) if not each.is_pending)
        self._blocked = [operation for _, operation in ends]
        self.count = len(ends)
        """Number of completions."""
        self.bits = [0] * self.count
        """For each completion, the bit of its operation."""
        place = [end for end, _ in ends]
        self._begin: list[list[int]] = []
        self._operation: list[list[int]] = []
        """For each bit, the operations that have it, and from which completion on."""
        free: list[int] = []
        passed = 0
        bit_of: dict[int, int] = {}
        for number, each in sorted(enumerate(operations), key=lambda pair: pair[1].call):
            first = bisect_right(place, each.call - 1)
            while passed < first:
                done = self._blocked[passed]
                self.bits[passed] = 1 << bit_of[done]
                free.append(bit_of[done])
                passed += 1
            bit = free.pop() if free else len(self._begin)
            if bit == len(self._begin):
                self._begin.append([])
                self._operation.append([])
            bit_of[number] = bit
            self._begin[bit].append(first)
            self._operation[bit].append(number)
        for at in range(passed, self.count):
            self.bits[at] = 1 << bit_of[self._blocked[at]]
        self._rank = [self.count] * len(operations)
        """For each operation, its completion; the number of all completions if it has none."""
        for at, operation in enumerate(self._blocked):
            self._rank[operation] = at
        self._known: dict[int, list[tuple[int, int]]] = {}
        self._bit = [1 << bit_of[number] for number in range(len(operations))]

    def is_done(self, operation: int, at: int, mask: int) -> bool:
        """Return whether an operation took effect, by a configuration."""
        return self._rank[operation] < at or bool(mask & self._bit[operation])

    def blocked(self, at: int) -> int:
        """Return the operation that a completion completes."""
        return self._blocked[at]

    def at(self, at: int) -> list[tuple[int, int]]:
        """Return the pending operations at a completion with their bits, those that end first
        first."""
        found = self._known.get(at)
        if found is None:
            found = self._known[at] = sorted(self._among(at), key=lambda pair: self._rank[pair[0]])
        return found

    def _among(self, at: int) -> Iterator[tuple[int, int]]:
        for bit, (begins, operations) in enumerate(zip(self._begin, self._operation, strict=True)):
            row = bisect_right(begins, at) - 1
            if row >= 0 and self._rank[operations[row]] >= at:
                yield operations[row], 1 << bit
