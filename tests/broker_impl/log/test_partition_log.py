import pytest

from broker_impl.errors import ApiError, ErrorCode, StorageError
from broker_impl.log.config import LogConfig
from broker_impl.log.partition_log import PartitionLog
from broker_impl.log.results import Appended
from broker_impl.wire import batch
from tests.broker_impl.log.one_log import append, idempotent, new_disk, opened, read_all, records


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


def test_a_deleted_log_leaves_nothing() -> None:
    """Deleting a log removes its files and its directory."""
    disk = new_disk()
    log = opened(disk)
    append(log, "a")
    log.delete()
    assert disk.list("") == []
