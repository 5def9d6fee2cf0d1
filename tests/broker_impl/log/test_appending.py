import struct

import pytest

from broker_impl.errors import ApiError, ErrorCode, StorageError
from broker_impl.log.config import LogConfig
from broker_impl.log.results import Appended
from broker_impl.wire import batch
from broker_impl.wire.batch import Record
from tests.broker_impl.log.one_log import (
    append,
    idempotent,
    new_disk,
    opened,
    read_all,
    records,
    transfer,
)


def test_the_senders_buffer_is_not_changed() -> None:
    """Appending does not change the sender's buffer, although the stored header differs."""
    log = opened(new_disk())
    append(log, "a")
    sent = bytearray(batch.encode_batch(records("b")))
    before = bytes(sent)
    log.append_as_leader(memoryview(sent), leader_epoch=4, now_ms=0)
    assert sent == before
    assert read_all(log) == [(0, "a"), (1, "b")]


def test_segments_are_begun_by_size_and_named_by_offset() -> None:
    """A batch that does not fit starts a new segment, named after the batch's first offset."""
    disk = new_disk()
    log = opened(disk)
    for number in range(12):
        append(log, f"v{number}" * 20)
    assert len(log.segment_offsets) > 3
    for offset in log.segment_offsets:
        for suffix in ("log", "index", "timeindex"):
            assert disk.exists(f"t-0/{offset:020d}.{suffix}")
    assert [offset for offset, _ in read_all(log)] == list(range(12))


def test_segments_are_begun_when_an_index_is_full() -> None:
    """A full offset index starts a new segment, so that no index exceeds its maximum size."""
    log = opened(new_disk(), LogConfig(index_interval_bytes=0, index_bytes_max=24))
    for number in range(9):
        append(log, str(number))
    assert len(log.segment_offsets) > 1
    assert len(read_all(log)) == 9


def test_a_segment_holds_offsets_of_31_bits() -> None:
    """A batch whose offset is 2^31 or more above the segment's first one starts a new segment."""
    log = opened(new_disk(), LogConfig())
    far = 2**31 - 10
    first = bytearray(batch.encode_batch(records("a"), leader_epoch=0))
    first[23:27] = (far - 1).to_bytes(4, "big")  # last offset delta, as after compaction
    header = batch.parse_header(first)
    batch.stamp(head := first[: batch.HEADER_BYTES], bytes(first[batch.HEADER_BYTES :]), 1000)
    log.append_as_follower(bytes(head) + bytes(first[batch.HEADER_BYTES :]), now_ms=0)
    assert log.end_offset == header.next_offset == far
    append(log, *"0123456789")
    assert log.segment_offsets == [0]
    append(log, "x")
    append(log, "y")
    assert log.segment_offsets == [0, far + 10]


def test_no_segment_is_begun_while_the_active_one_is_empty() -> None:
    """KAFKA-6388: an empty active segment is not rolled: both would have the same file name."""
    log = opened(new_disk(), LogConfig(segment_ms=1))
    assert not log.roll_if_due(10**6)
    append(log, "a")
    assert log.roll_if_due(10**6)
    assert not log.roll_if_due(2 * 10**6)
    assert log.segment_offsets == [0, 1]


def test_a_failed_append_is_not_remembered() -> None:
    """KAFKA-6683: a producer's state changes after its batch is written, not before."""
    disk = new_disk()
    log = opened(disk)
    disk.fails = lambda done, path: done == "append"
    with pytest.raises(StorageError):
        log.append_as_leader(idempotent(0), leader_epoch=0, now_ms=0)
    assert log.producers.entries == {}
    assert log.end_offset == 0


def test_a_duplicate_is_answered_with_its_first_offsets() -> None:
    """A retry of one of the last five batches succeeds with its first offsets, without a write."""
    log = opened(new_disk())
    append(log, "other")
    first = log.append_as_leader(idempotent(0, "a", "b"), leader_epoch=0, now_ms=0)
    log.append_as_leader(idempotent(2), leader_epoch=0, now_ms=0)
    size = log.size_bytes
    again = log.append_as_leader(idempotent(0, "a", "b"), leader_epoch=0, now_ms=0)
    assert again == first._replace(duplicate=True)
    assert again[:2] == (1, 2)
    assert (log.size_bytes, log.end_offset) == (size, 4)


