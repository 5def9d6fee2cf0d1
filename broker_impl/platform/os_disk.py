"""The Disk port on the operating system's files: every OSError becomes a StorageError."""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from broker_impl.counts import Durations
from broker_impl.errors import DirectoryInUse, StorageError
from broker_impl.wire.types import Buffer

LOCK_NAME = ".lock"
_TEMPORARY_SUFFIX = ".tmp"
_BATCHES_SUFFIX = ".log"
_CLOSED = 2**31 - 1  # no process has so many files: every operation fails with EBADF
_IOV_MAX = os.sysconf("SC_IOV_MAX")
_fdatasync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


@contextmanager
def _refusals(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{what}: {error.strerror or error}") from error


class OsFile:
    """An open file; `size` is tracked here, because no other process writes to the file.

    It counts what was written, without what is reserved behind it.
    """

    __slots__ = ("_fd", "_path", "_syncs", "size")

    def __init__(self, path: Path, *, create: bool, syncs: Durations | None = None) -> None:
        """``syncs``: where to count the syncs of this file."""
        self._path = path
        self._syncs = syncs
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        with _refusals(f"open {path}"):
            self._fd = os.open(path, flags, 0o644)
            self.size = os.fstat(self._fd).st_size

    def append(self, buffers: Sequence[Buffer]) -> None:
        if len(buffers) > _IOV_MAX:
            buffers = [b"".join(buffers)]
        try:
            written = os.pwritev(self._fd, buffers, self.size)
            self.size += written
            missing = sum(map(len, buffers)) - written
            if missing:
                self._append_rest(buffers, written)
        except OSError as error:
            raise StorageError(f"append to {self._path}: {error.strerror}") from error

    def _append_rest(self, buffers: Sequence[Buffer], written: int) -> None:
        """Write the rest after a short write (KAFKA-17181), or raise the error of a later write."""
        rest = memoryview(b"".join(buffers))[written:]
        while rest:
            written = os.pwrite(self._fd, rest, self.size)
            self.size += written
            rest = rest[written:]

    def pread(self, at: int, length: int) -> bytes:
        try:
            data = os.pread(self._fd, length, at)
            while len(data) < min(length, self.size - at):
                more = os.pread(self._fd, length - len(data), at + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise StorageError(f"read {self._path}: {error.strerror}") from error
        return data

    def truncate(self, size: int) -> None:
        with _refusals(f"truncate {self._path}"):
            os.ftruncate(self._fd, size)
            self.size = size

    def reserve(self, size: int) -> None:
        """Lengthen the file by `size` zeros, which later appends overwrite.

        A sync of appended bytes is faster where it need not store another length: 0.08 in place of
        0.3 ms on ext4.
        """
        with _refusals(f"lengthen {self._path}"):
            os.ftruncate(self._fd, self.size + size)

    def fsync(self) -> None:
        begun = time.perf_counter()
        with _refusals(f"fsync {self._path}"):
            _fdatasync(self._fd)
        if self._syncs is not None:
            self._syncs.add((time.perf_counter() - begun) * 1000)

    def close(self) -> None:
        fd, self._fd = self._fd, _CLOSED
        if fd != _CLOSED:  # a second close could hit another file, which has got this number
            with _refusals(f"close {self._path}"):
                os.close(fd)


class OsDisk:
    """A data directory in the file system, created if it does not exist.

    If it cannot be created, each operation fails, and `lock` says why.
    """

    def __init__(self, path: Path, log_syncs: Durations | None = None) -> None:
        """``log_syncs``: receives the times of the syncs of files that hold batches."""
        self._root = path
        self._log_syncs = log_syncs
        self._lock_fd: int | None = None
        with suppress(OSError):
            path.mkdir(parents=True, exist_ok=True)

    def open(self, path: str, *, create: bool = False) -> OsFile:
        syncs = self._log_syncs if path.endswith(_BATCHES_SUFFIX) else None
        return OsFile(self._root / path, create=create, syncs=syncs)

    def read(self, path: str) -> bytes:
        with _refusals(f"read {path}"):
            return (self._root / path).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        target = self._root / path
        temporary = target.with_name(target.name + _TEMPORARY_SUFFIX)
        with _refusals(f"write {path}"):
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
            _fsync_directory(target.parent)

    def exists(self, path: str) -> bool:
        with _refusals(f"look for {path}"):
            return (self._root / path).exists()

    def is_dir(self, path: str) -> bool:
        with _refusals(f"look for {path}"):
            return (self._root / path).is_dir()

    def list(self, path: str) -> list[str]:
        with _refusals(f"list {path}"):
            return sorted(os.listdir(self._root / path))  # noqa: PTH208 - names are wanted

    def make_dir(self, path: str) -> None:
        with _refusals(f"make {path}"):
            (self._root / path).mkdir()

    def remove(self, path: str) -> None:
        with _refusals(f"remove {path}"):
            (self._root / path).unlink()

    def remove_dir(self, path: str) -> None:
        with _refusals(f"remove {path}"):
            shutil.rmtree(self._root / path)

    def rename(self, old: str, new: str) -> None:
        with _refusals(f"rename {old}"):
            (self._root / old).rename(self._root / new)

    def fsync_dir(self, path: str) -> None:
        with _refusals(f"fsync {path}"):
            _fsync_directory(self._root / path)

    def lock(self) -> None:
        with _refusals(f"make {self._root}"):
            self._root.mkdir(parents=True, exist_ok=True)
        path = self._root / LOCK_NAME
        with _refusals(f"open {path}"):
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise DirectoryInUse(f"{self._root} is in use by another broker") from None
        self._lock_fd = fd

    def unlock(self) -> None:
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None


def _fsync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
