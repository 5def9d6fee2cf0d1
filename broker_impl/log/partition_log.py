"""The log of one partition: batches in the order in which they arrived, each with its offsets."""

import contextlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from broker_impl.errors import ApiError, ErrorCode, StorageError, WireError
from broker_impl.log import (
    aborted_index,
    append_failure,
    compaction,
    loading,
    producers,
    reading,
    segment_swap,
    validation,
)
from broker_impl.log.aborted_index import AbortedTransaction, Marker
from broker_impl.log.config import LogConfig
from broker_impl.log.disk import Disk
from broker_impl.log.epochs import LeaderEpochs
from broker_impl.log.indexes import NO_TIMESTAMP, TimestampAt
from broker_impl.log.producers import ProducerStates
from broker_impl.log.reading import Reading
from broker_impl.log.segment import (
    ABORTED_INDEX_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    Segment,
    file_name,
)
from broker_impl.log.snapshots import Snapshots
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record
from broker_impl.wire.types import Buffer, Epoch, Offset, TopicPartition

NO_LIMIT: Final = 2**63 - 1
_SETTLED_MS: Final = 35_000  # Linux has written back most of a closed segment by then


class Appended(NamedTuple):
    """The offsets of appended batches. Without any, `last_offset` is `base_offset` - 1."""

    base_offset: Offset
    last_offset: Offset
    """Inclusive."""
    log_append_time: int
    """Milliseconds; -1 if the producer's timestamps apply."""
    duplicate: bool = False
    """Were the batches in the log already? Then nothing was written."""


class TimestampOffset(NamedTuple):
    """A record that was found by its timestamp."""

    timestamp: int
    offset: Offset
    leader_epoch: Epoch


