"""Searches for an order of operations that explains their results: just-in-time linearization.

The search walks over the completions in their order. Before it passes one, that operation must have
taken effect, perhaps after others that were invoked already. A configuration is the next
completion, which of the pending operations took effect, and the state. One that was met before is
not entered again. (Wing and Gong 1993; Lowe, *Testing for linearizability*, 2017.)

Four rules leave out orders that cannot be the only explanation. An operation that never changes any
state takes effect as soon as it is legal. Of pending operations that do the same, the one that ends
first takes effect first. An operation that was never completed takes no effect where it would not
change the state, and it is tried last: a configuration is not entered if one was met that differs
only in that fewer of these operations took effect.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from checkers.linearizability.models import Model
from checkers.linearizability.operations import Operation
from checkers.linearizability.pending import Pending
from checkers.linearizability.steps import Refusal, Steps

SHOWN = 10
"""How many of the states are kept in which an operation is illegal."""
ENTRY_BYTES = 260
"""Memory for a configuration that was met, measured for small integers in a set."""
_MET_BYTES = 130
"""Memory for a configuration that was met, measured, where a set has only those of one place."""
_WAITING_BYTES = 230
"""Memory for a configuration that is still to be entered."""
_STATE_BITS = 32


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


Node = tuple[Any, int, int]
"""An update on the path of the search: the one before it, the completion at which it took effect,
and its bit; a negative one is that of an operation that was never completed."""


class Search:
    """A search that can be continued, so that several can share a budget."""

    def __init__(
        self, model: Model, operations: Sequence[Operation], before: Sequence[int] | None = None
    ) -> None:
        """``before`` has for each operation another one that must take effect before it, or -1."""
        self._operations = operations
        self._steps = Steps(model, operations)
        self._pending = Pending(model, operations, self._steps, before)
        self._best = _Best()
        self._met = 0
        self.steps = 0
        """How many configurations were entered."""
        self.outcome: Outcome | None = None
        self._stack: list[tuple[int, int, int, int, Node | None]] = [
            (0, 0, 0, self._steps.initial, None)
        ]
        """The configurations that are still to be entered: the next completion, the pending
        operations that took effect, those that are never completed and took effect, the state, and
        how it was reached. The last one is entered first."""

    @property
    def size(self) -> int:
        """How many operations there are."""
        return len(self._operations)

    @property
    def bytes(self) -> int:
        """About how much memory the search takes."""
        kept = self._met * _MET_BYTES + len(self._stack) * _WAITING_BYTES
        return kept + self._pending.bytes + self._steps.bytes

    def run(self, steps: int) -> Outcome | None:
        """Search for so many steps, and return the outcome, if there is one by then."""
        if self.outcome is None:
            self._run(self.steps + steps)
            if self.outcome is not None:
                self._forget()
        return self.outcome

    def _forget(self) -> None:
        """Free the memory after the outcome is known."""
        self._met = 0
        self._stack.clear()
        self._pending.forget()
        self._steps.forget()

    def _run(self, end: int) -> None:
        pending, best, stack = self._pending, self._best, self._stack
        choices, bits, count, last = pending.choices, pending.bits, pending.count, best.at
        step, entries = self.steps, self._met
        while stack and step < end:
            at, mask, used, state, node = stack.pop()
            if state < 0:
                state = self._steps.asked(state)
                if state < 0:
                    continue
            step += 1
            here = choices[at] or pending.at(at)
            reads = here.known_reads.get(state)
            mask |= here.reads(pending, state, mask) if reads is None else reads
            while mask & bits[at]:
                mask ^= bits[at]
                at += 1
                here = choices[at] or pending.at(at)
                reads = here.known_reads.get(state)
                mask |= here.reads(pending, state, mask) if reads is None else reads
            if at == count:
                self.outcome = Linearized(self._order(node))
                break
            key = mask << _STATE_BITS | state
            met = here.met.get(key)
            if met is None:
                here.met[key] = used
            elif met == used or _is_covered(here.met, key, met, used):
                continue
            entries += 1
            if at >= last:
                last = at
                best.see(at, state, node)
            crashed, updates = here.known_updates.get(state) or here.updates(pending, state, mask)
            for group, after in crashed:
                free = group & ~used
                if free:
                    bit = free & -free
                    stack.append((at, mask, used | bit, after, (node, at, -bit)))
            for group, members, after in updates:
                free = group & ~mask
                if free:
                    bit = free if members is None else next(m for m in members if m & free)
                    stack.append((at, mask | bit, used, after, (node, at, bit)))
        else:
            if not stack:
                self.outcome = self._illegal()
        self.steps, self._met = step, entries

    def _order(self, node: Node | None) -> tuple[int, ...]:
        """Return the operations that took effect, in their order, after the last of some updates
        and the reads that it makes legal."""
        path = []
        while node is not None:
            path.append(node)
            node = node[0]
        pending, order = self._pending, list[int]()
        at, mask, state = 0, 0, self._steps.initial
        for _, place, bit in (*reversed(path), (None, -1, 0)):
            while True:
                here = pending.at(at)
                reads = here.reads(pending, state, mask) & ~mask
                order += pending.rows(here, reads)
                mask |= reads
                if not mask & pending.bits[at]:
                    break
                mask ^= pending.bits[at]
                at += 1
            if bit:
                assert place == at, "an update takes effect where it did in the search"
                row = pending.crashed_row(-bit) if bit < 0 else pending.rows(here, bit)[0]
                order.append(row)
                mask |= max(bit, 0)
                state = self._steps.next(state, self._steps.kinds[row])
        return tuple(order)

    def _illegal(self) -> Illegal:
        best = self._best
        blocked = self._pending.blocked(best.at)
        refusals = tuple(self._steps.refusal(state, blocked) for state in best.states[:SHOWN])
        prefix = self._order(best.node)
        return Illegal(blocked, prefix, refusals, len(best.states) - len(refusals))


def _is_covered(met: dict[int, Any], key: int, known: Any, used: int) -> bool:
    """Return whether a configuration was met in which fewer of the operations that are never
    completed took effect, and no other ones; note this one if not."""
    others = known if isinstance(known, tuple) else (known,)
    for other in others:
        if not other & ~used:
            return True
    met[key] = (*(other for other in others if used & ~other), used)
    return False


class _Best:
    """The configurations that got furthest."""

    def __init__(self) -> None:
        self.at = -1
        self.node: Node | None = None
        self._states: dict[int, None] = {}

    @property
    def states(self) -> list[int]:
        return list(self._states)

    def see(self, at: int, state: int, node: Node | None) -> None:
        """Note a configuration that got at least as far as the best one."""
        if at > self.at:
            self.at, self._states, self.node = at, {}, node
        self._states[state] = None
