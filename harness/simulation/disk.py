"""A host's disk: how long it takes, how it fails, and what power loss leaves on it.

Processes reach it through `attach`; it outlives them. What survives is told by `disk_inode` (bytes)
and `disk_names` (names). The end of a process alone loses nothing.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from harness.simulation.disk_access import DiskAccess
from harness.simulation.disk_inode import SECTOR_BYTES
from harness.simulation.disk_names import Names


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds that an operation takes, at least and at most: NVMe behind a page cache."""

    read: tuple[float, float] = (2e-6, 15e-6)
    write: tuple[float, float] = (4e-6, 25e-6)
    sync: tuple[float, float] = (40e-6, 400e-6)
    name: tuple[float, float] = (3e-6, 20e-6)
    """To look a name up, make, change or remove it."""
    bytes_per_s: float = 2e9
    """What bytes read, written or synced take on top."""


class Place(NamedTuple):
    """A byte on the disk."""

    path: str
    at: int


class SimDisk:
    """One disk, with one file system on it.

    rng: decides what is lost, damaged, and how long things take.
    error: the class of every failure, made with a sentence.
    """

    def __init__(
        self, rng: random.Random, error: type[Exception], *, latency: Latency | None = None
    ) -> None:
        self.rng = rng
        self.error = error
        self.latency = latency or Latency()
        self.names = Names(error)
        self.boots = 0
        """Losses of power; whatever ran before the last one is no more."""
        self.lock_holder: DiskAccess | None = None
        """Who has locked it; a lock counts as long as its holder lives."""
        self._limit_bytes: int | None = None
        self._slowness_s = 0.0
        self._failing_syncs: int | None = 0
        self._interruption: tuple[int, Callable[[], object]] | None = None
        self._interrupted_rename: tuple[str, Callable[[], object]] | None = None

    def attach(
        self,
        *,
        busy: Callable[[float], object] = lambda seconds: None,
        is_ended: Callable[[], bool] = lambda: False,
    ) -> DiskAccess:
        """What one process works with.

        busy: called for each operation with the seconds it takes, for which the process does
            nothing else: the operation returns at once, its time is to be spent at the end of the
            step. Calls within one step add up.
        is_ended: is the process no more? Then its lock is gone, and nothing reaches the disk.
        """
        return DiskAccess(self, busy, is_ended)

    # Faults.

    def power_loss(self) -> None:
        """Lose what was not synced, as far as chance will have it. Processes must begin anew."""
        self.boots += 1
        self._interruption = None
        self.names.lose_power(self.rng)

    def fill(self, leave_bytes: int = 0) -> None:
        """From now on so much fits, until something is removed or `free` is called."""
        self._limit_bytes = self._used_bytes() + leave_bytes

    def free(self) -> None:
        """There is room again."""
        self._limit_bytes = None

    def slow(self, seconds: float) -> None:
        """Every operation takes so much longer; 0: as usual again."""
        self._slowness_s = seconds

    def fail_fsync(self, times: int | None = None) -> None:
        """So many syncs of files or directories fail; None: all, until `fail_fsync(0)`."""
        self._failing_syncs = times

    def interrupt(self, operations: int, action: Callable[[], object]) -> None:
        """After so many more operations call `action`, right in front of the next one.

        A step of a process cannot be divided otherwise; real processes are killed, and real power
        goes, between any two calls of the system. If the action ends the process, that operation
        and all its later ones fail without a trace.
        """
        self._interruption = operations, action

    def interrupt_rename(self, ending: str, action: Callable[[], object]) -> None:
        """The same right in front of the next rename of a file whose name ends so."""
        self._interrupted_rename = ending, action

    def cancel_interrupt(self) -> None:
        """It has not come to it, and shall not."""
        self._interruption = self._interrupted_rename = None

    def flip_bit(self, path: str | None = None) -> Place | None:
        """Turn one synced bit over, in this file or anywhere; None if nothing is synced."""
        place = self._choose(path)
        if place is not None:
            self.turn_over(place, self.rng.randrange(8))
        return place

    def turn_over(self, place: Place, bit: int) -> None:
        """Turn this very bit over, 0 to 7."""
        self.names.file(place.path).data[place.at] ^= 1 << bit

    def break_sector(self, path: str | None = None) -> Place | None:
        """Make one sector unreadable (EIO), in this file or anywhere; None if nothing is synced."""
        place = self._choose(path)
        if place is None:
            return None
        sector = place.at // SECTOR_BYTES
        self.names.file(place.path).bad_sectors.add(sector)
        return Place(place.path, sector * SECTOR_BYTES)

    def _choose(self, path: str | None) -> Place | None:
        files = [
            (name, inode) for name, inode in self.names.files() if path is None or name == path
        ]
        total = sum(inode.synced for _, inode in files)
        if not total:
            return None
        at = self.rng.randrange(total)
        for name, inode in files:
            if at < inode.synced:
                return Place(name, at)
            at -= inode.synced
        raise AssertionError("the files hold less than their sum")

    # Looking at it from outside, without a trace.

    def paths(self) -> list[str]:
        """Every file there is, in order."""
        return [path for path, _ in self.names.files()]

    @property
    def unsynced_bytes(self) -> int:
        """What files hold that no sync has saved."""
        return sum(inode.unsynced for _, inode in self.names.files())

    def peek(self, path: str) -> bytes:
        """What a reader would find in a file, bad sectors notwithstanding."""
        return bytes(self.names.file(path).data)

    # For `DiskAccess`.

    def count(self) -> None:
        """An operation is about to begin: is it the one to be interrupted?"""
        if self._interruption is not None:
            left, action = self._interruption
            self._interruption = (left - 1, action) if left else None
            if not left:
                action()

    def renaming(self, path: str) -> None:
        """A file is about to get another name: is it the one to be interrupted?"""
        if self._interrupted_rename is not None and path.endswith(self._interrupted_rename[0]):
            action = self._interrupted_rename[1]
            self._interrupted_rename = None
            action()

    def seconds(self, span: tuple[float, float], size: int) -> float:
        """How long an operation takes that moves `size` bytes."""
        shortest, longest = span
        return (
            shortest
            + (longest - shortest) * self.rng.random()
            + size / self.latency.bytes_per_s
            + self._slowness_s
        )

    def fits(self, size: int) -> int:
        """How much of so many bytes there is room for."""
        if self._limit_bytes is None:
            return size
        return max(0, min(size, self._limit_bytes - self._used_bytes()))

    def sync_fails(self) -> bool:
        """Does this sync fail?"""
        if self._failing_syncs:
            self._failing_syncs -= 1
            return True
        return self._failing_syncs is None

    def _used_bytes(self) -> int:
        """Counted only when it matters: most of the time a disk has room."""
        return sum(len(inode.data) for _, inode in self.names.files())
