"""The faults of a simulated disk, and the time that its operations take."""

import random
from collections.abc import Callable

import pytest

from broker_impl.errors import StorageError
from harness.simulation.disk import SimDisk
from harness.simulation.disk_access import DiskAccess, Latency, SimFile


def disk(seed: int = 5) -> SimDisk:
    return SimDisk(random.Random(seed), StorageError)


def test_a_full_disk_takes_a_part() -> None:
    """A full disk writes as much as fits before the error.

    A removal makes room, and so does `free`.
    """
    host = disk()
    access = host.attach()
    access.write("old", bytes(100))
    host.fill(leave_bytes=3)
    file = access.open("f", create=True)
    with pytest.raises(StorageError, match="no space"):
        file.append([b"abcde"])
    assert (file.size, host.peek("f")) == (3, b"abc")
    with pytest.raises(StorageError, match="no space"):
        access.make_dir("d")
    access.remove("old")
    file.append([b"defgh"])
    host.fill()
    with pytest.raises(StorageError, match="no space"):
        file.append([b"x"])
    host.free()
    file.append([b"x"])
    access.make_dir("d")
    assert host.peek("f") == b"abcdefghx"


def test_a_write_that_does_not_fit_changes_nothing() -> None:
    """A write that does not fit keeps the old file, and leaves what fitted in a ``.tmp`` file."""
    host = disk()
    access = host.attach()
    access.write("f", b"old")
    host.fill(leave_bytes=1)
    with pytest.raises(StorageError, match="no space"):
        access.write("f", b"new")
    assert host.peek("f") == b"old"
    assert host.paths() == ["f", "f.tmp"]
    host.free()
    access.write("f", b"newer")
    assert (host.peek("f"), host.paths()) == (b"newer", ["f"])


def test_syncs_fail_so_many_times() -> None:
    """A number of syncs fail, of files and of directories; or all, until the fault is cleared."""
    host = disk()
    access = host.attach()
    file = access.open("f", create=True)
    host.fail_fsync(2)
    for sync in (file.fsync, lambda: access.fsync_dir("")):
        with pytest.raises(StorageError, match="fsync"):
            sync()
    file.fsync()
    host.fail_fsync()
    for _ in range(3):
        with pytest.raises(StorageError, match="fsync"):
            file.fsync()
    host.fail_fsync(0)
    file.fsync()


def test_a_name_whose_sync_failed_may_be_lost() -> None:
    """A name whose directory's sync failed may be lost."""
    left = set()
    for seed in range(30):
        host = disk(seed)
        access = host.attach()
        access.open("f", create=True)
        host.fail_fsync(1)
        with pytest.raises(StorageError):
            access.fsync_dir("")
        host.power_loss()
        left.add(tuple(host.paths()))
    assert left == {(), ("f",)}


def _in_directory_a(access: DiskAccess, file: SimFile) -> list[Callable[[], object]]:
    """Return every operation on a file in the directory, or on the directory itself."""
    return [
        lambda: file.append([b"new"]),
        lambda: file.pread(0, 1),
        lambda: file.truncate(0),
        lambda: file.reserve(8),
        file.fsync,
        lambda: access.open("a/f"),
        lambda: access.read("a/f"),
        lambda: access.write("a/f", b"new"),
        lambda: access.remove("a/f"),
        lambda: access.exists("a/f"),
        lambda: access.is_dir("a"),
        lambda: access.list("a"),
        lambda: access.make_dir("a/d"),
        lambda: access.remove_dir("a"),
        lambda: access.rename("a/f", "ab/g"),
        lambda: access.rename("ab/f", "a/g"),
        lambda: access.fsync_dir("a"),
        lambda: access.lock("a"),
    ]


def test_a_failed_directory_fails_alone() -> None:
    """Every operation in the directory fails without effect; its parent and its sister work.

    That includes operations on open files, those of later processes, and renames out of it.
    """
    host = disk()
    access = host.attach()
    for name in ("a", "ab"):
        access.make_dir(name)
        access.write(f"{name}/f", b"old")
    file, other = access.open("a/f"), access.open("ab/f")
    assert host.failed_operations("a") is None
    host.fail_directory("a")
    assert host.failed_operations("a") == 0
    for each in (access, host.attach()):
        for operation in _in_directory_a(each, file):
            with pytest.raises(StorageError, match=r"^a.*: input/output error"):
                operation()
    assert host.failed_operations("a") == 2 * 18
    other.append([b"er"])
    assert access.list("") == ["a", "ab"]
    assert (host.peek("ab/f"), host.peek("a/f"), host.paths()) == (
        b"older",
        b"old",
        ["a/f", "ab/f"],
    )
    file.close()
    host.repair_directory("a")
    assert host.failed_operations("a") is None
    assert access.read("a/f") == b"old"


