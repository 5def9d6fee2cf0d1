"""Begin segments by age, and delete old ones by retention."""

from broker_impl.log import appending, loading
from broker_impl.log.log_state import LogState
from broker_impl.log.results import Deleted, Retained
from broker_impl.log.segment import (
    ABORTED_INDEX_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    Segment,
    file_name,
)
from broker_impl.wire.types import Offset


def roll_if_due(log: LogState, now_ms: int) -> bool:
    """Create a new segment if this broker opened the active one over `segment.ms` ago."""
    active = log.segments[-1]
    if not active.size or now_ms - active.begun_ms <= active.age_max_ms(log.config):
        return False
    with log.changing():
        appending.roll(log, now_ms)
    return True


def retain(log: LogState, now_ms: int, high_watermark: Offset) -> list[str]:
    """Delete segments that are too old, exceed `retention.bytes`, or are before the start."""
    surplus = _surplus_bytes(log)
    names: list[str] = []
    while is_committed(log.segments[0].next_offset, high_watermark):
        segment = log.segments[0]
        if not _must_go(log, segment, now_ms, surplus):
            break
        with log.changing():
            if segment is log.segments[-1]:
                appending.roll(log, now_ms)
            surplus -= segment.size
            names.append(_delete_first(log, now_ms))
    log.retained = _left(log, now_ms, high_watermark)
    return names


def _left(log: LogState, now_ms: int, high_watermark: Offset) -> Retained:
    first, deletes = log.segments[0], log.config.deletes_old
    return Retained(
        base_offset=first.base_offset,
        next_offset=first.next_offset,
        segment_bytes=first.size,
        is_active=first is log.segments[-1],
        start_offset=log.start_offset,
        log_bytes=log.size_bytes,
        high_watermark=high_watermark,
        at_ms=now_ms,
        retention_bytes=log.config.retention_bytes if deletes else -1,
        retention_ms=log.config.retention_ms if deletes else -1,
        cuts=len(log.cuts),
    )


def _must_go(log: LogState, segment: Segment, now_ms: int, surplus: int) -> bool:
    """Whether the first segment is too old, or too much, or before the log's start."""
    is_active = segment is log.segments[-1]
    if is_active and not segment.size:
        return False
    if _is_expired(log, segment, now_ms):
        return True
    if is_active:
        return False
    return segment.next_offset <= log.start_offset or is_surplus(segment.size, surplus)


def remove_deleted(log: LogState, now_ms: int) -> None:
    """Remove the files of deleted segments whose delay has passed."""
    log.refuse_offline()
    if not log.deleted:
        return
    with log.changing():
        while log.deleted and log.deleted[0][0] <= now_ms:
            _, path = log.deleted.pop(0)
            if log.disk.exists(path):
                log.disk.remove(path)


def _surplus_bytes(log: LogState) -> int:
    if log.config.retention_bytes < 0 or not log.config.deletes_old:
        return 0
    return log.size_bytes - log.config.retention_bytes


def _is_expired(log: LogState, segment: Segment, now_ms: int) -> bool:
    if log.config.retention_ms < 0 or not log.config.deletes_old:
        return False
    return age_ms(segment, now_ms) > log.config.retention_ms


def _delete_first(log: LogState, now_ms: int) -> str:
    """Rename the first segment's files: it is gone for readers, and later from the disk."""
    segment = log.segments.pop(0)
    log.deletions += 1
    log.latest_deleted.append(
        Deleted(
            number=log.deletions,
            base_offset=segment.base_offset,
            next_offset=segment.next_offset,
            start_offset=log.start_offset,
            bytes_left=log.size_bytes,
            at_ms=now_ms,
            retention_bytes=log.config.retention_bytes if log.config.deletes_old else -1,
            retention_ms=log.config.retention_ms if log.config.deletes_old else -1,
        )
    )
    segment.close()
    _rename_files(log, segment, now_ms + log.config.delete_delay_ms)
    log.disk.fsync_dir(log.directory)
    first = log.segments[0].base_offset
    log.snapshots.remove_below(first)
    if log.start_offset < first:
        log.start_offset = first
        if log.epochs.truncate_from_start(log.start_offset):
            loading.write_epochs(log.disk, log.directory, log.epochs)
    log.recovery_point = max(log.recovery_point, segment.next_offset)
    return file_name(segment.base_offset, LOG_SUFFIX)


def _rename_files(log: LogState, segment: Segment, due_ms: int) -> None:
    """Rename the files; a segment that keeps some of them in a crash is as it was.

    Without its index it is recovered, and so is the index of its aborted transactions. Without the
    latter alone, nothing would seem to be aborted, so the renaming of the former is durable before.
    """
    for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, ABORTED_INDEX_SUFFIX, LOG_SUFFIX):
        path = f"{log.directory}/{file_name(segment.base_offset, suffix)}"
        if suffix == ABORTED_INDEX_SUFFIX and not log.disk.exists(path):
            continue  # nothing was aborted
        if suffix == ABORTED_INDEX_SUFFIX:
            log.disk.fsync_dir(log.directory)
        log.disk.rename(path, path + loading.DELETED_SUFFIX)
        log.deleted.append((due_ms, path + loading.DELETED_SUFFIX))


def is_surplus(segment_bytes: int, surplus_bytes: int) -> bool:
    """Does the log keep `retention.bytes` without its first segment (KAFKA-70)?

    surplus_bytes: how much larger than that it is, with the segment.
    """
    return 0 < surplus_bytes >= segment_bytes


def age_ms(segment: Segment, now_ms: int) -> int:
    """How old a segment is: as old as its newest record (KIP-33).

    If no record has a timestamp, the last append counts.
    """
    newest = segment.largest.timestamp_ms
    return now_ms - (newest if newest >= 0 else segment.written_ms)


def is_committed(next_offset: Offset, high_watermark: Offset) -> bool:
    """Is everything before `next_offset` committed, so that it may be deleted?

    Followers may still have to fetch records that are not committed (KAFKA-5634).
    """
    return next_offset <= high_watermark
