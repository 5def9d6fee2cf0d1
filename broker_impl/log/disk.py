"""The Disk port: the file system operations that a log needs, within one data directory.

Paths are relative to that directory, with "/" between their parts; "" is the directory itself. A
crash may lose what was not synced: bytes until `DiskFile.fsync`, names (created, renamed or
removed) until `Disk.fsync_dir` of the directory that contains them. Every failure is a
StorageError.
"""

from collections.abc import Sequence
from typing import Protocol

from broker_impl.wire.types import Buffer


class DiskFile(Protocol):
    """An open file that grows at its end."""

    @property
    def size(self) -> int:
        """The number of bytes in the file."""

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write all the buffers, in order; after a StorageError any part of them may be written."""

    def pread(self, at: int, length: int) -> bytes:
        """Read the bytes from `at` on; fewer than `length` only at the end of the file."""

    def truncate(self, size: int) -> None:
        """Truncate the file to `size` bytes."""

    def fsync(self) -> None:
        """Make every byte survive a crash."""

    def close(self) -> None:
        """Close the file; nothing is synced."""


class Disk(Protocol):
    """One data directory."""

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        """Open an existing file; with `create`, create it if it does not exist."""

    def read(self, path: str) -> bytes:
        """Read the whole of a small file."""

    def write(self, path: str, data: bytes) -> None:
        """Replace a small file: after a crash it holds the old or the new bytes, never a mixture.

        Durable on return.
        """

    def exists(self, path: str) -> bool:
        """Does a file or directory of this name exist?"""

    def is_dir(self, path: str) -> bool:
        """Does a directory of this name exist?"""

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted."""

    def make_dir(self, path: str) -> None:
        """Create a directory whose parent exists."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def remove_dir(self, path: str) -> None:
        """Remove a directory and its content."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory."""

    def fsync_dir(self, path: str) -> None:
        """Make the names in a directory survive a crash."""

    def lock(self) -> None:
        """Lock the data directory; DirectoryInUse if another broker has locked it."""

    def unlock(self) -> None:
        """Release the lock, as the end of the process does too."""
