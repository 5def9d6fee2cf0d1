"""Look-ups in a segment equal a linear scan, whether they use memory, the index or the file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.errors import StorageError
from broker_impl.log.config import LogConfig
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.segment import Segment, file_name
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record

BASE = 1000


def new_segment(interval: int = 200) -> Segment:
    disk = MemoryDisk()
    disk.make_dir("d")
    segment = Segment(disk, "d", BASE, LogConfig(index_interval_bytes=interval), 0)
    segment.begin()
    return segment


def fill(segment: Segment, counts: list[int]) -> list[tuple[int, BatchHeader]]:
    """Append one batch per count, with as many records, and return position and header of each."""
    written = []
    for count in counts:
        data = batch.encode_batch([Record(value=b"v")] * count, base_offset=segment.next_offset)
        header = batch.parse_header(data)
        written.append((segment.size, header))
        segment.append([data], [(0, header)], 0)
    return written


def test_names_have_twenty_digits() -> None:
    """Names of segment files sort by offset."""
    assert file_name(123, ".log") == "00000000000000000123.log"


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=300),
    st.sampled_from([0, 200, 10**6]),
    st.data(),
)
def test_every_offset_is_located(counts: list[int], interval: int, data: st.DataObject) -> None:
    """`locate` finds the first batch ending at the offset or later, by memory, index or scan."""
    segment = new_segment(interval)
    written = fill(segment, counts)
    for _ in range(10):
        offset = data.draw(st.integers(BASE - 1, segment.next_offset + 1))
        fitting = [at for at, header in written if header.last_offset >= offset]
        assert segment.locate(offset) == min(fitting, default=segment.size)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=100), st.integers(0, 9000), st.data())
def test_a_read_gives_what_fits(counts: list[int], bytes_max: int, data: st.DataObject) -> None:
    """A read returns as many whole batches as fit, and the next read continues at its end."""
    segment = new_segment()
    written = fill(segment, counts)
    borders = [*(at for at, _ in written), segment.size]
    start = data.draw(st.sampled_from(borders))
    end = data.draw(st.sampled_from([at for at in borders if at >= start]))
    found = segment.read(start, end, bytes_max, at_least_one=False)
    reached = start + len(found)
    assert reached == max(at for at in borders if at <= min(end, start + bytes_max) or at == start)
    if reached < segment.size:
        next_offset = dict(written)[reached].base_offset
        assert segment.locate(next_offset) == reached


def test_places_are_remembered_and_replaced() -> None:
    """Offsets are found after many appends have evicted remembered positions."""
    segment = new_segment(interval=10**6)
    written = fill(segment, [1] * 400)
    for at, header in written[::7]:
        assert segment.locate(header.base_offset) == at


def test_a_shortened_file_is_noticed() -> None:
    """A read notices a file that is shorter than before, and a batch that exceeds its end."""
    segment = new_segment()
    fill(segment, [1, 1])
    segment.file.truncate(segment.size - 1)
    with pytest.raises(StorageError, match="are missing"):
        segment.read(0, segment.size, 10**6, at_least_one=True)
    segment.size -= 1
    with pytest.raises(StorageError, match="has an incomplete batch"):
        list(segment.headers())


def test_a_damaged_header_is_noticed() -> None:
    """An impossible header is reported as damage of the disk."""
    segment = new_segment()
    fill(segment, [1])
    segment.file.append([bytes(100)])
    segment.size += 100
    with pytest.raises(StorageError, match="is damaged"):
        list(segment.headers())


def test_the_largest_timestamp_is_found_again() -> None:
    """After a truncation and a load, the largest timestamp is that of the remaining batches."""
    segment = new_segment(interval=0)
    for number, timestamp in enumerate((10, 50, 30, 70, 20)):
        data = batch.encode_batch([Record(timestamp_ms=timestamp)], base_offset=BASE + number)
        segment.append([data], [(0, batch.parse_header(data))], 0)
    assert segment.largest == (70, BASE + 3)
    segment.truncate(BASE + 3)
    assert segment.largest == (50, BASE + 1)
    assert segment.next_offset == BASE + 3
    segment.finish()
    segment.load()
    assert segment.largest == (50, BASE + 1)


def test_an_old_index_means_nothing_to_a_new_segment() -> None:
    """A new segment clears the index files that an older segment left under its name."""
    disk = MemoryDisk()
    disk.make_dir("d")
    disk.write(f"d/{file_name(BASE, '.index')}", bytes(16))
    disk.write(f"d/{file_name(BASE, '.timeindex')}", bytes(24))
    segment = Segment(disk, "d", BASE, LogConfig(), 0)
    segment.begin()
    assert segment.offsets.count == segment.times.count == 0
