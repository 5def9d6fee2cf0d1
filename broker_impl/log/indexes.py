"""Sparse indexes of a segment: hints where to start a search, never the answer itself.

The files have Kafka's format. Entries are in order of arrival, so both columns rise strictly. The
last few entries stay in memory, because after a crash the newest segment's index is rebuilt anyway.
"""

import struct
from typing import ClassVar, NamedTuple

from broker_impl.log.disk import Disk, DiskFile
from broker_impl.wire.types import Offset

_PENDING_BYTES_MAX = 4096


class _SparseIndex:
    """Entries of two numbers, appended in order; the file is opened when it is first needed."""

    _ENTRY: ClassVar[struct.Struct]

    def __init__(self, disk: Disk, path: str, base_offset: Offset, bytes_max: int) -> None:
        self._disk, self.path, self._base = disk, path, base_offset
        self._entries_max = bytes_max // self._ENTRY.size
        self._open_file: DiskFile | None = None
        self._pending = bytearray()

    @property
    def count(self) -> int:
        """The number of entries."""
        return (self._file.size + len(self._pending)) // self._ENTRY.size

    @property
    def _file(self) -> DiskFile:
        if self._open_file is None:
            self._open_file = self._disk.open(self.path, create=True)
        return self._open_file

    def is_sane(self) -> bool:
        """Does the file exist, and does it hold whole entries?"""
        return self._disk.exists(self.path) and self._file.size % self._ENTRY.size == 0

    def clear(self) -> None:
        """Drop every entry."""
        self._pending.clear()
        self._file.truncate(0)

    def write_pending(self) -> None:
        """Write the entries that wait in memory to the file."""
        if self._pending:
            self._file.append([self._pending])
            self._pending = bytearray()

    def fsync(self) -> None:
        """Make every entry survive a crash."""
        self.write_pending()
        self._file.fsync()

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        if self._open_file is not None:
            self._open_file.close()
            self._open_file = None

    def _append(self, first: int, second: int) -> None:
        self._pending += self._ENTRY.pack(first, second)
        if len(self._pending) >= _PENDING_BYTES_MAX:
            self.write_pending()

    def _entry(self, number: int) -> tuple[int, int]:
        at = number * self._ENTRY.size
        in_file = self._file.size
        if at >= in_file:
            return self._ENTRY.unpack_from(self._pending, at - in_file)
        return self._ENTRY.unpack(self._file.pread(at, self._ENTRY.size))

    def _below(self, column: int, bound: int) -> int:
        """The number of entries whose number in this column is less than `bound`."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self._entry(middle)[column] < bound:
                low = middle + 1
            else:
                high = middle
        return low

    def _keep(self, count: int) -> None:
        self.write_pending()
        self._file.truncate(min(self._file.size, count * self._ENTRY.size))


class OffsetIndex(_SparseIndex):
    """Relative offset of a batch's last record → position of the batch (`.index`)."""

    _ENTRY = struct.Struct(">ii")

    @property
    def is_full(self) -> bool:
        """Must the segment be closed before another entry?"""
        return self.count >= self._entries_max

    def append(self, last_offset: Offset, position: int) -> None:
        """Add an entry for the batch that ends with `last_offset` and starts at `position`."""
        self._append(last_offset - self._base, position)

    def position_for(self, offset: Offset) -> int:
        """The position of a batch at or before the one that holds `offset`."""
        number = self._below(0, offset - self._base + 1)
        return self._entry(number - 1)[1] if number else 0

    def boundary_before(self, position: int) -> int:
        """The largest indexed start of a batch that is not after `position`."""
        number = self._below(1, position + 1)
        return self._entry(number - 1)[1] if number else 0

    def truncate(self, size: int) -> None:
        """Drop the entries at or after position `size`, because the segment was truncated to it."""
        self._keep(self._below(1, size))


class TimestampAt(NamedTuple):
    """The largest timestamp so far, and the last offset of the first batch that carries it."""

    timestamp_ms: int
    offset: Offset


NO_TIMESTAMP = TimestampAt(-1, -1)


def first_cut(next_offset: Offset, base_offset: Offset) -> int:
    """The first relative offset that a truncated segment no longer has in its time index."""
    return next_offset - base_offset


class TimeIndex(_SparseIndex):
    """Largest timestamp so far → relative offset of its batch (`.timeindex`)."""

    _ENTRY = struct.Struct(">qi")

    @property
    def is_full(self) -> bool:
        """Must the segment be closed? One entry remains free, for the closing of the segment."""
        return self.count >= self._entries_max - 1

    @property
    def last(self) -> TimestampAt:
        """The newest entry."""
        return self._at(self.count - 1) if self.count else NO_TIMESTAMP

    def append(self, largest: TimestampAt) -> None:
        """Add the largest timestamp so far, unless the last entry already has it."""
        if largest.timestamp_ms > self.last.timestamp_ms:
            self._append(largest.timestamp_ms, largest.offset - self._base)

    def last_below(self, timestamp_ms: int) -> Offset | None:
        """An offset up to which (inclusive) every record is older than `timestamp_ms`."""
        number = self._below(0, timestamp_ms)
        return self._at(number - 1).offset if number else None

    def truncate(self, next_offset: Offset) -> None:
        """Drop the entries of offsets that are not before `next_offset`, the segment's new end."""
        self._keep(self._below(1, first_cut(next_offset, self._base)))

    def _at(self, number: int) -> TimestampAt:
        timestamp, relative = self._entry(number)
        return TimestampAt(timestamp, relative + self._base)
