"""The contract of the Disk port, for the operating system's disk and for the memory disk."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from broker_impl.errors import StorageError
from broker_impl.log.disk import Disk
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.platform.os_disk import OsDisk


@pytest.fixture(params=["memory", "os"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    return MemoryDisk() if request.param == "memory" else OsDisk(tmp_path / "data" / "dir")


def test_files_grow_and_are_read_anywhere(disk: Disk) -> None:
    """Buffers are appended in order; a read is short only at the end of the file."""
    file = disk.open("f", create=True)
    file.append([b"abc", memoryview(b"def"), bytearray(b"g")])
    file.append([b"hi"])
    assert file.size == 9
    assert file.pread(2, 4) == b"cdef"
    assert file.pread(7, 100) == b"hi"
    assert file.pread(9, 1) == b""
    file.fsync()
    file.close()
    again = disk.open("f")
    assert again.size == 9
    again.truncate(4)
    again.append([b"X"])
    assert (again.size, again.pread(0, 10)) == (5, b"abcdX")
    again.close()


def test_any_number_of_buffers_is_appended(disk: Disk) -> None:
    """Any number of buffers can be appended, although the system takes about a thousand at once."""
    file = disk.open("many", create=True)
    file.append([b"x"] * 5000)
    assert file.size == 5000
    file.close()


def test_a_missing_file_is_opened_only_to_create_it(disk: Disk) -> None:
    """Operations on a missing file fail, except `open` with `create`, which keeps existing data."""
    for action in (
        lambda: disk.open("f"),
        lambda: disk.read("f"),
        lambda: disk.remove("f"),
        lambda: disk.rename("f", "g"),
        lambda: disk.list("d"),
        lambda: disk.remove_dir("d"),
        lambda: disk.fsync_dir("d"),
        lambda: disk.open("d/f", create=True),
    ):
        with pytest.raises(StorageError):
            action()
    disk.write("f", b"kept")
    assert disk.open("f", create=True).size == 4


def test_small_files_are_replaced(disk: Disk) -> None:
    """`write` replaces a small file, and leaves no temporary file."""
    disk.make_dir("d")
    disk.write("d/f", b"old")
    disk.write("d/f", b"newer")
    assert disk.read("d/f") == b"newer"
    assert disk.list("d") == ["f"]


def test_directories(disk: Disk) -> None:
    """Directories are created, listed in order, renamed, and removed with their content."""
    disk.make_dir("d")
    disk.make_dir("d/e")
    disk.write("d/b", b"")
    disk.write("d/e/a", b"")
    disk.fsync_dir("d")
    disk.fsync_dir("")
    assert disk.list("d") == ["b", "e"]
    assert disk.is_dir("d/e")
    assert not disk.is_dir("d/b")
    assert not disk.is_dir("d/x")
    disk.rename("d", "moved")
    assert disk.exists("moved/e/a")
    assert not disk.exists("d")
    disk.rename("moved/b", "moved/c")
    disk.remove("moved/c")
    with pytest.raises(StorageError):
        disk.make_dir("moved")
    disk.remove_dir("moved")
    assert disk.list("") == []


def test_the_lock_keeps_others_out(tmp_path: Path) -> None:
    """A second broker is refused, with the directory's name, until the first releases the lock."""
    first, second = OsDisk(tmp_path), OsDisk(tmp_path)
    first.lock()
    with pytest.raises(StorageError, match=f"{tmp_path} is in use"):
        second.lock()
    first.unlock()
    first.unlock()
    second.lock()
    second.unlock()


def test_a_short_write_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA-17181: a short write is completed; an error while doing so is a StorageError."""
    file = OsDisk(tmp_path).open("f", create=True)
    whole_pwritev, whole_pwrite = os.pwritev, os.pwrite

    def short_pwritev(fd: int, buffers: Sequence[bytes], at: int) -> int:
        return whole_pwritev(fd, [b"".join(buffers)[:3]], at)

    monkeypatch.setattr(os, "pwritev", short_pwritev)
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: whole_pwrite(fd, bytes(data)[:2], at))
    file.append([b"abcd", b"efgh"])
    assert file.size == 8
    assert file.pread(0, 99) == b"abcdefgh"

    def full(fd: int, data: bytes, at: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StorageError, match="No space left on device"):
        file.append([b"abcdef"])


def test_appends_overwrite_what_was_reserved(tmp_path: Path) -> None:
    """Reserved bytes read as zeros, do not count as the file's size, and are written over."""
    disk = OsDisk(tmp_path)
    file = disk.open("f", create=True)
    file.append([b"ab"])
    file.reserve(6)
    assert (file.size, disk.read("f")) == (2, b"ab" + bytes(6))
    file.append([b"cd"])
    assert (file.size, disk.read("f")) == (4, b"abcd" + bytes(4))
    file.append([b"efghijk"])
    assert (file.size, disk.read("f")) == (11, b"abcdefghijk")
    file.reserve(4)
    file.close()
    assert disk.open("f").size == 15


def test_a_short_read_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short read is completed."""
    file = OsDisk(tmp_path).open("f", create=True)
    file.append([b"abcdefgh"])
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, length, at: whole(fd, min(length, 3), at))
    assert file.pread(1, 99) == b"bcdefgh"


def test_a_closed_file_refuses(tmp_path: Path) -> None:
    """Every OSError is raised as a StorageError with the path."""
    file = OsDisk(tmp_path).open("f", create=True)
    file.close()
    for action in (
        lambda: file.append([b"x"]),
        lambda: file.pread(0, 1),
        lambda: file.truncate(0),
        file.fsync,
    ):
        with pytest.raises(StorageError, match="f:"):
            action()


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """A data directory whose parent is a file is refused when it is locked."""
    (tmp_path / "file").write_bytes(b"")
    disk = OsDisk(tmp_path / "file" / "data")
    with pytest.raises(StorageError, match="Not a directory"):
        disk.lock()


def test_a_file_is_closed_once(tmp_path: Path) -> None:
    """A second close does not close another file, which has got the same number meanwhile."""
    disk = OsDisk(tmp_path)
    file = disk.open("f", create=True)
    file.close()
    other = disk.open("g", create=True)
    file.close()
    other.append([b"abc"])
    assert disk.read("g") == b"abc"
    other.close()