class PartitionLog:
    """One partition's log in one directory; `open` creates the object.

    A StorageError takes the log offline: it is not changed any more, because the content of the
    disk is unknown then (KAFKA-10778). An invalid request of a producer or a reader raises
    ApiError, and changes nothing.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        tp: TopicPartition,
        config: LogConfig,
        loaded: loading.Loaded,
        write_recovery_point: Callable[[], None],
        first_dirty: Offset = 0,
    ) -> None:
        self.topic_partition = tp
        self.config = config
        self.epochs: LeaderEpochs = loaded.epochs
        self.producers: ProducerStates = loaded.producers
        self.start_offset: Offset = loaded.start_offset
        """The first offset that may be read."""
        self.recovery_point: Offset = loaded.recovery_point
        """Everything below is synced."""
        self.end_offset: Offset = loaded.segments[-1].next_offset
        """The offset of the next record (LEO)."""
        self.first_dirty: Offset = compaction.dirty_after_cut(first_dirty, self.end_offset)
        """The first offset that no compaction pass has read."""
        self.rewrites = 0
        """How often a compacted copy has replaced segments."""
        self.offline: StorageError | None = None
        """The error since which the log must not be changed any more."""
        self.cuts: list[Offset] = [loaded.start_offset] if loaded.begins_anew else []
        """The offset of each truncation: what was read from there on before is no longer in the
        log."""
        self.directory = directory
        self._disk = disk
        self._segments = loaded.segments
        self._snapshots = Snapshots(disk, directory)
        self._write_recovery_point = write_recovery_point
        self._unsynced_since_ms: int | None = None
        self._deleted: list[tuple[int, str]] = []  # when to remove which path
        self.check()

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
        first_dirty: Offset = 0,
    ) -> "PartitionLog":
        """Open the log in a directory that exists; an empty directory is an empty log.

        clean: was it closed by a clean shutdown? If not, all above `recovery_point` is checked.
        first_dirty: the offset up to which it was compacted, as checkpointed. write_recovery_point:
        called when the checkpointed recovery point must be updated at once, because the log was
        truncated below it, or is about to be compacted up to it.
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
        return cls(disk, directory, tp, config, loaded, write_recovery_point, first_dirty)

    @property
    def size_bytes(self) -> int:
        """Bytes in all segments, without their indexes."""
        return sum(segment.size for segment in self._segments)

    @property
    def segment_offsets(self) -> list[Offset]:
        """The base offsets of the segments, in order."""
        return [segment.base_offset for segment in self._segments]

    @property
    def files(self) -> list[tuple[Offset, str, int]]:
        """Base offset, path and size in bytes of each segment's file of batches, in order."""
        return [
            (segment.base_offset, segment.file_path, segment.size) for segment in self._segments
        ]

    def check(self) -> None:
        """Check the invariants L1 and L2, and that the log ends with its last segment."""
        assert 0 <= self.start_offset <= self.end_offset, (
            "the start offset of the log is above its end offset"
        )
        assert 0 <= self.recovery_point <= self.end_offset, (
            "the recovery point is above the end of the log"
        )
        assert self._segments[-1].next_offset == self.end_offset, (
            "the log must end where its last segment ends"
        )
        assert self._segments[0].base_offset <= self.start_offset, (
            "the log starts before its first segment"
        )

    # -- appending -------------------------------------------------------------------------------

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
        self._refuse_offline()
        assert leader_epoch >= self.epochs.latest, (
            f"a leader of epoch {leader_epoch} has been replaced"
        )
        config = self.config
        sent = validation.producer_batch(records, config, now_ms, by_coordinator=by_coordinator)
        if config.is_compacted and not by_coordinator and not validation.has_keys(records):
            raise ApiError(ErrorCode.INVALID_RECORD, "a record of a compacted topic has no key")
        stamped = config.timestamp_type == batch.LOG_APPEND_TIME
        if sent.producer_id >= 0:
            entry = self.producers.entries.get(sent.producer_id)
            repeated = None
            if by_coordinator:
                producers.check_epoch(entry, sent)
            else:
                repeated = producers.check_sequence(entry, sent)
            if repeated is not None:
                time = repeated.timestamp_ms if stamped else -1
                return Appended(repeated.first_offset, repeated.last_offset, time, duplicate=True)
            if entry is not None:
                producers.check_transactional(entry, sent)
            if aborted_index.is_verified(config.verify_transactions):
                self.producers.check_verified(sent, guard)
        base_offset = self.end_offset
        head = bytearray(records[: batch.HEADER_BYTES])
        rest = memoryview(records)[batch.HEADER_BYTES :]
        batch.patch(head, 0, base_offset, leader_epoch)
        if stamped:
            batch.stamp(head, rest, now_ms)
        header = batch.parse_header(head)

        def write() -> None:
            self._append([head, rest], [(0, header)], now_ms)

        def remember() -> None:
            if header.producer_id >= 0:
                self.producers.fold(header, now_ms)

        producers.remembered(write, remember)
        return Appended(base_offset, header.last_offset, now_ms if stamped else -1)

    def append_marker(self, marker: Marker, *, leader_epoch: Epoch, now_ms: int) -> Appended:
        """Append the marker of a transaction, as its coordinator decided it.

        ApiError INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED: nothing is appended
        (`transactions.marker_refusal`). StorageError: the log is offline.
        """
        self._refuse_offline()
        entry = self.producers.entries.get(marker.producer_id)
        if entry is not None:
            error = aborted_index.marker_refusal(
                marker.producer_epoch,
                entry.epoch,
                marker.coordinator_epoch,
                entry.coordinator_epoch,
            )
            if error is not ErrorCode.NONE:
                raise ApiError(
                    error,
                    f"{marker}; known are producer epoch {entry.epoch} and coordinator epoch "
                    f"{entry.coordinator_epoch}",
                )
        base_offset = self.end_offset
        data = bytearray(aborted_index.encode_marker(marker, now_ms))
        batch.patch(data, 0, base_offset, leader_epoch)
        header = batch.parse_header(data)
        self._append([data], [(0, header)], now_ms)
        self._fold(header, data, now_ms)
        return Appended(base_offset, header.last_offset, -1)

    def append_as_follower(self, records: Buffer, *, now_ms: int) -> Appended:
        """Append batches with the leader's offsets; a torn last batch is left out.

        ApiError, and nothing is appended: CORRUPT_MESSAGE, or INVALID_RECORD if the offsets do not
        continue this log (KAFKA-3047). Sequence numbers are not checked: the leader has done so
        (KAFKA-6003).
        """
        self._refuse_offline()
        placed = validation.replicated_batches(records)
        if not placed:
            return Appended(self.end_offset, self.end_offset - 1, -1)
        first, (last_at, last) = placed[0][1], placed[-1]
        starts_within = may_start_within(self.start_offset, self.end_offset, first)
        validation.continuous(placed, first.base_offset if starts_within else self.end_offset)
        if starts_within:
            start_offset = self.start_offset
            self.truncate_fully_and_start_at(first.base_offset)
            self.start_offset = start_offset
        whole = memoryview(records)[: last_at + last.size]

        def write() -> None:
            self._append([whole], placed, now_ms)

        def remember() -> None:
            for at, header in placed:
                if header.producer_id >= 0:
                    self._fold(header, whole[at : at + header.size], now_ms)

        producers.copied(self.producers, [header for _, header in placed], write, remember)
        return Appended(first.base_offset, last.last_offset, -1)

    def _fold(self, header: BatchHeader, data: Buffer, now_ms: int) -> None:
        """Add a producer's batch, now in the active segment, to the producer state."""
        if not header.is_control:
            self.producers.fold(header, now_ms)
            return
        with self._changing():
            aborted = self.producers.fold(header, now_ms, loading.marker_in(data))
            if aborted is not None:
                self._segments[-1].aborted.append(aborted)

    def _append(
        self, buffers: list[Buffer], placed: list[tuple[int, BatchHeader]], now_ms: int
    ) -> None:
        """Write valid batches; the caller updates the producer state."""
        last = placed[-1][1]
        try:
            if last.partition_leader_epoch > self.epochs.latest:
                self._assign_epochs(placed)
            size = placed[-1][0] + last.size
            newest = max(header.max_timestamp for _, header in placed)
            active = self._segments[-1]
            if active.must_roll(size, last.last_offset, newest, now_ms, self.config):
                active = self._roll(now_ms)
            active.append(buffers, placed, now_ms)
            self.end_offset = last.next_offset
            if self._unsynced_since_ms is None:
                self._unsynced_since_ms = now_ms
            if self.end_offset - self.recovery_point >= self.config.flush_messages:
                self._flush()
        except StorageError as error:
            told = append_failure.of_append(error)
            if isinstance(told, StorageError):
                self.offline = told
            raise told from None

    def _assign_epochs(self, placed: list[tuple[int, BatchHeader]]) -> None:
        """Store new epochs before their batches: an epoch without records does no harm."""
        for _, header in placed:
            if header.partition_leader_epoch > self.epochs.latest:
                self.epochs.assign(header.partition_leader_epoch, header.base_offset)
        loading.write_epochs(self._disk, self.directory, self.epochs)

    def _roll(self, now_ms: int) -> Segment:
        """Close the active segment, which is not empty (KAFKA-6388), and create the next.

        Indexes below the recovery point are trusted, so they are synced if the batches are.
        """
        self._segments[-1].finish()
        if self.recovery_point == self.end_offset:
            self._segments[-1].fsync_indexes()
        self._snapshots.take(self.end_offset, self.producers)
        segment = loading.new_segment(
            self._disk, self.directory, self.end_offset, self.config, now_ms
        )
        self._segments.append(segment)
        return segment

    # -- reading ---------------------------------------------------------------------------------

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
            self._segments,
            self._segment_number(offset),
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
        behind = self._segments[self._segment_number(first) :]
        return aborted_index.overlapping((segment.aborted for segment in behind), first, end)

    def offset_for_timestamp(
        self, timestamp_ms: int, *, limit: Offset = NO_LIMIT
    ) -> TimestampOffset | None:
        """The first record below `limit` whose timestamp is `timestamp_ms` or later."""
        for segment in self._segments:
            if segment.base_offset >= limit:
                break
            if segment.largest.timestamp_ms < timestamp_ms:
                continue
            older = segment.times.last_below(timestamp_ms)
            position = 0 if older is None else segment.offsets.position_for(older)
            for at, header in segment.headers(position):
                if header.base_offset >= limit:
                    break
                if header.max_timestamp >= timestamp_ms and header.last_offset >= self.start_offset:
                    for record in self._records(segment, at, header, limit):
                        if record.timestamp_ms >= timestamp_ms:
                            return _found(record, header)
        return None

    def offset_of_max_timestamp(self, *, limit: Offset = NO_LIMIT) -> TimestampOffset | None:
        """The first record below `limit` that has the largest timestamp."""
        largest = NO_TIMESTAMP
        for segment in self._segments:
            if segment.base_offset >= limit:
                break
            candidate = self._largest_in(segment, limit)
            if candidate.timestamp_ms > largest.timestamp_ms:
                largest = candidate
        if largest == NO_TIMESTAMP:
            return None
        segment = self._segments[self._segment_number(largest.offset)]
        position = segment.locate(largest.offset)
        _, header = next(segment.headers(position))
        readable = self._records(segment, position, header, limit)
        newest = max(readable, key=lambda record: record.timestamp_ms, default=None)
        return None if newest is None else _found(newest, header)

    def _largest_in(self, segment: Segment, limit: Offset) -> TimestampAt:
        """The segment's largest timestamp among readable batches, by their headers."""
        if segment.next_offset <= limit and segment.base_offset >= self.start_offset:
            return segment.largest
        largest = NO_TIMESTAMP
        for at, header in segment.headers(segment.locate(self.start_offset)):
            if header.base_offset >= limit:
                break
            newest = header.max_timestamp
            if header.base_offset < self.start_offset or header.last_offset >= limit:
                readable = self._records(segment, at, header, limit)
                newest = max((record.timestamp_ms for record in readable), default=-1)
            if newest > largest.timestamp_ms:
                largest = TimestampAt(newest, header.last_offset)
        return largest

    def _records(
        self, segment: Segment, position: int, header: BatchHeader, limit: Offset
    ) -> list[Record]:
        """The readable records of one batch."""
        try:
            records = batch.records(segment.file.pread(position, header.size))
        except WireError as error:
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
        return [record for record in records if self.start_offset <= record.offset < limit]

    def _segment_number(self, offset: Offset) -> int:
        return bisect_right(self._segments, offset, key=_base_offset) - 1

    # -- truncation and epochs -------------------------------------------------------------------

    def assign_epoch(self, epoch: Epoch, start: Offset) -> None:
        """Record that the leader of `epoch` starts to write at `start`. Durable on return."""
        with self._changing():
            if self.epochs.assign(epoch, start):
                loading.write_epochs(self._disk, self.directory, self.epochs)

    def truncate_to(self, offset: Offset) -> None:
        """Remove the batch that holds `offset` and all after it. Durable on return.

        Epochs that start there or later are dropped, even if the log ends before (KAFKA-10706). The
        segments are truncated first: loading the log drops an epoch too many, but does not restore
        a missing one.
        """
        if offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        with self._changing():
            cut = offset
            if offset < self.end_offset:
                while self._segments[-1].base_offset > offset:
                    loading.remove_segment(self._disk, self.directory, self._segments.pop())
                self._segments[-1].truncate(offset)
                self._end_moved_back()
                self.cuts.append(self.end_offset)
                cut = self.end_offset
                self._snapshots.remove_above(cut)
                former = self.producers
                self.producers = loading.replay(
                    self._snapshots, self._segments, self._segments[-1].written_ms
                )
                self.producers.follow(former)
            if self.epochs.truncate_from_end(cut):
                loading.write_epochs(self._disk, self.directory, self.epochs)

    def truncate_fully_and_start_at(self, offset: Offset) -> None:
        """Remove all segments; the log is empty then, and its next record gets `offset`."""
        with self._changing():
            self.cuts.append(offset if self.start_offset < self.end_offset else self.end_offset)
            now_ms = self._segments[-1].written_ms
            while self._segments:
                loading.remove_segment(self._disk, self.directory, self._segments.pop())
            self._snapshots.remove_above(-1)
            self._segments = [
                loading.new_segment(self._disk, self.directory, offset, self.config, now_ms)
            ]
            self.producers.clear()
            if self.epochs.clear():
                loading.write_epochs(self._disk, self.directory, self.epochs)
            self.start_offset = offset
            self._end_moved_back()

    def advance_start(self, offset: Offset) -> None:
        """Hide the records below `offset`; `retain` deletes segments that hold no others.

        ApiError OFFSET_OUT_OF_RANGE: after the log's end. An offset below the start changes
        nothing.
        """
        if offset > self.end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"the log of {self.topic_partition} ends at {self.end_offset}, before {offset}",
            )
        if offset > self.start_offset:
            with self._changing():
                self.start_offset = offset
                if self.epochs.truncate_from_start(offset):
                    loading.write_epochs(self._disk, self.directory, self.epochs)

    def _end_moved_back(self) -> None:
        self.end_offset = self._segments[-1].next_offset
        self.start_offset = min(self.start_offset, self.end_offset)
        self.first_dirty = compaction.dirty_after_cut(self.first_dirty, self.end_offset)
        if self.recovery_point > self.end_offset:
            self.recovery_point = self.end_offset
            self._write_recovery_point()

    # -- maintenance -----------------------------------------------------------------------------

    def due_flush(self, now_ms: int) -> bool:
        """Has a record waited for `flush.ms` to be synced?"""
        since = self._unsynced_since_ms
        return since is not None and now_ms - since >= self.config.flush_ms

    def flush(self) -> None:
        """Sync everything; the recovery point is the log's end then."""
        with self._changing():
            self._flush()

    def flush_settled(self, now_ms: int) -> None:
        """Sync the oldest closed segment that is not synced, once that has become cheap."""
        segment = self._segments[self._first_unsynced]
        if segment is not self._segments[-1] and now_ms - segment.written_ms >= _SETTLED_MS:
            self._flush_closed(segment)

    def flush_closed(self, end: Offset) -> Iterator[None]:
        """Sync the closed segments up to `end`, with a pause after each, and checkpoint that.

        A pass of the cleaner does so first: a crash loses nothing below the checkpointed recovery
        point, so recovery may take a gap between two segments there for the result of a pass.
        """
        while self.recovery_point < end:
            self._flush_closed(self._segments[self._first_unsynced])
            yield
        with self._changing():
            self._write_recovery_point()

    def _flush_closed(self, segment: Segment) -> None:
        with self._changing():
            segment.fsync()
            segment.fsync_indexes()
            self.recovery_point = segment.next_offset

    def roll_if_due(self, now_ms: int) -> bool:
        """Create a new segment if this broker opened the active one over `segment.ms` ago."""
        active = self._segments[-1]
        if not active.size or now_ms - active.begun_ms <= self.config.segment_ms:
            return False
        with self._changing():
            self._roll(now_ms)
        return True

    def retain(self, now_ms: int, high_watermark: Offset) -> list[str]:
        """Delete segments that are too old, exceed `retention.bytes`, or are before the start.

        Only from the front, and never one with offsets at or above the high watermark. The active
        segment is deleted only if all its records are too old; a new one is created first. Returns
        the names of the deleted segments.
        """
        surplus = self._surplus_bytes()
        names: list[str] = []
        while True:
            segment = self._segments[0]
            is_active = segment is self._segments[-1]
            if is_active and not segment.size:
                return names
            if not is_committed(segment.next_offset, high_watermark):
                return names
            if not self._is_expired(segment, now_ms) and (
                is_active
                or not (segment.next_offset <= self.start_offset or 0 < surplus >= segment.size)
            ):
                return names
            with self._changing():
                if is_active:
                    self._roll(now_ms)
                surplus -= segment.size
                names.append(self._delete_first(now_ms))

    def remove_deleted(self, now_ms: int) -> None:
        """Remove the files of deleted segments whose delay has passed."""
        with self._changing():
            while self._deleted and self._deleted[0][0] <= now_ms:
                _, path = self._deleted.pop(0)
                if self._disk.exists(path):
                    self._disk.remove(path)

    def expire_producers(self, now_ms: int) -> None:
        """Remove producers that were silent for `producer.id.expiration.ms`."""
        self.producers.expire(now_ms, self.config.producer_expiration_ms)

    @property
    def closed_segments(self) -> list[Segment]:
        """All segments except the active one, in order; they are never appended to."""
        return self._segments[:-1]

    @property
    def all_aborted(self) -> list[AbortedTransaction]:
        """The aborted transactions with a marker in the log, in the order of the markers."""
        return [each for segment in self._segments for each in segment.aborted.entries]

    def begin_copy(self, segment: Segment, now_ms: int) -> Segment:
        """Create an empty segment to copy into; readers see it once it replaces others.

        segment: the first of the closed segments that the copy is for (`replace`). Files of that
        name that an earlier pass has left are overwritten.
        """
        copy = Segment(
            self._disk,
            self.directory,
            segment.base_offset,
            self.config,
            now_ms,
            suffix=segment_swap.COPY_SUFFIX,
        )
        copy.file.truncate(0)
        copy.forget()
        copy.aborted.begin()
        return copy

    def replace(self, old: Sequence[Segment], copy: Segment) -> None:
        """Replace adjacent closed segments by their copy. Durable on return.

        Offsets stay the same; the copy ends where the segments did, though its last batch may end
        before. The caller closes the copy. All segments are below the checkpointed recovery point
        (`flush_closed`).
        """
        base, end = old[0].base_offset, old[-1].next_offset
        assert copy.next_offset <= end, (
            f"the compacted segment ends at {copy.next_offset}, after the segments that it "
            f"replaces: {end}"
        )
        assert end <= self.recovery_point, (
            f"the compacted segment replaces segments up to {end}, but only those up to "
            f"{self.recovery_point} are synced"
        )
        first = self._segments.index(old[0])
        assert self._segments[first : first + len(old)] == list(old), (
            "the replaced segments must be consecutive"
        )
        with self._changing():
            copy.finish()
            copy.fsync()
            copy.fsync_indexes()
            for segment in old:
                segment.close()
            segment_swap.swap(self._disk, self.directory, base, end)
            renewed = Segment(self._disk, self.directory, base, self.config, old[-1].written_ms)
            renewed.load(end)
            self._segments[first : first + len(old)] = [renewed]
            self.rewrites += 1

    def drop_copy(self, copy: Segment) -> None:
        """Close a copy, and remove its files unless it has replaced segments."""
        copy.close()
        if self.offline is None:
            with self._changing():
                segment_swap.discard(self._disk, self.directory, copy.base_offset)

    def compacted_to(self, offset: Offset) -> None:
        """Record that a pass has read all keys below, and removed the records they replace."""
        self.first_dirty = offset

    def _surplus_bytes(self) -> int:
        if self.config.retention_bytes < 0 or not self._deletes_old:
            return 0
        return self.size_bytes - self.config.retention_bytes

    def _is_expired(self, segment: Segment, now_ms: int) -> bool:
        if self.config.retention_ms < 0 or not self._deletes_old:
            return False
        newest = segment.largest.timestamp_ms
        return now_ms - (newest if newest >= 0 else segment.written_ms) > self.config.retention_ms

    @property
    def _deletes_old(self) -> bool:
        return "delete" in self.config.cleanup_policy

    def _delete_first(self, now_ms: int) -> str:
        """Rename the first segment's files: it is gone for readers, and later from the disk."""
        segment = self._segments.pop(0)
        segment.close()
        for suffix in (ABORTED_INDEX_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, LOG_SUFFIX):
            path = f"{self.directory}/{file_name(segment.base_offset, suffix)}"
            if suffix == ABORTED_INDEX_SUFFIX and not self._disk.exists(path):
                continue  # nothing was aborted
            self._disk.rename(path, path + loading.DELETED_SUFFIX)
            due = now_ms + self.config.delete_delay_ms
            self._deleted.append((due, path + loading.DELETED_SUFFIX))
        self._disk.fsync_dir(self.directory)
        self._snapshots.remove_below(self._segments[0].base_offset)
        if self.start_offset < self._segments[0].base_offset:
            self.start_offset = self._segments[0].base_offset
            if self.epochs.truncate_from_start(self.start_offset):
                loading.write_epochs(self._disk, self.directory, self.epochs)
        self.recovery_point = max(self.recovery_point, segment.next_offset)
        return file_name(segment.base_offset, LOG_SUFFIX)

    # -- closing ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Sync everything and take a snapshot, so that the next `open` may be a clean one."""
        with self._changing():
            self._segments[-1].finish()
            self._flush()
            self._segments[-1].fsync_indexes()
            self._snapshots.take(self.end_offset, self.producers)
        self.abandon()

    def abandon(self) -> None:
        """Close all files without a sync: the log is about to be deleted, or is offline."""
        for segment in self._segments:
            with contextlib.suppress(StorageError):
                segment.close()

    def delete(self) -> None:
        """Remove the log and its directory."""
        self.abandon()
        self._disk.remove_dir(self.directory)

    def _flush(self) -> None:
        for segment in self._segments[self._first_unsynced :]:
            segment.fsync()
            if segment is not self._segments[-1]:
                segment.fsync_indexes()
        self.recovery_point = self.end_offset
        self._unsynced_since_ms = None

    @property
    def _first_unsynced(self) -> int:
        return max(0, self._segment_number(self.recovery_point))

    def _refuse_offline(self) -> None:
        if self.offline is not None:
            raise StorageError(f"{self.topic_partition} is offline: {self.offline}")

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Reject changes of an offline log; a failed change takes the log offline."""
        self._refuse_offline()
        try:
            yield
        except StorageError as error:
            self.offline = error
            raise
        self.check()


def may_start_within(start: Offset, end: Offset, header: BatchHeader) -> bool:
    """May an empty log begin in the middle of this batch, as its leader's log does?

    It then appends the whole batch: a start offset applies to records, but batches are copied whole
    (KAFKA-6975).
    """
    return start == end and header.base_offset < end <= header.last_offset


def is_committed(next_offset: Offset, high_watermark: Offset) -> bool:
    """Is everything before `next_offset` committed, so that it may be deleted?

    Followers may still have to fetch records that are not committed (KAFKA-5634).
    """
    return next_offset <= high_watermark


def _base_offset(segment: Segment) -> Offset:
    return segment.base_offset


def _found(record: Record, header: BatchHeader) -> TimestampOffset:
    return TimestampOffset(record.timestamp_ms, record.offset, header.partition_leader_epoch)
