"""Sync a log: all of it, or the closed segments one after the other."""

from collections.abc import Iterator
from typing import Final

from broker_impl.log.log_state import LogState
from broker_impl.log.segment import Segment
from broker_impl.wire.types import Offset

_SETTLED_MS: Final = 35_000  # Linux has written back most of a closed segment by then


def due_flush(log: LogState, now_ms: int) -> bool:
    """Has a record waited for `flush.ms` to be synced?"""
    since = log.unsynced_since_ms
    return since is not None and now_ms - since >= log.config.flush_ms


def flush(log: LogState) -> None:
    """Sync everything; the recovery point is the log's end then."""
    with log.changing():
        flush_all(log)


def flush_settled(log: LogState, now_ms: int) -> None:
    """Sync the oldest closed segment that is not synced, once that has become cheap."""
    if len(log.segments) == 1:
        return  # most logs of many have no closed segment
    segment = log.segments[log.first_unsynced]
    if segment is not log.segments[-1] and now_ms - segment.written_ms >= _SETTLED_MS:
        _flush_segment(log, segment)


def flush_closed(log: LogState, end: Offset) -> Iterator[None]:
    """Sync the closed segments up to `end`, with a pause after each, and checkpoint that."""
    while log.recovery_point < end:
        _flush_segment(log, log.segments[log.first_unsynced])
        yield
    with log.changing():
        log.write_recovery_point()


def _flush_segment(log: LogState, segment: Segment) -> None:
    with log.changing():
        segment.fsync()
        segment.fsync_indexes()
        log.recovery_point = segment.next_offset


def close(log: LogState) -> None:
    """Sync everything and take a snapshot, so that the next `open` may be a clean one."""
    with log.changing():
        log.segments[-1].finish()
        flush_all(log)
        log.segments[-1].fsync_indexes()
        log.snapshots.take(log.end_offset, log.producers)
    log.abandon()


def flush_all(log: LogState) -> None:
    """Sync everything, as part of another change."""
    for segment in log.segments[log.first_unsynced :]:
        segment.fsync()
        if segment is not log.segments[-1]:
            segment.fsync_indexes()
    log.recovery_point = log.end_offset
    log.unsynced_since_ms = None
