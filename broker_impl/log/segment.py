"""A segment: one file of batches, named by its first offset, and the indexes of that file."""

from collections.abc import Iterator, Sequence
from typing import Final

from broker_impl.errors import StorageError, WireError
from broker_impl.log.aborted_index import AbortedIndex
from broker_impl.log.config import LogConfig
from broker_impl.log.disk import Disk, DiskFile
from broker_impl.log.indexes import NO_TIMESTAMP, OffsetIndex, TimeIndex, TimestampAt
from broker_impl.wire.batch import HEADER_BYTES, BatchHeader, parse_header
from broker_impl.wire.types import Buffer, Offset

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
ABORTED_INDEX_SUFFIX = ".txnindex"
SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, ABORTED_INDEX_SUFFIX)

_SCAN_BYTES = 16 << 10
_RECENT = 64
RELATIVE_OFFSET_MAX: Final = 2**31 - 1
"""The largest distance of a record from the start of its segment: indexes store it in 4 bytes."""


def file_name(offset: Offset, suffix: str) -> str:
    """Return the name of a segment's file: the segment's base offset and the suffix."""
    return f"{offset:020d}{suffix}"


def write_whole(file: DiskFile, buffers: Sequence[Buffer]) -> None:
    """Append all buffers to a file; StorageError if fewer bytes were written (KAFKA-17181)."""
    file.append(buffers)


def placed_before(size: int, places: dict[Offset, int]) -> dict[Offset, int]:
    """The positions that stay valid in a file that is truncated to `size` bytes."""
    return {offset: position for offset, position in places.items() if position < size}


class _Places:
    """A cache of file positions, of about a hundred offsets that were recently appended or read."""

    def __init__(self) -> None:
        self._recent: dict[Offset, int] = {}
        self._less_recent: dict[Offset, int] = {}

    def add(self, offset: Offset, position: int) -> None:
        """Store the position of the first batch whose last offset is at least `offset`."""
        if len(self._recent) >= _RECENT:
            self._less_recent, self._recent = self._recent, {}
        self._recent[offset] = position

    def get(self, offset: Offset) -> int | None:
        """Return the position for `offset`, or None if it is not in the cache."""
        position = self._recent.get(offset)
        return self._less_recent.get(offset) if position is None else position

    def cut(self, size: int) -> None:
        """Keep only the positions in the first `size` bytes of the file."""
        self._recent = placed_before(size, self._recent)
        self._less_recent = placed_before(size, self._less_recent)

    @property
    def known(self) -> dict[Offset, int]:
        """All positions that are in the cache."""
        return self._less_recent | self._recent