def test_sequences_are_checked_on_a_new_leader() -> None:
    """P3: a follower that becomes leader knows all producers, also after a crash."""
    leader, disk = opened(new_disk()), new_disk()
    follower = opened(disk)
    for sequence in range(12):
        leader.append_as_leader(idempotent(sequence), leader_epoch=0, now_ms=0)
    transfer(leader, follower)
    assert follower.producers.entries == leader.producers.entries
    for log in (follower, opened(disk, clean=False)):
        assert log.append_as_leader(idempotent(9), leader_epoch=1, now_ms=0).duplicate
        for wrong in (13, 3):
            with pytest.raises(ApiError) as refused:
                log.append_as_leader(idempotent(wrong), leader_epoch=1, now_ms=0)
            assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_follower_refuses_no_sequence() -> None:
    """KAFKA-6003: a follower accepts any sequence number, since the leader has checked it.

    One append may have several batches of the same producer.
    """
    log = opened(new_disk(), LogConfig())
    append(log, "a")
    data = b"".join(
        batch.encode_batch(
            records("x"),
            base_offset=1 + n,
            leader_epoch=0,
            producer_id=7,
            producer_epoch=0,
            base_sequence=sequence,
        )
        for n, sequence in enumerate((50, 51, 90))
    )
    assert log.append_as_follower(data, now_ms=0) == Appended(1, 3, -1)
    assert [b.last_sequence for b in log.producers.entries[7].batches] == [50, 51, 90]


