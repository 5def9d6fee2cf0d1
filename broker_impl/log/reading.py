"""Read whole batches from one segment of a log, the first that holds any for the reader."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from broker_impl.log.segment import Segment
from broker_impl.wire import batch
from broker_impl.wire.types import Offset


class Reading(NamedTuple):
    """The result of a read."""

    records: list[memoryview]
    """Whole batches, in at most one buffer."""
    cannot_grow: bool
    """The read reached the end of a segment that is closed: the same read never returns more."""
    cut_at: int = 0
    """The limit in bytes, if the read left out batches because of it, else 0."""


NOTHING: Final = Reading([], cannot_grow=False)


def read(
    segments: Sequence[Segment],
    first: int,
    offset: Offset,
    *,
    limit: Offset,
    bytes_max: int,
    at_least_one: bool,
    skip_empty: bool,
) -> Reading:
    """Read batches below ``limit``, from the one that holds ``offset`` on, or else from the next.

    first: the number of the segment whose range holds ``offset``. Compaction may have removed all
    of its batches from there on; then the read continues in the segments that follow. at_least_one:
    return one batch even if it is larger than ``bytes_max``. skip_empty: do not begin with batches
    without records, unless there are no others.
    """
    only_empty = NOTHING
    for number in range(first, len(segments)):
        segment = segments[number]
        if segment.base_offset >= limit:
            break
        start, end = begins_at(segment, offset), segment.locate(limit)
        if start >= end:
            continue
        is_closed = number < len(segments) - 1 and segment.next_offset <= limit
        data = segment.read(start, end, bytes_max, at_least_one=at_least_one)
        cut_at = bytes_max if len(data) < end - start else 0
        if skip_empty and data and not batch.parse_header(data).count:
            with_records = _first_with_records(segment, start, end)
            if with_records is None:
                if only_empty is NOTHING:
                    only_empty = Reading([memoryview(data)], is_closed, cut_at)
                continue
            data = segment.read(with_records, end, bytes_max, at_least_one=at_least_one)
            cut_at = bytes_max if len(data) < end - with_records else 0
        return Reading([memoryview(data)] if data else [], is_closed, cut_at)
    return only_empty


def begins_at(segment: Segment, offset: Offset) -> int:
    """Where a read from this offset begins: at the batch that holds it, or at the next one."""
    return segment.locate(offset)


def _first_with_records(segment: Segment, start: int, end: int) -> int | None:
    """The position of the first batch with a record, between two batch boundaries."""
    for position, header in segment.headers(start):
        if position >= end:
            return None
        if header.count:
            return position
    return None
