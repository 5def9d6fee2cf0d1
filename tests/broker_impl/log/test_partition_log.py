"""The log of one partition: appended records are read back, whatever happens in between."""

import pytest

from broker_impl.errors import ApiError, ErrorCode, StorageError
from broker_impl.log.config import LogConfig
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.log.results import Appended, TimestampOffset
from broker_impl.wire import batch
from broker_impl.wire.batch import Record
from broker_impl.wire.types import TopicPartition

TP = TopicPartition("t", 0)
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
    start_offset: int = 0,
) -> PartitionLog:
    return PartitionLog.open(
        disk,
        "t-0",
        TP,
        config,
        clean=clean,
        recovery_point=recovery_point,
        start_offset=start_offset,
        now_ms=0,
    )


def records(*values: str, timestamp_ms: int = 1000) -> list[Record]:
    return [Record(None, value.encode(), timestamp_ms) for value in values]


def append(
    log: PartitionLog, *values: str, epoch: int = 0, timestamp_ms: int = 1000, now_ms: int = 0
) -> Appended:
    sent = batch.encode_batch(records(*values, timestamp_ms=timestamp_ms))
    return log.append_as_leader(sent, leader_epoch=epoch, now_ms=now_ms)


def read_all(log: PartitionLog, limit: int | None = None) -> list[tuple[int, str]]:
    """(offset, value) of every record, by consecutive reads."""
    limit = log.end_offset if limit is None else limit
    offset, found = log.start_offset, []
    while data := log.read(offset, bytes_max=200, limit=limit):
        for record in batch.records(data[0]):
            if record.offset >= log.start_offset:
                found.append((record.offset, (record.value or b"").decode()))
            offset = record.offset + 1
    return found


def transfer(source: PartitionLog, target: PartitionLog) -> None:
    """Replicate all records that the target lacks."""
    while data := source.read(target.end_offset, bytes_max=300, limit=source.end_offset):
        target.append_as_follower(data[0], now_ms=0)


def test_what_is_appended_is_read() -> None:
    """Batches get the next offsets and the leader's epoch, and are read whole and in order."""
    log = opened(new_disk())
    assert append(log, "a", "b") == Appended(0, 1, -1)
    assert append(log, "c", epoch=3) == Appended(2, 2, -1)
    (data,) = log.read(0, bytes_max=1000, limit=3)
    headers = [header for _, header in batch.batches(data)]
    assert [(h.base_offset, h.partition_leader_epoch) for h in headers] == [(0, 0), (2, 3)]
    assert all(batch.check_crc(data, at, header) for at, header in batch.batches(data))
    assert read_all(log) == [(0, "a"), (1, "b"), (2, "c")]
    assert log.epochs.entries == ((0, 0), (3, 2))


def test_the_senders_buffer_is_not_changed() -> None:
    """Appending does not change the sender's buffer, although the stored header differs."""
    log = opened(new_disk())
    append(log, "a")
    sent = bytearray(batch.encode_batch(records("b")))
    before = bytes(sent)
    log.append_as_leader(memoryview(sent), leader_epoch=4, now_ms=0)
    assert sent == before
    assert read_all(log) == [(0, "a"), (1, "b")]


def test_every_read_gives_the_whole_batch_of_its_offset() -> None:
    """A read within a batch begins with that batch, and the reader skips records it has."""
    log = opened(new_disk(), LogConfig())
    append(log, "a", "b", "c")
    append(log, "d")
    for offset in range(4):
        (data,) = log.read(offset, bytes_max=1000, limit=4)
        _, header = next(batch.batches(data))
        assert header.base_offset <= offset <= header.last_offset


def test_a_read_stays_within_its_bytes_but_gives_at_least_one_batch() -> None:
    """KIP-74: the first batch of a read is returned even if it is larger than the limit."""
    log = opened(new_disk(), LogConfig())
    append(log, "a" * 500)
    append(log, "b" * 500)
    size = log.size_bytes // 2
    (data,) = log.read(0, bytes_max=10, limit=2)
    assert len(data) == size
    assert log.read(0, bytes_max=10, limit=2, at_least_one=False) == []
    (data,) = log.read(0, bytes_max=2 * size - 1, limit=2, at_least_one=False)
    assert len(data) == size
    (data,) = log.read(0, bytes_max=2 * size, limit=2)
    assert len(data) == 2 * size


