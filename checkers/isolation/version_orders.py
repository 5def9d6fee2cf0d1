"""The order of a register's versions, inferred by rules that the options switch on.

A register shows no order by itself. Each analyzer adds what its assumption implies. If the order of
a key becomes cyclic, the assumption of the last analyzer is wrong for that key: that is the anomaly
``cyclic-versions``, and what this analyzer says about the key is not used.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from checkers.isolation.components import labels
from checkers.isolation.groups import Groups, first_reads
from checkers.isolation.options import Options
from checkers.isolation.transactions import NONE, UNKNOWN, History
from checkers.kernels.arrays import I64
from checkers.kernels.rows import Bools


class Versions(NamedTuple):
    """The versions of all keys, ordered by key; the initial version of a key is its first one."""

    key: I64
    element: I64

    def find(self, key: I64, element: I64) -> I64:
        """Return the numbers of these versions, which all exist."""
        names = np.unique(self.element)
        code, wanted = (
            k * len(names) + np.searchsorted(names, e)
            for k, e in ((self.key, self.element), (key, element))
        )
        return np.searchsorted(code, wanted)


class Uses(NamedTuple):
    """One row per ok transaction and key that it reads from others, or writes."""

    txn: I64
    key: I64
    read: I64
    """The version that it read from others; UNKNOWN if it read none."""
    written: I64
    """The version that it left; UNKNOWN if it wrote none."""

    @property
    def first(self) -> I64:
        """The version that it saw first: the one that it read, or else the one that it wrote."""
        return np.where(self.read == UNKNOWN, self.written, self.read)

    @property
    def last(self) -> I64:
        """The version that it saw last."""
        return np.where(self.written == UNKNOWN, self.read, self.written)


class Cyclic(NamedTuple):
    """A key whose versions cannot be in the order that analyzers infer."""

    key: int
    versions: Sequence[int]
    sources: Sequence[str]
    """The analyzers that contributed, the last of which is not used."""


@dataclass(frozen=True)
class VersionOrder:
    """Versions and the edges between them."""

    earlier: I64
    later: I64
    cyclic: Sequence[Cyclic]


def versions_of(history: History, groups: Groups, writes: I64) -> Versions:
    """Return all versions that ok transactions read from others, or that these rows write."""
    ops = history.ops
    reads = groups.first[first_reads(ops, groups)]
    rows = np.concatenate((reads, writes))
    keys = np.arange(len(history.names.keys))
    key = np.concatenate((keys, ops.key[rows]))
    element = np.concatenate((np.full(len(keys), NONE), ops.element[rows]))
    order = np.lexsort((element, key))
    key, element = key[order], element[order]
    is_new = np.ones(len(key), np.bool_)
    is_new[1:] = (key[1:] != key[:-1]) | (element[1:] != element[:-1])
    return Versions(key[is_new], element[is_new])


def uses_of(history: History, groups: Groups, versions: Versions, last: Bools) -> Uses:
    """Return how ok transactions use keys.

    Args:
        groups: the micro-operations of ok transactions.
        last: whether each row is the last write of its transaction to its key.
    """
    ops, first = history.ops, groups.first
    read, written = np.full(len(first), UNKNOWN), np.full(len(first), UNKNOWN)
    reads = first_reads(ops, groups)
    read[reads] = versions.find(ops.key[first[reads]], ops.element[first[reads]])
    at = np.flatnonzero(last[groups.rows])
    rows = groups.rows[at]
    group = np.searchsorted(groups.begin, at, "right") - 1
    written[group] = versions.find(ops.key[rows], ops.element[rows])
    used = (read != UNKNOWN) | (written != UNKNOWN)
    return Uses(ops.txn[first[used]], ops.key[first[used]], read[used], written[used])


Pair = tuple[I64, I64]


def infer(history: History, versions: Versions, uses: Uses, options: Options) -> VersionOrder:
    """Return the order that the options allow to infer."""
    analyzers: Mapping[str, tuple[bool, Callable[[], Pair]]] = {
        "initial-state": (True, lambda: _initial(versions)),
        "transaction-order": (
            options.transaction_order is not None,
            lambda: _by_transactions(history, uses, options.transaction_order or {}),
        ),
        "wfr-keys": (options.wfr_keys, lambda: _by_own_read(uses)),
        "sequential-keys": (options.sequential_keys, lambda: _by_process(history, uses)),
        "linearizable-keys": (options.linearizable_keys, lambda: _by_realtime(history, uses)),
    }
    order = _Order(versions)
    for name, (is_used, analyze) in analyzers.items():
        if is_used:
            order.add(name, *analyze())
    earlier, later = order.edges()
    return VersionOrder(earlier, later, order.cyclic)


class _Order:
    """The edges so far."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._parts: list[Pair] = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        self._sources: list[str] = []
        self.cyclic: list[Cyclic] = []

    def edges(self) -> Pair:
        """Return all edges."""
        earlier, later = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        return earlier, later

    def add(self, name: str, earlier: I64, later: I64) -> None:
        """Add the edges of an analyzer, except for keys that they would make cyclic."""
        differs = earlier != later
        earlier, later = earlier[differs], later[differs]
        self._sources.append(name)
        before = self.edges()
        component = labels(
            np.concatenate((before[0], earlier)),
            np.concatenate((before[1], later)),
            len(self._versions.key),
        )
        size = np.bincount(component, minlength=1)
        members = np.flatnonzero(size[component] > 1)
        cyclic = np.unique(self._versions.key[members])
        kept = ~np.isin(self._versions.key[earlier], cyclic)
        self._parts.append((earlier[kept], later[kept]))
        for number in np.unique(component[members]).tolist():
            found = members[component[members] == number]
            self.cyclic.append(
                Cyclic(int(self._versions.key[found[0]]), found.tolist(), tuple(self._sources))
            )