def test_a_failed_directory_keeps_what_the_cache_has() -> None:
    """What was written before the failure is there after the repair, unless power was lost."""
    kept = set()
    for seed in range(20):
        host = disk(seed)
        access = host.attach()
        access.make_dir("a")
        access.fsync_dir("")
        access.write("a/f", b"synced")
        access.open("a/f").append([b", not"])
        host.fail_directory("a")
        if seed:
            host.power_loss()
        host.fail_directory("a")
        with pytest.raises(StorageError, match="input/output"):
            host.attach().read("a/f")
        host.repair_directory("a")
        found = host.attach().read("a/f")
        assert found == b"synced, not" if seed == 0 else found.startswith(b"synced")
        kept.add(found)
    assert {b"synced", b"synced, not"} <= kept


def test_a_flipped_bit_is_one_bit_of_what_is_synced() -> None:
    """`flip_bit` returns the bit's position; readers see the flip, and it survives a power loss."""
    host = disk()
    access = host.attach()
    assert host.flip_bit() is None
    access.write("f", bytes(50))
    access.open("f").append([bytes(1000)])
    access.write("g", bytes(50))
    place = host.flip_bit("f")
    assert place is not None
    assert place.path == "f"
    assert place.at < 50
    assert access.read("f")[place.at].bit_count() == 1
    assert sum(byte.bit_count() for byte in access.read("f")) == 1
    host.power_loss()
    assert host.peek("f")[place.at].bit_count() == 1
    flipped = [host.flip_bit() for _ in range(50)]
    assert {place.path for place in flipped if place} == {"f", "g"}


def test_every_operation_takes_its_time() -> None:
    """Each operation reports to the process a time within its range.

    It is longer for more bytes and on a slow disk.
    """
    spent: list[float] = []
    latency = Latency(
        read=(1, 2), write=(10, 20), sync=(100, 200), name=(1000, 2000), bytes_per_s=0.5
    )
    host = SimDisk(random.Random(1), StorageError, latency=latency)
    file = host.attach(busy=spent.append).open("f", create=True)
    file.append([b"ab"])
    file.pread(0, 1)
    file.fsync()
    file.fsync()
    host.slow(5000)
    file.fsync()
    host.slow(0)
    file.fsync()
    low = [1000, 10 + 4, 1 + 2, 100 + 4, 100, 5100, 100]
    high = [2000, 20 + 4, 2 + 2, 200 + 4, 200, 5200, 200]
    assert all(a <= s <= b for a, s, b in zip(low, spent, high, strict=True)), spent


def test_an_interruption_comes_between_two_operations() -> None:
    """An interruption occurs once, after the given number of operations.

    What its action changes applies to the next operation.
    """
    host = disk()
    ended = False

    def end() -> None:
        nonlocal ended
        ended = True

    access = host.attach(is_ended=lambda: ended)
    host.interrupt(2, end)
    file = access.open("f", create=True)
    file.append([b"a"])
    with pytest.raises(StorageError, match="ended"):
        file.append([b"b"])
    assert host.peek("f") == b"a"
    called: list[bool] = []
    host.interrupt(0, lambda: called.append(True))
    host.cancel_interrupt()
    host.attach().exists("f")
    assert not called


def test_an_interruption_comes_before_a_rename() -> None:
    """An interruption occurs before the first rename of a file whose name has the given suffix."""
    host = disk()
    access = host.attach()
    for name in ("a.swap", "b", "c.swap"):
        access.open(name, create=True)
    found: list[list[str]] = []
    host.interrupt_rename(".swap", lambda: found.append(host.paths()))
    access.rename("b", "b.swap")
    access.rename("a.swap", "a")
    access.rename("c.swap", "c")
    assert found == [["a.swap", "b.swap", "c.swap"]]
    host.interrupt_rename("a", lambda: found.append([]))
    host.cancel_interrupt()
    access.rename("a", "d")
    assert len(found) == 1


def test_the_seed_decides() -> None:
    """The same seed loses the same bytes; other seeds lose others."""

    def left(seed: int) -> bytes:
        host = disk(seed)
        access = host.attach()
        file = access.open("f", create=True)
        access.fsync_dir("")
        for number in range(20):
            file.append([bytes([number + 1]) * 1000])
        host.power_loss()
        return host.peek("f")

    assert left(1) == left(1)
    assert len({left(seed) for seed in range(20)}) > 5


def test_looking_disturbs_nothing() -> None:
    """`paths` and `peek` draw no random numbers and do not count as operations."""
    host = disk()
    host.attach().write("f", b"x")
    host.interrupt(0, lambda: pytest.fail("an operation"))
    before = host.rng.getstate()
    assert (host.paths(), host.peek("f")) == (["f"], b"x")
    assert host.rng.getstate() == before
