"""Decides linearizability of a register with compare-and-set, where every new value is unique.

A value that a ``cas`` replaced was there until then, so that the order of a whole chain of values
is known: each with its reads, and then the ``cas`` that replaced it. A chain is what a single value
is in a register without ``cas``: two chains that must precede each other are a conflict.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from checkers.linearizability.monitors import (
    BEFORE,
    CAS,
    I64,
    READ,
    WRITE,
    Conflict,
    NotUnique,
    zones,
)
from checkers.linearizability.operations import NEVER

Kinds = NDArray[np.int8]
"""READ, WRITE or CAS of each operation."""


class _Values(NamedTuple):
    """For each value, the row that wrote it, its reads, and the row of the ``cas`` that replaced
    it; -1 for none."""

    writer: list[int]
    reads: list[list[int]]
    replaced: list[int]


def cas_register(
    kind: Kinds, old: I64, value: I64, call: I64, end: I64, initial: int
) -> Conflict | None:
    """Check a register with ``cas`` from ``old`` to ``value``, all of which succeeded or may have.

    Values are numbers from 0. Raises :class:`~checkers.linearizability.monitors.NotUnique`.
    """
    rows = _effective(kind, old, value, end)
    found = _values(rows, kind, old, value, initial)
    if isinstance(found, Conflict):
        return found
    begins, ends = call.tolist(), end.tolist()
    written = [
        number
        for number, writer in enumerate(found.writer)
        if writer >= 0 and kind[writer] == WRITE
    ]
    chains = []
    for first in (initial, *written):
        chain = _chain(first, found, value)
        conflict = _walk(chain, begins, ends)
        if conflict is not None:
            return conflict
        chains.append([row for segment in chain for row in segment if row >= 0])
    placed = {row for chain in chains for row in chain}
    circle = [row for row in rows if row not in placed]
    if any(kind[row] == READ or ends[row] != NEVER for row in circle):
        why = "each of them needs a value that only another one of them wrote"
        return Conflict(tuple(circle[:4]), why)
    return _between(chains, call, end)


def _effective(kind: Kinds, old: I64, value: I64, end: I64) -> list[int]:
    """Return the operations without those that never ended and whose value is never used."""
    uses = np.zeros(int(max(value.max(initial=-1), old.max(initial=-1))) + 1, dtype=np.int64)
    np.add.at(uses, value[kind == READ], 1)
    np.add.at(uses, old[kind == CAS], 1)
    is_kept = np.ones(len(kind), dtype=np.bool_)
    waiting = np.flatnonzero((kind != READ) & (end == NEVER)).tolist()
    while True:
        gone = [row for row in waiting if not uses[value[row]]]
        if not gone:
            return [int(row) for row in np.flatnonzero(is_kept)]
        waiting = [row for row in waiting if uses[value[row]]]
        is_kept[gone] = False
        for row in gone:
            if kind[row] == CAS:
                uses[old[row]] -= 1


def _values(rows: list[int], kind: Kinds, old: I64, value: I64, initial: int) -> _Values | Conflict:
    count = int(max(value.max(initial=initial), old.max(initial=initial), initial)) + 1
    found = _Values([-1] * count, [[] for _ in range(count)], [-1] * count)
    for row in rows:
        if kind[row] != READ:
            if found.writer[value[row]] >= 0 or value[row] == initial:
                raise NotUnique
            found.writer[value[row]] = row
    for row in rows:
        if kind[row] == READ:
            found.reads[value[row]].append(row)
        elif kind[row] == CAS:
            other = found.replaced[old[row]]
            if other >= 0:
                return Conflict((other, row), "both replaced a value that was written once")
            found.replaced[old[row]] = row
    for number in range(count):
        users = [*found.reads[number], *[found.replaced[number]] * (found.replaced[number] >= 0)]
        if users and found.writer[number] < 0 and number != initial:
            return Conflict((users[0],), "its value was never written")
    return found


def _chain(first: int, found: _Values, value: I64) -> list[list[int]]:
    """Return the segments of a chain: the writer of each value, and then its reads."""
    segments, number = [], first
    while True:
        segments.append([found.writer[number], *found.reads[number]])
        if found.replaced[number] < 0:
            return segments
        number = int(value[found.replaced[number]])


def _walk(chain: list[list[int]], call: list[int], end: list[int]) -> Conflict | None:
    """Check that each operation of a chain can follow those before it."""
    latest, by = BEFORE, -1
    for writer, *reads in chain:
        if writer >= 0:
            if end[writer] < latest:
                return Conflict((writer, by), "the value that it replaced was still seen later")
            if call[writer] > latest:
                latest, by = call[writer], writer
        for row in reads:
            if end[row] < latest:
                return Conflict((row, by), "it ended before its value was there")
        for row in reads:
            if call[row] > latest:
                latest, by = call[row], row
    return None


def _between(chains: list[list[int]], call: I64, end: I64) -> Conflict | None:
    """Find two chains that must precede each other. The first one is that of the initial value,
    which was there before all events."""
    by_end = np.array([min(c, key=lambda row: end[row], default=-1) for c in chains])
    by_call = np.array([max(c, key=lambda row: call[row], default=-1) for c in chains])
    first = np.where(by_end < 0, BEFORE, end[by_end])
    last = np.where(by_call < 0, BEFORE, call[by_call])
    first[0] = BEFORE
    return zones(first, last, by_end, by_call, np.arange(len(chains)))
