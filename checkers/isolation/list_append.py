"""Dependencies between transactions that append to lists and read whole lists.

The longest read of a key shows the order of its versions, because each version is a prefix of the
next one. Elements that no read shows follow it: a transaction that happened appended them after the
longest list was read. Their own order is not known.

Only transactions that happened take part: those that succeeded, and those in doubt of which a read
shows an element.
"""

from typing import Literal, NamedTuple

import numpy as np

from checkers.isolation.edges import RW, WR, WW, Part, Parts, part, picked
from checkers.isolation.transactions import READ, UNKNOWN, WRITE, ListHistory, Pairs
from checkers.kernels.arrays import I64
from checkers.kernels.rows import FAIL, INFO, OK, Bools

PRODUCT_MAX = 20_000_000
"""Number of edges from readers of last versions to elements that no read shows."""


SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


class Orders(NamedTuple):
    """The elements of the longest reads, in the layout of ``ListHistory.longest``, and their
    writers."""

    key: I64
    row: I64
    """The row that appended each element; -1 if none did."""
    txn: I64
    """The transaction that did; -1 if none did."""
    outcome: I64
    """The transaction's outcome; UNKNOWN if there is none."""
    other_row: I64
    """The row that appended each element of ``ListHistory.others``; -1 if none did."""
    place: I64
    """For each micro-operation that appends, the place of its element in the longest read; -1 if
    that does not list it."""
    happened: Bools
    """Whether each transaction happened."""


def appended_twice(history: ListHistory) -> I64:
    """Return the rows that append an element which an earlier row appended to the same key."""
    appends = np.flatnonzero(history.ops.kind == WRITE)
    return appends[Pairs(history.ops.key[appends], history.ops.element[appends]).repeated()]


def orders(history: ListHistory) -> Orders:
    """Return the writers of all elements that were read."""
    ops, longest = history.ops, history.longest
    appends = np.flatnonzero(ops.kind == WRITE)
    pairs = Pairs(ops.key[appends], ops.element[appends])

    def rows(key: I64, element: I64) -> I64:
        at = pairs.rows(key, element)
        return np.where(at < 0, -1, appends[at]) if len(appends) else at

    key = np.repeat(np.arange(len(longest.begin) - 1), longest.length)
    row = rows(key, longest.element)
    other_row = rows(
        np.repeat(ops.key[history.other_rows], history.others.length), history.others.element
    )
    outcome = history.txns.outcome.astype(np.int64)
    happened = outcome == OK
    for found in (row, other_row):
        writers = ops.txn[found[found >= 0]]
        happened[writers[outcome[writers] == INFO]] = True
    place = np.full(len(ops.txn), -1)
    listed = np.flatnonzero(row >= 0)
    place[row[listed]] = listed - longest.begin[key[listed]]
    txn = _taken(ops.txn, row)
    return Orders(key, row, txn, _taken(outcome, txn), other_row, place, happened)


def _taken(column: I64, rows: I64) -> I64:
    """Return the values of these rows; -1 where there is no row."""
    return np.where(rows < 0, -1, column[rows]) if len(column) else np.full(len(rows), -1)


def dependencies(history: ListHistory, known: Orders) -> tuple[Parts, bool]:
    """Return the edges ww, wr and rw, and whether these are all."""
    versions = _Versions(history, known)
    unread, is_complete = versions.unread()
    return [
        versions.writes(),
        *versions.reads(),
        *versions.other_reads(),
        *unread,
    ], is_complete


