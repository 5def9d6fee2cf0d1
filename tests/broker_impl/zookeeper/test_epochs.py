"""Epochs are durable when they are set, never decrease, and agree with the log."""

import pytest

from broker_impl.errors import StorageError
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.zookeeper.epochs import ACCEPTED, CURRENT, Epochs


def loaded(disk: MemoryDisk, last_zxid: int = 0) -> Epochs:
    epochs = Epochs(disk, "v")
    epochs.load(last_zxid)
    return epochs


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dir("v")
    disk.fsync_dir("")
    return disk


def test_a_new_server_has_the_epoch_of_its_log(disk: MemoryDisk) -> None:
    """Without files the epochs are that of the last transaction, as after an upgrade."""
    epochs = loaded(disk, 0x300000005)
    assert (epochs.accepted, epochs.current) == (3, 3)


def test_they_are_durable(disk: MemoryDisk) -> None:
    """Each is written at once, as text with the number alone, which Apache's server reads."""
    epochs = loaded(disk)
    epochs.accept(4)
    disk.crash()
    assert (loaded(disk).accepted, loaded(disk).current) == (4, 0)
    epochs.enter(4)
    disk.crash()
    assert (loaded(disk).accepted, loaded(disk).current) == (4, 4)
    assert (disk.read(f"v/{ACCEPTED}"), disk.read(f"v/{CURRENT}")) == (b"4", b"4")


def test_a_failed_write_changes_nothing(disk: MemoryDisk) -> None:
    """An epoch that could not be stored is not accepted."""
    epochs = loaded(disk)
    disk.fails = lambda operation, path: operation == "write"
    with pytest.raises(StorageError):
        epochs.accept(4)
    assert epochs.accepted == 0


def test_they_never_decrease(disk: MemoryDisk) -> None:
    """A lower epoch, and one that was not accepted before, are errors of the program (I1)."""
    epochs = loaded(disk)
    epochs.accept(4)
    with pytest.raises(AssertionError):
        epochs.accept(3)
    with pytest.raises(AssertionError):
        epochs.enter(5)
    epochs.enter(4)
    epochs.accept(6)
    with pytest.raises(AssertionError):
        epochs.enter(3)


@pytest.mark.parametrize(
    ("accepted", "current", "last_zxid", "reason"),
    [
        (b"2", b"2", 0x300000001, "transaction of epoch 3"),
        (b"2", b"3", 0x300000001, "less than"),
        (b"x", b"3", 0x300000001, "no number"),
        (b"4", b"", 0, "no number"),
    ],
)
def test_contradictions_are_refused(
    accepted: bytes, current: bytes, last_zxid: int, reason: str, disk: MemoryDisk
) -> None:
    """Epochs that contradict each other or the log, or cannot be read, are refused."""
    disk.write(f"v/{ACCEPTED}", accepted)
    disk.write(f"v/{CURRENT}", current)
    with pytest.raises(StorageError, match=reason):
        loaded(disk, last_zxid)


def test_a_line_end_is_accepted(disk: MemoryDisk) -> None:
    """Files of Apache's server may end with a line end."""
    disk.write(f"v/{ACCEPTED}", b"7\n")
    assert loaded(disk).accepted == 7


def test_a_server_that_ended_while_it_took_over_a_history_starts_again(disk: MemoryDisk) -> None:
    """A log may be ahead of the current epoch: its transactions are made durable first
    (ZOOKEEPER-4643)."""
    disk.write(f"v/{ACCEPTED}", b"3")
    disk.write(f"v/{CURRENT}", b"2")
    epochs = loaded(disk, 0x300000001)
    assert (epochs.accepted, epochs.current) == (3, 3)
    assert disk.read(f"v/{CURRENT}") == b"3"
