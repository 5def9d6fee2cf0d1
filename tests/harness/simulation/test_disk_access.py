"""The simulated disk answers as the operating system's does."""

import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_impl.errors import StorageError
from broker_impl.log.disk import Disk
from broker_impl.platform.os_disk import OsDisk
from harness.simulation.disk import SimDisk

PATHS = st.sampled_from(["a", "b", "d", "d/a", "d/e", "d/e/a", "f/a"])
OPERATIONS = st.one_of(
    st.tuples(st.sampled_from(["make_dir", "remove", "remove_dir", "read", "list"]), PATHS),
    st.tuples(st.sampled_from(["exists", "is_dir", "fsync_dir", "open"]), PATHS),
    st.tuples(st.just("rename"), PATHS, PATHS),
    st.tuples(st.just("write"), PATHS, st.binary(max_size=6)),
    st.tuples(st.just("append"), PATHS, st.lists(st.binary(max_size=5), max_size=3)),
    st.tuples(st.just("truncate"), PATHS, st.integers(0, 3)),
    st.tuples(st.just("pread"), PATHS, st.integers(0, 9), st.integers(0, 9)),
)


def disk() -> SimDisk:
    return SimDisk(random.Random(3), StorageError)


def carry_out(disk: Disk, name: str, path: str, *arguments: object) -> object:
    """Return the result of one operation, or ``refused`` if it fails."""
    on_files: dict[str, Callable[..., object]] = {
        "append": lambda file, buffers: (file.append(buffers), file.fsync(), file.size),
        "truncate": lambda file, size: (file.truncate(min(size, file.size)), file.size),
        "pread": lambda file, at, length: file.pread(at, length),
        "open": lambda file: file.size,
    }
    try:
        if name not in on_files:
            return getattr(disk, name)(path, *arguments)
        file = disk.open(path, create=name == "append")
        try:
            return on_files[name](file, *arguments)
        finally:
            file.close()
    except StorageError:
        return "refused"


@settings(max_examples=60)
@given(st.lists(OPERATIONS, max_size=25))
def test_it_answers_as_the_operating_systems(operations: list[tuple[str, str]]) -> None:
    """Any sequence of operations has the same results and refusals on both."""
    with tempfile.TemporaryDirectory() as folder:
        real, simulated = OsDisk(Path(folder)), disk().attach()
        for operation in operations:
            if operation[0] == "rename" and real.is_dir(operation[1]):
                continue  # a real one may replace an empty directory
            assert carry_out(simulated, *operation) == carry_out(real, *operation), operation


def test_a_write_replaces_a_file_wholly_or_not_at_all() -> None:
    """A power loss during a write leaves the old or the new bytes; after it, the new ones."""
    for seed in range(60):
        host = SimDisk(random.Random(seed), StorageError)
        host.attach().write("f", b"old")
        host.interrupt(seed % 8, host.power_loss)
        try:
            host.attach().write("f", b"new")
        except StorageError:
            assert host.peek("f") in (b"old", b"new")
        else:
            host.power_loss()
            assert host.peek("f") == b"new"


def test_a_lock_ends_with_its_process() -> None:
    """No other process gets the lock while its holder lives; after its end or `unlock` any can."""
    host = disk()
    ended = False
    first, second = host.attach(is_ended=lambda: ended), host.attach()
    first.lock()
    with pytest.raises(StorageError, match="locked"):
        second.lock()
    second.unlock()  # does nothing: it is not the holder
    with pytest.raises(StorageError, match="locked"):
        second.lock()
    ended = True
    second.lock()
    second.unlock()
    third = host.attach()
    third.lock()
    host.power_loss()
    host.attach().lock()


def test_the_dead_write_nothing() -> None:
    """Neither a process that has ended nor one that lost its power reaches the disk."""
    host = disk()
    ended = False
    access = host.attach(is_ended=lambda: ended)
    file = access.open("f", create=True)
    ended = True
    with pytest.raises(StorageError, match="ended"):
        file.append([b"x"])
    before_the_loss = host.attach()
    host.power_loss()
    with pytest.raises(StorageError, match="ended"):
        before_the_loss.open("g", create=True)
    assert "g" not in host.paths()


def test_the_end_of_a_process_loses_nothing() -> None:
    """Everything that a process has written, synced or not, is there for the next process."""
    host = disk()
    host.attach().open("f", create=True).append([b"ab", memoryview(b"c")])
    assert host.attach().read("f") == b"abc"


def test_a_closed_handle_is_closed() -> None:
    """A closed handle can neither be used nor closed again; other handles on the file can."""
    access = disk().attach()
    file, other = access.open("f", create=True), access.open("f")
    file.close()
    for use in (file.close, file.fsync, lambda: file.append([b"x"]), lambda: file.pread(0, 1)):
        with pytest.raises(StorageError, match="closed"):
            use()
    other.append([b"x"])


@pytest.mark.parametrize("ends", [False, True])
def test_reserved_zeros_are_overwritten_by_appends_of_the_same_handle(ends: bool) -> None:
    """Another handle reads them as zeros, and appends behind them if the first one is gone."""
    host = disk()
    is_over = False
    access = host.attach(is_ended=lambda: is_over)
    file = access.open("f", create=True)
    file.append([b"ab"])
    file.reserve(6)
    assert (file.size, access.read("f")) == (2, b"ab" + bytes(6))
    file.append([b"cd"])
    assert (file.size, access.read("f"), access.open("f").size) == (4, b"abcd" + bytes(4), 8)
    if ends:
        is_over = True
    else:
        file.close()
    other = host.attach().open("f")
    other.append([b"ef"])
    assert other.pread(0, 99) == b"abcd" + bytes(4) + b"ef"
