"""A process's access to its host's disk: one directory tree, and handles on files.

It offers the operations that a program asks of its operating system. None of them waits; each
reports its duration to the process (`SimDisk.attach`).
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from harness.simulation.disk_inode import PAGE_BYTES, Inode
from harness.simulation.disk_names import Directory, Names

LOCK_NAME = ".lock"
_TEMPORARY_SUFFIX = ".tmp"
_Buffer: TypeAlias = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds that an operation takes, at least and at most: NVMe behind a page cache."""

    read: tuple[float, float] = (2e-6, 15e-6)
    write: tuple[float, float] = (4e-6, 25e-6)
    sync: tuple[float, float] = (40e-6, 400e-6)
    name: tuple[float, float] = (3e-6, 20e-6)
    """To look up, create, change or remove a name."""
    bytes_per_s: float = 2e9
    """Additional time for bytes that are read, written or synced."""


class AccessibleDisk(Protocol):
    """The disk that processes access: what it contains, how long operations take, what fails."""

    rng: random.Random
    error: type[Exception]
    """The class of every failure."""
    latency: Latency
    names: Names
    boots: int
    """The number of power losses."""
    lock_holders: "dict[str, DiskAccess]"
    """The process that has locked each directory; the whole disk is the directory ""."""

    def count(self) -> None:
        """Count an operation that is about to begin; run the interruption if it is due."""

    def renaming(self, path: str) -> None:
        """Run the interruption that waits for this rename, if there is one."""

    def seconds(self, span: tuple[float, float], size: int) -> float:
        """How long an operation takes that moves `size` bytes."""

    def fits(self, size: int) -> int:
        """How many of `size` bytes there is room for."""

    def sync_fails(self) -> bool:
        """Return whether this sync fails."""

    def path_fails(self, path: str) -> bool:
        """Return whether an operation at `path` fails because its directory does; count it."""


class SimFile:
    """An open file that grows at its end."""

    __slots__ = ("_access", "_disk", "_has_reserved", "_inode", "_is_open", "_path")

    def __init__(self, access: "DiskAccess", disk: AccessibleDisk, path: str, inode: Inode) -> None:
        self._access = access
        self._disk = disk
        self._path = path
        self._inode = inode
        self._is_open = True
        self._has_reserved = False

    @property
    def size(self) -> int:
        """The size of the file in bytes, without what was reserved by this handle."""
        reserved = 0 if self._has_reserved else self._inode.reserved
        return len(self._inode.data) + reserved

    def append(self, buffers: Sequence[_Buffer]) -> None:
        """Write at the end; on a full disk, write as much as fits and raise the error."""
        data = b"".join(buffers)
        self._begin(self._disk.latency.write, len(data))
        room = self._disk.fits(len(data))
        self._inode.append(data if room == len(data) else data[:room])
        if room < len(data):
            raise self._disk.error(f"append to {self._path}: no space left on the disk")

    def pread(self, at: int, length: int) -> bytes:
        """Read `length` bytes from `at` on; fewer only at the end of the file."""
        self._begin(self._disk.latency.read, length)
        return self._inode.read(at, length)

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        self._begin(self._disk.latency.name, 0)
        self._inode.truncate(size)

    def reserve(self, size: int) -> None:
        """Lengthen the file by `size` zeros, which later appends of this handle overwrite."""
        self._begin(self._disk.latency.name, 0)
        self._has_reserved = True
        self._inode.reserve(size, lambda: self._is_open and self._access.is_alive)

    def fsync(self) -> None:
        """Make every byte durable."""
        self._begin(self._disk.latency.sync, self._inode.unsynced)
        if self._disk.sync_fails():
            self._inode.fail_sync(self._disk.rng)
            raise self._disk.error(f"fsync {self._path}: input/output error")
        self._inode.sync()

    def close(self) -> None:
        """Close the handle."""
        if not self._is_open:
            raise self._disk.error(f"close {self._path}: it is closed")
        self._is_open = False

    def _begin(self, span: tuple[float, float], size: int) -> None:
        if not self._is_open:
            raise self._disk.error(f"{self._path} is closed")
        self._access.begin(span, self._path, size=size)


