"""The log of one partition: batches in the order in which they arrived, each with its offsets."""

from collections.abc import Callable, Iterator, Sequence

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.log import (
    aborted_index,
    appending,
    flushing,
    loading,
    reading,
    retention,
    rewriting,
    timestamps,
    topic_identity,
    truncation,
)
from broker_impl.log.aborted_index import AbortedTransaction, Marker
from broker_impl.log.config import LogConfig
from broker_impl.log.disk import Disk
from broker_impl.log.log_state import LogState
from broker_impl.log.reading import Reading
from broker_impl.log.results import NO_LIMIT, Appended, TimestampOffset
from broker_impl.log.segment import Segment
from broker_impl.wire.types import Buffer, Epoch, Offset, TopicPartition


class PartitionLog(LogState):
    """One partition's log in one directory; `open` creates the object.

    A StorageError takes the log offline: it is not changed any more, because the content of the
    disk is unknown then (KAFKA-10778). An invalid request of a producer or a reader raises
    ApiError, and changes nothing. The modules of this package do the work, each with one task.
    """

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        tp: TopicPartition,
        config: LogConfig,
        *,
        clean: bool,
        recovery_point: Offset,
        start_offset: Offset,
        now_ms: int,
        write_recovery_point: Callable[[], None] = lambda: None,
        write_lowered: Callable[[], None] = lambda: None,
        first_dirty: Offset = 0,
    ) -> "PartitionLog":
        """Open the log in a directory that exists; an empty directory is an empty log.

        clean: was it closed by a clean shutdown? If not, all above `recovery_point` is checked.
        first_dirty: the offset up to which it was compacted, as checkpointed. write_recovery_point:
        called when the checkpointed recovery point must be updated at once, because the log was
        truncated below it, or is about to be compacted up to it. write_lowered: called when the
        log starts at a lower offset, or is compacted to a lower one, because it was truncated.
        """
        loaded = loading.load(
            disk,
            directory,
            config,
            clean=clean,
            recovery_point=recovery_point,
            start_offset=start_offset,
            now_ms=now_ms,
        )
        log = cls(
            disk, directory, tp, config, loaded, write_recovery_point, write_lowered, first_dirty
        )
        is_empty = log.start_offset == log.end_offset
        log.topic_id = topic_identity.read(disk, directory, is_empty=is_empty)
        return log

    def append_as_leader(
        self,
        records: Buffer,
        *,
        leader_epoch: Epoch,
        now_ms: int,
        guard: int | None = None,
        by_coordinator: bool = False,
    ) -> Appended:
        """Append a producer's batch at the next offsets; `records` itself is not changed.

        guard: what `producers.guard` returned before the batch's transaction was verified.
        by_coordinator: in the producer's name, and without sequence numbers.

        In a compacted log each record must have a key (KAFKA-1755).

        ApiError, and nothing is appended: CORRUPT_MESSAGE, INVALID_RECORD, MESSAGE_TOO_LARGE,
        INVALID_TIMESTAMP, UNSUPPORTED_… (`validation`), INVALID_PRODUCER_EPOCH,
        OUT_OF_ORDER_SEQUENCE_NUMBER (`producers.check_sequence`), INVALID_TXN_STATE (a transaction
        that was not verified, or a batch outside of one). StorageError: the log is offline.
        """
        return appending.append_as_leader(
            self,
            records,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            guard=guard,
            by_coordinator=by_coordinator,
        )

    def append_marker(self, marker: Marker, *, leader_epoch: Epoch, now_ms: int) -> Appended:
        """Append the marker of a transaction, as its coordinator decided it.

        ApiError INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED: nothing is appended
        (`transactions.marker_refusal`). StorageError: the log is offline.
        """
        return appending.append_marker(self, marker, leader_epoch=leader_epoch, now_ms=now_ms)

    def append_as_follower(
        self, records: Buffer, *, now_ms: int, leader_start: Offset = 0
    ) -> Appended:
        """Append batches with the leader's offsets; a torn last batch is left out.

        leader_start: where the leader's log starts.

        ApiError, and nothing is appended: CORRUPT_MESSAGE, or INVALID_RECORD if the offsets do not
        continue this log (KAFKA-3047). Sequence numbers are not checked: the leader has done so
        (KAFKA-6003).
        """
        return appending.append_as_follower(self, records, now_ms=now_ms, leader_start=leader_start)

    def read(
        self, offset: Offset, *, bytes_max: int, limit: Offset, at_least_one: bool = True
    ) -> list[memoryview]:
        """Return the batches that `read_from` returns."""
        return self.read_from(
            offset, bytes_max=bytes_max, limit=limit, at_least_one=at_least_one
        ).records

    def read_from(
        self,
        offset: Offset,
        *,
        bytes_max: int,
        limit: Offset,
        at_least_one: bool = True,
        skip_empty: bool = False,
    ) -> Reading:
        """Read whole batches from the one that holds `offset` on, or from the next (`reading`).

        All of them are below `limit`. They have at most `bytes_max` bytes; with `at_least_one` a
        larger batch is returned alone (KIP-74). A read ends with the segment in which it began.
        skip_empty: do not return batches without records alone, as long as others follow. ApiError
        OFFSET_OUT_OF_RANGE: before the log's start or after its end.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition}: offset {offset} is not in "
                f"{self.start_offset}..{self.end_offset}",
            )
        if offset >= min(limit, self.end_offset):
            return reading.NOTHING
        return reading.read(
            self.segments,
            self.segment_number(offset),
            offset,
            limit=limit,
            bytes_max=bytes_max,
            at_least_one=at_least_one,
            skip_empty=skip_empty,
        )

    def aborted_transactions(
        self, first: Offset, records: Sequence[memoryview]
    ) -> list[AbortedTransaction]:
        """The aborted transactions that a read_committed reader must skip in what it read.

        first: the offset from which on it read these records.
        """
        end = aborted_index.end_of(records)
        if end is None:
            return []
        behind = self.segments[self.segment_number(first) :]
        return aborted_index.overlapping((segment.aborted for segment in behind), first, end)

    def offset_for_timestamp(
        self, timestamp_ms: int, *, limit: Offset = NO_LIMIT
    ) -> TimestampOffset | None:
        """The first record below `limit` whose timestamp is `timestamp_ms` or later."""
        return timestamps.offset_for_timestamp(self, timestamp_ms, limit=limit)

    def offset_of_max_timestamp(self, *, limit: Offset = NO_LIMIT) -> TimestampOffset | None:
        """The first record below `limit` that has the largest timestamp."""
        return timestamps.offset_of_max_timestamp(self, limit=limit)

    def assign_epoch(self, epoch: Epoch, start: Offset) -> None:
        """Record that the leader of `epoch` starts to write at `start`. Durable on return."""
        truncation.assign_epoch(self, epoch, start)

    def truncate_to(self, offset: Offset) -> None:
        """Remove the batch that holds `offset` and all after it. Durable on return.

        Epochs that start there or later are dropped, even if the log ends before (KAFKA-10706). The
        segments are truncated first: loading the log drops an epoch too many, but does not restore
        a missing one.
        """
        truncation.truncate_to(self, offset)

    def truncate_fully_and_start_at(self, offset: Offset) -> None:
        """Remove all segments; the log is empty then, and its next record gets `offset`."""
        truncation.truncate_fully_and_start_at(self, offset)

    def advance_start(self, offset: Offset) -> None:
        """Hide the records below `offset`; `retain` deletes segments that hold no others.

        ApiError OFFSET_OUT_OF_RANGE: after the log's end. An offset below the start changes
        nothing.
        """
        truncation.advance_start(self, offset)

    def due_flush(self, now_ms: int) -> bool:
        """Has a record waited for `flush.ms` to be synced?"""
        return flushing.due_flush(self, now_ms)

    def flush(self) -> None:
        """Sync everything; the recovery point is the log's end then."""
        flushing.flush(self)

    def flush_settled(self, now_ms: int) -> None:
        """Sync the oldest closed segment that is not synced, once that has become cheap."""
        flushing.flush_settled(self, now_ms)

    def flush_closed(self, end: Offset) -> Iterator[None]:
        """Sync the closed segments up to `end`, with a pause after each, and checkpoint that.

        A pass of the cleaner does so first: a crash loses nothing below the checkpointed recovery
        point, so recovery may take a gap between two segments there for the result of a pass.
        """
        return flushing.flush_closed(self, end)

    def roll_if_due(self, now_ms: int) -> bool:
        """Create a new segment if this broker opened the active one over `segment.ms` ago."""
        return retention.roll_if_due(self, now_ms)

    def retain(self, now_ms: int, high_watermark: Offset) -> list[str]:
        """Delete segments that are too old, exceed `retention.bytes`, or are before the start.

        Only from the front, and never one with offsets at or above the high watermark. The active
        segment is deleted only if all its records are too old; a new one is created first. Returns
        the names of the deleted segments.
        """
        return retention.retain(self, now_ms, high_watermark)

    def remove_deleted(self, now_ms: int) -> None:
        """Remove the files of deleted segments whose delay has passed."""
        retention.remove_deleted(self, now_ms)

    def expire_producers(self, now_ms: int) -> None:
        """Remove producers that were silent for `producer.id.expiration.ms`."""
        self.producers.expire(now_ms, self.config.producer_expiration_ms)

    def begin_copy(self, segment: Segment, now_ms: int) -> Segment:
        """Create an empty segment to copy into; readers see it once it replaces others.

        segment: the first of the closed segments that the copy is for (`replace`). Files of that
        name that an earlier pass has left are overwritten.
        """
        return rewriting.begin_copy(self, segment, now_ms)

    def replace(self, old: Sequence[Segment], copy: Segment) -> None:
        """Replace adjacent closed segments by their copy. Durable on return.

        Offsets stay the same; the copy ends where the segments did, though its last batch may end
        before. The caller closes the copy. All segments are below the checkpointed recovery point
        (`flush_closed`).
        """
        rewriting.replace(self, old, copy)

    def drop_copy(self, copy: Segment) -> None:
        """Close a copy, and remove its files unless it has replaced segments."""
        rewriting.drop_copy(self, copy)

    def compacted_to(self, offset: Offset) -> None:
        """Record that a pass has read all keys below, and removed the records they replace."""
        self.first_dirty = offset

    def close(self) -> None:
        """Sync everything and take a snapshot, so that the next `open` may be a clean one."""
        flushing.close(self)

    def delete(self) -> None:
        """Remove the log and its directory."""
        self.abandon()
        self.disk.remove_dir(self.directory)
