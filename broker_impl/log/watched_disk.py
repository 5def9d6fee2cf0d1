"""A disk that remembers its first failure, so that a broker knows which directory has failed.

The operations are those of another disk. Once the directory is given up (KIP-112), none of them
reaches that disk any more: what is written after a failure could not be relied on.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from broker_impl.errors import DirectoryFailed, DirectoryInUse, StorageError
from broker_impl.log.disk import Disk, DiskFile
from broker_impl.wire.types import Buffer

T = TypeVar("T")


class WatchedDisk:
    """A data directory whose failures are noticed; `failure` is the first one.

    Each failure of an operation is raised as DirectoryFailed. `on_failure` is called once, in the
    operation that fails first.
    """

    def __init__(self, disk: Disk, on_failure: Callable[[], None]) -> None:
        self.failure: StorageError | None = None
        self.is_given_up = False
        self._disk = disk
        self._on_failure = on_failure

    def begin(self) -> None:
        """Use the disk, also if it failed in an earlier life of the broker."""
        self.failure = None
        self.is_given_up = False

    def failed(self, error: StorageError) -> DirectoryFailed:
        """Note that an operation has failed, and return the error to raise."""
        if self.failure is None:
            self.failure = error
            self._on_failure()
        return DirectoryFailed(str(error))

    def watched(self, operation: Callable[..., T], *arguments: object, **options: object) -> T:
        """Return the result of an operation of the disk, or note its failure and raise it."""
        if self.is_given_up:
            raise DirectoryFailed(f"the data directory is not used any more: {self.failure}")
        try:
            return operation(*arguments, **options)
        except StorageError as error:
            raise self.failed(error) from error

    def open(self, path: str, *, create: bool = False) -> "WatchedFile":
        return WatchedFile(self, self.watched(self._disk.open, path, create=create))

    def read(self, path: str) -> bytes:
        return self.watched(self._disk.read, path)

    def write(self, path: str, data: bytes) -> None:
        self.watched(self._disk.write, path, data)

    def exists(self, path: str) -> bool:
        return self.watched(self._disk.exists, path)

    def is_dir(self, path: str) -> bool:
        return self.watched(self._disk.is_dir, path)

    def list(self, path: str) -> list[str]:
        return self.watched(self._disk.list, path)

    def make_dir(self, path: str) -> None:
        self.watched(self._disk.make_dir, path)

    def remove(self, path: str) -> None:
        self.watched(self._disk.remove, path)

    def remove_dir(self, path: str) -> None:
        self.watched(self._disk.remove_dir, path)

    def rename(self, old: str, new: str) -> None:
        self.watched(self._disk.rename, old, new)

    def fsync_dir(self, path: str) -> None:
        self.watched(self._disk.fsync_dir, path)

    def lock(self) -> None:
        """Lock the directory; DirectoryInUse, which is no failure: another broker has locked it."""
        try:
            self._disk.lock()
        except DirectoryInUse:
            raise
        except StorageError as error:
            raise self.failed(error) from error

    def unlock(self) -> None:
        self._disk.unlock()


class WatchedFile:
    """An open file of a `WatchedDisk`."""

    __slots__ = ("_disk", "_file")

    def __init__(self, disk: WatchedDisk, file: DiskFile) -> None:
        self._disk, self._file = disk, file

    @property
    def size(self) -> int:
        return self._file.size

    def append(self, buffers: Sequence[Buffer]) -> None:
        self._disk.watched(self._file.append, buffers)

    def pread(self, at: int, length: int) -> bytes:
        return self._disk.watched(self._file.pread, at, length)

    def truncate(self, size: int) -> None:
        self._disk.watched(self._file.truncate, size)

    def fsync(self) -> None:
        self._disk.watched(self._file.fsync)

    def close(self) -> None:
        self._file.close()
