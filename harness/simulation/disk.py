"""A host's disk: how long operations take, how they fail, and what survives a power loss.

Processes access it through `attach`; it outlives them. `disk_inode` (bytes) and `disk_names`
(names) define what survives a power loss. The end of a process alone loses nothing.
"""

import random
from collections.abc import Callable
from typing import NamedTuple

from harness.simulation.disk_access import DiskAccess, Latency
from harness.simulation.disk_names import Names


class Place(NamedTuple):
    """The location of a byte on the disk."""

    path: str
    at: int


class SimDisk:
    """One disk, with one file system on it.

    rng: decides what is lost or damaged, and how long operations take.
    error: the class of every failure, constructed with a sentence.
    """

    def __init__(
        self, rng: random.Random, error: type[Exception], *, latency: Latency | None = None
    ) -> None:
        self.rng = rng
        self.error = error
        self.latency = latency or Latency()
        self.names = Names(error)
        self.boots = 0
        """The number of power losses; processes attached before the last one have ended."""
        self.lock_holders: dict[str, DiskAccess] = {}
        """The process that has locked each directory, which is valid as long as it lives."""
        self._limit_bytes: int | None = None
        self._slowness_s = 0.0
        self._failing_syncs: int | None = 0
        self._failed: dict[str, int] = {}
        """The number of operations that have failed in each directory that fails."""
        self._interruption: tuple[int, Callable[[], object]] | None = None
        self._interrupted_rename: tuple[str, Callable[[], object]] | None = None

    def attach(
        self,
        *,
        busy: Callable[[float], object] = lambda seconds: None,
        is_ended: Callable[[], bool] = lambda: False,
    ) -> DiskAccess:
        """Return one process's access to the disk.

        busy: called for each operation with the seconds it takes, during which the process does
            nothing else. The operation returns at once; its time is spent at the end of the step.
            Calls within one step add up.
        is_ended: whether the process has ended. Then its lock is gone, and it writes nothing any
            more.
        """
        return DiskAccess(self, busy, is_ended)

    # Faults.

    def power_loss(self) -> None:
        """Lose, at random, what was not synced. Processes must be started again."""
        self.boots += 1
        self._interruption = None
        self.names.lose_power(self.rng)

    def fill(self, leave_bytes: int = 0) -> None:
        """Leave room for `leave_bytes` more, and for what is removed, until `free` is called."""
        self._limit_bytes = self._used_bytes() + leave_bytes

    def free(self) -> None:
        """Remove the limit of free space."""
        self._limit_bytes = None

    def slow(self, seconds: float) -> None:
        """Let every operation take this much longer; 0 restores the usual time."""
        self._slowness_s = seconds

    def fail_fsync(self, times: int | None = None) -> None:
        """Let this many syncs of files or directories fail; None: all, until `fail_fsync(0)`."""
        self._failing_syncs = times

    def fail_directory(self, path: str) -> None:
        """Let every operation of any process in a directory fail until `repair_directory`.

        That includes operations on files that are open. A failed operation has no effect, and what
        was written before stays in the page cache: after the repair it is there, but a power loss
        takes what was not synced, also during the failure. The directory that contains this one
        works.
        """
        self._failed.setdefault(path, 0)

    def repair_directory(self, path: str) -> None:
        """Let operations in the directory succeed again; no effect if they do."""
        self._failed.pop(path, None)

    def interrupt(self, operations: int, action: Callable[[], object]) -> None:
        """Call `action` after this many more operations, right before the next one.

        A step of a process cannot be divided otherwise; real processes are killed, and real power
        is lost, between any two system calls. If the action ends the process, that operation and
        all later ones of it fail without effect.
        """
        self._interruption = operations, action

    def interrupt_rename(self, ending: str, action: Callable[[], object]) -> None:
        """Call `action` right before the next rename of a file whose name ends with `ending`."""
        self._interrupted_rename = ending, action

    def cancel_interrupt(self) -> None:
        """Cancel interruptions that have not happened yet."""
        self._interruption = self._interrupted_rename = None

    def flip_bit(self, path: str | None = None) -> Place | None:
        """Flip one random synced bit, in this file or anywhere; None if nothing is synced."""
        place = self._choose(path)
        if place is not None:
            self.turn_over(place, self.rng.randrange(8))
        return place

    def turn_over(self, place: Place, bit: int) -> None:
        """Flip the given bit, 0 to 7, of the byte at `place`."""
        self.names.file(place.path).data[place.at] ^= 1 << bit

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
        raise AssertionError("the total exceeds the synced bytes of the files")

    # Inspection from outside, without an effect on the run.

    def paths(self) -> list[str]:
        """Return the paths of all files; the names in each directory are sorted."""
        return [path for path, _ in self.names.files()]

    @property
    def unsynced_bytes(self) -> int:
        """The number of bytes that were written and not synced."""
        return sum(inode.unsynced for _, inode in self.names.files())

    def peek(self, path: str) -> bytes:
        """Return the bytes of a file, whether they are synced or not."""
        return bytes(self.names.file(path).data)

    def failed_operations(self, path: str) -> int | None:
        """Return how many operations the failure of a directory has affected; None if it works."""
        return self._failed.get(path)

    # For `DiskAccess`.

    def count(self) -> None:
        """Count an operation that is about to begin; run the interruption if it is due."""
        if self._interruption is not None:
            left, action = self._interruption
            self._interruption = (left - 1, action) if left else None
            if not left:
                action()

    def renaming(self, path: str) -> None:
        """Run the interruption that waits for this rename, if there is one."""
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
        """How many of `size` bytes there is room for."""
        if self._limit_bytes is None:
            return size
        return max(0, min(size, self._limit_bytes - self._used_bytes()))

    def sync_fails(self) -> bool:
        """Return whether this sync fails."""
        if self._failing_syncs:
            self._failing_syncs -= 1
            return True
        return self._failing_syncs is None

    def path_fails(self, path: str) -> bool:
        """Return whether an operation at `path` fails because its directory does; count it."""
        for directory in self._failed:
            if f"{path}/".startswith(f"{directory}/"):
                self._failed[directory] += 1
                return True
        return False

    def _used_bytes(self) -> int:
        """The bytes in use; computed only under a limit, since most disks have none."""
        return sum(len(inode.data) for _, inode in self.names.files())
