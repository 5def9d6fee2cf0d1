"""What executors do with the transactions of settled blocks, of which a slice has only the ends.

Dependencies within a block are those between neighbours and from writers to readers; those over its
borders are between ends, so the slice has them. The suspects of :mod:`checkers.kernels.suspects`
follow from each record and its reads. Each range of a partition is examined by one task.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from checkers.distributed import blocks, chunk_tasks, packing, range_task, transaction_task
from checkers.distributed.blocks import RangeRows, running_max
from checkers.distributed.borders import Carried
from checkers.distributed.chunk_tasks import Cut
from checkers.distributed.chunks import Chunk
from checkers.distributed.kept import Kept
from checkers.distributed.range_task import RANGES
from checkers.distributed.reduction import Reduced
from checkers.distributed.runner import Parts
from checkers.distributed.transaction_task import Known, Seen
from checkers.kernels import suspects
from checkers.kernels.arrays import changes, distinct, is_in
from checkers.kernels.cycles import Edges
from checkers.kernels.rows import I64, OK


class Settled(NamedTuple):
    """The partitions that have settled blocks."""

    names: Sequence[str]
    reduced: Mapping[int, Reduced]
    """By number of partition, which is that of its slice."""
    cut: Cut
    """Ranges are numbered after all slices."""


def cut(
    settled: Settled, wanted: Collection[int], item: tuple[Chunk, Carried]
) -> tuple[None, Iterator[tuple[int, bytes]]]:
    """Yield the wanted slices of a chunk, and the rows of settled blocks by range."""
    if not settled.reduced:
        return None, chunk_tasks.cut(*item, settled.cut, wanted)
    columns, operations, slices = chunk_tasks.both(*item, settled.cut, wanted)

    def parts() -> Iterator[tuple[int, bytes]]:
        yield from slices
        for partition, range_, rows in range_task.ranges(settled.names, columns, operations):
            reduced = settled.reduced.get(partition)
            if reduced is None or rows is None:
                continue
            is_mine = (rows.sends.outcome == OK) & reduced.settled.has(rows.sends.offset)
            polled = np.flatnonzero(~reduced.kept.has(rows.polls.offset))
            if is_mine.any() or len(polled):
                mine = rows.where(np.flatnonzero(is_mine), polled)
                number = settled.cut.slices + partition * RANGES + range_
                yield number, packing.dumped(mine)

    return None, parts()


def examine(
    settled: Settled, known: Known, number: int, parts: Sequence[bytes]
) -> tuple[Seen, Parts]:
    """Return what a slice or a range shows of transactions, and its dependencies by the number of
    their window."""
    if number < settled.cut.slices:
        return transaction_task.examine(known, number, parts)
    partition = (number - settled.cut.slices) // RANGES
    rows = blocks.joined([packing.loaded(part) for part in parts])
    sends, polls, row = rows.sends, rows.polls, _writers(rows)
    sender, is_txn = sends.op[row], sends.txn[row]
    inside = is_txn & polls.txn
    source, target = sender[inside], polls.op[inside]
    linked = (source > rows.asked[inside]) | is_in(source, known.overdue.op)
    found = np.union1d(sender[is_txn & (polls.op < sender)], suspects.zombies(sends, known.fences))
    key = known.keys[settled.names[partition]]
    edges = _edges(rows, row, settled.reduced[partition].settled, key)
    transactions = distinct(sends.op[sends.txn])
    return transaction_task.seen(found, source[linked], target[linked]), transaction_task.by_window(
        known, transactions, edges
    )


def neighbours(
    settled: Settled, known: Known, wanted: I64, number: int, parts: Sequence[bytes]
) -> I64:
    """Return the operations that a slice or a range has of these transactions' neighbours: their
    readers, the writers of what they read, and the latest sends before their own records."""
    if number < settled.cut.slices:
        return transaction_task.neighbours(known, wanted, number, parts)
    rows = blocks.joined([packing.loaded(part) for part in parts])
    sends, polls, row = rows.sends, rows.polls, _writers(rows)
    by_offset = np.argsort(sends.offset, kind="stable")
    latest = by_offset[running_max(sends.invoked[by_offset])]
    before = distinct(sends.op[latest[is_in(sends.op[by_offset], wanted)]])
    sender, reader = sends.op[row], polls.op
    is_read = is_in(sender, np.union1d(before, wanted))
    return distinct(np.concatenate((before, reader[is_read], sender[is_in(reader, wanted)])))


def _writers(rows: RangeRows) -> I64:
    """Return for each row of polls the row of the send that wrote its record."""
    order = rows.sends.value.argsort()
    return order[np.searchsorted(rows.sends.value[order], rows.polls.value)]


def _edges(rows: RangeRows, row: I64, settled: Kept, key: int) -> Edges:
    """Return the dependencies between transactions in the settled blocks of a range."""
    sends, polls = rows.sends, rows.polls
    inside = np.flatnonzero(sends.txn[row] & polls.txn)
    source, target, value = sends.op[row[inside]], polls.op[inside], polls.value[inside]
    order = np.flatnonzero(sends.txn)
    order = order[np.argsort(sends.offset[order], kind="stable")]
    block, op, written = (c[order] for c in (settled.interval(sends.offset), sends.op, sends.value))
    same = np.flatnonzero(~changes(block))
    is_read = np.repeat((True, False), (len(inside), len(same)))
    found = Edges(
        np.concatenate((source, op[same - 1])),
        np.concatenate((target, op[same])),
        is_read,
        np.full(len(is_read), key),
        np.concatenate((value, written[same - 1])),
        np.concatenate((value, written[same])),
    )
    return found.where(found.source != found.target)
