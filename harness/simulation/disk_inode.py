"""The bytes of one file, and which of them survive a loss of power.

The rules, as ext4 (ordered, delayed allocation) and XFS allow them:

- Synced bytes survive. Pages written since then reach the disk at any time and in any order.
- Lengths change in order: the file has a length that it had at some moment since the last sync, or
  any length between two of those (a write is torn at any byte). A page within that length that was
  not written reads as zeros.
- A truncation that was not synced may therefore be lost: the removed bytes are there again. Only
  the page that contains the cut is written in place, and may hold later bytes, or zeros.
- Zeros that were reserved behind the data are there or not.
- After a failed sync the kernel takes its pages for clean: some of them are never written, even if
  later syncs succeed, until a write changes them again.
"""

import random
from collections.abc import Callable
from typing import Final, NamedTuple

PAGE_BYTES: Final = 4096


class _Cut(NamedTuple):
    """A truncation since the last sync, with what is needed to undo it."""

    synced_before: int
    at: int
    removed: bytes


class Inode:
    """The bytes of a file, without a name."""

    __slots__ = ("_cuts", "_is_held", "_never_written", "data", "reserved", "synced")

    def __init__(self) -> None:
        self.data = bytearray()
        """The bytes that a read returns."""
        self.synced = 0
        """The number of leading bytes that are sure to survive."""
        self.reserved = 0
        """The number of zeros behind the data, which later appends overwrite."""
        self._is_held: Callable[[], bool] = lambda: False
        self._cuts: list[_Cut] = []
        self._never_written: dict[int, int] = {}  # page → first lost byte of the file

    @property
    def unsynced(self) -> int:
        """The number of bytes that the next sync has to write."""
        return len(self.data) - self.synced

    @property
    def durable(self) -> bytes:
        """What a loss of power leaves if it takes all that was not synced, and undoes no cut."""
        data = bytearray(memoryview(self.data)[: self.synced])
        for page, start in self._never_written.items():
            end = min((page + 1) * PAGE_BYTES, len(data))
            data[start:end] = bytes(max(0, end - start))
        return bytes(data)

    def append(self, data: bytes) -> None:
        """Write at the end."""
        if self._never_written:
            self._never_written.pop(len(self.data) // PAGE_BYTES, None)
        self.data += data
        self.reserved = max(0, self.reserved - len(data))

    def reserve(self, size: int, is_held: Callable[[], bool]) -> None:
        """Lengthen the file by ``size`` zeros, for appends while ``is_held`` returns true."""
        self.reserved = size
        self._is_held = is_held

    def opened(self) -> None:
        """Take the reserved zeros for data if who reserved them is gone."""
        if self.reserved and not self._is_held():
            self.settle()

    def read(self, at: int, length: int) -> bytes:
        """Return the bytes from ``at`` on, with the reserved zeros at the end."""
        found = bytes(memoryview(self.data)[at : at + length])
        zeros = min(at + length, len(self.data) + self.reserved) - max(at, len(self.data))
        return found + bytes(max(0, zeros))

    def settle(self) -> None:
        """Take the reserved zeros for data."""
        self.data += bytes(self.reserved)
        self.reserved = 0

    def truncate(self, size: int) -> None:
        """Cut the file to ``size`` bytes."""
        self.settle()
        assert size <= len(self.data), f"a file of {len(self.data)} bytes cannot be cut to {size}"
        self._cuts.append(_Cut(self.synced, size, bytes(self.data[size:])))
        del self.data[size:]
        self.synced = min(self.synced, size)
        for page in [page for page in self._never_written if page >= size // PAGE_BYTES]:
            del self._never_written[page]

    def sync(self) -> None:
        """Make the whole file durable."""
        self.synced = len(self.data)
        self._cuts.clear()

    def fail_sync(self, rng: random.Random) -> None:
        """Fail a sync: no new bytes become durable, and the kernel gives up some pages."""
        for page, start, _ in _pages(self.synced, len(self.data)):
            if rng.random() < 0.5:
                self._never_written.setdefault(page, start)

    def lose_power(self, rng: random.Random) -> None:
        """Discard bytes at random, as far as the rules above allow."""
        if self._cuts:
            self._undo_cuts(rng)
        if self.synced < len(self.data):
            self._tear(rng)
        for page, start in self._never_written.items():
            end = min((page + 1) * PAGE_BYTES, len(self.data))
            self._blank(start, end)
        self._never_written.clear()
        if self.reserved and rng.random() < 0.5:
            self.reserved = 0  # the length was not stored
        self.settle()
        self.sync()

    def _undo_cuts(self, rng: random.Random) -> None:
        for _ in range(rng.randint(0, len(self._cuts))):
            synced_before, at, removed = self._cuts.pop()
            if rng.random() < 0.5:
                length = min(PAGE_BYTES - at % PAGE_BYTES, len(removed))
                in_place = bytes(self.data[at : at + length]).ljust(length, b"\0")
                removed = in_place + removed[length:]
            self.data[at:] = removed
            self.synced = synced_before

    def _tear(self, rng: random.Random) -> None:
        written = len(self.data)
        size = rng.choice((self.synced, written, rng.randint(self.synced, written)))
        del self.data[size:]
        if rng.random() < 0.5:
            for _, start, end in _pages(self.synced, size):
                if rng.random() < 0.5:
                    self._blank(start, end)

    def _blank(self, start: int, end: int) -> None:
        if start < end:
            self.data[start:end] = bytes(end - start)


def _pages(start: int, end: int) -> list[tuple[int, int, int]]:
    """Return the number, first byte and end of the part of each page between two offsets."""
    pages = range(start // PAGE_BYTES, -(-end // PAGE_BYTES))
    return [
        (page, max(start, page * PAGE_BYTES), min(end, (page + 1) * PAGE_BYTES)) for page in pages
    ]