class _Versions:
    """The versions of each key: the elements of its longest read whose writers happened."""

    def __init__(self, history: ListHistory, known: Orders) -> None:
        self._history, self._known, self._ops = history, known, history.ops
        writes = (known.txn >= 0) & (known.outcome != FAIL)
        self._at = np.flatnonzero(writes)
        """Where each version is in the elements of the longest reads."""
        self._key, self._txn = known.key[self._at], known.txn[self._at]
        self._element = history.longest.element[self._at]

    def writes(self) -> Part:
        """Return the edges ww between consecutive versions."""
        key, txn, element = self._key, self._txn, self._element
        same = np.flatnonzero((key[1:] == key[:-1]) & (txn[1:] != txn[:-1]))
        columns = picked(key, same), picked(element, same), picked(element, same + 1)
        return part(txn[same], txn[same + 1], WW, *columns)

    def reads(self) -> Parts:
        """Return the edges wr and rw of reads of prefixes of the longest one."""
        rows = self._happened(np.flatnonzero(self._history.is_prefix))
        key = self._ops.key[rows]
        return self._around(rows, self._history.longest.begin[key] + self._ops.length[rows])

    def other_reads(self) -> Parts:
        """Return the edges wr and rw of reads that contradict the longest one, by their last
        elements."""
        rows = self._happened(self._history.other_rows)
        if not len(rows):
            return []
        ops, longest = self._ops, self._history.longest
        at = Pairs(self._known.key, longest.element).rows(ops.key[rows], ops.element[rows])
        placed = at >= 0
        appends = np.flatnonzero(ops.kind == WRITE)
        row = Pairs(ops.key[appends], ops.element[appends]).rows(ops.key[rows], ops.element[rows])
        unplaced = np.flatnonzero(~placed & (row >= 0))
        writer = ops.txn[appends[row[unplaced]]]
        reader = ops.txn[rows[unplaced]]
        kept = (writer != reader) & self._known.happened[writer]
        last = rows[unplaced[kept]]
        return [
            *self._around(rows[placed], at[placed] + 1),
            part(writer[kept], reader[kept], WR, picked(ops.key, last), picked(ops.element, last)),
        ]

    def unread(self) -> tuple[Parts, bool]:
        """Return the edges to elements that no read shows, and whether these are all."""
        ops, known = self._ops, self._known
        is_unread = (ops.kind == WRITE) & (known.place < 0)
        is_unread[known.other_row[known.other_row >= 0]] = False
        appends = self._happened(np.flatnonzero(is_unread))
        if not len(appends):
            return [], True
        key, end = ops.key[appends], self._history.longest.begin[ops.key[appends] + 1]
        last = np.searchsorted(self._at, end) - 1
        has = (last >= 0) & (self._key[last] == key) if len(self._at) else np.zeros(len(key), bool)
        has[has] = self._txn[last[has]] != ops.txn[appends[has]]
        last, follows = last[has], appends[has]
        writes = part(
            self._txn[last],
            ops.txn[follows],
            WW,
            picked(ops.key, follows),
            picked(self._element, last),
            picked(ops.element, follows),
        )
        product, is_complete = self._last_readers(appends)
        return [writes, product], is_complete

    def _last_readers(self, appends: I64) -> tuple[Part, bool]:
        """Return the edges rw from the readers of each key's last version to these appends."""
        ops = self._ops
        rows = self._happened(np.flatnonzero(self._history.is_prefix))
        at = self._history.longest.begin[ops.key[rows]] + ops.length[rows]
        rows = rows[np.searchsorted(self._at, at) == self._end_of_key(ops.key[rows])]
        appends = appends[np.argsort(ops.key[appends], kind="stable")]
        begin, end = (np.searchsorted(ops.key[appends], ops.key[rows], side) for side in SIDES)
        count = end - begin
        is_complete = int(count.sum()) <= PRODUCT_MAX
        if not is_complete:
            rows, begin, count = (c[np.cumsum(count) <= PRODUCT_MAX] for c in (rows, begin, count))
        reader = np.repeat(rows, count)
        within = np.arange(len(reader)) - np.repeat(np.cumsum(count) - count, count)
        append = appends[np.repeat(begin, count) + within]
        other = ops.txn[reader] != ops.txn[append]
        reader, append = reader[other], append[other]
        following = part(
            ops.txn[reader],
            ops.txn[append],
            RW,
            picked(ops.key, append),
            picked(ops.element, reader),
            picked(ops.element, append),
        )
        return following, is_complete

    def _end_of_key(self, key: I64) -> I64:
        """Return the number of versions up to the end of each of these keys."""
        return np.searchsorted(self._at, self._history.longest.begin[key + 1])

    def _around(self, rows: I64, at: I64) -> Parts:
        """Return the edges of reads that end before these places of the longest reads."""
        if not len(self._at):
            return []
        ops, txn, key = self._ops, self._ops.txn[rows], self._ops.key[rows]
        following = np.searchsorted(self._at, at)
        before = following - 1
        has_next = following < len(self._at)
        following[~has_next] = 0
        has_next &= (self._key[following] == key) & (self._txn[following] != txn)
        has_last = (before >= 0) & (self._key[before] == key) & (self._txn[before] != txn)
        last, following = before[has_last], following[has_next]
        to_last, to_next = rows[has_last], rows[has_next]
        return [
            part(
                self._txn[last],
                txn[has_last],
                WR,
                picked(ops.key, to_last),
                picked(self._element, last),
            ),
            part(
                txn[has_next],
                self._txn[following],
                RW,
                picked(ops.key, to_next),
                picked(ops.element, to_next),
                picked(self._element, following),
            ),
        ]

    def _happened(self, rows: I64) -> I64:
        """Return those of these rows whose transactions happened."""
        return rows[self._known.happened[self._ops.txn[rows]]]


def read_list(history: ListHistory, row: int) -> list[object]:
    """Return the elements that a read returned, each once."""
    ops, names = history.ops, history.names
    if ops.kind[row] != READ or ops.length[row] == UNKNOWN:
        return []
    at = int(np.searchsorted(history.other_rows, row))
    if at < len(history.other_rows) and history.other_rows[at] == row:
        found = history.others.of(at)
    else:
        found = history.longest.of(int(ops.key[row]))[: int(ops.length[row])]
    return [names.element(code) for code in found.tolist()]
