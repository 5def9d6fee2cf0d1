"""After a power loss at any step, the log that is loaded is complete and consistent."""

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest

from broker_impl.errors import StorageError
from broker_impl.log.config import LogConfig
from broker_impl.log.manager import LogManager
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.log.producers import ProducerStates
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record
from broker_impl.wire.types import TopicPartition

TP = TopicPartition("t", 0)
CONFIG = LogConfig(
    segment_bytes=300, index_interval_bytes=100, retention_bytes=600, delete_delay_ms=0
)


class Story:
    """A sequence of operations on a log: append, sync, truncate, delete, clear, close and open."""

    def __init__(self, disk: MemoryDisk) -> None:
        self.disk = disk
        self.sequence = 0
        self.appended: dict[bytes, int] = {}  # every batch ever appended, without its epoch
        self.synced = 0
        """Records below this offset must not be missing."""

    def append(self, log: PartitionLog, epoch: int, count: int) -> None:
        for _ in range(count):
            value = f"{epoch}/{self.sequence}".encode() * 5
            sent = batch.encode_batch(
                [Record(value=value, timestamp_ms=self.sequence)],
                producer_id=1,
                producer_epoch=0,
                base_sequence=self.sequence,
            )
            self.appended[value] = log.end_offset
            log.append_as_leader(sent, leader_epoch=epoch, now_ms=0)
            self.sequence += 1

    def tell(self) -> None:
        manager = LogManager({"": self.disk}, lambda topic: CONFIG, broker_id=1, cluster_id="c")
        manager.open(0)
        log = manager.create(TP)
        self.append(log, 0, 6)
        log.flush()
        self.synced = 6
        manager.checkpoint({TP: 6})
        log.assign_epoch(1, log.end_offset)
        self.append(log, 1, 9)
        self.synced = 4
        log.truncate_to(4)
        self.sequence = log.producers.entries[1].last_sequence + 1
        self.append(log, 2, 9)
        log.flush()
        self.synced = 13
        manager.checkpoint({TP: 13})
        manager.tick(0, {TP: 13})
        self.append(log, 3, 2)
        manager.close({TP: 15})
        self.synced = 15
        manager.open(0)
        log = manager.logs[TP]
        self.append(log, 3, 2)
        self.synced = 0
        log.truncate_fully_and_start_at(40)
        self.append(log, 5, 4)
        log.flush()
        self.synced = 44
        manager.close({TP: 44})


def steps() -> int:
    """The number of disk operations in the story."""
    count = 0

    def one_more(operation: str, path: str) -> bool:
        nonlocal count
        count += 1
        return False

    disk = MemoryDisk()
    disk.fails = one_more
    Story(disk).tell()
    return count


def headers(log: PartitionLog) -> Iterator[BatchHeader]:
    offset = log.start_offset
    while data := log.read(offset, bytes_max=10**6, limit=log.end_offset):
        for _, header in batch.batches(data[0]):
            yield header
            offset = header.next_offset
    assert offset == log.end_offset


@pytest.mark.parametrize("chance", [None, 1, 2])
def test_power_is_lost_at_any_step(chance: int | None) -> None:
    """After a power loss synced records stay, and the log loses records only from its end.

    Epochs and producer states match the records that are left.
    """
    for step in range(1, steps() + 1, 1 if chance is None else 3):
        disk = MemoryDisk()
        left = step

        def strikes(operation: str, path: str) -> bool:
            nonlocal left
            left -= 1
            return left <= 0

        disk.fails = strikes
        story = Story(disk)
        with pytest.raises(StorageError):
            story.tell()
        disk.fails = lambda operation, path: False
        disk.crash(None if chance is None else random.Random(1000 * chance + step))
        manager = LogManager({"": disk}, lambda topic: CONFIG, broker_id=1, cluster_id="c")
        manager.open(0)
        if TP not in manager.logs:
            assert story.synced == 0
            continue
        check_log(manager.logs[TP], story)


def test_what_was_seen_to_be_gone_stays_gone() -> None:
    """Records that a restart found missing do not come back after a later power loss.

    A kill in the middle of a removal loses no data, but the process that started in between has
    acted on what it found (docs/findings/0004).
    """
    for step in range(1, steps() + 1):
        disk = MemoryDisk()
        left = step

        def strikes(operation: str, path: str) -> bool:
            nonlocal left
            left -= 1
            return left <= 0

        disk.fails = strikes
        story = Story(disk)
        with pytest.raises(StorageError):
            story.tell()
        disk.fails = lambda operation, path: False
        disk.kill()
        seen = found_again(disk)
        disk.crash()
        left_over = found_again(disk)
        assert left_over == seen[: len(left_over)], f"killed at step {step}"


def found_again(disk: MemoryDisk) -> list[BatchHeader]:
    manager = LogManager({"": disk}, lambda topic: CONFIG, broker_id=1, cluster_id="c")
    manager.open(0)
    return list(headers(manager.logs[TP])) if TP in manager.logs else []


@pytest.mark.parametrize("lost", ["fsync_dir", "fsync"])
def test_a_truncation_that_was_killed_is_not_undone(lost: str) -> None:
    """A truncation that was interrupted is not undone: the next start syncs it before it appends.

    The interruption follows the removal of a segment, or the cut of one.
    """
    disk = MemoryDisk()
    disk.make_dir("t-0")
    disk.fsync_dir("")

    def opened() -> PartitionLog:
        return PartitionLog.open(
            disk, "t-0", TP, CONFIG, clean=False, recovery_point=0, start_offset=0, now_ms=0
        )

    log = opened()
    for _ in range(4):
        data = batch.encode_batch([Record(value=bytes(40))])
        log.append_as_leader(data, leader_epoch=0, now_ms=0)
    log.flush()
    assert log.segment_offsets == [0, 2]
    disk.fails = lambda operation, path: operation == lost
    with pytest.raises(StorageError):
        log.truncate_to(1 if lost == "fsync_dir" else 3)
    disk.fails = lambda operation, path: False
    seen = opened()
    data = batch.encode_batch([Record(value=b"a")])
    seen.append_as_leader(data, leader_epoch=0, now_ms=0)
    end = seen.end_offset - 1
    disk.crash()
    assert opened().end_offset == end


def check_log(log: PartitionLog, story: Story) -> None:
    assert log.end_offset >= story.synced
    found = list(headers(log))
    for older, newer in pairwise(found):
        assert newer.base_offset == older.next_offset
        assert newer.partition_leader_epoch >= older.partition_leader_epoch
    for header in found:
        (data,) = log.read(header.base_offset, bytes_max=1, limit=log.end_offset)
        (record,) = batch.records(data)
        assert story.appended[record.value or b""] == record.offset
        known, end = log.epochs.end_offset_for(header.partition_leader_epoch, log.end_offset)
        assert known == header.partition_leader_epoch
        same = [h for h in found if h.partition_leader_epoch == known]
        assert end == same[-1].next_offset
        assert log.offset_for_timestamp(record.timestamp_ms) is not None
    fold = ProducerStates()
    for header in found:
        fold.fold(header, 0)
    for producer_id, entry in fold.entries.items():
        remembered = log.producers.entries[producer_id].batches
        assert remembered[-len(entry.batches) :] == entry.batches[-len(remembered) :]
    if found:
        log.append_as_leader(
            batch.encode_batch(
                [Record()],
                producer_id=1,
                producer_epoch=0,
                base_sequence=found[-1].last_sequence + 1,
            ),
            leader_epoch=9,
            now_ms=0,
        )
