"""Copy a log to another data directory while it changes, and give the copy what batches lack.

The copy is a follower of the current log within the same broker: it appends the same batches, and
rebuilds indexes, leader epochs and producers from them.
"""

from typing import Final

from broker_impl.log import loading, move_rules, reading, topic_identity
from broker_impl.log.partition_log import PartitionLog

_CHUNK_BYTES_MAX: Final = 1 << 20


def copy(current: PartitionLog, future: PartitionLog, bytes_max: int, now_ms: int) -> int:
    """Copy the next batches, and return how many bytes they have; 0: there are none.

    At least one batch is copied if there is one; the batches have at most ``bytes_max`` bytes, or
    1 MiB. ApiError: a batch of the current log is damaged. StorageError: one of the disks failed.
    """
    base, copy_base = current.segments[0].base_offset, future.segments[0].base_offset
    if move_rules.must_start_over(copy_base, future.end_offset, base, current.start_offset):
        start_over(current, future, now_ms)
    copied = 0
    if future.end_offset < current.end_offset:
        found = reading.read(
            current.segments,
            current.segment_number(future.end_offset),
            future.end_offset,
            limit=current.end_offset,
            bytes_max=min(bytes_max, _CHUNK_BYTES_MAX),
            at_least_one=True,
            skip_empty=False,
        )
        records = b"".join(found.records)
        future.append_as_follower(records, now_ms=now_ms)
        copied = len(records)
    future.advance_start(min(current.start_offset, future.end_offset))
    return copied


def start_over(current: PartitionLog, future: PartitionLog, now_ms: int) -> None:
    """Empty the copy, and start it at the first segment of the log.

    Producers whose records were deleted are known from a snapshot only (KAFKA-9892).
    """
    base = current.segments[0].base_offset
    future.truncate_fully_and_start_at(base)
    _, future.producers = current.snapshots.newest(now_ms, not_above=base)
    future.snapshots.take(base, future.producers)


def complete(current: PartitionLog, future: PartitionLog) -> None:
    """Sync a copy that has all batches, and close it with what batches do not hold.

    That is: epochs without a record, producers whose records were deleted, the topic's id, and how
    far the log is compacted. All of it is durable on return.
    """
    assert future.segments[0].base_offset <= current.start_offset, (
        f"{current.topic_partition}: the copy starts after the log that it replaces"
    )
    loading.write_epochs(future.disk, future.directory, current.epochs)
    if future.topic_id != current.topic_id:
        topic_identity.write(future.disk, future.directory, current.topic_id)
    future.first_dirty = current.first_dirty
    future.producers = current.producers
    future.close()


def inherit(current: PartitionLog, log: PartitionLog) -> None:
    """Let the log that has replaced ``current`` continue it for all who use it.

    Its identity, truncations and rewrites stay the same, and so does what is not on the disk: the
    transactions whose verification is pending, and an epoch that begins at the log's end.
    """
    log.identity, log.cuts, log.rewrites = current.identity, current.cuts, current.rewrites
    log.rewritten_age_ms = current.rewritten_age_ms
    log.deletions, log.latest_deleted = current.deletions, current.latest_deleted
    log.producers = current.producers
    if log.epochs.entries != current.epochs.entries:
        loading.write_epochs(log.disk, log.directory, current.epochs)
    log.epochs = current.epochs
