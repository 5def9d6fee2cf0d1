"""A monitor of many registers with ``cas`` at once.

It is one of the monitors of :mod:`~checkers.linearizability.column_monitors`;
:mod:`~checkers.linearizability.chains` says what a chain of values is.

A value has the position of the operation that wrote it; the initial values of the keys follow after
all positions.
"""

import numpy as np

from checkers.linearizability.column_blocks import CAS, READ, WRITE, Block, Numbers
from checkers.linearizability.column_monitors import (
    I32,
    Suspects,
    Writers,
    odd,
    positions,
    register,
    zones,
)
from checkers.linearizability.monitors import I64


def cas_register(block: Block, initial: int | None) -> I64:
    """Check registers with ``cas``, and such without it."""
    every = np.concatenate([*positions(block, CAS), np.empty(0, dtype=np.int64)])
    if not len(every):
        return register(block, initial)
    suspects = Suspects()
    odd(block, suspects)
    chains = _Chains(block, initial, suspects)
    chains.link(every)
    chains.walk(suspects)
    chains.compare(suspects)
    return suspects.keys(block)


class _Chains:
    """The values of registers, with their reads, and with the ``cas`` that replaced each."""

    def __init__(self, block: Block, initial: int | None, suspects: Suspects) -> None:
        """Find the writer of each read."""
        count = len(block.kind)
        self._block, self._initial, self._suspects = block, initial, suspects
        self._writers = Writers(block, suspects, (WRITE, CAS))
        size = count + len(block.starts) - 1
        self._last = np.arange(size, dtype=np.int32)
        self._last[count:] = block.starts[:-1] - 1
        self._read_after = np.full(size, np.iinfo(np.int32).max, dtype=np.int32)
        self._uses = np.zeros(size, dtype=np.int32)
        for reads in positions(block, READ):
            writer = self._of(block.value, reads)
            after = block.after[reads]
            wrong = (writer < 0) | ((after <= writer) & (writer < count))
            if wrong.any():
                suspects.add(reads, wrong)
                reads, writer, after = reads[~wrong], writer[~wrong], after[~wrong]
            np.minimum.at(self._read_after, writer, after)
            np.add.at(self._uses, writer, 1)
            self._last[writer] = np.maximum(reads, self._last[writer])
        if initial is not None:
            for kind in (WRITE, CAS):
                for writes in positions(block, kind):
                    suspects.add(writes, block.value[writes] == initial)

    def _of(self, values: Numbers, rows: I64) -> I64:
        """Return the writers of the values in some rows; -1 for none."""
        key = None if self._block.key is None else self._block.key[rows]
        found = self._writers.of(values[rows], key)
        if self._initial is not None:
            first = values[rows] == self._initial
            count = len(self._block.kind)
            found[first] = count if key is None else count + key[first].astype(np.int64)
        return found

    def link(self, every: I64) -> None:
        """Find what each ``cas`` replaced, without those that never ended and whose value was never
        used: they had no effect."""
        assert self._block.expected is not None
        assert self._block.is_pending is not None
        size = len(self._last)
        self._before = np.full(size, -1, dtype=np.int32)
        self._before[every] = self._of(self._block.expected, every)
        known = self._before[every]
        np.add.at(self._uses, known[known >= 0], 1)
        is_gone = np.zeros(size, dtype=np.bool_)
        waiting = every[self._block.is_pending[every]]
        while True:
            is_unused = self._uses[waiting] == 0
            gone, waiting = waiting[is_unused], waiting[~is_unused]
            if not len(gone):
                break
            is_gone[gone] = True
            known = self._before[gone]
            np.subtract.at(self._uses, known[known >= 0], 1)
        mine = every[~is_gone[every]]
        is_known = self._before[mine] >= 0
        self._suspects.add(mine, ~is_known)
        self._linked = mine[is_known]
        self._after = np.full(size, -1, dtype=np.int32)
        before = self._before[self._linked]
        self._after[before] = self._linked
        self._suspects.add(self._linked, self._after[before] != self._linked)

    def walk(self, suspects: Suspects) -> None:
        """Check that each operation of a chain can follow those before it.

        The last invocation before a value is passed on to the next value until nothing changes,
        which is soon: it matters only to operations that are concurrent with it.
        """
        latest = np.full(len(self._last), -1, dtype=np.int32)
        until = np.minimum(self._block.after[self._linked], self._read_after[self._linked])
        of = self._read_after.copy()
        of[self._linked] = until
        active = self._linked
        while len(active):
            before = self._before[active]
            now = np.maximum(self._last[before], latest[before])
            changed = now > latest[active]
            active, now = active[changed], now[changed]
            latest[active] = now
            wrong = now >= of[active]
            suspects.add(active, wrong)
            following = self._after[active[~wrong]]
            active = following[following >= 0].astype(np.int64)

    def compare(self, suspects: Suspects) -> None:
        """Find two chains each of which must precede the other one."""
        count = len(self._block.kind)
        first = np.concatenate([self._block.after, self._block.starts[:-1].astype(np.int32)])
        np.minimum(first, self._read_after, out=first)
        root = self._roots(suspects)
        np.minimum.at(first, root, first[self._linked])
        last = self._last.copy()
        np.maximum.at(last, root, self._last[self._linked])
        first[count:] = self._block.starts[:-1]
        zones(self._block, first, last, suspects)

    def _roots(self, suspects: Suspects) -> I32:
        """Return the first value of the chain of each ``cas``. The way to it is halved until it
        ends; that of a circle does not."""
        is_root = np.ones(len(self._last), dtype=np.bool_)
        is_root[self._linked] = False
        root = self._before.copy()
        active = self._linked
        for _ in range(len(self._last).bit_length() + 1):
            active = active[~is_root[root[active]]]
            if not len(active):
                break
            root[active] = root[root[active]]
        suspects.add(active, np.ones(len(active), dtype=np.bool_))
        return root[self._linked]
