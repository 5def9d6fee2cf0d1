import random

from broker_impl.errors import StorageError
from harness.cluster.observe.disk_copies import Loss, copied
from harness.simulation.disk import SimDisk


def test_a_kill_keeps_what_was_written_and_a_power_loss_what_was_synced() -> None:
    """Names count as well as bytes, and the disk itself does not change."""
    disk = SimDisk(random.Random(1), StorageError)
    access = disk.attach()
    access.make_dir("kept")
    access.fsync_dir("")
    file = access.open("kept/synced", create=True)
    file.append([b"ab"])
    file.fsync()
    file.append([b"c"])
    access.fsync_dir("kept")
    access.open("kept/new", create=True).append([b"n"])
    access.make_dir("unsynced")
    access.open("unsynced/file", create=True).append([b"x"])
    before = {path: bytes(inode.data) for path, inode in disk.names.files()}

    killed = copied(disk.names.root, Loss.KILL)
    assert killed.list("") == ["kept", "unsynced"]
    assert killed.list("kept") == ["new", "synced"]
    assert killed.read("kept/synced") == b"abc"
    assert killed.read("unsynced/file") == b"x"

    unpowered = copied(disk.names.root, Loss.POWER)
    assert unpowered.list("") == ["kept"]
    assert unpowered.list("kept") == ["synced"]
    assert unpowered.read("kept/synced") == b"ab"
    assert {path: bytes(inode.data) for path, inode in disk.names.files()} == before


def test_only_what_is_wanted_is_copied() -> None:
    """A wanted directory is copied with everything in it."""
    disk = SimDisk(random.Random(1), StorageError)
    access = disk.attach()
    for name in ("one", "two"):
        access.make_dir(name)
        access.write(f"{name}/other", b"x")
    access.write("three", b"y")
    copy = copied(disk.names.root, Loss.KILL, lambda name: name in ("one", "three"))
    assert copy.list("") == ["one", "three"]
    assert copy.read("one/other") == b"x"
