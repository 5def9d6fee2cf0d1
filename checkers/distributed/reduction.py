"""Which records of a large partition are judged by one task, to find what all records show.

All records of unsettled blocks are. Of a settled block (:mod:`checkers.kernels.settled`) the ends
are enough, if nothing outside of it concerns its other records. That is so if

- none of its values is in another block;
- every record below it was sent before, and every record above it was seen after, and the same is
  true of the records of each process and of each operation;
- each of its readers read nothing else meanwhile, and kept its position;
- no reader skipped it;
- a final reader, or another one since that began, read all of it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from checkers.columns import spread
from checkers.distributed import kept
from checkers.distributed.blocks import NEVER, PLACES, Block, Spans, unpacked
from checkers.distributed.kept import Kept
from checkers.distributed.slice_task import Outline
from checkers.kernels.arrays import changes, is_in
from checkers.kernels.rows import I64, Bools

ROWS_MAX = 4 << 20
"""The most micro-operations and records of a partition that are judged by one task."""


_NONE = np.zeros(0, dtype=np.int64)


class Reduced(NamedTuple):
    """What is judged of a partition."""

    kept: Kept
    is_whole: bool
    """Whether any block is kept with all of its records."""
    settled: Kept
    """The settled blocks of which only the ends are kept, each an interval."""
    began_ns: dict[int, int]
    """When the first record of the partition was delivered to each process."""


class TooMany(NamedTuple):
    """A partition that cannot be judged."""

    rows: int
    """How many micro-operations and records would have to be judged together."""


def reduced(blocks: Sequence[Block], outline: Outline, healed_ns: int | None) -> Reduced | TooMany:
    """Return what has to be judged of a partition, given all of its blocks.

    ``healed_ns`` is when the last fault was healed, 0 without any; ``None`` if one was not.
    """
    stays = np.array([not block.is_settled for block in blocks])
    if (rows := _rows(blocks, stays)) > ROWS_MAX:
        return TooMany(rows)
    stays |= _share_values(blocks)
    placed = [block for block in blocks if block.begin >= 0]
    at = len(blocks) - len(placed)  # records without an offset come first
    readers = _Entries([block.readers for block in placed])
    known = stays[at:]
    known |= _out_of_order(blocks, placed)
    known |= _scattered(readers, placed, outline)
    known |= _not_seen_finally(readers, placed, outline)
    known |= _only_failed(blocks, placed, healed_ns)
    if (rows := _rows(blocks, stays)) > ROWS_MAX:
        return TooMany(rows)
    intervals = [(b.begin, b.end) for b, whole in zip(placed, known, strict=True) if whole]
    offsets = _all([b.kept for b, whole in zip(placed, known, strict=True) if not whole])
    settled = [(b.begin, b.end) for b, whole in zip(placed, known, strict=True) if not whole]
    begins, ends = np.array(settled, dtype=np.int64).reshape(-1, 2).T
    return Reduced(
        kept.joined(intervals, offsets),
        bool(stays.any()),
        Kept(begins, ends, unplaced=False),
        _began_ns(blocks),
    )


def _rows(blocks: Sequence[Block], stays: Bools) -> int:
    return sum(block.rows for block, whole in zip(blocks, stays, strict=True) if whole)


def _share_values(blocks: Sequence[Block]) -> Bools:
    """Return which blocks have a value that another one has, too."""
    values = np.concatenate([unpacked(block.values) for block in blocks])
    values.sort()
    shared = values[1:][values[1:] == values[:-1]]
    del values
    if not len(shared):
        return np.zeros(len(blocks), dtype=np.bool_)
    return np.array([is_in(unpacked(block.values), shared).any() for block in blocks])


def _out_of_order(blocks: Sequence[Block], placed: Sequence[Block]) -> Bools:
    """Return the blocks of which a record may contradict the order of sends, or may follow another
    record of its operation with records between them."""
    if not placed:
        return np.zeros(0, dtype=np.bool_)
    found = _found_elsewhere(blocks, placed)
    shown = np.minimum([block.shown for block in placed], found.shown)
    invoked = np.maximum([block.invoked for block in placed], found.invoked)
    stays = np.append(-1, np.maximum.accumulate(invoked)[:-1]) > shown
    stays |= np.append(np.minimum.accumulate(shown[::-1])[::-1][1:], NEVER) < invoked
    writers = _Entries([block.writers for block in placed], found.writers, found.block)
    order = writers.by_block()
    before, after = writers.overlap(order)
    stays[writers.block[before | after]] = True
    one, other = writers.where(order[:-1]), writers.where(order[1:])
    same = (one.process == other.process) & (one.last // PLACES == other.first // PLACES)
    same &= one.block != other.block
    op = one.last[same] // PLACES
    first, last = (np.array(ops) for ops in zip(*((b.first, b.last) for b in placed), strict=True))
    for block, ends in ((one.block[same], last), (other.block[same], first)):
        stays[block[ends[block] != op]] = True
    return stays


class _Elsewhere(NamedTuple):
    """What records show of a block to which they do not say that they were sent."""

    shown: I64
    invoked: I64
    writers: Spans
    block: I64
    """The number of the block of each of the writers."""


def _found_elsewhere(blocks: Sequence[Block], placed: Sequence[Block]) -> _Elsewhere:
    shown, invoked = np.full(len(placed), NEVER), np.full(len(placed), -1)
    begins = [block.begin for block in placed]
    strays = [block for block in blocks if len(block.strays.value)]
    of = np.repeat(
        np.searchsorted(begins, [block.begin for block in strays]) if strays else _NONE,
        [len(block.strays.value) for block in strays],
    )
    of[: sum(len(block.strays.value) for block in strays if block.begin < 0)] = -1
    value, op = (_all([block.strays[at] for block in strays]) for at in (0, 1))
    order = np.argsort(value, kind="stable")
    of, value, op = of[order], value[order], op[order]
    for place, block in enumerate(placed if len(value) else ()):
        shown[place] = op[is_in(value, unpacked(block.values))].min(initial=NEVER)
    doubts = [_all([block.doubts[at] for block in blocks]) for at in range(5)]
    begin, end = (np.searchsorted(value, doubts[0], side) for side in ("left", "right"))
    row, which = spread(begin, end)
    row, which = row[of[row] >= 0], which[of[row] >= 0]
    _, sent, acked, process, at = (column[which] for column in doubts)
    by = np.minimum(op[row], acked)
    np.maximum.at(invoked, of[row], sent)
    np.minimum.at(shown, of[row], np.where(by > sent, by, NEVER))
    return _Elsewhere(shown, invoked, Spans(process, at, at, at), of[row])


def _scattered(readers: "_Entries", placed: Sequence[Block], outline: Outline) -> Bools:
    """Return the blocks that a process read with records of other blocks between theirs, or lost
    its position in, or skipped."""
    stays = np.zeros(len(placed), dtype=np.bool_)
    order = readers.by_place()
    before, after = readers.overlap(order)
    stays[readers.block[before | after]] = True
    resets = outline.resets
    began, ended = readers.first // PLACES, readers.last // PLACES
    lost = resets.before(readers.process, ended + 1) > began
    stays[readers.block[lost]] = True
    one, other = readers.where(order[:-1]), readers.where(order[1:])
    excused = resets.before(other.process, other.first // PLACES) >= one.last // PLACES
    excused &= ~(before | after)[order[1:]]
    skips = (one.process == other.process) & (other.block > one.block + 1) & ~excused
    change = np.bincount(one.block[skips] + 1, minlength=len(placed) + 1)
    change -= np.bincount(other.block[skips], minlength=len(placed) + 1)
    stays |= np.cumsum(change)[:-1] > 0
    return stays


def _not_seen_finally(readers: "_Entries", placed: Sequence[Block], outline: Outline) -> Bools:
    """Return the blocks of which a final reader, and the others since it began, may not have read
    every record."""
    acked = max((block.acked for block in placed if block.is_settled), default=-1)
    seen = np.array([block.seen for block in placed], dtype=np.int64)
    stays = np.zeros(len(placed), dtype=np.bool_)
    for end, invoked in outline.catch_ups:
        if invoked <= acked:
            continue
        gave_up = int(outline.resets.before(np.array([end.process]), np.array([end.op]))[0])
        mine = readers.process == end.process
        first, last = readers.first[mine] // PLACES, readers.last[mine] // PLACES
        begin = np.where(first > gave_up, first, last)  # the last one at the latest
        begun = min(int(begin[last > gave_up].min(initial=end.op)), end.op)
        stays |= seen < begun
    return stays


def _only_failed(blocks: Sequence[Block], placed: Sequence[Block], healed_ns: int | None) -> Bools:
    """Return the blocks with the sends that show a partition to be stuck: those after the last heal
    if none of them was acknowledged."""
    stays = np.zeros(len(placed), dtype=np.bool_)
    if healed_ns is None or any(block.started_ns[0] >= healed_ns for block in blocks):
        return stays
    return np.array([block.started_ns[1] >= healed_ns for block in placed], dtype=np.bool_)


def _began_ns(blocks: Sequence[Block]) -> dict[int, int]:
    readers = _Entries([block.readers for block in blocks])
    order = readers.by_place()
    process = readers.process[order]
    first = order[changes(process)]
    return dict(zip(readers.process[first].tolist(), readers.began_ns[first].tolist(), strict=True))


class _Entries:
    """Which process sent or read records of which blocks, by their numbers, and when."""

    def __init__(self, spans: Sequence[Spans], more: Spans | None = None, of: I64 = _NONE) -> None:
        numbers = np.repeat(np.arange(len(spans)), [len(each.process) for each in spans])
        given = [*spans, *(() if more is None else (more,))]
        columns = [_all([each[at] for each in given]) for at in range(4)]
        self.process, self.first, self.last, self.began_ns = columns
        self.block = np.concatenate((numbers, of))

    def where(self, rows: I64) -> "_Entries":
        """Return some of the entries."""
        spans = Spans(self.process[rows], self.first[rows], self.last[rows], self.began_ns[rows])
        return _Entries([], spans, self.block[rows])

    def by_block(self) -> I64:
        """Return the order by process and block."""
        return np.lexsort((self.first, self.block, self.process))

    def by_place(self) -> I64:
        """Return the order by process and first place."""
        return np.lexsort((self.first, self.process))

    def overlap(self, order: I64) -> tuple[Bools, Bools]:
        """Return which entries begin before an earlier one of their process ended, in this order,
        and which end after a later one began."""
        count = len(self.process)
        _, rank = np.unique(self.process, return_inverse=True)
        _, place = np.unique(np.concatenate((self.first, self.last)), return_inverse=True)
        code = rank[order] * (2 * count + 1)
        first, last = code + place[:count][order], code + place[count:][order]
        before, after = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
        before[order[1:]] = np.maximum.accumulate(last)[:-1] >= first[1:]
        after[order[:-1]] = np.minimum.accumulate(first[::-1])[::-1][1:] <= last[:-1]
        return before, after


def _all(columns: Sequence[I64]) -> I64:
    return np.concatenate([_NONE, *columns])
