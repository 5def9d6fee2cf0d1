"""A pass over one compacted log: read its record keys, then copy and replace its closed segments.

A pass is a generator that pauses after each piece, so that the broker can serve in between; a
change of the log in the meantime ends it early. Nothing is lost then, and segments that were
replaced stay replaced.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Final

from broker_impl.log import aborted_index, compaction
from broker_impl.log.compaction import Extent, Fates, OffsetMap
from broker_impl.log.partition_log import PartitionLog
from broker_impl.log.segment import Segment
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader
from broker_impl.wire.types import Offset

_PIECE_BYTES: Final = 64 << 10

Pass = Generator[None, None, bool]
"""The generator of a pass; it returns whether the pass was completed."""


def extents(log: PartitionLog, end: Offset, now_ms: int) -> list[Extent]:
    """The closed segments that may be compacted, if nothing at or after ``end`` may be changed."""
    closed = log.closed_segments
    if not closed or not log.config.is_compacted:
        return []
    has_limit = compaction.has_max_lag(log.config)
    found = (
        Extent(
            each.next_offset,
            each.size,
            each.largest.timestamp_ms,
            each.first_timestamp_ms() if has_limit else -1,
        )
        for each in closed
    )
    return list(compaction.cleanable(found, end, now_ms, log.config))


def dirtiness(log: PartitionLog, end: Offset, now_ms: int) -> float:
    """The share of the compactable part that is new, between 0 and 1; 0: a pass is not due."""
    found = extents(log, end, now_ms)
    if not found:
        return 0.0
    dirty = _first_dirty(log)
    if not compaction.is_due(found, dirty, now_ms, log.config):
        return 0.0
    return compaction.dirty_ratio(found, dirty)


def clean(log: PartitionLog, end: Offset, now_ms: int, keys_max: int) -> Pass:
    """Run one pass, up to ``end`` at most.

    StorageError: the disk failed. WireError: a batch cannot be decoded; the segments of its group
    are not changed.
    """
    count = len(extents(log, end, now_ms))
    segments = log.closed_segments[:count]
    if not segments:
        return False
    cuts = len(log.cuts)

    def is_as_it_was(group: Sequence[Segment]) -> bool:
        present = log.closed_segments
        return (
            log.offline is None
            and len(log.cuts) == cuts
            and all(segment in present for segment in group)
            and compaction.goes_on(log.config)
        )

    offsets = OffsetMap(keys_max)
    offsets.end = dirty = _first_dirty(log)
    for _ in _read_keys(log, segments, offsets):
        yield
        if not is_as_it_was(segments):
            return False
    if offsets.end == dirty:
        return False
    segments = [segment for segment in segments if segment.base_offset < offsets.end]
    for _ in log.flush_closed(segments[-1].next_offset):
        yield
        if not is_as_it_was(segments):
            return False
    fates = Fates(compaction.aborted_in(log.all_aborted, offsets.end))
    for group in _grouped(segments, log):
        copy = log.begin_copy(group[0], now_ms)
        try:
            copying = _Copying(log, copy, offsets, fates, end, now_ms)
            for _ in copying.take(group):
                yield
                if not is_as_it_was(group):
                    return False
            if copying.has_changed or len(group) > 1:
                yield
                if not is_as_it_was(group):
                    return False
                log.replace(group, copy)
        finally:
            log.drop_copy(copy)
        fates = compaction.carried(fates)
    log.compacted_to(offsets.end)
    return True


def _first_dirty(log: PartitionLog) -> Offset:
    return max(log.first_dirty, log.start_offset)


def _read_keys(
    log: PartitionLog, segments: Sequence[Segment], offsets: OffsetMap
) -> Iterator[None]:
    """Add the keys after the map's end to the map, as many as there is room for."""
    dirty = offsets.end
    fates = Fates(compaction.not_ended_before(log.all_aborted, dirty))
    for segment in segments:
        if segment.next_offset <= dirty:
            continue
        for header, data in _pieces(segment, segment.locate(dirty)):
            if data is None:
                yield
                continue
            if not compaction.has_keys(header):
                fates.ended(header, aborted_index.decode_marker(data))
            elif not fates.is_aborted(header):
                for record in batch.records(data):
                    if record.key is None or record.offset < dirty:
                        continue
                    if not offsets.put(record.key, record.offset):
                        return
            offsets.end = header.next_offset


def _pieces(segment: Segment, position: int = 0) -> Iterator[tuple[BatchHeader, bytes | None]]:
    """Header and bytes of each batch; now and then None instead of bytes, as a pause."""
    since = 0
    for at, header in segment.headers(position):
        if since >= _PIECE_BYTES:
            since = 0
            yield header, None
        since += header.size
        yield header, segment.file.pread(at, header.size)


def _grouped(segments: Sequence[Segment], log: PartitionLog) -> Iterator[list[Segment]]:
    """Group neighbouring segments that together are small enough to become one segment."""
    group: list[Segment] = []
    size = 0
    for segment in segments:
        if group and not compaction.fits(
            size, segment.size, group[0].base_offset, segment.next_offset, log.config
        ):
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size
    yield group


class _Copying:
    """Copies a group of segments into one."""

    def __init__(
        self,
        log: PartitionLog,
        copy: Segment,
        offsets: OffsetMap,
        fates: Fates,
        end: Offset,
        now_ms: int,
    ) -> None:
        """end: nothing at or after it may be compacted."""
        self.has_changed = False
        self._log, self._copy, self._end = log, copy, end
        self._offsets, self._fates, self._now_ms = offsets, fates, now_ms

    def take(self, group: Sequence[Segment]) -> Iterator[None]:
        """Copy these segments, with a pause now and then."""
        for segment in group:
            for header, data in _pieces(segment):
                if data is None:
                    yield
                else:
                    self._take_batch(header, data)

    def _take_batch(self, header: BatchHeader, data: bytes) -> None:
        verdict = compaction.judge(
            header, data, self._offsets, self._fates, self._now_ms, self._log.config
        )
        if verdict.aborted is not None:
            self._copy.aborted.append(verdict.aborted)
        records = verdict.records
        is_empty = not (header.count if records is None else records)
        if is_empty and compaction.stays_whole(header, self._end):
            records = None
        elif is_empty and not self._stays_empty(header):
            self.has_changed = True
            return
        kept = data
        if records is not None:
            self.has_changed = True
            kept = batch.with_only(header, records, delete_horizon_ms=verdict.delete_horizon_ms)
        self._copy.append([kept], [(0, batch.parse_header(kept))], self._now_ms)

    def _stays_empty(self, header: BatchHeader) -> bool:
        """Must a batch stay although it has no record left?"""
        if compaction.begins_epoch(header, self._log.epochs.entries):
            return True
        entry = self._log.producers.entries.get(header.producer_id)
        return header.producer_id >= 0 and compaction.is_last_of_producer(header, entry)
