"""After a crash: what is whole and in order is believed, up to the first that is not."""

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
    """Every batch is counted, both indexes are made, each epoch is found where it begins."""
    segment = segment_of(b"".join(BATCHES))
    assert recovery.recover(segment) == [(0, 10), (1, 14), (2, 18)]
    assert (segment.base_offset, segment.next_offset) == (10, 22)
    assert segment.size == sum(map(len, BATCHES))
    assert segment.offsets.count == 5
    assert segment.offsets.position_for(15) == THIRD


@pytest.mark.parametrize("cut", [1, 20, 60, 61, 62, 100])
def test_a_torn_tail_is_cut(cut: int) -> None:
    """Wherever the write ended, the whole batches before it stay."""
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
        (16, ">b", 1),  # another format
        (17, ">I", 0),  # the CRC
        (23, ">i", -1),  # ends before it begins
        (23, ">i", 2**31 - 1),  # behind what an index can say
        (100, ">q", 77),  # the records
    ],
)
def test_a_bad_batch_ends_the_segment(at: int, form: str, value: int) -> None:
    """Whatever is wrong with a batch, it and all behind it go."""
    data = bytearray(b"".join(BATCHES))
    struct.pack_into(form, data, THIRD + at, value)
    segment = segment_of(bytes(data))
    recovery.recover(segment)
    assert (segment.size, segment.file.size, segment.next_offset) == (THIRD, THIRD, 14)


def test_a_batch_of_another_segment_is_not_believed() -> None:
    """The first batch does not lie before the offset that names the file."""
    segment = segment_of(b"".join(BATCHES), base=11)
    recovery.recover(segment)
    assert segment.size == 0


def test_batches_larger_than_a_chunk_are_checked() -> None:
    """A batch may be larger than what is read at once, and lie across its border."""
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
        (0, -1, True),  # the first of all (KAFKA-10432)
        (5, -1, True),
        (0, 0, False),  # more of the same
        (1, 0, True),
        (-1, -1, False),  # of no leader
        (2, 4, False),  # no epoch begins behind a later one
    ],
)
def test_begins_epoch(epoch: int, latest: int, begins: bool) -> None:
    """A leader epoch begins with its first batch, be it 0."""
    assert recovery.begins_epoch(epoch, latest) is begins
