"""Which operations can take effect at each completion of a history.

A search walks over the completions in their order. At each of them, some operations are invoked and
not completed. What they do in a state is noted as long as there are few states.
"""

from bisect import bisect_right, insort
from collections.abc import Sequence
from typing import Any

from checkers.linearizability.models import Model
from checkers.linearizability.operations import Operation
from checkers.linearizability.steps import Steps

_CHOICE_BYTES = 48
"""Memory for what an operation does in a state, where that is noted at a completion."""
Update = tuple[int, tuple[int, ...] | None, int]
"""Updates that do the same: their bits together, the bits in the order of their completions if
there are several, and the state afterwards."""


class Choices:
    """What can take effect at one completion."""

    __slots__ = (
        "_crashed", "_groups", "_reads", "active", "at", "known_reads", "known_updates", "met",
    )  # fmt: skip

    def __init__(self, pending: "Pending", at: int, active: list[tuple[int, int]]) -> None:
        """``active`` are the pending operations, as pairs of their completion and their row."""
        self.at, self.active = at, active
        self.met: dict[int, Any] = {}
        """By pending operations that took effect, and state: which of the operations took effect
        that are never completed."""
        self.known_reads: dict[int, int] = {}
        self.known_updates: dict[int, tuple[list[tuple[int, int]], list[Update]]] = {}
        self._reads: list[tuple[int, int]] = []
        groups: dict[int, list[int]] = {}
        for _, row in active:
            if pending.only_reads[row]:
                self._reads.append((pending.bit[row], pending.kinds[row]))
            else:
                groups.setdefault(pending.kinds[row], []).append(pending.bit[row])
        self._groups = [
            (kind, sum(group), tuple(group) if len(group) > 1 else None)
            for kind, group in reversed(groups.items())
        ]
        self._crashed = pending.crashed

    def reads(self, pending: "Pending", state: int, mask: int) -> int:
        """Return the bits of operations that never change a state and that are legal in it, at
        least of those that took no effect yet."""
        found, steps = 0, pending.steps
        if steps.are_few:
            for bit, kind in self._reads:
                if steps.next(state, kind) >= 0:
                    found |= bit
            self.known_reads[state] = found
            pending.bytes += 2 * _CHOICE_BYTES
            return found
        for bit, kind in self._reads:
            if not mask & bit and steps.next(state, kind) >= 0:
                found |= bit
        return found

    def updates(
        self, pending: "Pending", state: int, mask: int
    ) -> tuple[list[tuple[int, int]], list[Update]]:
        """Return the operations that change states, with the state afterwards; with many states, it
        is only asked for. First, those that are never completed: the bits of those that do the
        same. Then the others; those that end first are last."""
        steps = pending.steps
        if not steps.are_few:
            return (
                [(group, steps.ask(state, kind, True)) for kind, group in self._crashed],
                [
                    (group, members, steps.ask(state, kind))
                    for kind, group, members in self._groups
                    if group & ~mask
                ],
            )
        crashed = [
            (group, after)
            for kind, group in self._crashed
            if (after := steps.next(state, kind)) >= 0 and after != state
        ]
        updates = [
            (group, members, after)
            for kind, group, members in self._groups
            if (after := steps.next(state, kind)) >= 0
        ]
        self.known_updates[state] = crashed, updates
        pending.bytes += (4 + 2 * len(crashed) + 2 * len(updates)) * _CHOICE_BYTES
        return crashed, updates


class _SessionChoices(Choices):
    """What can take effect where operations must take effect after others of their session."""

    def reads(self, pending: "Pending", state: int, mask: int) -> int:
        found, is_new = 0, True
        while is_new:
            is_new = False
            for _, row in self.active:
                bit = pending.bit[row]
                if (
                    pending.only_reads[row]
                    and not (mask | found) & bit
                    and pending.may_begin(row, self.at, mask | found)
                    and pending.steps.next(state, pending.kinds[row]) >= 0
                ):
                    found, is_new = found | bit, True
        return found

    def updates(
        self, pending: "Pending", state: int, mask: int
    ) -> tuple[list[tuple[int, int]], list[Update]]:
        found: list[Update] = []
        for rank, row in reversed(self.active):
            if not pending.only_reads[row] and pending.may_begin(row, self.at, mask):
                after = pending.steps.next(state, pending.kinds[row])
                if after >= 0 and (after != state or rank < pending.count):
                    found.append((pending.bit[row], None, after))
        return [], found


