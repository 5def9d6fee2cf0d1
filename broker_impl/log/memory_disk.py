"""A disk in memory that loses unsynced data in a crash: for tests, and for copies of real logs."""

import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

from broker_impl.errors import DirectoryInUse, StorageError
from broker_impl.wire.types import Buffer


class _Inode:
    """A file's bytes, and those of them that survive a crash."""

    def __init__(self, data: bytes = b"", *, synced: bool = False) -> None:
        self.data = bytearray(data)
        self.durable = data if synced else b""

    def crash(self, chance: random.Random | None) -> None:
        kept = self.durable
        if chance is not None and self.data.startswith(kept):
            kept = bytes(self.data[: chance.randint(len(kept), len(self.data))])
        self.data = bytearray(kept)
        self.durable = kept


class _Directory:
    """A directory's names, and those of them that survive a crash."""

    def __init__(self) -> None:
        self.names: dict[str, _Node] = {}
        self.durable: dict[str, _Node] = {}

    def crash(self, chance: random.Random | None) -> None:
        if chance is None or chance.random() < 0.5:
            self.names = dict(self.durable)
        self.durable = dict(self.names)
        for _, node in sorted(self.names.items()):
            node.crash(chance)


_Node: TypeAlias = _Inode | _Directory


class MemoryFile:
    """An open file of a `MemoryDisk`."""

    def __init__(self, disk: "MemoryDisk", path: str, inode: _Inode) -> None:
        self._disk, self._path, self._inode = disk, path, inode

    @property
    def size(self) -> int:
        return len(self._inode.data)

    def append(self, buffers: Sequence[Buffer]) -> None:
        data = b"".join(buffers)
        try:
            self._disk.about_to("append", self._path)
        except StorageError:
            self._inode.data += data[: len(data) // 2]
            raise
        self._inode.data += data

    def pread(self, at: int, length: int) -> bytes:
        self._disk.about_to("pread", self._path)
        return bytes(self._inode.data[at : at + length])

    def truncate(self, size: int) -> None:
        self._disk.about_to("truncate", self._path)
        del self._inode.data[size:]

    def reserve(self, size: int) -> None:
        """Do nothing: a file in memory has no length on a disk."""

    def fsync(self) -> None:
        self._disk.about_to("fsync", self._path)
        self._inode.durable = bytes(self._inode.data)

    def close(self) -> None:
        """Do nothing: there is no handle to close."""


class MemoryDisk:
    """A data directory in memory; `crash` simulates a power loss."""

    def __init__(self) -> None:
        self._root = _Directory()
        self._locked = False
        self.fails: Callable[[str, str], bool] = lambda operation, path: False
        """Must this operation ("append", "fsync", …) on this path raise StorageError?

        An append that fails leaves half of its bytes in the file."""

    def crash(self, chance: random.Random | None = None) -> None:
        """Drop what was not synced; with `chance`, keep some of it, so that writes may be torn."""
        self._root.crash(chance)
        self._locked = False

    def kill(self) -> None:
        """Simulate the end of a process: the lock is released, and all written data is kept."""
        self._locked = False

    def about_to(self, operation: str, path: str) -> None:
        """Raise the planned failure of this operation, if there is one."""
        if self.fails(operation, path):
            raise StorageError(f"{operation} {path}: planned failure")

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        self.about_to("open", path)
        directory, name = self._parent(path)
        if create and name not in directory.names:
            directory.names[name] = _Inode()
        return MemoryFile(self, path, self._file(path))

    def read(self, path: str) -> bytes:
        self.about_to("read", path)
        return bytes(self._file(path).data)

    def write(self, path: str, data: bytes) -> None:
        self.about_to("write", path)
        directory, name = self._parent(path)
        directory.names[name] = _Inode(data, synced=True)
        directory.durable = dict(directory.names)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_dir(self, path: str) -> bool:
        return isinstance(self._find(path), _Directory)

    def list(self, path: str) -> list[str]:
        return sorted(self._directory(path).names)

    def make_dir(self, path: str) -> None:
        self.about_to("make_dir", path)
        directory, name = self._parent(path)
        if name in directory.names:
            raise StorageError(f"{path}: exists")
        directory.names[name] = _Directory()

    def remove(self, path: str) -> None:
        self.about_to("remove", path)
        self._file(path)
        directory, name = self._parent(path)
        del directory.names[name]

    def remove_dir(self, path: str) -> None:
        self.about_to("remove_dir", path)
        self._directory(path)
        directory, name = self._parent(path)
        del directory.names[name]

    def rename(self, old: str, new: str) -> None:
        self.about_to("rename", old)
        source, old_name = self._parent(old)
        target, new_name = self._parent(new)
        if old_name not in source.names:
            raise StorageError(f"{old}: there is no such file")
        target.names[new_name] = source.names.pop(old_name)

    def fsync_dir(self, path: str) -> None:
        self.about_to("fsync_dir", path)
        directory = self._directory(path)
        directory.durable = dict(directory.names)

    def lock(self) -> None:
        if self._locked:
            raise DirectoryInUse("the data directory is locked by another broker")
        self._locked = True

    def unlock(self) -> None:
        self._locked = False

    def _find(self, path: str) -> _Node | None:
        node: _Node | None = self._root
        for part in filter(None, path.split("/")):
            if not isinstance(node, _Directory):
                return None
            node = node.names.get(part)
        return node

    def _directory(self, path: str) -> _Directory:
        node = self._find(path)
        if not isinstance(node, _Directory):
            raise StorageError(f"{path}: there is no such directory")
        return node

    def _file(self, path: str) -> _Inode:
        node = self._find(path)
        if not isinstance(node, _Inode):
            raise StorageError(f"{path}: there is no such file")
        return node

    def _parent(self, path: str) -> tuple[_Directory, str]:
        parent, _, name = path.rpartition("/")
        return self._directory(parent), name
