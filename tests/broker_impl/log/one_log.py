"""One log on a disk in memory, with helpers that fill it and read it."""

from broker_impl.log.config import LogConfig
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.log.results import Appended
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


def idempotent(sequence: int, *values: str, epoch: int = 0, producer_id: int = 7) -> bytes:
    return batch.encode_batch(
        records(*(values or ("x",))),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
