"""Groups of micro-operations of one transaction on one key, handled one round at a time.

Round n is the n-th micro-operation of every group that has so many. There are few rounds, because
transactions are short, and each one is a few operations on arrays.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from checkers.isolation.transactions import READ, WRITE, MicroOps
from checkers.kernels.arrays import I64, changes
from checkers.kernels.rows import Bools


@dataclass(frozen=True)
class Groups:
    """The micro-operations of transactions, by transaction and key."""

    rows: I64
    """The rows of micro-operations, one group after another, each in the order of execution."""
    begin: I64
    """Where each group begins, and where the last one ends."""

    @property
    def first(self) -> I64:
        """The first row of each group."""
        return self.rows[self.begin[:-1]]

    @property
    def size(self) -> I64:
        """The number of rows of each group."""
        return np.diff(self.begin)

    def where(self, mask: Bools) -> "Groups":
        """Return some of the groups."""
        size = self.size
        begin = np.zeros(int(mask.sum()) + 1, np.int64)
        np.cumsum(size[mask], out=begin[1:])
        return Groups(self.rows[np.repeat(mask, size)], begin)

    def of(self, group: int) -> I64:
        """Return the rows of a group."""
        return self.rows[self.begin[group] : self.begin[group + 1]]

    def rounds(self) -> Iterator[tuple[int, I64, I64]]:
        """Yield the number of each round, its groups, and their rows."""
        size = self.size
        alive = np.arange(len(size))
        for at in range(int(size.max(initial=0))):
            alive = alive[size[alive] > at]
            yield at, alive, self.rows[self.begin[alive] + at]

    def any_write(self, ops: MicroOps) -> Bools:
        """Return which groups write their key."""
        return self._any(ops.kind == WRITE)

    def _any(self, mask: Bools) -> Bools:
        if not len(self.rows):
            return np.zeros(0, np.bool_)
        found: Bools = np.logical_or.reduceat(mask[self.rows], self.begin[:-1])
        return found


def by_key(ops: MicroOps, txns: Bools) -> Groups:
    """Return the micro-operations of these transactions in groups."""
    rows = np.flatnonzero(txns[ops.txn])
    code = ops.txn[rows] * (int(ops.key.max(initial=0)) + 1) + ops.key[rows]
    order = np.argsort(code, kind="stable")
    begins = np.flatnonzero(changes(code[order]))
    return Groups(rows[order], np.append(begins, len(rows)))


def last_writes(ops: MicroOps) -> Bools:
    """Return whether each row is the last write of its transaction to its key."""
    writes = np.flatnonzero(ops.kind == WRITE)[::-1]
    code = ops.txn[writes] * (int(ops.key.max(initial=0)) + 1) + ops.key[writes]
    _, last = np.unique(code, return_index=True)
    found = np.zeros(len(ops.txn), np.bool_)
    found[writes[last]] = True
    return found


def first_reads(ops: MicroOps, groups: Groups) -> Bools:
    """Return which groups begin with a read whose result is known: their external reads."""
    first = groups.first
    found: Bools = (ops.kind[first] == READ) & (ops.length[first] >= 0)
    return found
