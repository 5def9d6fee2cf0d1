"""The Disk port: all that the log asks of a file system, within one data directory.

Paths are relative to that directory, with "/" between their parts; "" is the directory itself.
What was not synced may be lost by a crash: bytes until `DiskFile.fsync`, names (created, renamed or
removed) until `Disk.fsync_dir` of the directory that holds them. Every failure is a StorageError.
"""

from collections.abc import Sequence
from typing import Protocol

from broker_impl.wire.types import Buffer


class DiskFile(Protocol):
    """An open file that grows at its end."""

    @property
    def size(self) -> int:
        """Bytes in the file."""

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write all the buffers, in order. After a StorageError any part of them may be there."""

    def pread(self, at: int, length: int) -> bytes:
        """The bytes from `at` on; fewer than `length` only at the end of the file."""

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""

    def fsync(self) -> None:
        """Make every byte survive a crash."""

    def close(self) -> None:
        """Give the handle back; nothing is synced."""


class Disk(Protocol):
    """One data directory."""

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        """Open an existing file, or with `create` one that may not exist yet."""

    def read(self, path: str) -> bytes:
        """The whole of a small file."""

    def write(self, path: str, data: bytes) -> None:
        """Replace a small file: after a crash it holds the old or the new bytes, never a mixture.

        Durable on return.
        """

    def exists(self, path: str) -> bool:
        """Is there a file or directory of this name?"""

    def is_dir(self, path: str) -> bool:
        """Is there a directory of this name?"""

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted."""

    def make_dir(self, path: str) -> None:
        """Create a directory whose parent exists."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def remove_dir(self, path: str) -> None:
        """Remove a directory with all that is in it."""

    def rename(self, old: str, new: str) -> None:
        """Give a file or directory another name."""

    def fsync_dir(self, path: str) -> None:
        """Make the names in a directory survive a crash."""

    def lock(self) -> None:
        """Keep others out of the data directory; StorageError when somebody already does."""

    def unlock(self) -> None:
        """Let others in again. The end of the process does the same."""
