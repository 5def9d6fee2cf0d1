"""What executors do with a partition that has much of a history: they check ranges of its offsets.

Most partitions are plain (:mod:`checkers.kernels.plain`). A partition is plain if each range of its
offsets is, and if ranges follow each other: then no checker of records finds anything in it, and
its figures follow from a few columns. No task has all of its operations. If a range is not plain,
the partition is judged as a slice.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from checkers import consumers, facts, group_events, producers
from checkers.columns import spread
from checkers.counts import Counts
from checkers.distributed import chunk_tasks, packing
from checkers.distributed.borders import Carried
from checkers.distributed.chunks import Chunk
from checkers.distributed.slice_task import Outline
from checkers.kernels import availability, consumption, key, plain
from checkers.kernels.arrays import first_rows
from checkers.kernels.consumption import Lag
from checkers.kernels.faults import FaultInterval
from checkers.kernels.key import Report
from checkers.kernels.log import Log
from checkers.kernels.rows import FAIL, I64, CatchUp, Polls, Resets, Sends

WIDTH = 1 << 18
"""How many offsets a range has."""
RANGES = 1 << 16
"""The most ranges of a partition."""
_NO_RESETS = Resets(np.zeros(0, np.int64), np.zeros(0, np.int64))
_TYPES = {"outcome": np.int8, "txn": np.bool_}
_NO_POLLS = Polls(*(np.zeros(0, _TYPES.get(name, np.int64)) for name in Polls._fields))

Place = tuple[int, int]
"""An operation, and the row of a record in its chunk."""


class Readers(NamedTuple):
    """The processes that have read a range, ascending."""

    process: I64
    records: I64
    first: list[Place]
    last: list[Place]
    began_ns: I64
    """When the first record was delivered to each."""


class Delivery(NamedTuple):
    """A record that was delivered some time after it was known to be in the log."""

    ns: int
    known_ns: int
    place: Place
    process: int
    value: int


class Range(NamedTuple):
    """A range of a plain partition."""

    records: int
    sends: tuple[Place, Place]
    """The first and the last record that was sent."""
    first_reads: tuple[int, int]
    """The operations that read the first and the last record first."""
    readers: Readers
    deliveries: list[Delivery]
    """The latest one among those of records that appeared while their readers read the range, and
    all those of earlier records."""
    columns: bytes
    """When each record was sent, acknowledged and first read, in the order of offsets."""


class Plain(NamedTuple):
    """A plain partition."""

    report: Report
    counts: Counts
    caught_up: bool


def cut(
    names: Sequence[str], item: tuple[Chunk, Carried]
) -> tuple[None, Iterator[tuple[int, bytes]]]:
    """Yield the rows of some partitions in a chunk, by number of partition and range."""
    columns, operations = chunk_tasks.operations(*item)
    sends, _ = producers.sends(columns, operations)
    polls = consumers.polls(columns, operations)
    special = facts.compacted(columns) | facts.deleted(
        columns, operations.last[operations.outcome != FAIL]
    )
    rows = np.flatnonzero(columns.is_op(*group_events.KINDS))
    records, _ = spread(columns.record_end[rows], columns.record_end[rows + 1])
    special |= {*columns.op_key[rows].tolist(), *columns.record_key[records].tolist()}

    def parts() -> Iterator[tuple[int, bytes]]:
        for number, name in enumerate(names):
            if name not in columns.keys:
                continue
            code = columns.keys.index(name)
            sent = sends.where(np.flatnonzero(sends.key == code))
            polled = polls.where(np.flatnonzero(polls.key == code))
            if code in special or not (_may_be_plain(sent) and _may_be_plain(polled)):
                yield number * RANGES, packing.dumped(None)
                continue
            for range_, found in _by_range(sent, polled):
                yield number * RANGES + range_, packing.dumped(found)

    return None, parts()


def _may_be_plain(rows: Sends | Polls) -> bool:
    is_odd = rows.outcome.any() or rows.txn.any() or (rows.offset < 0).any()
    return not (is_odd or (rows.offset >= RANGES * WIDTH).any())


def _by_range(sent: Sends, polled: Polls) -> Iterator[tuple[int, Any]]:
    """Yield the rows of each range, each with the numbers of its rows."""
    of_sends, of_polls = sent.offset // WIDTH, polled.offset // WIDTH
    for range_ in np.union1d(of_sends, of_polls).tolist():
        mine, theirs = np.flatnonzero(of_sends == range_), np.flatnonzero(of_polls == range_)
        yield range_, (sent.where(mine), mine, polled.where(theirs), theirs)


def check(number: int, parts: Sequence[bytes]) -> tuple[None, Iterator[tuple[int, bytes]]]:
    """Check a range; what is found goes to the task of its partition."""
    loaded = [packing.loaded(part) for part in parts]
    found = None if None in loaded else _checked(loaded)
    return None, iter([(number // RANGES, packing.dumped(found))])


def _checked(loaded: Sequence[tuple[Sends, I64, Polls, I64]]) -> Range | None:
    """Return what is known of a range; ``None`` if it is not plain."""
    of_sends, sent_row, of_polls, polled_row = zip(*loaded, strict=True)
    sends = Sends(*map(np.concatenate, zip(*of_sends, strict=True)))
    polls = Polls(*map(np.concatenate, zip(*of_polls, strict=True)))
    log = Log("", sends, polls, _NO_RESETS)
    if not plain.is_plain(log):
        return None
    sent, polled = np.concatenate(sent_row), np.concatenate(polled_row)
    values, first = log.first_reads
    order = sends.value.argsort()
    read = np.empty_like(first)
    read[order] = first
    known_ns = np.minimum(polls.end_ns[read], sends.end_ns)
    row = order[np.searchsorted(values, polls.value)]
    readers = _readers(polls, polled)
    return Range(
        records=len(sends.op),
        sends=(_place(sends, sent, 0), _place(sends, sent, -1)),
        first_reads=(int(polls.op[read[0]]), int(polls.op[read[-1]])),
        readers=readers,
        deliveries=_deliveries(polls, polled, known_ns[row], readers),
        columns=_packed(sends.start_ns, sends.end_ns, polls.end_ns[read]),
    )


def _place(rows: Sends | Polls, number: I64, at: int) -> Place:
    return int(rows.op[at]), int(number[at])


def _readers(polls: Polls, number: I64) -> Readers:
    process, first = first_rows(polls.process)
    count = np.bincount(np.searchsorted(process, polls.process), minlength=len(process))
    last = len(polls.op) - 1 - first_rows(polls.process[::-1])[1]
    return Readers(
        process,
        count,
        [_place(polls, number, row) for row in first.tolist()],
        [_place(polls, number, row) for row in last.tolist()],
        polls.end_ns[first],
    )


def _deliveries(polls: Polls, number: I64, known_ns: I64, readers: Readers) -> list[Delivery]:
    delay = polls.end_ns - known_ns
    began_ns = readers.began_ns[np.searchsorted(readers.process, polls.process)]
    new = np.flatnonzero(known_ns > began_ns)
    rows = np.flatnonzero((known_ns <= began_ns) & (delay > 0)).tolist()
    if len(new):
        rows.append(int(new[delay[new].argmax()]))
    return [
        Delivery(
            int(delay[row]),
            int(known_ns[row]),
            _place(polls, number, row),
            int(polls.process[row]),
            int(polls.value[row]),
        )
        for row in rows
    ]


def _packed(start_ns: I64, end_ns: I64, read_ns: I64) -> bytes:
    """Pack columns of times as differences, which are small."""
    columns = (np.diff(end_ns, prepend=0), end_ns - start_ns, read_ns - end_ns)
    return packing.dumped([_small(column) for column in columns])


def _small(column: I64) -> Any:
    is_small = np.abs(column[1:]).max(initial=0) < 1 << 31
    return int(column[0]), column[1:].astype(np.int32) if is_small else column[1:]


def _times(packed: bytes) -> tuple[I64, I64, I64]:
    since, took, later = (
        np.concatenate(([first], rest)).astype(np.int64) for first, rest in packing.loaded(packed)
    )
    end_ns = np.cumsum(since)
    return end_ns - took, end_ns, later + end_ns


class Question(NamedTuple):
    """What is known of partitions that are checked in ranges, each in its place."""

    names: Sequence[str]
    outlines: Sequence[Outline]
    faults: tuple[FaultInterval, ...]
    healed_ns: int | None
    """When the last fault was healed, 0 without any; ``None`` if one was not."""


def judge(asked: Question, number: int, parts: Sequence[bytes]) -> tuple[int, Plain | None]:
    """Judge a partition by its ranges, and return its number; ``None`` if it may not be plain."""
    return number, _judged(asked, number, parts)


def _judged(asked: Question, number: int, parts: Sequence[bytes]) -> Plain | None:
    ranges: list[Range | None] = [packing.loaded(part) for part in parts]
    known = [each for each in ranges if each is not None]
    if len(known) < len(ranges) or not _follow(known):
        return None
    outline = asked.outlines[number]
    caught_up = outline.caught_up(known[-1].sends[1][0])
    if caught_up is not None and not _saw_all(known, outline, caught_up):
        return None
    start, end, read = map(np.concatenate, zip(*(_times(r.columns) for r in known), strict=True))
    name, nothing = asked.names[number], np.zeros(0, dtype=np.int64)
    log = Log(name, _acked(start, end), _NO_POLLS, _NO_RESETS, faults=asked.faults)
    polled = sum(int(r.readers.records.sum()) for r in known)
    report = key.judge(Log(name, log.sends.where(nothing), _NO_POLLS, _NO_RESETS))
    return Plain(
        report._replace(
            acked=len(end),
            read=len(end),
            outage=availability.longest_outage(log),
            recoveries=availability.recoveries(log),
            consumption=consumption.of_plain(name, end, read, _worst(name, known), polled),
        ),
        Counts(
            accountable=len(end),
            placed=len(end),
            read=polled,
            sent_after_healing=int((start >= asked.healed_ns).sum()) if asked.healed_ns else 0,
        ),
        caught_up is not None,
    )


def _follow(ranges: Sequence[Range]) -> bool:
    """Return whether sends, first reads and every reader go on from range to range."""
    for one, other in pairwise(ranges):
        if one.sends[1] > other.sends[0] or one.first_reads[1] > other.first_reads[0]:
            return False
        place = {int(process): row for row, process in enumerate(one.readers.process)}
        for row, process in enumerate(other.readers.process.tolist()):
            before = place.get(process)
            if before is None or one.readers.records[before] < one.records:
                return False
            if one.readers.last[before] > other.readers.first[row]:
                return False
    return True


def _saw_all(ranges: Sequence[Range], outline: Outline, end: CatchUp) -> bool:
    """Return whether the final reader certainly read everything, from the begin to its end."""
    readers = ranges[-1].readers
    row = int(np.searchsorted(readers.process, end.process))
    if row == len(readers.process) or readers.process[row] != end.process:
        return False
    return (
        int(readers.records[row]) == ranges[-1].records
        and readers.last[row][0] <= end.op
        and outline.assignments.get(end.process, 0) <= 1
    )


def _worst(name: str, ranges: Sequence[Range]) -> Lag | None:
    """Return the latest delivery of a record that appeared after its reader began."""
    readers = ranges[0].readers
    began = dict(zip(readers.process.tolist(), readers.began_ns.tolist(), strict=True))
    found = [d for r in ranges for d in r.deliveries if d.known_ns > began[d.process] and d.ns > 0]
    if not found:
        return None
    worst = min(found, key=lambda d: (-d.ns, d.place))
    return Lag(name, worst.process, worst.value, worst.place[0], worst.ns)


def _acked(start_ns: I64, end_ns: I64) -> Sends:
    """Return acknowledged sends of which only the times are known."""
    zero = np.broadcast_to(np.int64(0), len(end_ns))
    outcome, no = np.broadcast_to(np.int8(0), len(end_ns)), np.broadcast_to(np.False_, len(end_ns))
    return Sends(zero, zero, zero, zero, zero, outcome, no, no, start_ns, end_ns)
