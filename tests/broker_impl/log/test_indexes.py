"""Sparse indexes: every look-up equals a linear scan (L3), wherever the entries are."""

import struct
from bisect import bisect_right

from hypothesis import given
from hypothesis import strategies as st

from broker_impl.log.indexes import NO_TIMESTAMP, OffsetIndex, TimeIndex, TimestampAt
from broker_impl.log.memory_disk import MemoryDisk

BASE = 5000

rising = st.lists(st.integers(1, 5), max_size=40).map(
    lambda steps: [sum(steps[: n + 1]) for n in range(len(steps))]
)


def offset_index(bytes_max: int = 1 << 20) -> tuple[MemoryDisk, OffsetIndex]:
    disk = MemoryDisk()
    return disk, OffsetIndex(disk, "x.index", BASE, bytes_max)


def time_index(bytes_max: int = 1 << 20) -> tuple[MemoryDisk, TimeIndex]:
    disk = MemoryDisk()
    return disk, TimeIndex(disk, "x.timeindex", BASE, bytes_max)


@given(rising, st.integers(0, 220), st.integers(0, 40), st.integers(0, 220))
def test_offset_look_ups(offsets: list[int], target: int, written: int, cut: int) -> None:
    """Both look-ups find the last entry that is not after the target, in memory and in the file."""
    _, index = offset_index()
    entries = [(BASE + offset, 7 * offset) for offset in offsets]
    for number, entry in enumerate(entries):
        if number == written:
            index.write_pending()
        index.append(*entry)
    for _ in range(2):
        before = [position for offset, position in entries if offset <= BASE + target]
        assert index.position_for(BASE + target) == max(before, default=0)
        starts = [position for _, position in entries if position <= target]
        assert index.boundary_before(target) == max(starts, default=0)
        index.truncate(cut)
        entries = [entry for entry in entries if entry[1] < cut]
    assert index.count == len(entries)


@given(rising, st.integers(0, 220), st.integers(0, 40))
def test_time_look_ups(times: list[int], target: int, written: int) -> None:
    """The time index finds the last offset with an older timestamp, and skips older entries."""
    _, index = time_index()
    entries = [TimestampAt(10 * time, BASE + time) for time in times]
    for number, entry in enumerate(entries):
        if number == written:
            index.write_pending()
        index.append(entry)
        index.append(TimestampAt(entry.timestamp_ms, BASE + 10**6))
    older = bisect_right([time for time, _ in entries], target - 1)
    assert index.last_below(target) == (entries[older - 1].offset if older else None)
    assert index.last == (entries[-1] if entries else NO_TIMESTAMP)
    index.truncate(BASE + target)
    assert index.count == sum(offset < BASE + target for _, offset in entries)


def test_files_have_kafkas_format() -> None:
    """The files have Kafka's format.

    An offset entry has relative offset and position as int32; a time entry has the timestamp as
    int64 and the relative offset as int32.
    """
    disk, offsets = offset_index()
    offsets.append(BASE + 3, 100)
    offsets.write_pending()
    assert disk.read("x.index") == struct.pack(">ii", 3, 100)
    disk, times = time_index()
    times.append(TimestampAt(1234, BASE + 3))
    times.write_pending()
    assert disk.read("x.timeindex") == struct.pack(">qi", 1234, 3)


def test_an_index_is_full_at_its_size() -> None:
    """An index is full at its maximum size; a time index reserves room for its closing entry."""
    _, offsets = offset_index(bytes_max=24)
    _, times = time_index(bytes_max=36)
    for number in range(3):
        assert not offsets.is_full
        offsets.append(BASE + number, 10 * number)
    assert offsets.is_full
    for number in range(2):
        assert not times.is_full
        times.append(TimestampAt(number, BASE + number))
    assert times.is_full


def test_an_index_is_sane_with_a_file_of_whole_entries() -> None:
    """An index is sane if its file exists and contains whole entries."""
    disk, index = offset_index()
    assert not index.is_sane()
    index.append(BASE, 0)
    index.fsync()
    assert index.is_sane()
    disk.open("x.index").append([b"abc"])
    assert not index.is_sane()


def test_many_entries_reach_the_file_by_themselves() -> None:
    """Entries in memory are written after a few kilobytes, and a closed index can be read again."""
    disk, index = offset_index()
    for number in range(10_000):
        index.append(BASE + number, number)
    assert len(disk.read("x.index")) > 75_000
    index.write_pending()
    index.close()
    assert index.position_for(BASE + 7777) == 7777
    index.clear()
    assert index.count == 0
