"""Transactions in a log: markers, open transactions, and aborted ones."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.log import aborted_index
from broker_impl.log.aborted_index import AbortedTransaction, Marker
from broker_impl.log.config import LogConfig
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record
from broker_impl.wire.types import TopicPartition

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100, delete_delay_ms=10)


def new_disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dir("t-0")
    disk.fsync_dir("")
    return disk


def opened(
    disk: MemoryDisk,
    config: LogConfig = SMALL,
    *,
    clean: bool = True,
    recovery_point: int = 0,
) -> PartitionLog:
    return PartitionLog.open(
        disk,
        "t-0",
        TopicPartition("t", 0),
        config,
        clean=clean,
        recovery_point=recovery_point,
        start_offset=0,
        now_ms=0,
    )


def send(log: PartitionLog, producer_id: int = 1, count: int = 1, *, epoch: int = 0) -> int:
    """Append the next records of a producer's transaction, and return their first offset."""
    entry = log.producers.entries.get(producer_id)
    known = entry.last_sequence if entry is not None and entry.epoch == epoch else -1
    data = batch.encode_batch(
        [Record(value=b"v")] * count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=known + 1,
        transactional=True,
    )
    guard = log.producers.guard(producer_id)
    return log.append_as_leader(data, leader_epoch=0, now_ms=0, guard=guard).base_offset


def end(
    log: PartitionLog,
    producer_id: int = 1,
    *,
    commit: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
) -> int:
    """Append a transaction marker, and return its offset."""
    marker = Marker(producer_id, epoch, commit, coordinator_epoch)
    return log.append_marker(marker, leader_epoch=0, now_ms=0).base_offset


def aborted(log: PartitionLog, first: int, limit: int) -> list[AbortedTransaction]:
    data = log.read(first, bytes_max=1 << 20, limit=limit)
    return log.aborted_transactions(first, data)


def batches(log: PartitionLog) -> Iterator[tuple[BatchHeader, bytes]]:
    offset = log.start_offset
    while data := log.read(offset, bytes_max=1 << 20, limit=log.end_offset):
        for at, header in batch.batches(data[0]):
            yield header, bytes(data[0][at : at + header.size])
            offset = header.next_offset


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_is_a_control_batch_in_kafkas_layout(is_commit: bool) -> None:
    """A marker is a transactional control batch of one record, without a sequence number.

    The record has the coordinator's epoch.
    """
    marker = Marker(7, 3, is_commit, 5)
    data = aborted_index.encode_marker(marker, 1000)
    header = batch.parse_header(data)
    assert (header.is_control, header.is_transactional, header.base_sequence) == (True, True, -1)
    (record,) = batch.records(data)
    assert record.key == bytes((0, 0, 0, is_commit))
    assert record.value == bytes((0, 0, 0, 0, 0, 5))
    assert aborted_index.decode_marker(data) == marker


def test_the_first_transaction_that_is_open_is_unstable() -> None:
    """T1: the earliest open transaction is unstable, even if later ones end first.

    Batches outside of transactions do not count.
    """
    log = opened(new_disk())
    log.append_as_leader(batch.encode_batch([Record()]), leader_epoch=0, now_ms=0)
    assert log.producers.first_unstable(1) is None
    assert [send(log, 1), send(log, 2), send(log, 1)] == [1, 2, 3]
    assert log.producers.first_unstable(4) == 1
    end(log, 2, commit=True)
    assert log.producers.first_unstable(5) == 1
    end(log, 1, commit=True)
    assert log.producers.first_unstable(6) is None


def test_a_marker_counts_once_it_is_committed() -> None:
    """T1: a transaction is open until its marker is below the high watermark."""
    log = opened(new_disk())
    send(log)
    marker = end(log, commit=False)
    assert log.producers.first_unstable(marker) == 0
    assert log.producers.first_unstable(marker + 1) is None


def test_readers_are_told_of_what_overlaps() -> None:
    """T2: a read lists the aborted transactions that overlap it, by first offset.

    Their markers need not be part of the read.
    """
    log = opened(new_disk())
    send(log, 1)
    send(log, 2)
    send(log, 3)
    end(log, 2, commit=False)  # offset 3
    end(log, 3, commit=True)  # offset 4
    end(log, 1, commit=False)  # offset 5
    send(log, 3)  # offset 6
    first, second = AbortedTransaction(1, 0, 5, 6), AbortedTransaction(2, 1, 3, 0)
    assert aborted(log, 0, log.end_offset) == [first, second]
    assert aborted(log, 0, 1) == [first]
    assert aborted(log, 4, log.end_offset) == [first]
    assert aborted(log, 6, log.end_offset) == []


