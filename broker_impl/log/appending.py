"""Append batches to a log: a producer's, a coordinator's marker, or a leader's copies."""

from collections.abc import Iterator

from broker_impl.errors import ApiError, ErrorCode, StorageError
from broker_impl.log import (
    aborted_index,
    append_failure,
    flushing,
    loading,
    producers,
    truncation,
    validation,
)
from broker_impl.log.aborted_index import Marker
from broker_impl.log.log_state import LogState
from broker_impl.log.producers import BatchMetadata
from broker_impl.log.results import Appended
from broker_impl.log.segment import RELATIVE_OFFSET_MAX, Segment
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader
from broker_impl.wire.types import Buffer, Epoch, Offset


def append_as_leader(
    log: LogState,
    records: Buffer,
    *,
    leader_epoch: Epoch,
    now_ms: int,
    guard: int | None = None,
    by_coordinator: bool = False,
) -> Appended:
    """Append a producer's batch at the next offsets; `records` itself is not changed."""
    log.refuse_offline()
    assert leader_epoch >= log.epochs.latest, f"a leader of epoch {leader_epoch} has been replaced"
    config = log.config
    sent = validation.producer_batch(records, config, now_ms, by_coordinator=by_coordinator)
    if not by_coordinator:
        validation.each_record(records, sent, config, now_ms)
    stamped = config.timestamp_type == batch.LOG_APPEND_TIME
    if sent.producer_id >= 0:
        repeated = _check_producer(log, sent, guard, by_coordinator=by_coordinator)
        if repeated is not None:
            time = repeated.timestamp_ms if stamped else -1
            return Appended(repeated.first_offset, repeated.last_offset, time, duplicate=True)
    codec = validation.codec(sent, config)
    if codec != sent.compression:
        records, sent = validation.recompressed(records, sent, codec, config)
    head = bytearray(records[: batch.HEADER_BYTES])
    rest = memoryview(records)[batch.HEADER_BYTES :]
    header = batch.patch(head, sent, log.end_offset, leader_epoch)
    if stamped:
        header = batch.stamp(head, rest, now_ms)
    elif validation.lacks_max_timestamp(sent):
        header = batch.set_max_timestamp(head, rest, validation.max_timestamp(records))

    def write() -> None:
        _write(log, [head, rest], [(0, header)], now_ms)

    def remember() -> None:
        if header.producer_id >= 0:
            log.producers.fold(header, now_ms)

    producers.remembered(write, remember)
    return Appended(header.base_offset, header.last_offset, now_ms if stamped else -1)


def _check_producer(
    log: LogState, sent: BatchHeader, guard: int | None, *, by_coordinator: bool
) -> BatchMetadata | None:
    """Check a batch's epoch, sequence and transaction; return what the log has of a duplicate."""
    entry = log.producers.entries.get(sent.producer_id)
    if by_coordinator:
        producers.check_epoch(entry, sent)
    else:
        repeated = producers.check_sequence(entry, sent)
        if repeated is not None:
            return repeated
    if entry is not None:
        producers.check_transactional(entry, sent)
    if aborted_index.is_verified(log.config.verify_transactions):
        log.producers.check_verified(sent, guard)
    return None


def append_marker(log: LogState, marker: Marker, *, leader_epoch: Epoch, now_ms: int) -> Appended:
    """Append the marker of a transaction, as its coordinator decided it."""
    log.refuse_offline()
    _check_marker(log, marker)
    data = bytearray(aborted_index.encode_marker(marker, now_ms))
    header = batch.patch(data, batch.parse_header(data), log.end_offset, leader_epoch)
    _write(log, [data], [(0, header)], now_ms)
    _fold(log, header, data, now_ms)
    return Appended(header.base_offset, header.last_offset, -1)


def _check_marker(log: LogState, marker: Marker) -> None:
    entry = log.producers.entries.get(marker.producer_id)
    if entry is None:
        return
    error = aborted_index.marker_refusal(
        marker.producer_epoch, entry.epoch, marker.coordinator_epoch, entry.coordinator_epoch
    )
    if error is not ErrorCode.NONE:
        raise ApiError(
            error,
            f"{marker}; known are producer epoch {entry.epoch} and coordinator epoch "
            f"{entry.coordinator_epoch}",
        )


def append_as_follower(
    log: LogState, records: Buffer, *, now_ms: int, leader_start: Offset = 0
) -> Appended:
    """Append batches with the leader's offsets; a torn last batch is left out.

    leader_start: where the leader's log starts. A log that ends there has only deleted records,
    and counts as empty: the first batch may begin below its end.
    """
    log.refuse_offline()
    placed = validation.replicated_batches(records)
    if not placed:
        return Appended(log.end_offset, log.end_offset - 1, -1)
    first, (last_at, last) = placed[0][1], placed[-1]
    start_offset = log.end_offset if leader_start >= log.end_offset else log.start_offset
    starts_within = may_start_within(start_offset, log.end_offset, first)
    validation.continuous(placed, first.base_offset if starts_within else log.end_offset)
    if starts_within:
        truncation.truncate_fully_and_start_at(log, first.base_offset)
        log.start_offset = start_offset
    whole = memoryview(records)[: last_at + last.size]
    for part in within_reach(placed):
        begin = part[0][0]
        moved = [(at - begin, header) for at, header in part] if begin else part
        _append_copies(log, whole[begin : part[-1][0] + part[-1][1].size], moved, now_ms)
    return Appended(first.base_offset, last.last_offset, -1)