class DiskAccess:
    """The access of one process to a disk; every failure is an error of the disk's class."""

    def __init__(
        self, disk: AccessibleDisk, busy: Callable[[float], object], is_ended: Callable[[], bool]
    ) -> None:
        self._disk = disk
        self._names = disk.names
        self._busy = busy
        self._is_ended = is_ended
        self._boots = disk.boots

    @property
    def is_alive(self) -> bool:
        """Return whether the process still runs, and its host has not lost power since it began."""
        return self._boots == self._disk.boots and not self._is_ended()

    def begin(self, span: tuple[float, float], *paths: str, size: int = 0) -> None:
        """Begin an operation on `paths`: charge its time.

        Raises if the process has ended, or if the directory of a path fails.
        """
        disk = self._disk
        disk.count()
        if not self.is_alive:
            raise disk.error("the process that uses the disk has ended")
        self._busy(disk.seconds(span, size))
        for path in paths:
            if disk.path_fails(path):
                raise disk.error(f"{path}: input/output error")

    # Files.

    def open(self, path: str, *, create: bool = False) -> SimFile:
        """Open a file, with `create` one that may not exist yet."""
        self._begin_name(path)
        inode = self._names.create(path) if create else self._names.file(path)
        inode.opened()
        return SimFile(self, self._disk, path, inode)

    def read(self, path: str) -> bytes:
        """Read a whole file."""
        file = self.open(path)
        return file.pread(0, file.size)

    def write(self, path: str, data: bytes) -> None:
        """Replace a file the way programs do: create another file, sync it, and rename it.

        An error in between leaves that other file behind.
        """
        temporary = path + _TEMPORARY_SUFFIX
        file = self.open(temporary, create=True)
        if file.size:
            file.truncate(0)
        file.append([data])
        file.fsync()
        self.rename(temporary, path)
        self.fsync_dir(path.rpartition("/")[0])

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._begin_name(path)
        self._names.remove(path)

    # Names.

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory at `path`."""
        self._begin_name(path)
        return self._names.find(path) is not None

    def is_dir(self, path: str) -> bool:
        """Return whether there is a directory at `path`."""
        self._begin_name(path)
        return isinstance(self._names.find(path), Directory)

    def list(self, path: str) -> list[str]:
        """List the names in a directory, sorted."""
        self._begin_name(path)
        return sorted(self._names.directory(path).names)

    def make_dir(self, path: str) -> None:
        """Create a directory whose parent exists; it needs one page of free space."""
        self._begin_name(path)
        if self._disk.fits(PAGE_BYTES) < PAGE_BYTES:
            raise self._disk.error(f"make {path}: no space left on the disk")
        self._names.make_dir(path)

    def remove_dir(self, path: str) -> None:
        """Remove a directory with all its contents."""
        self._begin_name(path)
        self._names.remove_tree(path, self._disk.rng)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory."""
        self._disk.renaming(old)
        self._begin_name(old, new)
        self._names.rename(old, new)

    def fsync_dir(self, path: str) -> None:
        """Make the names in a directory durable."""
        self.begin(self._disk.latency.sync, path)
        if self._disk.sync_fails():
            raise self._disk.error(f"fsync {path}: input/output error")
        self._names.sync(path)

    # The lock.

    def lock(self, directory: str = "") -> None:
        """Lock a directory for other processes while this one lives, or until `unlock`."""
        self.open(f"{directory}/{LOCK_NAME}" if directory else LOCK_NAME, create=True)
        holder = self._disk.lock_holders.get(directory)
        if holder is not None and holder.is_alive:
            raise self._disk.error("the disk is locked by another process")
        self._disk.lock_holders[directory] = self

    def unlock(self, directory: str = "") -> None:
        """Release the lock if this process holds it."""
        if self._disk.lock_holders.get(directory) is self:
            del self._disk.lock_holders[directory]

    def _begin_name(self, *paths: str) -> None:
        self.begin(self._disk.latency.name, *paths)
