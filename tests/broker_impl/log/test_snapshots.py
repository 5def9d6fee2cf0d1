"""Snapshot files of producer states: the newest valid one counts, and none is ahead of the log."""

from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.producers import ProducerEntry, ProducerStates
from broker_impl.log.snapshots import Snapshots


def snapshots(*offsets: int) -> tuple[MemoryDisk, Snapshots]:
    disk = MemoryDisk()
    disk.make_dir("d")
    disk.fsync_dir("")
    taken = Snapshots(disk, "d")
    for offset in offsets:
        taken.take(offset, ProducerStates({offset: ProducerEntry(1)}))
    return disk, taken


def test_the_newest_is_read() -> None:
    """The newest snapshot is read with its offset; without any, the state is empty, at offset 0."""
    offset, states = snapshots(5, 30, 20)[1].newest(now_ms=9)
    assert offset == 30
    assert states.entries == {30: ProducerEntry(1)}
    offset, states = snapshots()[1].newest(0)
    assert (offset, states.entries) == (0, {})


def test_a_damaged_one_is_removed() -> None:
    """A damaged snapshot is removed, and an older one is read."""
    disk, taken = snapshots(5, 30)
    disk.write(f"d/{30:020d}.snapshot", b"")
    assert taken.newest(0)[0] == 5
    assert taken.offsets() == [5]


def test_a_snapshot_survives_a_crash() -> None:
    """KAFKA-9892: a snapshot and its name are synced, and survive a crash."""
    disk, taken = snapshots(5)
    disk.crash()
    assert taken.newest(0)[0] == 5


def test_those_of_a_cut_log_do_not_come_back() -> None:
    """Snapshots above a truncation are removed durably.

    A snapshot of another history would otherwise be trusted after a crash.
    """
    disk, taken = snapshots(5, 30, 40)
    taken.remove_above(30)
    disk.crash()
    assert taken.offsets() == [5, 30]


def test_the_newest_outlives_its_segment() -> None:
    """Snapshots below the log start are removed, except the newest, which has all producers."""
    _, taken = snapshots(5, 30, 40)
    taken.remove_below(35)
    assert taken.offsets() == [40]
    taken.remove_below(100)
    assert taken.offsets() == [40]