class Pending:
    """Which operations are invoked and not completed at each completion.

    Each has a bit from its invocation to its completion, which another one gets afterwards. Without
    sessions, those that are never completed have bits of their own, in the order of invocations.
    """

    def __init__(
        self,
        model: Model,
        operations: Sequence[Operation],
        steps: Steps,
        before: Sequence[int] | None,
    ) -> None:
        self.steps, self.kinds, self._before = steps, steps.kinds, before
        self.only_reads = [model.only_reads(each) for each in operations]
        ends = sorted((each.end, n) for n, each in enumerate(operations) if not each.is_pending)
        self._blocked = [operation for _, operation in ends]
        self.count = len(ends)
        """Number of completions."""
        self._rank = [self.count] * len(operations)
        """For each operation, its completion; the number of all completions if it has none."""
        for at, operation in enumerate(self._blocked):
            self._rank[operation] = at
        self.crashed: list[tuple[int, int]] = []
        """The operations that are never completed, as pairs of a kind and bits, at the last of
        :attr:`choices`."""
        self._crashed_rows: list[int] = []
        self._joining: dict[int, list[int]] = {}
        """By completion, the operations that were invoked after the one before it."""
        self.bit = [0] * len(operations)
        self._give_bits(operations, [end for end, _ in ends])
        self.bits = [self.bit[operation] for operation in self._blocked] + [0]
        """For each completion, the bit of its operation."""
        self.choices: list[Choices | None] = [None] * (self.count + 1)
        """For each completion, what can take effect; ``None`` if it was not asked for."""
        self._known = 0
        self.bytes = 0
        """About how much memory the choices take."""

    def _give_bits(self, operations: Sequence[Operation], place: list[int]) -> None:
        free: list[int] = []
        passed = width = 0
        for number, each in sorted(enumerate(operations), key=lambda pair: pair[1].call):
            first = bisect_right(place, each.call - 1)
            free.extend(self.bit[done] for done in self._blocked[passed:first])
            passed = max(passed, first)
            if self._is_apart(number):
                if not self.only_reads[number]:
                    self._joining.setdefault(first, []).append(number)
                continue
            self._joining.setdefault(first, []).append(number)
            if not free:
                free.append(1 << width)
                width += 1
            self.bit[number] = free.pop()

    def _is_apart(self, row: int) -> bool:
        return self._before is None and self._rank[row] == self.count

    def at(self, at: int) -> Choices:
        """Return what can take effect at a completion. It is asked for one after the other."""
        found = self.choices[at]
        if found is None:
            assert at == self._known, "completions are passed in their order"
            found = self.choices[at] = self._next(at)
            self._known += 1
            self.bytes += 700 + 8 * len(found.active) + 200
        return found

    def _next(self, at: int) -> Choices:
        last = self.choices[at - 1] if at else None
        done = self._blocked[at - 1] if at else -1
        active = [pair for pair in last.active if pair[1] != done] if last else []
        for row in self._joining.get(at, ()):
            if not self._is_apart(row):
                insort(active, (self._rank[row], row))
                continue
            bit, kind = 1 << len(self._crashed_rows), self.kinds[row]
            self._crashed_rows.append(row)
            groups = dict(self.crashed)
            groups[kind] = groups.get(kind, 0) | bit
            self.crashed = list(groups.items())
        return (Choices if self._before is None else _SessionChoices)(self, at, active)

    def may_begin(self, row: int, at: int, mask: int) -> bool:
        """Return whether the operation that must come before another one took effect."""
        assert self._before is not None
        before = self._before[row]
        return before < 0 or self._rank[before] < at or bool(mask & self.bit[before])

    def rows(self, choices: Choices, bits: int) -> list[int]:
        """Return the operations that have some bits at a completion, those that end first first."""
        return [row for _, row in choices.active if self.bit[row] & bits]

    def crashed_row(self, bit: int) -> int:
        """Return the operation that is never completed and has a bit."""
        return self._crashed_rows[bit.bit_length() - 1]

    def blocked(self, at: int) -> int:
        """Return the operation that a completion completes."""
        return self._blocked[at]

    def forget(self) -> None:
        """Free the memory; nothing can be asked afterwards."""
        self.choices, self.bytes = [], 0
