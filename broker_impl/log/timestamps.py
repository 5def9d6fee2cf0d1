"""Find records of a log by their timestamps."""

from collections.abc import Sequence

from broker_impl.errors import ApiError, ErrorCode, WireError
from broker_impl.log.indexes import NO_TIMESTAMP, TimestampAt
from broker_impl.log.log_state import LogState
from broker_impl.log.results import NO_LIMIT, TimestampOffset
from broker_impl.log.segment import Segment
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record
from broker_impl.wire.types import Offset


def offset_for_timestamp(
    log: LogState, timestamp_ms: int, *, limit: Offset = NO_LIMIT
) -> TimestampOffset | None:
    """The first record below `limit` whose timestamp is `timestamp_ms` or later."""
    for segment in log.segments:
        if segment.base_offset >= limit:
            break
        if segment.largest.timestamp_ms >= timestamp_ms:
            found = _first_in(log, segment, timestamp_ms, limit)
            if found is not None:
                return found
    return None


def segments_before(log: LogState, timestamp_ms: int | None, now_ms: int) -> list[Offset]:
    """The starts of the segments last written at this time or before, newest first; None: of all.

    The log's end, which counts as written at `now_ms`, precedes them if its segment has records. A
    segment from before the broker's start counts as written at that start.
    """
    places = [(max(each.base_offset, log.start_offset), each.written_ms) for each in log.segments]
    if log.segments[-1].size:
        places.append((log.end_offset, now_ms))
    while places and timestamp_ms is not None and places[-1][1] > timestamp_ms:
        places.pop()
    return sorted((offset for offset, _ in places), reverse=True)


def searched_time(timestamp_ms: int) -> int:
    """The time below which entries of the index are skipped: all of their records are older."""
    return timestamp_ms


def largest(known: TimestampAt, candidate: TimestampAt) -> TimestampAt:
    """Which of two records, the first one from an earlier segment, has the largest time.

    Of equal times, the first one counts (KIP-734).
    """
    return candidate if candidate.timestamp_ms > known.timestamp_ms else known


def newest(records: Sequence[Record]) -> Record | None:
    """The first record of a batch that has the batch's largest time; None without records."""
    return max(records, key=lambda record: record.timestamp_ms, default=None)


def _first_in(
    log: LogState, segment: Segment, timestamp_ms: int, limit: Offset
) -> TimestampOffset | None:
    older = segment.times.last_below(searched_time(timestamp_ms))
    position = 0 if older is None else segment.offsets.position_for(older)
    for at, header in segment.headers(position):
        if header.base_offset >= limit:
            return None
        if header.max_timestamp < timestamp_ms or header.last_offset < log.start_offset:
            continue
        for record in _records(log, segment, at, header, limit):
            if record.timestamp_ms >= timestamp_ms:
                return _found(record, header)
    return None


def offset_of_max_timestamp(log: LogState, *, limit: Offset = NO_LIMIT) -> TimestampOffset | None:
    """The first record below `limit` that has the largest timestamp."""
    found = NO_TIMESTAMP
    for segment in log.segments:
        if segment.base_offset >= limit:
            break
        found = largest(found, _largest_in(log, segment, limit))
    if found == NO_TIMESTAMP:
        return None
    segment = log.segments[log.segment_number(found.offset)]
    position = segment.locate(found.offset)
    _, header = next(segment.headers(position))
    record = newest(_records(log, segment, position, header, limit))
    return None if record is None else _found(record, header)


def _largest_in(log: LogState, segment: Segment, limit: Offset) -> TimestampAt:
    """The segment's largest timestamp among readable batches, by their headers."""
    if segment.next_offset <= limit and segment.base_offset >= log.start_offset:
        return segment.largest
    known = NO_TIMESTAMP
    for at, header in segment.headers(segment.locate(log.start_offset)):
        if header.base_offset >= limit:
            break
        if not header.count:
            continue  # compaction has removed its records
        newest_ms = header.max_timestamp
        if header.base_offset < log.start_offset or header.last_offset >= limit:
            readable = _records(log, segment, at, header, limit)
            newest_ms = max((record.timestamp_ms for record in readable), default=-1)
        if newest_ms > known.timestamp_ms:
            known = TimestampAt(newest_ms, header.last_offset)
    return known


def _records(
    log: LogState, segment: Segment, position: int, header: BatchHeader, limit: Offset
) -> list[Record]:
    """The readable records of one batch."""
    try:
        records = batch.records(segment.file.pread(position, header.size))
    except WireError as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    return [each for each in records if is_readable(each.offset, log.start_offset, limit)]


def is_readable(offset: Offset, start: Offset, limit: Offset) -> bool:
    """Whether a reader may get this record: a batch can begin before the start of its log."""
    return start <= offset < limit


def _found(record: Record, header: BatchHeader) -> TimestampOffset:
    return TimestampOffset(record.timestamp_ms, record.offset, header.partition_leader_epoch)
