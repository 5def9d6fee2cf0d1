"""What an executor does with the transactions of a slice, whose records may be in several slices.

It lists their dependencies, for the tasks that search for cycles, and the suspects of
:mod:`checkers.kernels.suspects`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from checkers import table_builder
from checkers.columns import Columns
from checkers.distributed import packing, slice_task
from checkers.distributed.cycle_task import Part, Windows
from checkers.distributed.kept import Kept
from checkers.kernels import cycles, suspects
from checkers.kernels.cycles import Edges
from checkers.kernels.history import History
from checkers.kernels.rows import I64, Bools
from checkers.kernels.suspects import Fence, Open
from checkers.tables import Tables

Records = Collection[tuple[str | None, int | None]]
"""Partitions and values."""


class Known(NamedTuple):
    """What is known of a history when its transactions are examined; the mappings are by slice."""

    keys: Mapping[str, int]
    """The number of each partition."""
    happened: Mapping[int, frozenset[int]]
    """The operations in doubt that other slices have proven."""
    misplaced: Mapping[int, Records]
    """The records that are blamed for where they are in a log."""
    overdue: Open
    """The transactions that a slice shows to be open at their end or later."""
    fences: Sequence[Fence]
    windows: Windows
    settled: Mapping[int, Kept]
    """The settled blocks of which a slice has only the ends."""


class Seen(NamedTuple):
    """What a slice shows of transactions."""

    suspects: I64
    source: I64
    """The links of :func:`checkers.kernels.suspects.links`: until when the transaction ``source``
    was open may decide until when ``target`` was."""
    target: I64
    all_links: bool
    """Whether all links are listed: there may be too many."""


LINKS_MAX = 200_000
"""How many links a slice lists."""


def examine(
    known: Known, number: int, parts: Sequence[bytes]
) -> tuple[Seen, Iterator[tuple[int, bytes]]]:
    """Return what a slice shows, and its dependencies by the number of their window."""
    tables = _tables(known, number, parts)
    found = np.union1d(suspects.early(tables), suspects.zombies(tables.sends, known.fences))
    return seen(found, *suspects.links(tables, known.overdue.op)), _parts(known, number, tables)


def seen(found: I64, source: I64, target: I64) -> Seen:
    """Return suspects and links, which may be too many."""
    return Seen(found, source[:LINKS_MAX], target[:LINKS_MAX], len(source) <= LINKS_MAX)


def by_window(known: Known, transactions: I64, edges: Edges) -> Iterator[tuple[int, bytes]]:
    """Yield dependencies by the number of their window; no record of them is misplaced."""
    whole = _Dependencies(known.windows, transactions, edges)
    for window in whole.used():
        part = whole.part(window)
        yield window, packing.dumped((part, part if known.misplaced else None))


def neighbours(known: Known, wanted: I64, number: int, parts: Sequence[bytes]) -> I64:
    """Return the operations that a slice has of these transactions' neighbours."""
    tables = _tables(known, number, parts)
    found = suspects.neighbours(tables, wanted, known.overdue)
    if number in known.misplaced:
        clean = tables.without(known.misplaced[number])
        found = np.union1d(found, suspects.neighbours(clean, wanted, known.overdue))
    return found


def _tables(known: Known, number: int, parts: Sequence[bytes]) -> Tables:
    events = slice_task.events_of(parts)
    return table_builder.build(Columns(events), known.happened.get(number, ()))


def _parts(known: Known, number: int, tables: Tables) -> Iterator[tuple[int, bytes]]:
    whole = _dependencies(known, number, tables)
    clean, used = None, whole.used()
    if known.misplaced:
        records = known.misplaced.get(number)
        clean = whole
        if records is not None:
            clean = _dependencies(known, number, tables.without(records))
            used = np.union1d(used, clean.used()).tolist()
    for window in used:
        part = whole.part(window), None if clean is None else clean.part(window)
        if any(each for each in part):
            yield window, packing.dumped(part)


def _dependencies(known: Known, number: int, history: History) -> "_Dependencies":
    found = cycles.edges(history)
    if number in known.settled:
        found = found.where(~_are_in_one_block(history, found, known.settled[number]))
    numbers = np.array([known.keys[key] for key in history.keys], dtype=np.int64)
    found = found._replace(key=numbers[found.key])
    return _Dependencies(known.windows, cycles.transactions(history), found)


def _are_in_one_block(history: History, edges: Edges, settled: Kept) -> Bools:
    """Return which dependencies are between ends of a settled block that seem to be neighbours; a
    range lists those that are."""
    sends = history.sends
    order = np.argsort(sends.value, kind="stable")
    values, block = sends.value[order], settled.interval(sends.offset[order])
    if not len(values):
        return np.zeros(len(edges.wr), dtype=np.bool_)
    one, other = (
        block[np.minimum(np.searchsorted(values, value), len(values) - 1)]
        for value in (edges.value, edges.next)
    )
    same: Bools = ~edges.wr & (one == other) & (one >= 0)
    return same


class _Dependencies:
    """The transactions of a slice and their dependencies, by window."""

    def __init__(self, windows: Windows, transactions: I64, edges: Edges) -> None:
        self._transactions, self._edges = transactions, edges
        self._window = windows.of(transactions)
        self._source, self._target = windows.of(edges.source), windows.of(edges.target)

    def used(self) -> list[int]:
        """Return the windows that something concerns, ascending."""
        first = np.concatenate((self._window, np.minimum(self._source, self._target)))
        last = np.concatenate((self._window, np.maximum(self._source, self._target)))
        both = np.concatenate((first, last + 1))
        size = int(both.max(initial=0)) + 1
        change = np.bincount(first, minlength=size) - np.bincount(last + 1, minlength=size)
        used: list[int] = np.flatnonzero(np.cumsum(change) > 0).tolist()
        return used

    def part(self, window: int) -> Part | None:
        """Return what concerns a window; ``None`` if nothing does."""
        over = (self._target < window) & (self._source >= window)
        part = Part(
            self._transactions[self._window == window],
            self._edges.where(np.flatnonzero(self._target == window)),
            self._edges.source[over],
        )
        return part if any(map(len, (part.transactions, part.edges.source, part.over))) else None