def test_a_follower_copies_batches_as_they_are() -> None:
    """A follower stores batches byte by byte as the leader has them; a torn last batch is ignored.

    The next fetch gets that batch again.
    """
    leader, follower = opened(new_disk(), LogConfig()), opened(new_disk(), LogConfig())
    for epoch in (0, 0, 2, 5):
        append(leader, "a", "b", epoch=epoch)
    (data,) = leader.read(0, bytes_max=10**6, limit=8)
    appended = follower.append_as_follower(data[:-1], now_ms=0)
    assert appended == Appended(0, 5, -1)
    follower.append_as_follower(data[data.nbytes * 3 // 4 :], now_ms=0)
    assert follower.read(0, bytes_max=10**6, limit=8) == [data]
    assert follower.epochs.entries == leader.epochs.entries == ((0, 0), (2, 4), (5, 6))
    assert follower.append_as_follower(b"", now_ms=0) == Appended(8, 7, -1)


def test_a_follower_takes_only_what_continues_its_log() -> None:
    """KAFKA-3047: a follower refuses overlapping and damaged batches without appending any."""
    leader, follower = opened(new_disk(), LogConfig()), opened(new_disk(), LogConfig())
    for value in "abc":
        append(leader, value)
    (data,) = leader.read(0, bytes_max=10**6, limit=3)
    third = len(data) // 3
    damaged = bytearray(data)
    damaged[-1] ^= 1
    for wrong, code in (
        (bytes(data[:third]) + bytes(data[:third]), ErrorCode.INVALID_RECORD),
        (damaged, ErrorCode.CORRUPT_MESSAGE),
        (b"\xff" * 100, ErrorCode.CORRUPT_MESSAGE),
    ):
        with pytest.raises(ApiError) as refused:
            follower.append_as_follower(wrong, now_ms=0)
        assert refused.value.code == code
    assert (follower.end_offset, follower.size_bytes) == (0, 0)
    follower.append_as_follower(bytes(data[:third]) + bytes(data[2 * third :]), now_ms=0)
    assert follower.end_offset == 3, "a compacted log has gaps"
    with pytest.raises(ApiError):
        follower.append_as_follower(data, now_ms=0)


def test_a_follower_may_start_within_a_batch() -> None:
    """KAFKA-6975: an empty log whose start is within the leader's first batch takes it whole."""
    leader = opened(new_disk(), LogConfig())
    append(leader, "a", "b", "c")
    append(leader, "d")
    leader.advance_start(1)
    follower = opened(new_disk(), LogConfig())
    follower.truncate_fully_and_start_at(1)
    transfer(leader, follower)
    assert (follower.start_offset, follower.end_offset) == (1, 4)
    assert read_all(follower) == read_all(leader) == [(1, "b"), (2, "c"), (3, "d")]


def test_log_append_time_replaces_the_producers_time() -> None:
    """With LogAppendTime the answer and the batch have this broker's time, under a valid CRC."""
    log = opened(new_disk(), LogConfig(timestamp_type=batch.LOG_APPEND_TIME))
    assert append(log, "a", timestamp_ms=5, now_ms=777) == Appended(0, 0, 777)
    (data,) = log.read(0, bytes_max=1000, limit=1)
    assert batch.check_crc(data, 0, batch.parse_header(data))
    assert batch.records(data)[0].timestamp_ms == 777
    sent = idempotent(0)
    log.append_as_leader(sent, leader_epoch=0, now_ms=800)
    again = log.append_as_leader(sent, leader_epoch=0, now_ms=900)
    assert again == Appended(1, 1, 800, duplicate=True)


@pytest.mark.parametrize("codec", [batch.NONE, batch.GZIP])
def test_a_largest_time_that_is_missing_is_filled_in(codec: int) -> None:
    """A producer may leave out the largest time of a batch, as Sarama did before 1.45.1."""
    rows = [Record(None, b"a", 50), Record(None, b"b", 90), Record(None, b"c", 70)]
    sent = bytearray(batch.encode_batch(rows, compression=codec))
    head, rest = sent[: batch.HEADER_BYTES], bytes(sent[batch.HEADER_BYTES :])
    batch.set_max_timestamp(head, rest, -1)
    log = opened(new_disk())
    log.append_as_leader(bytes(head) + rest, leader_epoch=0, now_ms=100)
    (data,) = log.read(0, bytes_max=1000, limit=3)
    header = batch.parse_header(data)
    assert (header.max_timestamp, header.base_timestamp) == (90, 50)
    assert batch.check_crc(data, 0, header)
    found = log.offset_for_timestamp(60)
    assert found is not None
    assert (found.offset, found.timestamp) == (1, 90)
    damaged = bytes(head) + b"\xff" * len(rest)
    again = bytearray(damaged[: batch.HEADER_BYTES])
    batch.set_max_timestamp(again, damaged[batch.HEADER_BYTES :], -1)
    with pytest.raises(ApiError) as raised:
        log.append_as_leader(
            bytes(again) + damaged[batch.HEADER_BYTES :], leader_epoch=0, now_ms=100
        )
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_largest_time_that_no_batch_can_have_is_refused() -> None:
    """The times of records are differences to that of the batch, and can be too large."""
    last = 2**63 - 1
    sent = bytearray(batch.encode_batch([Record(None, b"a", 5), Record(None, b"b", 6)]))
    sent[27:43] = struct.pack(">qq", last, -1)
    head, rest = sent[: batch.HEADER_BYTES], bytes(sent[batch.HEADER_BYTES :])
    batch.set_max_timestamp(head, rest, -1)
    with pytest.raises(ApiError) as raised:
        opened(new_disk()).append_as_leader(bytes(head) + rest, leader_epoch=0, now_ms=100)
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_leader_of_an_ended_epoch_may_not_append() -> None:
    """An append in an older epoch than the log's is an assertion error of the caller."""
    log = opened(new_disk())
    append(log, "a", epoch=5)
    with pytest.raises(AssertionError, match="epoch 4"):
        append(log, "b", epoch=4)


def test_a_compacted_log_takes_no_record_without_a_key() -> None:
    """KAFKA-1755: a compacted log refuses records without a key.

    No later record could replace such a record.
    """
    log = opened(new_disk(), LogConfig(cleanup_policy=("compact",)))
    rows = [Record(b"k", b"v"), Record(None, b"v")]
    with pytest.raises(ApiError) as refused:
        log.append_as_leader(batch.encode_batch(rows), leader_epoch=0, now_ms=0)
    assert refused.value.code == ErrorCode.INVALID_RECORD
    assert log.end_offset == 0
    log.append_as_leader(batch.encode_batch(rows[:1]), leader_epoch=0, now_ms=0)
