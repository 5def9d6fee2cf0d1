import pytest

from broker_impl.errors import DirectoryFailed, DirectoryInUse, StorageError
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.watched_disk import WatchedDisk


class Watched:
    """A watched disk in memory, and the number of failures that it reported."""

    def __init__(self) -> None:
        self.below = MemoryDisk()
        self.reported = 0
        self.disk = WatchedDisk(self.below, self._report)

    def _report(self) -> None:
        self.reported += 1


@pytest.fixture
def watched() -> Watched:
    """A watched disk with a file."""
    found = Watched()
    found.below.write("f", b"abc")
    return found


def test_operations_reach_the_disk(watched: Watched) -> None:
    """All operations are those of the disk below, as long as none fails."""
    disk = watched.disk
    disk.lock()
    disk.make_dir("d")
    disk.write("d/g", b"12")
    disk.rename("d/g", "d/h")
    disk.fsync_dir("d")
    file = disk.open("d/h")
    file.append([b"3", b"45"])
    file.truncate(4)
    file.fsync()
    assert (file.size, file.pread(1, 9)) == (4, b"234")
    file.close()
    assert (disk.read("f"), disk.list(""), disk.list("d")) == (b"abc", ["d", "f"], ["h"])
    assert (disk.exists("x"), disk.is_dir("d"), disk.is_dir("f")) == (False, True, False)
    disk.remove("d/h")
    disk.remove_dir("d")
    assert watched.below.list("") == ["f"]
    disk.unlock()
    watched.below.lock()
    assert (watched.reported, disk.failure) == (0, None)


def test_the_first_failure_is_reported(watched: Watched) -> None:
    """The first failure is kept and reported once; later operations still reach the disk."""
    file = watched.disk.open("f")
    watched.below.fails = lambda operation, path: operation == "append"
    for _ in range(2):
        with pytest.raises(DirectoryFailed, match="append f: planned failure"):
            file.append([b"x"])
    assert watched.reported == 1
    assert str(watched.disk.failure) == "append f: planned failure"
    assert watched.disk.read("f") == b"abc"


def test_nothing_uses_a_disk_that_was_given_up(watched: Watched) -> None:
    """After a directory was given up, its disk is not used, until the broker begins again."""
    file = watched.disk.open("f")
    watched.below.fails = lambda operation, path: True
    with pytest.raises(DirectoryFailed):
        file.fsync()
    watched.below.fails = lambda operation, path: False
    watched.disk.is_given_up = True
    with pytest.raises(DirectoryFailed, match="not used any more: fsync f"):
        file.append([b"x"])
    with pytest.raises(DirectoryFailed, match="not used any more: fsync f"):
        watched.disk.write("f", b"y")
    assert watched.below.read("f") == b"abc"
    file.close()
    watched.disk.begin()
    assert watched.disk.read("f") == b"abc"
    assert watched.disk.failure is None


def test_a_lock_of_another_broker_is_no_failure(watched: Watched) -> None:
    """A directory that another broker has locked works; one whose lock fails does not."""
    watched.below.lock()
    with pytest.raises(DirectoryInUse):
        watched.disk.lock()
    assert watched.disk.failure is None

    class Broken(MemoryDisk):
        def lock(self) -> None:
            raise StorageError("the lock file cannot be opened")

    broken = WatchedDisk(Broken(), lambda: None)
    with pytest.raises(DirectoryFailed, match="cannot be opened"):
        broken.lock()
    assert broken.failure is not None
