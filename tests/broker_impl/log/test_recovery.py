"""Recovery after a crash keeps the batches up to the first that is damaged or out of order."""

import struct

import pytest

from broker_impl.log import recovery
from broker_impl.log.config import LogConfig
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.segment import Segment
from broker_impl.wire import batch
from broker_impl.wire.batch import Record

BASE = 10
BATCHES = [
    batch.encode_batch(
        [Record(value=bytes(100))] * 2, base_offset=BASE + 2 * n, leader_epoch=n // 2
    )
    for n in range(6)
]
THIRD = 2 * len(BATCHES[0])


def segment_of(data: bytes, base: int = BASE) -> Segment:
    disk = MemoryDisk()
    disk.make_dir("d")
    disk.write(f"d/{base:020d}.log", data)
    return Segment(disk, "d", base, LogConfig(index_interval_bytes=0), 0)


def test_a_sound_segment_is_kept() -> None:
    """Recovery of a sound segment keeps all batches, builds both indexes, and finds all epochs."""
    segment = segment_of(b"".join(BATCHES))
    assert recovery.recover(segment) == [(0, 10), (1, 14), (2, 18)]
    assert (segment.base_offset, segment.next_offset) == (10, 22)
    assert segment.size == sum(map(len, BATCHES))
    assert segment.offsets.count == 5
    assert segment.offsets.position_for(15) == THIRD


@pytest.mark.parametrize("cut", [1, 20, 60, 61, 62, 100])
def test_a_torn_tail_is_cut(cut: int) -> None:
    """Recovery keeps the whole batches before a torn write, wherever the write ended."""
    segment = segment_of(b"".join(BATCHES[:3])[: THIRD + cut])
    recovery.recover(segment)
    assert (segment.size, segment.file.size, segment.next_offset) == (THIRD, THIRD, 14)


@pytest.mark.parametrize(
    ("at", "form", "value"),
    [
        (0, ">q", 13),  # overlaps the batch before
        (8, ">i", 10),  # shorter than a header
        (8, ">i", -5),
        (8, ">i", 2**31 - 1),  # longer than the file
        (16, ">b", 1),  # another format version
        (17, ">I", 0),  # wrong CRC
        (23, ">i", -1),  # ends before it begins
        (23, ">i", 2**31 - 1),  # an offset delta that no index can hold
        (100, ">q", 77),  # damaged records
    ],
)
def test_a_bad_batch_ends_the_segment(at: int, form: str, value: int) -> None:
    """A bad batch and all batches behind it are removed, whatever is wrong with it."""
    data = bytearray(b"".join(BATCHES))
    struct.pack_into(form, data, THIRD + at, value)
    segment = segment_of(bytes(data))
    recovery.recover(segment)
    assert (segment.size, segment.file.size, segment.next_offset) == (THIRD, THIRD, 14)


def test_a_batch_of_another_segment_is_not_believed() -> None:
    """A first batch below the offset in the file's name is not accepted."""
    segment = segment_of(b"".join(BATCHES), base=11)
    recovery.recover(segment)
    assert segment.size == 0


def test_batches_larger_than_a_chunk_are_checked() -> None:
    """Recovery checks batches that are larger than one read, or cross the end of one."""
    data = b""
    for number in range(4):
        value = bytes([number]) * 700_000
        data += batch.encode_batch([Record(value=value)], base_offset=BASE + number)
    huge = batch.encode_batch([Record(value=bytes(3_000_000))], base_offset=BASE + 4)
    segment = segment_of(data + huge)
    recovery.recover(segment)
    assert segment.next_offset == BASE + 5
    damaged = bytearray(data + huge)
    damaged[-1] ^= 1
    segment = segment_of(bytes(damaged))
    recovery.recover(segment)
    assert segment.next_offset == BASE + 4


@pytest.mark.parametrize(
    ("epoch", "latest", "begins"),
    [
        (0, -1, True),  # the first epoch of all (KAFKA-10432)
        (5, -1, True),
        (0, 0, False),  # the same epoch
        (1, 0, True),
        (-1, -1, False),  # no epoch
        (2, 4, False),  # an epoch does not begin after a later one
    ],
)
def test_begins_epoch(epoch: int, latest: int, begins: bool) -> None:
    """A leader epoch begins with its first batch, even if it is epoch 0."""
    assert recovery.begins_epoch(epoch, latest) is begins
