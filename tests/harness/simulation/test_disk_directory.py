"""Several directories of one simulated disk, each as a disk of its own."""

import random

import pytest

from broker_impl.errors import StorageError
from harness.simulation import disk_directory
from harness.simulation.disk import SimDisk
from harness.simulation.disk_directory import DiskDirectory

PATHS = ("/data/dir-1", "/data/dir-2")


@pytest.fixture
def disk() -> SimDisk:
    """A disk that contains nothing."""
    return SimDisk(random.Random(1), StorageError)


def test_one_directory_is_the_whole_disk(disk: SimDisk) -> None:
    """A single data directory needs no directory on the disk."""
    access = disk.attach()
    assert disk_directory.disks(access, ["/data"]) == {"/data": access}
    assert disk_directory.prefixes(["/data"]) == {"/data": ""}


def test_directories_are_apart(disk: SimDisk) -> None:
    """The same name means another file in each directory, and all survive a power loss."""
    disks = disk_directory.disks(disk.attach(), PATHS)
    for path, each in disks.items():
        each.write("f", path.encode())
        each.make_dir("d")
        each.rename("d", "e")
        each.fsync_dir("")
    disk.power_loss()
    again = disk_directory.disks(disk.attach(), PATHS)
    for path, each in again.items():
        assert (each.list(""), each.read("f")) == (["e", "f"], path.encode())
        assert each.is_dir("e")
        each.remove_dir("e")
        each.remove("f")
        assert not each.exists("f")
    assert disk.paths() == []


def test_each_directory_has_its_own_lock(disk: SimDisk) -> None:
    """A process may hold several; another one gets those that are free, or become free."""
    dead = [False]
    first = disk.attach(is_ended=lambda: dead[0])
    for path in ("a", "b"):
        DiskDirectory(first, path).lock()
    second = disk.attach()
    DiskDirectory(second, "c").lock()
    for path in ("a", "b"):
        with pytest.raises(StorageError, match="locked"):
            DiskDirectory(second, path).lock()
    DiskDirectory(first, "a").unlock()
    DiskDirectory(second, "a").lock()
    dead[0] = True
    DiskDirectory(second, "b").lock()


def test_a_failed_directory_is_still_a_directory(disk: SimDisk) -> None:
    """A process that starts finds its directories, and fails only when it uses the broken one."""
    disk_directory.disks(disk.attach(), PATHS)
    disk.fail_directory("dir-1")
    first, second = disk_directory.disks(disk.attach(), PATHS).values()
    second.write("f", b"x")
    with pytest.raises(StorageError, match="dir-1/f: input/output error"):
        first.exists("f")
    assert disk.failed_operations("dir-1") == 1