class Segment:
    """A segment of a log: batches from `base_offset` up to `next_offset`, in `size` bytes.

    Compaction may have removed any of the batches, including the last one or all of them.

    To find an offset, a segment first uses the positions of recent appends and reads, where
    followers and consumers that keep up read; then the index, and finally the batches themselves.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: Offset,
        config: LogConfig,
        now_ms: int,
        suffix: str = "",
    ) -> None:
        """suffix: appended to the names of the files of a copy that will replace other segments."""
        self._disk = disk
        self._stem = f"{directory}/{base_offset:020d}"
        self.file_path = self._stem + LOG_SUFFIX + suffix
        """The path of the file that holds its batches."""
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.file = disk.open(self.file_path, create=True)
        self.size = self.file.size
        self.offsets = OffsetIndex(
            disk, self._stem + INDEX_SUFFIX + suffix, base_offset, config.index_bytes_max
        )
        self.times = TimeIndex(
            disk, self._stem + TIME_INDEX_SUFFIX + suffix, base_offset, config.index_bytes_max
        )
        self.aborted = AbortedIndex(disk, directory, self._stem + ABORTED_INDEX_SUFFIX + suffix)
        self.largest = NO_TIMESTAMP
        """The largest timestamp, with the last offset of the first batch that carries it."""
        self.written_ms = now_ms
        """When this broker last appended to it, or opened it."""
        self.begun_ms = now_ms
        """When this broker created or opened it."""
        self._index_interval_bytes = config.index_interval_bytes
        self._unindexed_bytes = 0
        self._appended = _Places()
        self._read_to = _Places()
        self._first_timestamp_ms: int | None = None

    # -- opening ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start an empty segment, and remove the indexes of an earlier segment of the same name."""
        assert self.size == 0, f"{self._stem}: a new segment already has {self.size} bytes"
        self.offsets.clear()
        self.times.clear()
        self.aborted.clear()

    def is_indexed(self) -> bool:
        """Return whether all index files exist and have complete entries."""
        return self.offsets.is_sane() and self.times.is_sane() and self.aborted.is_sane()

    def load(self, next_offset: Offset | None = None) -> None:
        """Load the state from the indexes; without `next_offset`, also find the segment's end."""
        self.largest = self.times.last
        self.aborted.load()
        if next_offset is not None:
            self.next_offset = next_offset
            self._close_indexes()
            return
        self.next_offset = self.base_offset
        from_position = self.offsets.boundary_before(self.size)
        for _, header in self.headers(from_position):
            self._see_timestamp(header)
            self.next_offset = header.next_offset
        self._unindexed_bytes = self.size - from_position

    def forget(self) -> None:
        """Discard all state and indexes; the caller then calls `note` again for every batch."""
        self.size = 0
        self.next_offset = self.base_offset
        self.largest = NO_TIMESTAMP
        self._unindexed_bytes = 0
        self._first_timestamp_ms = None
        self._appended.cut(0)
        self._read_to.cut(0)
        self.offsets.clear()
        self.times.clear()
        self.aborted.clear()

    # -- writing ---------------------------------------------------------------------------------

    def must_roll(
        self, size: int, last_offset: Offset, timestamp_ms: int, now_ms: int, config: LogConfig
    ) -> bool:
        """Return whether the next append needs a new segment.

        The append has `size` bytes and ends with this offset and timestamp.
        """
        return self.size > 0 and (
            self.size + size > config.segment_bytes
            or last_offset - self.base_offset > RELATIVE_OFFSET_MAX
            or self.offsets.is_full
            or self.times.is_full
            or self._age_ms(timestamp_ms, now_ms) > self.age_max_ms(config)
        )

    def age_max_ms(self, config: LogConfig) -> int:
        """The age at which this segment is closed, in milliseconds."""
        return config.age_max_ms(self._stem)

    def _age_ms(self, timestamp_ms: int, now_ms: int) -> int:
        """Return the time from the first batch's timestamp to this one.

        If the first batch has no timestamp, the segment's age by this broker's clock is returned.
        """
        first_ms = self.first_timestamp_ms()
        return now_ms - self.begun_ms if first_ms < 0 else timestamp_ms - first_ms

    def first_timestamp_ms(self) -> int:
        """Return the largest timestamp of the first batch; -1: it has none, or does not exist."""
        if not self.size:
            return -1
        if self._first_timestamp_ms is None:
            self._first_timestamp_ms = next(self.headers())[1].max_timestamp
        return self._first_timestamp_ms

    def append(
        self, buffers: Sequence[Buffer], placed: Sequence[tuple[int, BatchHeader]], now_ms: int
    ) -> None:
        """Append batches. `placed` has the position in the buffers and the header of each batch."""
        start = self.size
        write_whole(self.file, buffers)
        for at, header in placed:
            self.note(start + at, header)
        self.written_ms = now_ms

    def note(self, position: int, header: BatchHeader) -> None:
        """Update state and indexes for the batch at `position`, the new last one of the segment."""
        self._appended.add(header.base_offset, position)
        self._see_timestamp(header)
        if self._unindexed_bytes > self._index_interval_bytes:
            self.offsets.append(header.last_offset, position)
            self.times.append(self.largest)
            self._unindexed_bytes = 0
        self._unindexed_bytes += header.size
        self.size = position + header.size
        self.next_offset = header.next_offset

    def finish(self) -> None:
        """Write the last index entries, because nothing more will be appended to this segment."""
        self.times.append(self.largest)
        self.times.write_pending()
        self.offsets.write_pending()
        self._close_indexes()

    def truncate(self, offset: Offset) -> None:
        """Remove the batch that contains `offset` and all later ones. It is durable on return."""
        position = self.locate(offset)
        self.file.truncate(position)
        self.file.fsync()
        self.size = position
        self.offsets.truncate(position)
        self._appended.cut(position)
        self._read_to.cut(position)
        if position == 0:
            self._first_timestamp_ms = None
        self.times.truncate(offset)
        self.aborted.truncate(offset)
        self.load()

    @property
    def known_places(self) -> dict[Offset, int]:
        """The positions in the file that this object remembers for some offsets (`locate`)."""
        return self._read_to.known | self._appended.known

    def fsync(self) -> None:
        """Call fsync for the batches' file."""
        self.file.fsync()

    def fsync_indexes(self) -> None:
        """Call fsync for the index files, which recovery trusts below the recovery point."""
        self.offsets.fsync()
        self.times.fsync()
        self.aborted.fsync()
        self._close_indexes()

    def close(self) -> None:
        """Close all files."""
        self._close_indexes()
        self.file.close()

    def _close_indexes(self) -> None:
        self.offsets.close()
        self.times.close()
        self.aborted.close()

    # -- reading ---------------------------------------------------------------------------------

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Yield position and header of each batch, starting with the batch at `position`."""
        chunk, chunk_at = b"", position
        while position < self.size:
            if position + HEADER_BYTES > chunk_at + len(chunk):
                chunk, chunk_at = self.file.pread(position, _SCAN_BYTES), position
            header = self._parse(chunk, position - chunk_at)
            if position + header.size > self.size:
                raise StorageError(
                    f"{self._stem}{LOG_SUFFIX} has an incomplete batch at position {position}"
                )
            yield position, header
            position += header.size

    def locate(self, offset: Offset) -> int:
        """Return the position of the first batch whose last offset is at least `offset`.

        If there is no such batch, `size` is returned.
        """
        if offset >= self.next_offset:
            return self.size
        if offset <= self.base_offset:
            return 0
        position = self._appended.get(offset)
        if position is None:
            position = self._read_to.get(offset)
        if position is not None:
            return position
        if not self.size:
            return 0
        nearby = self.headers(self.offsets.position_for(offset))
        found = (position for position, header in nearby if header.last_offset >= offset)
        return next(found, self.size)

    def read(self, start: int, end: int, bytes_max: int, *, at_least_one: bool) -> bytes:
        """Return complete batches, at most `bytes_max` bytes, between two positions of the file.

        `start` and `end` are positions at which a batch starts or the last one ends. With
        `at_least_one`, the first batch is returned even if it is larger than `bytes_max`.
        """
        if end - start <= bytes_max:
            return self._pread(start, end - start)
        data = self._pread(start, bytes_max)
        at = max(0, self.offsets.boundary_before(start + bytes_max) - start)
        while len(data) - at >= HEADER_BYTES:
            header = self._parse(data, at)
            if at + header.size > len(data):
                break
            at += header.size
            self._read_to.add(header.next_offset, start + at)
        if at == 0 and at_least_one:
            head = data if len(data) >= HEADER_BYTES else self._pread(start, HEADER_BYTES)
            return self._pread(start, self._parse(head, 0).size)
        return data[:at]

    def _pread(self, at: int, length: int) -> bytes:
        data = self.file.pread(at, length)
        if len(data) != length:
            raise StorageError(
                f"{self._stem}{LOG_SUFFIX}: {length} bytes at position {at} are missing"
            )
        return data

    def _parse(self, data: bytes, at: int) -> BatchHeader:
        try:
            return parse_header(data, at)
        except WireError as error:
            raise StorageError(f"{self._stem}{LOG_SUFFIX} is damaged: {error}") from None

    def _see_timestamp(self, header: BatchHeader) -> None:
        if header.count and header.max_timestamp > self.largest.timestamp_ms:
            self.largest = TimestampAt(header.max_timestamp, header.last_offset)
