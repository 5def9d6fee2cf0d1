"""Monitors of many keys at once find in linear time which of them are linearizable.

They decide what :mod:`~checkers.linearizability.monitors` decides, on the positions of a
:class:`~checkers.linearizability.column_blocks.Block`: one operation precedes another one if its
``after`` is not greater than the other's position. Instead of sorting, they note for each position
the last operation that must follow one of those that ended before it.

Each returns the numbers of the keys that it does not find linearizable, or that it cannot decide.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from checkers.linearizability.column_blocks import (
    IN_DOUBT,
    NOTHING,
    ODD,
    READ,
    WRITE,
    Block,
    Numbers,
    steps,
)
from checkers.linearizability.monitors import I64

Bools = NDArray[np.bool_]
I32 = NDArray[np.int32]

_SPARSE = 8
"""How many numbers there may be for each operation, so that values are looked up in a table."""


class Suspects:
    """Positions of operations that are in conflict, or that no monitor of columns decides."""

    def __init__(self) -> None:
        self._found: list[I64] = []

    def add(self, positions: I64, is_wrong: Bools) -> None:
        """Add the positions that are wrong."""
        if is_wrong.any():
            self._found.append(positions[is_wrong])

    def keys(self, block: Block) -> I64:
        """Return their keys."""
        if not self._found:
            return np.empty(0, dtype=np.int64)
        return block.keys_of(np.concatenate(self._found))


def positions(block: Block, kind: int) -> Iterator[I64]:
    """Yield the positions of operations of a kind, step by step."""
    for part in steps(len(block.kind)):
        yield np.flatnonzero(block.kind[part] == kind) + part.start


def odd(block: Block, suspects: Suspects) -> None:
    """Add the operations that no monitor of columns decides."""
    for found in positions(block, ODD):
        suspects.add(found, np.ones(len(found), dtype=np.bool_))


class Writers:
    """Finds the position of the operation that wrote a value of a key."""

    def __init__(self, block: Block, suspects: Suspects, kinds: tuple[int, ...] = (WRITE,)) -> None:
        """Values that a key was given twice are suspects."""
        self._key, self._value = block.key, block.value
        low, high = 0, 0
        for numbers in (block.value, block.expected):
            if numbers is not None and len(numbers):
                low, high = min(low, int(numbers.min())), max(high, int(numbers.max()))
        if block.lists is not None:
            low, high = min(low, block.lists.low), max(high, block.lists.high)
        self._low, self._width = low, high - low + 1
        keys = len(block.starts) - 1
        limit = _SPARSE * len(block.kind) + (1 << 16)
        self._by_key = self._key is not None and self._width * keys <= limit
        self._sorted: tuple[I64, I64] | None = None
        self._table: I32 = np.empty(0, dtype=np.int32)
        written = [found for kind in kinds for found in positions(block, kind)]
        if self._width * (keys if self._by_key else 1) <= limit and self._fill(written, keys):
            return
        rows = np.concatenate([*written, np.empty(0, dtype=np.int64)])
        rows.sort()
        twice = self._sort(rows, keys)
        suspects.add(rows, twice)

    def _fill(self, written: list[I64], keys: int) -> bool:
        """Make a table of the writers; return whether no two of them have the same place."""
        self._table = np.full(self._width * (keys if self._by_key else 1), -1, dtype=np.int32)
        for rows in written:
            self._table[self._places(self._value[rows], self._keys(rows))] = rows
        return int(np.count_nonzero(self._table >= 0)) == sum(map(len, written))

    def _keys(self, rows: I64) -> Numbers | None:
        return None if self._key is None else self._key[rows]

    def _places(self, values: Numbers, keys: Numbers | None) -> Numbers:
        places = values.astype(np.int64) - self._low
        if self._by_key and keys is not None:
            places += keys.astype(np.int64) * self._width
        return places

    def _sort(self, rows: I64, keys: int) -> Bools:
        """Sort the writers by key and value; return which of them share both."""
        self._known: Numbers | None = None
        if self._width * keys >= 1 << 62:  # a number of a value takes less room than the value
            self._known = np.unique(self._value[rows])
        pairs = self._pairs(self._value[rows], self._keys(rows))
        order = np.argsort(pairs, kind="stable")
        self._sorted = pairs[order], rows[order]
        same = self._sorted[0][1:] == self._sorted[0][:-1]
        twice = np.zeros(len(rows), dtype=np.bool_)
        twice[order[1:][same]] = True
        return twice

    def _pairs(self, values: Numbers, keys: Numbers | None) -> I64:
        if self._known is None:
            pairs, width = values.astype(np.int64) - self._low, self._width
        else:
            pairs, width = np.searchsorted(self._known, values), len(self._known) + 1
            known = self._known[np.minimum(pairs, max(len(self._known) - 1, 0))]
            pairs[known != values] = len(self._known)
        return pairs if keys is None else pairs + keys.astype(np.int64) * width

    def of(self, values: Numbers, keys: Numbers | None) -> I64:
        """Return the positions of the writers of values of keys; -1 for none."""
        if self._sorted is not None:
            pairs, rows = self._sorted
            if not len(rows):
                return np.full(len(values), -1)
            wanted = self._pairs(values, keys)
            place = np.minimum(np.searchsorted(pairs, wanted), len(rows) - 1)
            return np.where(pairs[place] == wanted, rows[place], -1)
        found = self._table[self._places(values, keys)].astype(np.int64)
        if keys is not None and not self._by_key:
            assert self._key is not None
            found[self._key[found] != keys] = -1
        return found


def register(block: Block, initial: int | None) -> I64:
    """Check registers. The operations on one value form a cluster, which has the position of its
    write; the initial value of each key has a cluster after all of these."""
    count, suspects = len(block.kind), Suspects()
    odd(block, suspects)
    writers = Writers(block, suspects)
    first = np.concatenate([block.after, block.starts[:-1].astype(np.int32)])
    last = np.arange(len(first), dtype=np.int32)
    last[count:] = block.starts[:-1] - 1
    for reads in positions(block, READ):
        value, after = block.value[reads], block.after[reads]
        key = None if block.key is None else block.key[reads]
        writer = writers.of(value, key)
        if initial is not None:
            is_first = value == initial
            writer[is_first] = count if key is None else count + key[is_first].astype(np.int64)
        wrong = (writer < 0) | ((after <= writer) & (writer < count))
        if wrong.any():
            suspects.add(reads, wrong)
            reads, writer, after = reads[~wrong], writer[~wrong], after[~wrong]
        np.minimum.at(first, writer, after)
        last[writer] = reads  # of several reads the last one counts
    if initial is not None:
        for writes in positions(block, WRITE):
            suspects.add(writes, block.value[writes] == initial)
    zones(block, first, last, suspects)
    return suspects.keys(block)


def zones(block: Block, first: I32, last: I32, suspects: Suspects, kinds: Any = (WRITE,)) -> None:
    """Find two clusters each of which must precede the other one.

    ``first`` is the least ``after`` of a cluster, and ``last`` its last position. The clusters are
    those at the positions of some kinds, and those of the initial values after all positions.
    """
    count = len(block.kind)
    latest = np.full(count + 2, -1, dtype=np.int32)  # of clusters with a first below the place
    forward = 0

    def clusters() -> Iterator[I64]:
        for kind in kinds:
            yield from positions(block, kind)
        yield np.arange(count, len(first))

    for each in clusters():
        is_forward = first[each] <= last[each]
        forward += int(np.count_nonzero(is_forward))
        mine = each[is_forward]
        np.maximum.at(latest, first[mine] + 1, last[mine])
    if np.count_nonzero(latest >= 0) < forward:
        owner = np.full(count + 2, -1, dtype=np.int32)
        for each in clusters():
            mine = each[first[each] <= last[each]]
            owner[first[mine]] = mine
        for each in clusters():
            mine = each[first[each] <= last[each]]
            suspects.add(first[mine].astype(np.int64), owner[first[mine]] != mine)
    np.maximum.accumulate(latest, out=latest)
    for each in clusters():
        begin, end = first[each], last[each]
        wrong = latest[np.where(begin <= end, begin, end + 1)] >= begin
        if wrong.any():
            suspects.add(np.minimum(begin, end).astype(np.int64), wrong)


def queue(block: Block) -> I64:
    """Check FIFO queues. A dequeue that never ended may have taken an element that was left: keys
    where the first dequeues taking the first elements is no explanation are not decided here."""
    suspects = Suspects()
    odd(block, suspects)
    left = _left(block, suspects)
    _take_in_doubt(block, left)
    _in_order(block, left, suspects)
    return suspects.keys(block)


def _take_in_doubt(block: Block, left: I32) -> None:
    """Let the dequeues of each key that never ended take, in their order, what was left."""
    ends, none = block.ends(), [np.empty(0, dtype=np.int64)]
    doubts = np.concatenate([*none, *positions(block, IN_DOUBT)])
    if not len(doubts):
        return
    puts = np.concatenate([*none, *positions(block, WRITE)])
    puts = puts[(left[puts] == ends[puts]) & (block.after[puts] < ends[puts])]
    puts = puts[np.argsort(block.after[puts], kind="stable")]
    of_puts, of_doubts = ends[puts], ends[doubts]
    number = np.arange(len(puts)) - np.searchsorted(of_puts, of_puts)  # within its key
    doubt = np.searchsorted(of_doubts, of_puts) + number
    is_taken = doubt < np.searchsorted(of_doubts, of_puts, side="right")
    left[puts[is_taken]] = doubts[doubt[is_taken]]


def _left(block: Block, suspects: Suspects) -> I32:
    """Return the position of the dequeue of each element; the end of its key if it was left."""
    writers = Writers(block, suspects)
    ends = block.ends()
    left = ends.copy()
    taken = 0
    for takes in positions(block, READ):
        writer = writers.of(block.value[takes], None if block.key is None else block.key[takes])
        wrong = (writer < 0) | (block.after[takes] <= writer)
        if wrong.any():
            suspects.add(takes, wrong)
            takes, writer = takes[~wrong], writer[~wrong]
        left[writer] = takes
        taken += len(takes)
    if np.count_nonzero(left != ends) < taken:  # an element was dequeued twice
        for takes in positions(block, READ):
            writer = writers.of(block.value[takes], None if block.key is None else block.key[takes])
            suspects.add(takes, (writer >= 0) & (left[writer] != takes))
    return left


def _in_order(block: Block, left: I32, suspects: Suspects) -> None:
    """Find elements that overtook older ones, and dequeues that missed an element."""
    count, ends = len(block.kind), block.ends()
    latest = np.full(count + 1, -1, dtype=np.int32)  # dequeue of what was enqueued before a place
    for puts in positions(block, WRITE):
        np.maximum.at(latest, block.after[puts], left[puts])
    np.maximum.accumulate(latest, out=latest)
    for puts in positions(block, WRITE):
        mine = puts[left[puts] < ends[puts]]
        suspects.add(mine, latest[mine] >= block.after[left[mine]])
    if not any(len(each) for each in positions(block, NOTHING)):
        return
    gaps = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(latest[:count] <= np.arange(count, dtype=np.int32), out=gaps[1:])
    for each in positions(block, NOTHING):
        suspects.add(each, gaps[block.after[each]] == gaps[each])
