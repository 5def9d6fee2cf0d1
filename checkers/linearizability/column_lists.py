"""Monitors of many logs, or of many sets, at once.

They are among the monitors of :mod:`~checkers.linearizability.column_monitors`. The longest read
of a log has the order of all that was read; the reads of a set by their size have the order in
which elements were added. An operation is at a level, and must not have ended before one of a lower
level was invoked.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from checkers.linearizability.column_blocks import READ, STEP, WRITE, Block, Numbers
from checkers.linearizability.column_monitors import Suspects, Writers, odd, positions
from checkers.linearizability.monitors import I64


class _Reads(NamedTuple):
    """Reads by key, and by their number of elements."""

    position: I64
    key: I64
    begin: I64
    """Where the elements begin."""
    size: I64

    def some(self, part: slice) -> "_Reads":
        """Return some of them."""
        return _Reads(*(column[part] for column in self))


def _reads(block: Block) -> _Reads:
    position = np.concatenate([*positions(block, READ), np.empty(0, dtype=np.int64)])
    if block.lists is None or not len(position):
        return _Reads(*(np.empty(0, dtype=np.int64) for _ in _Reads._fields))
    rows = position if block.rows is None else block.rows[position]
    key = np.zeros_like(position) if block.key is None else block.key[position].astype(np.int64)
    begin = block.lists.offsets[rows]
    size = block.lists.offsets[rows + 1] - begin
    order = np.lexsort((size, key))
    return _Reads(position, key, begin, size).some(order)  # type: ignore[arg-type]


def _batches(reads: _Reads) -> Iterator[slice]:
    """Yield ranges of reads that have about ``STEP`` elements together, the last ones first."""
    through = np.cumsum(reads.size)
    end = len(through)
    while end:
        before = int(through[end - 1]) - STEP
        begin = min(int(np.searchsorted(through, before, side="right")), end - 1)
        yield slice(begin, end)
        end = begin


def _elements(block: Block, reads: _Reads) -> Numbers:
    """Return the elements of reads, one after the other."""
    assert block.lists is not None
    if len(reads.size) == 1:
        begin = int(reads.begin[0])
        return block.lists.elements[begin : begin + int(reads.size[0])]
    return block.lists.elements[_places(reads.begin, reads.size)]


def _places(begin: I64, size: I64) -> I64:
    """Return the places of ranges that begin at some places, one after the other."""
    shift = begin - np.append(0, np.cumsum(size)[:-1])
    return np.repeat(shift, size) + np.arange(int(size.sum()))


def log(block: Block) -> I64:
    """Check logs."""
    suspects = Suspects()
    odd(block, suspects)
    writers, reads = Writers(block, suspects), _reads(block)
    keys = len(block.starts) - 1
    is_longest = np.append(reads.key[1:] != reads.key[:-1], True)[: len(reads.key)]
    length = np.zeros(keys, dtype=np.int64)
    begin = np.zeros(keys, dtype=np.int64)
    length[reads.key[is_longest]] = reads.size[is_longest]
    begin[reads.key[is_longest]] = reads.begin[is_longest]
    longest = reads.some(is_longest)  # type: ignore[arg-type]
    place = np.full(len(block.kind), -1, dtype=np.int32)
    for part in _batches(longest):
        mine = longest.some(part)
        of_read = np.repeat(np.arange(len(mine.size)), mine.size)
        key = None if block.key is None else mine.key[of_read]
        writer = writers.of(_elements(block, mine), key)
        at = _places(np.zeros_like(mine.size), mine.size)
        place[writer[writer >= 0]] = at[writer >= 0]
        wrong = (writer < 0) | (place[writer] != at)  # never appended, or read twice
        suspects.add(mine.position[of_read], wrong)
    others = reads.some(~is_longest)  # type: ignore[arg-type]
    for part in _batches(others):
        mine = others.some(part)
        expected = _elements(block, mine._replace(begin=begin[mine.key]))
        differs = _elements(block, mine) != expected
        if differs.any():
            of_read = np.repeat(np.arange(len(mine.size)), mine.size)
            suspects.add(mine.position[of_read], differs)
    base = np.append(0, np.cumsum(2 * length + 2))[:keys]
    read_level = base[reads.key] + 2 * reads.size + 1
    _by_levels(block, suspects, place, (base, base + 2 * length), reads.position, read_level)
    return suspects.keys(block)


def set_of(block: Block) -> I64:
    """Check sets whose elements are never removed."""
    suspects = Suspects()
    odd(block, suspects)
    writers, reads = Writers(block, suspects), _reads(block)
    keys, count = len(block.starts) - 1, len(reads.size)
    is_new = np.ones(count, dtype=np.bool_)
    is_new[1:] = (reads.key[1:] != reads.key[:-1]) | (reads.size[1:] != reads.size[:-1])
    number = np.cumsum(is_new) - 1  # of the key and the size
    place = np.full(len(block.kind), -1, dtype=np.int32)
    for part in _batches(reads):
        mine, numbers = reads.some(part), number[part]
        of_read = np.repeat(np.arange(len(mine.size)), mine.size)[::-1]
        key = None if block.key is None else mine.key[of_read]
        elements = _elements(block, mine)
        writer = writers.of(elements[::-1], key)
        suspects.add(mine.position[of_read], writer < 0)
        known = writer >= 0
        place[writer[known]] = numbers[of_read[known]]  # of several, the smallest read counts
        ascends = (elements[1:] > elements[:-1]) | (of_read[::-1][1:] != of_read[::-1][:-1])
        for row in np.unique(of_read[::-1][1:][~ascends]).tolist():
            alone = _elements(block, mine.some(slice(row, row + 1)))
            suspects.add(mine.position[row : row + 1], np.array([_repeats(alone)]))
    seen = np.bincount(place[place >= 0], minlength=int(is_new.sum()))
    through = np.append(0, np.cumsum(seen))
    sizes = np.bincount(reads.key[is_new], minlength=keys)
    begins = np.append(0, np.cumsum(sizes))
    before = through[begins[reads.key]]
    suspects.add(reads.position, through[number + 1] - before != reads.size)
    zero = np.zeros(keys, dtype=np.int64)
    _by_levels(block, suspects, place, (zero, 2 * begins[1:]), reads.position, 2 * number + 3)
    return suspects.keys(block)


def _repeats(elements: Numbers) -> bool:
    return len(np.unique(elements)) < len(elements)


def _by_levels(
    block: Block,
    suspects: Suspects,
    place: Numbers,
    bounds: tuple[I64, I64],
    reads: I64,
    read_level: I64,
) -> None:
    """Compare updates and reads by their levels.

    ``bounds`` has, for each key, what is added to the levels of updates that were read, which are
    those of their places, and the level before that of the others.
    """
    base, others = bounds
    top = int(max(others.max(initial=0), read_level.max(initial=0))) + 3
    latest = np.full(top, -1, dtype=np.int32)
    np.maximum.at(latest, read_level, reads.astype(np.int32))
    ends = block.ends()

    def updates() -> Iterator[tuple[I64, I64]]:
        for found in positions(block, WRITE):
            is_read = place[found] >= 0
            kept = found[is_read | (block.after[found] < ends[found])]
            key = np.zeros_like(kept) if block.key is None else block.key[kept]
            at = place[kept].astype(np.int64)
            yield kept, np.where(at >= 0, base[key] + 2 * at, others[key]) + 2

    for found, level in updates():
        np.maximum.at(latest, level, found.astype(np.int32))
    np.maximum.accumulate(latest, out=latest)
    for found, level in updates():
        suspects.add(found, latest[level - 1] >= block.after[found])
    suspects.add(reads, latest[read_level - 1] >= block.after[reads])
