"""Write a snapshot to its file in slices, so that the server answers clients meanwhile.

The file has a temporary name until all of it is durable, so that a crash leaves no part of a
snapshot under a snapshot's name (ZOOKEEPER-2872).
"""

from collections.abc import Sequence
from typing import Protocol

from broker_impl.zookeeper import snapshot
from broker_impl.zookeeper.tree import Database

NODES_PER_SLICE = 250
"""The number of nodes that are visited at once, which takes about a millisecond."""
BYTES_PER_SYNC = 1 << 20
"""A sync follows as many bytes, so that none of them takes long."""
SUFFIX = ".partial"
"""The end of the name of a file that is not complete."""


class SnapshotFile(Protocol):
    """An open file that grows at its end."""

    def append(self, buffers: Sequence[bytes]) -> None:
        """Write all the buffers, in order."""

    def truncate(self, size: int) -> None:
        """Truncate the file to `size` bytes."""

    def fsync(self) -> None:
        """Make every byte survive a crash."""

    def close(self) -> None:
        """Close the file; nothing is synced."""


class SnapshotDisk(Protocol):
    """What a snapshot asks of the data directory; every failure is a StorageError."""

    def open(self, path: str, *, create: bool = False) -> SnapshotFile:
        """Open an existing file; with `create`, create it if it does not exist."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file; one that has the new name is replaced."""

    def fsync_dir(self, path: str) -> None:
        """Make the names in a directory survive a crash."""


class SnapshotWriter:
    """A snapshot that is being written; transactions may be applied between two steps."""

    def __init__(self, disk: SnapshotDisk, folder: str, database: Database) -> None:
        self._disk = disk
        self._folder = folder
        self._encoder = snapshot.Encoder(database)
        self._path = f"{folder}/{snapshot.name(self._encoder.zxid)}"
        self._file = disk.open(self._path + SUFFIX, create=True)
        self._file.truncate(0)
        self._unsynced = 0

    def step(self) -> bool:
        """Write a slice; return whether the snapshot is complete, and durable under its name."""
        data = self._encoder.slice(NODES_PER_SLICE)
        if data:
            self._file.append([data])
            self._unsynced += len(data)
        is_complete = self._encoder.is_complete
        if is_complete or self._unsynced > BYTES_PER_SYNC:
            self._file.fsync()
            self._unsynced = 0
        if is_complete:
            self._file.close()
            self._disk.rename(self._path + SUFFIX, self._path)
            self._disk.fsync_dir(self._folder)
        return is_complete

    def abandon(self) -> None:
        """Close the file; what was written stays under its temporary name."""
        self._file.close()
