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
from checkers.kernels import cycles, suspects
from checkers.kernels.history import History
from checkers.kernels.rows import I64
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
    links = suspects.links(tables, known.overdue.op)
    found = np.union1d(suspects.early(tables), suspects.zombies(tables, known.fences))
    source, target = (side[:LINKS_MAX] for side in links)
    seen = Seen(found, source, target, len(links[0]) <= LINKS_MAX)
    return seen, _parts(known, number, tables)


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
    whole = _Dependencies(known, tables)
    clean = None
    if known.misplaced:
        records = known.misplaced.get(number)
        clean = whole if records is None else _Dependencies(known, tables.without(records))
    for window in range(known.windows.number):
        part = whole.part(window), None if clean is None else clean.part(window)
        if any(each for each in part):
            yield window, packing.dumped(part)


class _Dependencies:
    """The transactions of a slice and their dependencies, by window."""

    def __init__(self, known: Known, history: History) -> None:
        windows = known.windows
        self._transactions = cycles.transactions(history)
        found = cycles.edges(history)
        numbers = np.array([known.keys[key] for key in history.keys], dtype=np.int64)
        self._edges = found._replace(key=numbers[found.key])
        self._window = windows.of(self._transactions)
        self._source, self._target = windows.of(found.source), windows.of(found.target)

    def part(self, window: int) -> Part | None:
        """Return what concerns a window; ``None`` if nothing does."""
        over = (self._target < window) & (self._source >= window)
        part = Part(
            self._transactions[self._window == window],
            self._edges.where(np.flatnonzero(self._target == window)),
            self._edges.source[over],
        )
        return part if any(map(len, (part.transactions, part.edges.source, part.over))) else None