def test_an_empty_transaction_is_not_listed() -> None:
    """A marker without a transaction is appended, and lists no aborted transaction."""
    log = opened(new_disk())
    end(log, commit=False)
    assert aborted(log, 0, log.end_offset) == []
    assert log.end_offset == 1


@pytest.mark.parametrize(
    ("epoch", "coordinator_epoch", "error"),
    [
        (1, 4, ErrorCode.INVALID_PRODUCER_EPOCH),
        (2, 3, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (2, 4, None),
        (3, 5, None),
    ],
)
def test_late_markers_are_refused(
    epoch: int, coordinator_epoch: int, error: ErrorCode | None
) -> None:
    """T5: markers of an older producer epoch or an older coordinator epoch are refused."""
    disk = new_disk()
    log = opened(disk)
    send(log, epoch=2)
    end(log, commit=True, epoch=2, coordinator_epoch=4)
    log.close()
    log = opened(disk)  # the snapshot has the coordinator epoch too
    if error is None:
        end(log, commit=False, epoch=epoch, coordinator_epoch=coordinator_epoch)
    else:
        with pytest.raises(ApiError) as refusal:
            end(log, commit=False, epoch=epoch, coordinator_epoch=coordinator_epoch)
        assert refusal.value.code is error
        assert log.end_offset == 2


def test_a_bumped_epoch_begins_anew_after_a_marker() -> None:
    """After a marker with a higher epoch, the old epoch is fenced, and the new one starts at 0.

    The marker of a transaction that timed out has the next epoch.
    """
    log = opened(new_disk())
    send(log)
    end(log, commit=False, epoch=1)
    with pytest.raises(ApiError) as refusal:
        send(log, epoch=0)
    assert refusal.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    send(log, epoch=1)


def test_a_batch_outside_of_the_open_transaction_is_refused() -> None:
    log = opened(new_disk())
    send(log)
    plain = batch.encode_batch([Record()], producer_id=1, producer_epoch=0, base_sequence=1)
    with pytest.raises(ApiError) as refusal:
        log.append_as_leader(plain, leader_epoch=0, now_ms=0)
    assert refusal.value.code is ErrorCode.INVALID_TXN_STATE


def begin(log: PartitionLog, guard: int | None) -> None:
    entry = log.producers.entries.get(1)
    data = batch.encode_batch(
        [Record()],
        producer_id=1,
        producer_epoch=0,
        base_sequence=0 if entry is None else entry.last_sequence + 1,
        transactional=True,
    )
    log.append_as_leader(data, leader_epoch=0, now_ms=0, guard=guard)


def test_a_transaction_begins_with_a_verified_batch() -> None:
    """T9 (KIP-890): the first batch of each transaction must be verified, later ones need not."""
    log = opened(new_disk())
    with pytest.raises(ApiError) as refusal:
        begin(log, None)
    assert refusal.value.code is ErrorCode.INVALID_TXN_STATE
    guard = log.producers.guard(1)
    assert guard is not None
    assert log.producers.guard(1) == guard
    begin(log, guard)
    assert log.producers.guard(1) is None
    begin(log, None)
    end(log, commit=True)
    with pytest.raises(ApiError):
        begin(log, guard)


def test_a_marker_in_between_makes_a_verification_void() -> None:
    """KAFKA-14884: a marker between verification and first batch invalidates the verification.

    The transaction that was verified is over when the batch arrives.
    """
    log = opened(new_disk())
    guard = log.producers.guard(1)
    end(log, commit=False)
    with pytest.raises(ApiError) as refusal:
        begin(log, guard)
    assert refusal.value.code is ErrorCode.INVALID_TXN_STATE


def check(log: PartitionLog) -> None:
    """Check that open and aborted transactions equal those of the batches in the log."""
    started: dict[int, int] = {}
    dropped: list[tuple[int, int, int]] = []
    for header, data in batches(log):
        if header.is_control:
            marker = aborted_index.decode_marker(data)
            assert marker is not None
            first = started.pop(header.producer_id, None)
            if first is not None and not marker.is_commit:
                dropped.append((header.producer_id, first, header.last_offset))
        elif header.is_transactional:
            started.setdefault(header.producer_id, header.base_offset)
    assert log.producers.first_unstable(log.end_offset) == min(started.values(), default=None)
    for first in range(log.end_offset):
        views = log.read(first, bytes_max=150, limit=log.end_offset)
        limit = aborted_index.end_of(views)
        assert limit is not None
        told = log.aborted_transactions(first, views)
        expected = [row for row in dropped if row[2] >= first and row[1] < limit]
        assert [row[:3] for row in told] == sorted(expected, key=lambda row: row[1])


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(1, 3), st.integers(1, 3)),
        st.tuples(st.just("send"), st.integers(1, 3), st.integers(1, 3)),
        st.tuples(st.sampled_from(["commit", "abort", "abort"]), st.integers(1, 3), st.just(0)),
        st.tuples(st.sampled_from(["flush", "crash", "restart"]), st.just(0), st.just(0)),
        st.tuples(st.just("cut"), st.integers(1, 8), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=150)
