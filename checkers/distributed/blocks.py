"""Blocks of a range of offsets, and what the whole partition has to know of each.

A range is one block if it is settled (:mod:`checkers.kernels.settled`). Otherwise it is divided,
since most of its records still are in settled blocks.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from checkers.distributed import packing
from checkers.kernels import settled
from checkers.kernels.arrays import first_rows, is_in
from checkers.kernels.log import Log
from checkers.kernels.rows import FAIL, I64, OK, UNKNOWN, Bools, Polls, Resets, Rows, Sends, groups

DIVIDED = 64
"""Into how many blocks a range is divided."""
PLACES = 1 << 20
"""The most records of a partition in one operation."""
NEVER = 1 << 62
_NONE = np.zeros(0, dtype=np.int64)
_NO_RESETS = Resets(_NONE, _NONE)


class RangeRows(NamedTuple):
    """The rows of a range. A place is an operation and a row of it, as one number."""

    sends: Sends
    sent: I64
    """The place of each row of ``sends``."""
    odd: Bools
    """Which sends were certainly not made, or continued, before their operation ended: it was to
    wait for longer."""
    polls: Polls
    polled: I64
    asked: I64
    """The invocation of each poll."""

    def where(self, sends: Any, polls: Any) -> "RangeRows":
        """Return some of the rows."""
        return RangeRows(
            self.sends.where(sends),
            self.sent[sends],
            self.odd[sends],
            self.polls.where(polls),
            self.polled[polls],
            self.asked[polls],
        )


def joined(parts: Sequence[RangeRows]) -> RangeRows:
    """Return the rows of several chunks, which are in order."""
    sends, sent, odd, polls, polled, asked = zip(*parts, strict=True)
    return RangeRows(
        Sends(*map(np.concatenate, zip(*sends, strict=True))),
        np.concatenate(sent),
        np.concatenate(odd),
        Polls(*map(np.concatenate, zip(*polls, strict=True))),
        np.concatenate(polled),
        np.concatenate(asked),
    )


def places(op: I64) -> I64:
    """Return the place of each row; the rows of one operation are adjacent."""
    begins, ends = groups(op)
    first = np.repeat(begins, ends - begins)
    place: I64 = op * PLACES + np.minimum(np.arange(len(op)) - first, PLACES - 1)
    return place


class _Spans(NamedTuple):
    process: I64
    first: I64
    last: I64
    began_ns: I64


class Spans(Rows, _Spans):
    """Processes that sent or read records of a block, from which place to which one. There is one
    row per process, but those that read an unsettled block have one per record."""

    __slots__ = ()


class Strays(NamedTuple):
    """Values that were read from a block but not sent to it, and the first operations that read
    them."""

    value: I64
    op: I64


NO_STRAYS = Strays(_NONE, _NONE)


class Doubts(NamedTuple):
    """Sends that may be at another offset than they say: they name none, or are in doubt."""

    value: I64
    invoked: I64
    acked: I64
    """The operation that acknowledged it; NEVER without one."""
    process: I64
    place: I64


NO_DOUBTS = Doubts(*5 * (_NONE,))


class Block(NamedTuple):
    """What is known of some offsets that are next to each other."""

    begin: int
    end: int
    """The first offset after it."""
    is_settled: bool
    rows: int
    """How many micro-operations and records it has."""
    values: bytes
    """The distinct values, ascending."""
    shown: int
    """The first event by which one of the records was certainly in the log."""
    invoked: int
    """The last event that invoked a send to it."""
    acked: int
    """The last event that acknowledged one; -1 without any."""
    seen: int
    """Each record was read at this event or later."""
    started_ns: tuple[int, int]
    """When the last acknowledged send began, and when the last send of any outcome did; -1 without
    any."""
    first: int
    """The operation that sent the first record, and then the last one."""
    last: int
    writers: Spans
    readers: Spans
    strays: Strays
    doubts: Doubts
    kept: I64
    """The offsets of the records that are kept of a settled block: its ends, and those that were
    sent and acknowledged last."""


def of_range(begin: int, width: int, rows: RangeRows) -> list[Block]:
    """Return the blocks of a range, or one for the records without a known offset."""
    if begin < 0:
        return [_block(begin, begin + 1, rows, is_settled=False)]
    whole = _block_if_settled(begin, begin + width, rows)
    if whole is not None:
        return [whole]
    return [
        _block_if_settled(*bounds, part) or _block(*bounds, part, is_settled=False)
        for bounds, part in _divided(begin, width, rows)
    ]


def are_apart(blocks: Sequence[Block]) -> bool:
    """Return whether no value is in two of these blocks."""
    values = np.sort(np.concatenate([unpacked(block.values) for block in blocks]))
    return not (values[1:] == values[:-1]).any()


def _divided(
    begin: int, width: int, rows: RangeRows
) -> Iterator[tuple[tuple[int, int], RangeRows]]:
    size = -(-width // DIVIDED)
    of_sends, of_polls = ((r.offset - begin) // size for r in (rows.sends, rows.polls))
    for number in np.union1d(of_sends, of_polls).tolist():
        part = rows.where(np.flatnonzero(of_sends == number), np.flatnonzero(of_polls == number))
        yield (begin + number * size, begin + (number + 1) * size), part


def _block_if_settled(begin: int, end: int, rows: RangeRows) -> Block | None:
    log = Log("", rows.sends, rows.polls, _NO_RESETS)
    is_settled = not rows.odd.any() and settled.is_settled(log)
    return _block(begin, end, rows, is_settled=True) if is_settled else None


def _block(begin: int, end: int, rows: RangeRows, *, is_settled: bool) -> Block:
    sends, polls = rows.sends, rows.polls
    possible = sends.outcome != FAIL
    tried, acked = sends.where(possible), sends.where(sends.outcome == OK)
    shown = _shown(tried, polls)
    by_offset = np.argsort(acked.offset, kind="stable") if is_settled else _NONE
    firsts, lasts = (acked.op[by_offset[at]] for at in (0, -1)) if is_settled else (-1, -1)
    return Block(
        begin=begin,
        end=end,
        is_settled=is_settled,
        rows=2 * len(sends.op) + len(polls.op),
        values=packed(np.union1d(sends.value, polls.value)),
        shown=int(shown.min(initial=NEVER)),
        invoked=int(tried.invoked.max(initial=-1)),
        acked=int(acked.op.max(initial=-1)),
        seen=_seen(polls),
        started_ns=(
            int(acked.start_ns.max(initial=-1)),
            int(sends.start_ns.max(initial=-1)),
        ),
        first=int(firsts),
        last=int(lasts),
        writers=_writers(tried, rows.sent[possible]),
        readers=_readers(polls, rows.polled) if is_settled else _reads(polls, rows.polled),
        strays=NO_STRAYS if is_settled else _strays(sends, polls),
        doubts=NO_DOUBTS if is_settled else _doubts(tried, rows.sent[possible]),
        kept=_ends(acked, by_offset) if is_settled else _NONE,
    )


def _shown(tried: Sends, polls: Polls) -> I64:
    """Return by when records were certainly in the log, as far as that was after their sends."""
    values, first = first_rows(polls.value)
    row = np.minimum(np.searchsorted(values, tried.value), max(len(values) - 1, 0))
    by = np.where(tried.outcome == OK, tried.op, NEVER)
    if len(values):
        is_read = values[row] == tried.value
        by = np.where(is_read, np.minimum(by, polls.op[first[row]]), by)
    shown: I64 = by[(by > tried.invoked) & (by < NEVER)]
    return shown


def _seen(polls: Polls) -> int:
    """Return the first among the events that read each record last."""
    _, last = first_rows(polls.value[::-1])
    return int(polls.op[::-1][last].min(initial=NEVER))


def _writers(tried: Sends, place: I64) -> Spans:
    process, first = first_rows(tried.process)
    last = len(place) - 1 - first_rows(tried.process[::-1])[1]
    return Spans(process, place[first], place[last], tried.start_ns[first])


def _readers(polls: Polls, place: I64) -> Spans:
    process, first = first_rows(polls.process)
    last = len(place) - 1 - first_rows(polls.process[::-1])[1]
    return Spans(process, place[first], place[last], polls.end_ns[first])


def _reads(polls: Polls, place: I64) -> Spans:
    return Spans(polls.process, place, place, polls.end_ns)


def _strays(sends: Sends, polls: Polls) -> Strays:
    values, first = first_rows(polls.value)
    is_stray = ~is_in(values, sends.value)
    return Strays(values[is_stray], polls.op[first[is_stray]])


def _doubts(tried: Sends, place: I64) -> Doubts:
    rows = np.flatnonzero((tried.offset == UNKNOWN) | (tried.outcome != OK))
    mine = tried.where(rows)
    acked = np.where(mine.outcome == OK, mine.op, NEVER)
    return Doubts(mine.value, mine.invoked, acked, mine.process, place[rows])


def _ends(acked: Sends, by_offset: I64) -> I64:
    """Return the offsets of the records that represent a settled block."""
    last = acked.op.argmax(), acked.start_ns.argmax()
    return np.unique(acked.offset[np.array((by_offset[0], by_offset[-1], *last))])


def running_max(column: I64) -> I64:
    """Return for each row the first row that has the maximum up to it."""
    peaks = np.append(True, column[1:] > np.maximum.accumulate(column)[:-1])
    rows: I64 = np.maximum.accumulate(np.where(peaks[: len(column)], np.arange(len(column)), 0))
    return rows


def packed(values: I64) -> bytes:
    """Pack ascending numbers as differences, which are small."""
    rest = np.diff(values)
    is_small = rest.max(initial=0) < 1 << 31
    first = int(values[0]) if len(values) else UNKNOWN
    return packing.dumped((first, len(values), rest.astype(np.int32) if is_small else rest))


def unpacked(data: bytes) -> I64:
    """Return numbers that were packed."""
    first, count, rest = packing.loaded(data)
    values = np.empty(count, dtype=np.int64)
    values[:1] = first
    np.cumsum(rest, out=values[1:])
    values[1:] += first
    return values
