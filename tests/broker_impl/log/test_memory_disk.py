"""The memory disk of the tests loses at a crash what was not synced, and nothing else."""

import random

import pytest

from broker_impl.errors import StorageError
from broker_impl.log.memory_disk import MemoryDisk


def test_unsynced_bytes_are_lost() -> None:
    """After a crash a file has the bytes of its last fsync."""
    disk = MemoryDisk()
    file = disk.open("f", create=True)
    disk.fsync_dir("")
    file.append([b"ab", b"c"])
    file.fsync()
    file.append([b"d"])
    disk.crash()
    assert disk.read("f") == b"abc"


def test_an_unsynced_truncation_is_undone() -> None:
    """After a crash, bytes that were truncated without an fsync are there again."""
    disk = MemoryDisk()
    disk.write("f", b"abcdef")
    file = disk.open("f")
    file.truncate(2)
    file.append([b"x"])
    disk.crash()
    assert disk.read("f") == b"abcdef"


def test_unsynced_names_are_lost() -> None:
    """A crash undoes creations, renames and removals since the last sync of the directory."""
    disk = MemoryDisk()
    disk.make_dir("d")
    disk.fsync_dir("")
    disk.write("d/kept", b"1")
    disk.write("d/renamed", b"2")
    disk.open("d/new", create=True).fsync()
    disk.rename("d/renamed", "d/other")
    disk.remove("d/kept")
    assert disk.list("d") == ["new", "other"]
    disk.crash()
    assert disk.list("d") == ["kept", "renamed"]
    disk.make_dir("e")
    disk.crash()
    assert disk.list("") == ["d"]


def test_a_last_write_may_be_torn() -> None:
    """With a random generator, a crash keeps the synced bytes and some of those behind them."""
    lengths = set()
    for seed in range(40):
        disk = MemoryDisk()
        disk.write("f", b"ab")
        disk.open("f").append([b"cdef"])
        disk.crash(random.Random(seed))
        data = disk.read("f")
        assert b"abcdef".startswith(data)
        lengths.add(len(data))
    assert lengths == {2, 3, 4, 5, 6}


def test_a_planned_failure_strikes() -> None:
    """A planned failure hits the chosen operation and path; an append writes half of its bytes."""
    disk = MemoryDisk()
    file = disk.open("f", create=True)
    disk.fails = lambda operation, path: (operation, path) == ("append", "f")
    with pytest.raises(StorageError, match="append f"):
        file.append([b"abcd"])
    assert disk.read("f") == b"ab"


def test_a_killed_broker_holds_no_lock() -> None:
    """A killed broker releases its lock, and all its writes are there."""
    disk = MemoryDisk()
    disk.lock()
    disk.open("f", create=True).append([b"ab"])
    disk.kill()
    disk.lock()
    assert disk.read("f") == b"ab"