def test_a_read_stays_below_its_limit() -> None:
    """Only batches that end before the limit are returned, also if it is within a batch."""
    log = opened(new_disk(), LogConfig())
    append(log, "a")
    append(log, "b", "c")
    append(log, "d")
    assert read_all(log, limit=0) == []
    assert read_all(log, limit=1) == [(0, "a")]
    assert read_all(log, limit=2) == [(0, "a")]
    assert read_all(log, limit=3) == [(0, "a"), (1, "b"), (2, "c")]


def test_a_read_out_of_range_is_refused_and_one_at_the_end_is_empty() -> None:
    """A read outside the log gets OFFSET_OUT_OF_RANGE; a read at its end is empty."""
    log = opened(new_disk())
    append(log, "a", "b")
    log.advance_start(1)
    assert log.read(2, bytes_max=100, limit=2) == []
    for offset in (0, 3, -1):
        with pytest.raises(ApiError) as refused:
            log.read(offset, bytes_max=100, limit=2)
        assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


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


def test_segments_are_begun_by_time() -> None:
    """`segment.ms` counts from the first batch's timestamp, or from its append if it has none."""
    log = opened(new_disk(), LogConfig(segment_ms=100))
    append(log, "a", timestamp_ms=1000)
    append(log, "b", timestamp_ms=1100)
    assert log.segment_offsets == [0]
    append(log, "c", timestamp_ms=1101)
    assert log.segment_offsets == [0, 2]
    log = opened(new_disk(), LogConfig(segment_ms=100))
    append(log, "a", timestamp_ms=-1, now_ms=0)
    append(log, "b", timestamp_ms=-1, now_ms=101)
    assert log.segment_offsets == [0, 1]


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


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_is_the_same_after_it_was_closed_and_opened(clean: bool) -> None:
    """A log has the same content after a restart, whether it is trusted or fully checked.

    This covers records, epochs, producers, segments and look-ups by timestamp.
    """
    disk = new_disk()
    log = opened(disk)
    for number in range(20):
        sent = batch.encode_batch(
            records(f"v{number}" * 10, timestamp_ms=1000 + number),
            producer_id=number % 3,
            producer_epoch=0,
            base_sequence=number // 3,
        )
        log.append_as_leader(sent, leader_epoch=number // 5, now_ms=0)
    log.close()
    again = opened(disk, clean=clean)
    assert read_all(again) == read_all(log)
    assert again.epochs.entries == log.epochs.entries == ((0, 0), (1, 5), (2, 10), (3, 15))
    assert again.producers.entries == log.producers.entries
    assert again.segment_offsets == log.segment_offsets
    for timestamp in range(990, 1030):
        assert again.offset_for_timestamp(timestamp) == log.offset_for_timestamp(timestamp)


def test_a_torn_tail_is_cut_off() -> None:
    """After a crash a log ends with its last whole batch, and the next append continues there."""
    disk = new_disk()
    log = opened(disk, LogConfig())
    append(log, "a")
    append(log, "b", "c")
    size = log.size_bytes
    file = disk.open("t-0/00000000000000000000.log")
    file.append([batch.encode_batch(records("d"), base_offset=3)[:-1]])
    again = opened(disk, LogConfig(), clean=False)
    assert (again.end_offset, again.size_bytes) == (3, size)
    append(again, "e")
    assert read_all(again) == [(0, "a"), (1, "b"), (2, "c"), (3, "e")]


def test_a_damaged_batch_ends_the_log() -> None:
    """Recovery drops a batch with a wrong CRC, and everything after it, later segments included."""
    disk = new_disk()
    log = opened(disk)
    for number in range(12):
        append(log, f"v{number}" * 20)
    third = log.segment_offsets[2]
    path = f"t-0/{third:020d}.log"
    data = bytearray(disk.read(path))
    data[-1] ^= 1
    disk.write(path, bytes(data))
    again = opened(disk, clean=False)
    assert again.segment_offsets == log.segment_offsets[:3]
    assert third <= again.end_offset < log.segment_offsets[3]
    assert read_all(again) == read_all(log)[: again.end_offset]
    append(again, "next")
    assert read_all(again)[-1] == (again.end_offset - 1, "next")


def test_indexes_below_the_recovery_point_are_synced() -> None:
    """Index entries of synced batches survive a power loss if the segment is closed afterwards."""
    disk = new_disk()
    log = opened(disk, LogConfig(index_interval_bytes=0))
    append(log, "a", timestamp_ms=1000)
    append(log, "b", timestamp_ms=2000)
    log.flush()
    log.roll_if_due(10**10)
    disk.crash()
    again = opened(disk, LogConfig(), clean=False, recovery_point=2)
    assert again.offset_for_timestamp(1500) == TimestampOffset(2000, 1, 0)
    assert read_all(again) == [(0, "a"), (1, "b")]


def test_indexes_of_closed_segments_are_synced_with_them() -> None:
    """A segment that is synced after it was closed is trusted after a power loss."""
    disk = new_disk()
    log = opened(disk, LogConfig(segment_bytes=150, index_interval_bytes=0))
    append(log, "a", timestamp_ms=1000)
    append(log, "b", timestamp_ms=2000)
    append(log, "c", timestamp_ms=3000)
    log.flush()
    disk.crash()
    again = opened(disk, clean=False, recovery_point=3)
    assert again.offset_for_timestamp(1500) == TimestampOffset(2000, 1, 0)


def test_a_segment_behind_a_lost_end_is_dropped() -> None:
    """Recovery drops a segment that survived a crash in which its predecessor lost its end."""
    disk = new_disk()
    log = opened(disk, LogConfig())
    append(log, "a")
    log.flush()
    append(log, "b")
    log.roll_if_due(10**10)
    append(log, "c")
    disk.open(f"t-0/{2:020d}.log").fsync()
    disk.crash()
    again = opened(disk, LogConfig(), clean=False, recovery_point=1)
    assert read_all(again) == [(0, "a")]
    append(again, "d")
    assert read_all(again) == [(0, "a"), (1, "d")]


def test_recovery_never_advances_the_recovery_point() -> None:
    """KAFKA-10101: recovery does not advance the recovery point, since reading syncs nothing."""
    disk = new_disk()
    log = opened(disk, LogConfig())
    append(log, "a")
    log.flush()
    append(log, "b")
    assert log.recovery_point == 1
    again = opened(disk, LogConfig(), clean=False, recovery_point=1)
    assert (again.recovery_point, again.end_offset) == (1, 2)


def test_epoch_zero_survives_a_crash_without_its_checkpoint() -> None:
    """KAFKA-10432: recovery rebuilds all epochs from the batches, epoch 0 included."""
    disk = new_disk()
    log = opened(disk)
    append(log, "a", epoch=0)
    append(log, "b", epoch=2)
    disk.remove("t-0/leader-epoch-checkpoint")
    assert opened(disk, clean=False).epochs.entries == ((0, 0), (2, 1))
    for text in (b"", b"0\n1\n"):
        disk.write("t-0/leader-epoch-checkpoint", text)
        assert opened(disk, clean=True).epochs.entries == ((0, 0), (2, 1))


def test_epochs_behind_the_end_are_forgotten_at_start() -> None:
    """An epoch whose records were lost in a crash is removed at the next start."""
    disk = new_disk()
    log = opened(disk)
    append(log, "a")
    log.flush()
    append(log, "b", epoch=1)
    disk.crash()
    again = opened(disk, clean=False, recovery_point=1)
    assert again.end_offset == 1
    assert again.epochs.entries == ((0, 0),)


def test_truncation_removes_the_batch_and_all_behind() -> None:
    """A truncation removes records, epochs, producers and index entries, now and after a crash."""
    disk = new_disk()
    log = opened(disk)
    for number in range(12):
        sent = batch.encode_batch(
            records(f"v{number}" * 20, timestamp_ms=1000 + number),
            producer_id=5,
            producer_epoch=0,
            base_sequence=number,
        )
        log.append_as_leader(sent, leader_epoch=number // 4, now_ms=0)
    log.flush()
    log.truncate_to(5)
    assert log.recovery_point == log.end_offset == 5
    assert log.epochs.entries == ((0, 0), (1, 4))
    assert log.producers.entries[5].last_sequence == 4
    assert log.offset_for_timestamp(1005) is None
    disk.crash()
    again = opened(disk, clean=False, recovery_point=5)
    assert read_all(again) == read_all(log)
    assert again.producers.entries[5].last_sequence == 4
    append(again, "x", epoch=3)
    assert read_all(again)[-1] == (5, "x")


def test_truncation_within_a_batch_removes_it_whole() -> None:
    """A truncation within a batch removes the whole batch."""
    log = opened(new_disk(), LogConfig())
    append(log, "a")
    append(log, "b", "c", "d")
    log.truncate_to(2)
    assert log.end_offset == 1


def test_truncation_behind_the_end_still_cuts_epochs() -> None:
    """KAFKA-10706: a truncation at the log end removes an epoch that starts there."""
    disk = new_disk()
    log = opened(disk)
    append(log, "a")
    log.assign_epoch(1, 1)
    log.truncate_to(2)
    assert log.epochs.latest == 1
    log.truncate_to(1)
    assert log.epochs.entries == ((0, 0),)
    assert b"1 1" not in disk.read("t-0/leader-epoch-checkpoint")


def test_truncation_says_that_the_recovery_point_went_back() -> None:
    """A truncation below the recovery point writes the lower recovery point at once.

    With the old one, a restart after a crash would trust records that were never synced.
    """
    told: list[int] = []
    disk = new_disk()
    log = PartitionLog.open(
        disk, "t-0", TP, SMALL,
        clean=True, recovery_point=0, start_offset=0, now_ms=0,
        write_recovery_point=lambda: told.append(log.recovery_point),
    )  # fmt: skip
    append(log, "a")
    append(log, "b")
    log.truncate_to(1)
    assert told == []
    log.flush()
    log.truncate_to(0)
    assert told == [0]


def test_a_log_can_start_anew_at_any_offset() -> None:
    """`truncate_fully_and_start_at` removes all records, producers and epochs durably."""
    disk = new_disk()
    log = opened(disk)
    for number in range(12):
        append(log, f"v{number}" * 20)
    for offset in (100, 40):
        log.truncate_fully_and_start_at(offset)
        assert (log.start_offset, log.end_offset) == (offset, offset)
        assert log.epochs.entries == ()
        assert log.producers.entries == {}
        assert disk.list("t-0") == sorted(
            [f"{offset:020d}{suffix}" for suffix in (".index", ".log", ".timeindex")]
            + ["leader-epoch-checkpoint"]
        )
    append(log, "a")
    disk.crash()
    assert opened(disk, clean=False).start_offset == 40


def test_truncation_below_the_first_segment_starts_anew_there() -> None:
    """A truncation below the first segment empties the log, which then starts at that offset."""
    log = opened(new_disk())
    log.truncate_fully_and_start_at(100)
    append(log, "a")
    log.truncate_to(50)
    assert (log.start_offset, log.end_offset) == (50, 50)


def test_the_start_advances_and_is_obeyed() -> None:
    """Advancing the start hides older records and removes their epochs, up to the log end."""
    disk = new_disk()
    log = opened(disk)
    for number in range(12):
        append(log, f"v{number}" * 20, epoch=number // 4)
    log.advance_start(6)
    log.advance_start(3)
    assert log.start_offset == 6
    assert read_all(log)[0] == (6, "v6" * 20)
    assert log.epochs.entries == ((1, 6), (2, 8))
    with pytest.raises(ApiError) as refused:
        log.advance_start(13)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.retain(0, 12) == [f"{offset:020d}.log" for offset in (0, 3)]
    log.close()
    assert opened(disk, start_offset=6).start_offset == 6


@pytest.mark.parametrize(("start", "cut"), [(6, ((1, 6), (2, 8))), (12, ((2, 12),))])
def test_a_start_that_was_not_written_down_takes_no_epochs(
    start: int, cut: tuple[tuple[int, int], ...]
) -> None:
    """Epochs that an unsaved start offset removed are rebuilt after a crash.

    Epochs are cut at once when the start advances, but the start offset is checkpointed later.
    Records that are readable again after a crash need their epochs again.
    """
    disk = new_disk()
    log = opened(disk)
    for number in range(12):
        append(log, f"v{number}" * 20, epoch=number // 4)
    log.advance_start(start)
    assert log.epochs.entries == cut
    again = opened(disk, clean=False)
    assert again.start_offset == 0
    assert again.epochs.entries == ((0, 0), (1, 4), (2, 8))


def test_a_log_that_ends_before_its_start_begins_anew() -> None:
    """A log that ends before its checkpointed start is emptied, and starts at that offset.

    The start was checkpointed, but the records were not synced.
    """
    disk = new_disk()
    log = opened(disk)
    log.append_as_leader(idempotent(0), leader_epoch=0, now_ms=0)
    log.roll_if_due(10**10)
    append(log, "b", "c")
    disk.crash()
    again = opened(disk, clean=False, start_offset=2)
    assert (again.start_offset, again.end_offset) == (2, 2)
    assert again.cuts == [2]
    assert again.epochs.entries == ()
    assert again.producers.entries == {}


def test_retention_by_size() -> None:
    """Retention by size deletes the oldest segments while the others hold at least the limit."""
    log = opened(new_disk(), LogConfig(segment_bytes=400, retention_bytes=700, retention_ms=-1))
    for number in range(12):
        append(log, f"v{number}" * 20)
    before = log.segment_offsets
    sizes = log.size_bytes
    deleted = log.retain(0, log.end_offset)
    assert deleted == [f"{offset:020d}.log" for offset in before[: len(deleted)]]
    assert log.segment_offsets == before[len(deleted) :]
    assert 700 <= log.size_bytes < sizes
    assert log.start_offset == log.segment_offsets[0]
    assert log.retain(0, log.end_offset) == []


def test_retention_by_time() -> None:
    """Retention by time deletes segments whose newest record is too old, even the active one."""
    log = opened(new_disk(), LogConfig(segment_bytes=150, retention_ms=100, segment_ms=10**9))
    append(log, "a" * 40, timestamp_ms=1000)
    append(log, "b" * 40, timestamp_ms=1050)
    assert log.retain(1100, 2) == []
    assert log.retain(1101, 2) == [f"{0:020d}.log"]
    assert read_all(log) == [(1, "b" * 40)]
    assert log.retain(1151, 2) == [f"{1:020d}.log"]
    assert (log.start_offset, log.end_offset) == (2, 2)
    assert log.retain(10**9, 2) == []


def test_retention_keeps_what_is_not_below_the_high_watermark() -> None:
    """KAFKA-5634: retention deletes no segment at or above the high watermark."""
    log = opened(new_disk(), LogConfig(segment_bytes=150, retention_ms=100))
    for _ in range(3):
        append(log, "a" * 40, timestamp_ms=1000)
    assert log.segment_offsets == [0, 1, 2]
    assert log.retain(10**6, 0) == []
    assert log.retain(10**6, 1) == [f"{0:020d}.log"]
    assert log.retain(10**6, 2) == [f"{1:020d}.log"]
    assert log.retain(10**6, 2) == []


def test_retention_deletes_nothing_of_a_compacted_log() -> None:
    """Without `delete` in the cleanup policy, retention by age and size does not apply."""
    log = opened(
        new_disk(),
        LogConfig(
            segment_bytes=150, retention_ms=1, retention_bytes=1, cleanup_policy=("compact",)
        ),
    )
    for _ in range(3):
        sent = batch.encode_batch([Record(b"k", b"a" * 40, 1000)])
        log.append_as_leader(sent, leader_epoch=0, now_ms=0)
    assert log.retain(10**9, 3) == []


def test_deleted_files_are_removed_after_their_delay() -> None:
    """Deleted files are renamed first, and removed after a delay or at the next start."""
    disk = new_disk()
    log = opened(disk, LogConfig(segment_bytes=150, retention_ms=100, delete_delay_ms=10))
    for _ in range(3):
        append(log, "a" * 40, timestamp_ms=1000)
    log.retain(2000, 1)
    dead = [name for name in disk.list("t-0") if name.endswith(".deleted")]
    assert dead == [f"{0:020d}.{suffix}.deleted" for suffix in ("index", "log", "timeindex")]
    log.remove_deleted(2009)
    assert disk.exists(f"t-0/{dead[0]}")
    log.remove_deleted(2010)
    log.retain(2000, 2)
    log.close()
    opened(disk)
    assert not [name for name in disk.list("t-0") if name.endswith(".deleted")]


def test_old_segments_are_synced_once_that_is_cheap() -> None:
    """Closed segments are synced after a while, and the recovery point follows.

    After a crash recovery then need not check all of them.
    """
    log = opened(new_disk(), LogConfig(segment_bytes=150))
    for _ in range(3):
        append(log, "a" * 40)
    log.flush_settled(1000)
    assert log.recovery_point == 0
    log.flush_settled(40_000)
    assert log.recovery_point == 1
    log.flush_settled(40_000)
    log.flush_settled(40_000)
    assert log.recovery_point == 2


def test_flush_by_messages_comes_before_the_answer() -> None:
    """`flush.messages=1`: acknowledged records survive a power loss."""
    disk = new_disk()
    log = opened(disk, LogConfig(flush_messages=1, segment_bytes=400))
    for number in range(12):
        append(log, f"v{number}" * 20)
    assert log.recovery_point == 12
    disk.crash()
    again = opened(disk, clean=False, recovery_point=12)
    assert read_all(again) == [(number, f"v{number}" * 20) for number in range(12)]


def test_flush_by_time_is_due() -> None:
    """`flush.ms` counts from the oldest record that is not synced."""
    log = opened(new_disk(), LogConfig(flush_ms=100))
    assert not log.due_flush(10**6)
    append(log, "a", now_ms=1000)
    append(log, "b", now_ms=1090)
    assert not log.due_flush(1099)
    assert log.due_flush(1100)
    log.flush()
    assert not log.due_flush(10**6)


def test_a_flushed_segment_survives_with_its_name() -> None:
    """KAFKA-3968: a new segment's directory entry is synced when the segment is created."""
    disk = new_disk()
    log = opened(disk)
    for number in range(12):
        append(log, f"v{number}" * 20)
    log.flush()
    disk.crash()
    assert read_all(opened(disk, clean=False, recovery_point=12)) == read_all(log)


@pytest.mark.parametrize("operation", ["append", "fsync", "write", "open", "fsync_dir"])
def test_a_failed_disk_takes_the_log_offline(operation: str) -> None:
    """KAFKA-10778: after a disk error the log refuses changes, and no torn batch is ever served."""
    disk = new_disk()
    log = opened(disk, LogConfig(segment_bytes=400, flush_messages=1))
    append(log, "first")
    disk.fails = lambda done, path: done == operation
    values = [f"v{number}" * 20 for number in range(20)]
    with pytest.raises(StorageError):
        _append_all(log, values)
    disk.fails = lambda done, path: False
    for change in (
        lambda: append(log, "more"),
        lambda: log.append_as_follower(b"", now_ms=0),
        lambda: log.truncate_to(0),
        lambda: log.truncate_fully_and_start_at(0),
        lambda: log.advance_start(log.end_offset),
        lambda: log.assign_epoch(9, log.end_offset),
        log.flush,
        log.close,
    ):
        with pytest.raises(StorageError, match="offline"):
            change()
    again = opened(disk, clean=False)
    found = read_all(again)
    assert 1 <= len(found) <= 20
    assert found == list(enumerate(["first", *values]))[: len(found)]


def _append_all(log: PartitionLog, values: list[str]) -> None:
    for value in values:
        append(log, value)


def test_a_failed_append_is_not_remembered() -> None:
    """KAFKA-6683: a producer's state changes after its batch is written, not before."""
    disk = new_disk()
    log = opened(disk)
    disk.fails = lambda done, path: done == "append"
    with pytest.raises(StorageError):
        log.append_as_leader(idempotent(0), leader_epoch=0, now_ms=0)
    assert log.producers.entries == {}
    assert log.end_offset == 0


def idempotent(sequence: int, *values: str, epoch: int = 0, producer_id: int = 7) -> bytes:
    return batch.encode_batch(
        records(*(values or ("x",))),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


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


def test_the_newest_sound_snapshot_is_taken() -> None:
    """P4: a damaged snapshot is removed; the log is replayed from an older one."""
    disk = new_disk()
    log = opened(disk)
    for sequence in range(12):
        log.append_as_leader(idempotent(sequence, "x" * 30), leader_epoch=0, now_ms=0)
    log.close()
    newest = [name for name in disk.list("t-0") if name.endswith(".snapshot")][-1]
    assert newest == f"{12:020d}.snapshot"
    disk.write(f"t-0/{newest}", disk.read(f"t-0/{newest}")[:-1])
    assert opened(disk).producers.entries == log.producers.entries
    assert not disk.exists(f"t-0/{newest}")


def test_producers_outlive_their_deleted_records() -> None:
    """P5: retention removes records, but not the state of their producers (KAFKA-7190)."""
    disk = new_disk()
    log = opened(disk, LogConfig(segment_bytes=150, retention_ms=100, delete_delay_ms=0))
    for sequence in range(6):
        log.append_as_leader(idempotent(sequence, "x" * 40), leader_epoch=0, now_ms=0)
    log.retain(10**6, 6)
    assert log.start_offset == 6
    log.close()
    again = opened(disk)
    assert again.append_as_leader(idempotent(5, "x" * 40), leader_epoch=0, now_ms=0).duplicate


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


def test_a_record_is_found_by_its_time() -> None:
    """A look-up by time finds the first record at or after it, within a batch too."""
    log = opened(new_disk(), LogConfig())
    log.append_as_leader(
        batch.encode_batch([Record(timestamp_ms=t) for t in (10, 30, 20)], compression=batch.GZIP),
        leader_epoch=4,
        now_ms=0,
    )
    append(log, "d", timestamp_ms=25, epoch=5)
    assert log.offset_for_timestamp(0) == TimestampOffset(10, 0, 4)
    assert log.offset_for_timestamp(11) == TimestampOffset(30, 1, 4)
    assert log.offset_for_timestamp(31) is None
    assert log.offset_for_timestamp(11, limit=1) is None
    log.advance_start(2)
    assert log.offset_for_timestamp(0) == TimestampOffset(20, 2, 4)
    assert log.offset_for_timestamp(21) == TimestampOffset(25, 3, 5)


def test_the_newest_time_is_found() -> None:
    """KAFKA-16310: MAX_TIMESTAMP finds the first record with the largest timestamp.

    It is not the last record of that record's batch.
    """
    log = opened(new_disk(), LogConfig(segment_bytes=250))
    assert log.offset_of_max_timestamp() is None
    for times in ((10, 30, 30), (30,), (20, 25), (40, 5)):
        log.append_as_leader(
            batch.encode_batch([Record(timestamp_ms=t) for t in times]), leader_epoch=0, now_ms=0
        )
    assert len(log.segment_offsets) > 1
    assert log.offset_of_max_timestamp() == TimestampOffset(40, 6, 0)
    assert log.offset_of_max_timestamp(limit=6) == TimestampOffset(30, 1, 0)
    assert log.offset_of_max_timestamp(limit=1) == TimestampOffset(10, 0, 0)
    log.advance_start(5)
    assert log.offset_of_max_timestamp(limit=6) == TimestampOffset(25, 5, 0)
    assert log.offset_of_max_timestamp(limit=7) == TimestampOffset(40, 6, 0)


def test_a_deleted_log_leaves_nothing() -> None:
    """Deleting a log removes its files and its directory."""
    disk = new_disk()
    log = opened(disk)
    append(log, "a")
    log.delete()
    assert disk.list("") == []


def test_a_leader_of_an_ended_epoch_may_not_append() -> None:
    """An append in an older epoch than the log's is an assertion error of the caller."""
    log = opened(new_disk())
    append(log, "a", epoch=5)
    with pytest.raises(AssertionError, match="epoch 4"):
        append(log, "b", epoch=4)


def test_records_that_are_none_are_found_out_by_a_look_up() -> None:
    """Appends do not decompress batches, so a look-up by time is first to find broken records."""
    log = opened(new_disk())
    sent = bytearray(batch.encode_batch(records("abc")))
    sent[batch.HEADER_BYTES + 1 :] = b"\xff" * (len(sent) - batch.HEADER_BYTES - 1)
    batch.stamp(head := sent[: batch.HEADER_BYTES], bytes(sent[batch.HEADER_BYTES :]), 1000)
    log.append_as_follower(bytes(head) + bytes(sent[batch.HEADER_BYTES :]), now_ms=0)
    with pytest.raises(ApiError) as refused:
        log.offset_for_timestamp(0)
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE


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
