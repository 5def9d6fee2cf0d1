"""Edges of the dependency graph: which transaction must precede which, and why."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from checkers.isolation.transactions import NONE, UNKNOWN, Transactions
from checkers.kernels.arrays import I32, I64
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


class Part(NamedTuple):
    """Edges of which only the ends are in memory: all else is asked for of those on cycles."""

    source: I32
    target: I32
    chosen: Callable[[I64], Edges]
    """Returns some of the edges, given their rows."""


Parts = Sequence[Part]
"""All edges of a graph."""


def part(source: I64, target: I64, kind: int, *columns: Any) -> Part:
    """Return edges of one kind; ``columns`` are functions that return for some of the edges, by
    their rows, what :func:`edges` has for all: key, value and next version."""
    ends = source.astype(np.int32), target.astype(np.int32)

    def chosen(rows: I64) -> Edges:
        source, target = (end[rows].astype(np.int64) for end in ends)
        return edges(source, target, kind, *(column(rows) for column in columns))

    return Part(*ends, chosen)


def whole(found: Edges) -> Part:
    """Return edges that are in memory as a part."""
    ends = found.source.astype(np.int32), found.target.astype(np.int32)
    return Part(*ends, lambda rows: found.where(rows))


def every(parts: Parts) -> Edges:
    """Return all edges of a graph in memory."""
    return joined(part.chosen(np.arange(len(part.source))) for part in parts)


def picked(column: I64, rows: I64) -> Callable[[I64], I64]:
    """Return a function that returns the values of a column at some of these rows."""
    return lambda chosen: column[rows[chosen]]


def process_order(txns: Transactions) -> Parts:
    """Return an edge between each two consecutive ok transactions of a process."""
    ok = np.flatnonzero(txns.outcome == OK)
    ok = ok[np.argsort(txns.process[ok], kind="stable")]
    same = txns.process[ok[1:]] == txns.process[ok[:-1]]
    return [part(ok[:-1][same], ok[1:][same], PROCESS)]


def realtime_order(txns: Transactions, happened: Bools) -> Parts:
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
        return []
    return [
        part(ok, moment, REALTIME),
        part(moment[:-1], moment[1:], REALTIME),
        part(moment[before[after_some]], invoked[after_some], REALTIME),
    ]
