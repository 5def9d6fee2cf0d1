"""Edges of the dependency graph: which transaction must precede which, and why."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from checkers.isolation.transactions import NONE, UNKNOWN, Transactions
from checkers.kernels.arrays import I64
from checkers.kernels.rows import I8, OK, Bools, Rows

WW, WR, RW, WWP, WRP, RWP, PROCESS, REALTIME = range(8)
KINDS = ("ww", "wr", "rw", "wwp", "wrp", "rwp", "process", "realtime")
"""The names of the kinds of edges. Those that end in p are by a predicate."""


class _Edges(NamedTuple):
    source: I64
    target: I64
    kind: I8
    key: I64
    """The code of the key; 0 for the order of a process and for realtime."""
    value: I64
    """The code of the version that was written or read first; NONE for the initial version."""
    next: I64
    """The code of the version that follows it, in ww and rw; NONE in others."""


class Edges(Rows, _Edges):
    """One row per dependency. Vertices are transactions, by their rows.

    Vertices beyond the transactions are moments: the n-th is the n-th completion of an ok
    transaction. An edge leads from a transaction to its moment, from each moment to the next one,
    and from the last moment before an invocation to the transaction invoked. So a transaction
    reaches another one over moments exactly if it completed before the other was invoked, and there
    are only three edges per transaction.
    """

    __slots__ = ()

    def of_kinds(self, *kinds: int) -> "Edges":
        """Return the edges of some kinds."""
        return self.where(np.isin(self.kind, kinds))


def edges(
    source: I64, target: I64, kind: int, key: Any = 0, value: Any = NONE, following: Any = NONE
) -> Edges:
    """Return edges of one kind; ``key``, ``value`` and ``following`` may be arrays."""
    count = len(source)
    return Edges(
        source,
        target,
        np.full(count, kind, np.int8),
        *(np.broadcast_to(np.asarray(each, np.int64), count) for each in (key, value, following)),
    )


NOTHING = np.zeros(0, np.int64)
NO_EDGES = edges(NOTHING, NOTHING, WW)


def joined(parts: Iterable[Edges]) -> Edges:
    """Return the edges of several parts, in their order."""
    columns: Any = zip(*(NO_EDGES, *parts), strict=True)
    return Edges(*map(np.concatenate, columns))


def process_order(txns: Transactions) -> Edges:
    """Return an edge between each two consecutive ok transactions of a process."""
    ok = np.flatnonzero(txns.outcome == OK)
    ok = ok[np.argsort(txns.process[ok], kind="stable")]
    same = txns.process[ok[1:]] == txns.process[ok[:-1]]
    return edges(ok[:-1][same], ok[1:][same], PROCESS)


def realtime_order(txns: Transactions, happened: Bools) -> Edges:
    """Return the edges over moments between transactions that happened.

    The order is that of events in the history, not of clocks. A transaction whose invocation is
    missing from the history follows no other one.
    """
    ok = np.flatnonzero(txns.outcome == OK)
    ok = ok[np.argsort(txns.completed[ok], kind="stable")]
    moment = len(txns.event) + np.arange(len(ok))
    invoked = np.flatnonzero(happened & (txns.invoked != UNKNOWN))
    before = np.searchsorted(txns.completed[ok], txns.invoked[invoked]) - 1
    after_some = before >= 0
    if not after_some.any():
        return NO_EDGES
    return joined(
        (
            edges(ok, moment, REALTIME),
            edges(moment[:-1], moment[1:], REALTIME),
            edges(moment[before[after_some]], invoked[after_some], REALTIME),
        )
    )
