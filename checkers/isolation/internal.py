"""Contradictions inside a transaction on lists: its reads do not fit its own reads and appends."""

from typing import Any, NamedTuple

import numpy as np

from checkers.isolation.groups import Groups
from checkers.isolation.list_append import read_list
from checkers.isolation.transactions import (
    READ,
    U64,
    WRITE,
    ListHistory,
    marks_of,
)
from checkers.kernels.arrays import I64
from checkers.kernels.rows import Bools

UNKNOWN_PREFIX = "…"
"""Stands for elements that were there before a transaction's first append."""


class Contradictions(NamedTuple):
    """Reads that contradict earlier micro-operations of their transactions."""

    row: I64
    group: I64
    """The group of each one."""


def contradictions(history: ListHistory, groups: Groups) -> Contradictions:
    """Return the reads that are not what their transactions had read and appended before.

    After a read, the list is known. After appends alone, only its end is known.
    """
    ops, state = history.ops, _State(history, groups)
    rows, at = [], []
    for number, group, row in groups.rounds():
        is_read = (ops.kind[row] == READ) & (ops.length[row] >= 0)
        wrong = state.read(number, group[is_read], row[is_read])
        rows.append(row[is_read][wrong])
        at.append(group[is_read][wrong])
        is_write = ops.kind[row] == WRITE
        state.append(group[is_write], row[is_write])
    found = Contradictions(*(np.concatenate([np.zeros(0, np.int64), *x]) for x in (rows, at)))
    order = np.argsort(found.row)
    return Contradictions(found.row[order], found.group[order])


class _State:
    """What each transaction knows of each key that it uses."""

    def __init__(self, history: ListHistory, groups: Groups) -> None:
        self._history, self._ops, self._groups = history, history.ops, groups
        count = len(groups.size)
        self._is_known = np.zeros(count, np.bool_)
        self._length = np.zeros(count, np.int64)
        self._mark = np.zeros(count, np.uint64)

    def read(self, number: int, group: I64, row: I64) -> Bools:
        """Return which of these reads are wrong, and believe all of them."""
        ops = self._ops
        length, mark = ops.length[row], ops.mark[row]
        wrong: Bools = (length != self._length[group]) | (mark != self._mark[group])
        by_end = ~self._is_known[group]
        wrong[by_end] = self._has_other_end(number, group[by_end], row[by_end]) if number else False
        self._is_known[group], self._length[group], self._mark[group] = True, length, mark
        return wrong

    def append(self, group: I64, row: I64) -> None:
        """Append these elements."""
        self._mark[group] += marks_of(self._ops.element[row], self._length[group])
        self._length[group] += 1

    def _has_other_end(self, number: int, group: I64, row: I64) -> Bools:
        """Return which reads do not end with the ``number`` elements that their transactions
        appended before; these are all that their groups did so far."""
        history, ops = self._history, self._ops
        wrong = ops.length[row] < number
        is_prefix = ~np.isin(row, history.other_rows)
        for at in np.flatnonzero(~wrong & ~is_prefix).tolist():
            own = ops.element[self._groups.of(int(group[at]))[:number]]
            other = int(np.searchsorted(history.other_rows, row[at]))
            wrong[at] = not np.array_equal(history.others.of(other)[-number:], own)
        rest = np.flatnonzero(~wrong & is_prefix)
        within = np.tile(np.arange(number), len(rest))
        own = ops.element[
            self._groups.rows[np.repeat(self._groups.begin[group[rest]], number) + within]
        ]
        before = ops.length[row[rest]] - number
        added = marks_of(own, np.repeat(before, number) + within).reshape(len(rest), number)
        key = ops.key[row[rest]]
        expected: U64 = history.marks[history.longest.begin[key] + key + before]
        wrong[rest] = expected + added.sum(axis=1, dtype=np.uint64) != ops.mark[row[rest]]
        return wrong


def replayed(history: ListHistory, rows: I64, until: int) -> list[Any]:
    """Return the list that a transaction expects at one of its reads, given its group."""
    expected: list[Any] = []
    is_known = False
    for row in rows[: int(np.searchsorted(rows, until))].tolist():
        if history.ops.kind[row] == WRITE:
            expected = [*expected, history.names.element(int(history.ops.element[row]))]
        elif history.ops.length[row] >= 0:
            expected, is_known = read_list(history, row), True
    return expected if is_known else [UNKNOWN_PREFIX, *expected]


def future_reads(history: ListHistory, place: I64, groups: Groups) -> tuple[I64, I64]:
    """Return reads of elements that their own transactions append later, and these appends.

    Args:
        place: for each append, the place of its element in the longest read, or -1.
        groups: the micro-operations of ok transactions.
    """
    ops = history.ops
    is_prefix = history.is_prefix
    most, reader = np.full(len(groups.size), 0), np.full(len(groups.size), -1)
    found: list[tuple[I64, I64]] = []
    for _, group, row in groups.rounds():
        is_read = is_prefix[row] & (ops.length[row] > 0)
        is_read[is_read] = ops.length[row[is_read]] > most[group[is_read]]
        most[group[is_read]], reader[group[is_read]] = ops.length[row[is_read]], row[is_read]
        hit = (ops.kind[row] == WRITE) & (place[row] >= 0) & (place[row] < most[group])
        found.append((reader[group[hit]], row[hit]))
    found.extend(_in_others(history, groups))
    pairs = [np.concatenate([np.zeros(0, np.int64), *part]) for part in zip(*found, strict=True)]
    if not pairs:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.lexsort(pairs[::-1])
    return pairs[0][order], pairs[1][order]


def _in_others(history: ListHistory, groups: Groups) -> list[tuple[I64, I64]]:
    """Return the same for the reads that contradict the longest ones."""
    ops = history.ops
    ordinal = np.repeat(np.arange(len(groups.size)), groups.size)
    here = np.flatnonzero(np.isin(groups.rows, history.other_rows))
    found = []
    for at, group in zip(here.tolist(), ordinal[here].tolist(), strict=True):
        row = int(groups.rows[at])
        later = groups.rows[at + 1 : groups.begin[group + 1]]
        later = later[ops.kind[later] == WRITE]
        listed = history.others.of(int(np.searchsorted(history.other_rows, row)))
        hits = later[np.isin(ops.element[later], listed)]
        found.append((np.full(len(hits), row), hits))
    return found