def _initial(versions: Versions) -> Pair:
    """The initial version of a key precedes all others."""
    first = np.searchsorted(versions.key, versions.key)
    return first, np.arange(len(versions.key))


def _by_own_read(uses: Uses) -> Pair:
    """A transaction writes the version after the one that it read."""
    both = (uses.read != UNKNOWN) & (uses.written != UNKNOWN)
    return uses.read[both], uses.written[both]


def _by_process(history: History, uses: Uses) -> Pair:
    """Each process sees the versions of a key in their order."""
    order = np.lexsort((uses.txn, uses.key, history.txns.process[uses.txn]))
    txn, key = uses.txn[order], uses.key[order]
    process = history.txns.process[txn]
    same = (process[1:] == process[:-1]) & (key[1:] == key[:-1])
    return uses.last[order][:-1][same], uses.first[order][1:][same]


def _by_transactions(history: History, uses: Uses, place: Mapping[int, int]) -> Pair:
    """The versions of a key are in the order in which their writers committed."""
    events = history.txns.event[uses.txn].tolist()
    known = np.array([event in place for event in events], np.bool_)
    known &= uses.written != UNKNOWN
    at = np.array([place.get(event, 0) for event in events], np.int64)[known]
    key, written = uses.key[known], uses.written[known]
    order = np.lexsort((at, key))
    key, written = key[order], written[order]
    same = key[1:] == key[:-1]
    return written[:-1][same], written[1:][same]


def _by_realtime(history: History, uses: Uses) -> Pair:
    """A transaction that completed before another one was invoked saw no later version.

    For each invocation, the last completed transactions count: those after which no other one was
    both invoked and completed. All others precede these.
    """
    earlier: list[int] = []
    later: list[int] = []
    first, last = uses.first.tolist(), uses.last.tolist()
    for moments in _moments(history, uses):
        done: dict[int, int] = {}
        """The last completed transactions, by their rows, and when they completed."""
        for now, invoked, row in moments:
            if invoked == UNKNOWN:
                earlier += (last[other] for other in done)
                later += [first[row]] * len(done)
            else:
                done = {other: at for other, at in done.items() if at > invoked}
                done[row] = now
    return np.array(earlier, np.int64), np.array(later, np.int64)


def _moments(history: History, uses: Uses) -> Iterator[list[tuple[int, int, int]]]:
    """Yield for each key its invocations (when, UNKNOWN, row) and completions (when, invoked,
    row), in their order."""
    invoked, completed = (
        column[uses.txn] for column in (history.txns.invoked, history.txns.completed)
    )
    rows = np.flatnonzero(invoked != UNKNOWN)
    rows = rows[np.argsort(uses.key[rows], kind="stable")]
    for part in np.split(rows, np.flatnonzero(np.diff(uses.key[rows])) + 1):
        begin, end = invoked[part].tolist(), completed[part].tolist()
        found: list[tuple[int, int, int]] = []
        for row, at, until in zip(part.tolist(), begin, end, strict=True):
            found += (at, UNKNOWN, row), (until, at, row)
        yield sorted(found)


def shortened(versions: Versions, order: VersionOrder, has_writer: Bools) -> Pair:
    """Return the edges without those from initial versions to versions that follow others.

    An initial version would otherwise have an edge to each version. A version whose predecessor has
    a writer is reached over that one.
    """
    is_initial = versions.element == NONE
    follows = np.zeros(len(versions.key), np.bool_)
    from_writer = ~is_initial[order.earlier] & has_writer[order.earlier]
    follows[order.later[from_writer]] = True
    kept = ~(is_initial[order.earlier] & follows[order.later])
    return order.earlier[kept], order.later[kept]


def named(history: History, versions: Versions, number: int) -> Any:
    """Return the value of a version."""
    return history.names.element(int(versions.element[number]))