@given(steps=STEPS, seed=st.integers(0, 99))
def test_what_was_aborted_is_known_after_any_end(
    steps: list[tuple[str, int, int]], seed: int
) -> None:
    """L2, T2: aborted transactions are known after crashes, restarts and truncations.

    A follower's log has the same aborted transactions as its leader's.
    """
    disk = new_disk()
    log = opened(disk)
    chance = random.Random(seed)
    for what, number, count in steps:
        match what:
            case "send":
                send(log, number, count)
            case "commit" | "abort":
                end(log, number, commit=what == "commit")
            case "flush":
                log.flush()
            case "crash":
                recovery_point = log.recovery_point
                disk.crash(chance)
                log = opened(disk, clean=False, recovery_point=recovery_point)
            case "restart":
                log.close()
                log = opened(disk, recovery_point=log.recovery_point)
            case "cut":
                log.truncate_to(max(0, log.end_offset - number))
            case _:
                raise AssertionError(what)
    check(log)
    follower = opened(new_disk())
    while data := log.read(follower.end_offset, bytes_max=300, limit=log.end_offset):
        follower.append_as_follower(data[0], now_ms=0)
    check(follower)


def test_a_guard_is_kept_from_one_expiry_to_the_next() -> None:
    """An unused verification guard expires at the second expiry run, to free its memory."""
    log = opened(new_disk())
    guard = log.producers.guard(1)
    log.expire_producers(0)
    assert log.producers.guard(1) == guard
    log.expire_producers(0)
    assert log.producers.guard(1) != guard
    with pytest.raises(ApiError):
        begin(log, guard)


def test_verification_can_be_switched_off() -> None:
    """Without transaction.partition.verification.enable, any batch may begin a transaction."""
    log = opened(new_disk(), LogConfig(verify_transactions=False))
    begin(log, None)
    assert log.producers.first_unstable(1) == 0


def test_a_coordinator_appends_in_a_producers_name() -> None:
    """P2: a coordinator's transactional offsets have no sequence; only the epoch is checked."""
    log = opened(new_disk())

    def commit(epoch: int) -> None:
        data = batch.encode_batch(
            [Record(key=b"k")], producer_id=1, producer_epoch=epoch, transactional=True
        )
        guard = log.producers.guard(1)
        log.append_as_leader(data, leader_epoch=0, now_ms=0, guard=guard, by_coordinator=True)

    commit(3)
    commit(3)
    assert (log.end_offset, log.producers.first_unstable(2)) == (2, 0)
    with pytest.raises(ApiError) as refusal:
        commit(2)
    assert refusal.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    log.close()
    assert log.producers.entries[1].batches == ()


def test_a_guard_does_not_outlive_a_truncation() -> None:
    """A truncation removes guards, and their numbers are not used again.

    In the log that replaces the truncated part, the verified transaction may be over.
    """
    log = opened(new_disk())
    send(log, 2)
    guard = log.producers.guard(1)
    log.truncate_to(0)
    assert log.producers.guard(1) != guard
    with pytest.raises(ApiError):
        begin(log, guard)