def _append_copies(
    log: LogState, copies: memoryview, placed: list[tuple[int, BatchHeader]], now_ms: int
) -> None:
    """Append whole batches of a leader that fit into one segment."""

    def write() -> None:
        _write(log, [copies], placed, now_ms)

    def remember() -> None:
        for at, header in placed:
            if header.producer_id >= 0:
                _fold(log, header, copies[at : at + header.size], now_ms)

    producers.copied(log.producers, [header for _, header in placed], write, remember)


def _fold(log: LogState, header: BatchHeader, data: Buffer, now_ms: int) -> None:
    """Add a producer's batch, now in the active segment, to the producer state."""
    if not header.is_control:
        log.producers.fold(header, now_ms)
        return
    with log.changing():
        aborted = log.producers.fold(header, now_ms, loading.marker_in(data))
        if aborted is not None:
            log.segments[-1].aborted.append(aborted)


def _write(
    log: LogState, buffers: list[Buffer], placed: list[tuple[int, BatchHeader]], now_ms: int
) -> None:
    """Write valid batches; the caller updates the producer state."""
    last = placed[-1][1]
    try:
        if last.partition_leader_epoch > log.epochs.latest:
            _assign_epochs(log, placed)
        _active_segment(log, placed, now_ms).append(buffers, placed, now_ms)
        log.end_offset = last.next_offset
        if log.unsynced_since_ms is None:
            log.unsynced_since_ms = now_ms
        if log.end_offset - log.recovery_point >= log.config.flush_messages:
            flushing.flush_all(log)
    except StorageError as error:
        failure = append_failure.of_append(error)
        if isinstance(failure, StorageError):
            log.offline = failure
        raise failure from None


def _active_segment(log: LogState, placed: list[tuple[int, BatchHeader]], now_ms: int) -> Segment:
    """The segment to append these batches to: a new one if they do not fit."""
    last_at, last = placed[-1]
    if last.last_offset - log.end_offset > RELATIVE_OFFSET_MAX:
        return _roll_behind_gap(log, placed[0][1].base_offset, now_ms)
    newest = max(header.max_timestamp for _, header in placed)
    active = log.segments[-1]
    if active.must_roll(last_at + last.size, last.last_offset, newest, now_ms, log.config):
        return roll(log, now_ms)
    return active


def _assign_epochs(log: LogState, placed: list[tuple[int, BatchHeader]]) -> None:
    """Store new epochs before their batches: an epoch without records does no harm."""
    for _, header in placed:
        if header.partition_leader_epoch > log.epochs.latest:
            log.epochs.assign(header.partition_leader_epoch, header.base_offset)
    loading.write_epochs(log.disk, log.directory, log.epochs)


def roll(log: LogState, now_ms: int) -> Segment:
    """Close the active segment, which is not empty (KAFKA-6388), and create the next.

    Indexes below the recovery point are trusted, so they are synced if the batches are.
    """
    log.segments[-1].finish()
    if log.recovery_point == log.end_offset:
        log.segments[-1].fsync_indexes()
    log.snapshots.take(log.end_offset, log.producers)
    segment = loading.new_segment(log.disk, log.directory, log.end_offset, log.config, now_ms)
    log.segments.append(segment)
    return segment


def _roll_behind_gap(log: LogState, offset: Offset, now_ms: int) -> Segment:
    """Create a segment at ``offset``, which no segment that begins at the log's end could reach.

    Compaction leaves gaps of any width. As in what is compacted, all before the gap is synced, so
    that a start does not take it for a lost end (`loading.may_end_in_a_gap`).
    """
    active = log.segments[-1]
    active.finish()
    flushing.flush_all(log)
    active.fsync_indexes()
    active.next_offset = log.end_offset = log.recovery_point = offset
    log.write_recovery_point()
    log.snapshots.take(offset, log.producers)
    log.segments.append(loading.new_segment(log.disk, log.directory, offset, log.config, now_ms))
    return log.segments[-1]


def within_reach(
    placed: list[tuple[int, BatchHeader]],
) -> Iterator[list[tuple[int, BatchHeader]]]:
    """Divide batches with their positions into runs that one segment can hold (KAFKA-5413)."""
    begin, first = 0, placed[0][1].base_offset
    for number, (_, header) in enumerate(placed):
        if header.last_offset - first > RELATIVE_OFFSET_MAX:
            yield placed[begin:number]
            begin, first = number, header.base_offset
    yield placed[begin:]


def may_start_within(start: Offset, end: Offset, header: BatchHeader) -> bool:
    """May an empty log begin in the middle of this batch, as its leader's log does?

    It then appends the whole batch: a start offset applies to records, but batches are copied whole
    (KAFKA-6975).
    """
    return start == end and header.base_offset < end <= header.last_offset
