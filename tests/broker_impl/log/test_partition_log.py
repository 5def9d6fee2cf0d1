"""The log of one partition: what is appended is read, whatever happens in between."""

from broker_impl.log.config import LogConfig
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import Appended, PartitionLog
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
    """(offset, value) of every record, by reads that follow one another."""
    limit = log.end_offset if limit is None else limit
    offset, found = log.start_offset, []
    while data := log.read(offset, bytes_max=200, limit=limit):
        for record in batch.records(data[0]):
            if record.offset >= log.start_offset:
                found.append((record.offset, (record.value or b"").decode()))
            offset = record.offset + 1
    return found


def transfer(source: PartitionLog, target: PartitionLog) -> None:
    """Replicate all that the target lacks."""
    while data := source.read(target.end_offset, bytes_max=300, limit=source.end_offset):
        target.append_as_follower(data[0], now_ms=0)


def test_what_is_appended_is_read() -> None:
    """Batches get the next offsets and the leader's epoch, and come back whole and in order."""
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
    """A batch is patched on its way to the disk; the sender's bytes stay what they were."""
    log = opened(new_disk())
    append(log, "a")
    sent = bytearray(batch.encode_batch(records("b")))
    before = bytes(sent)
    log.append_as_leader(memoryview(sent), leader_epoch=4, now_ms=0)
    assert sent == before
    assert read_all(log) == [(0, "a"), (1, "b")]
