"""Strays of a dead harness are killed; other processes are left alone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from harness.cluster import registry
from harness.cluster.registry import MARK, Entry, Known, Registry, known, reap, state_folder


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def gone() -> Known:
    """Return the entry of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        entry = known(process.pid)
    assert entry is not None
    return entry


def file_of(folder: Path, owner: Known, *processes: Known, mark: str = "") -> Path:
    path = folder / f"{owner.pid}-x.json"
    path.write_bytes(msgspec.json.encode(Entry(owner=owner, mark=mark, processes=processes)))
    return path


def test_stray_of_a_dead_harness_is_killed(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    """When the owner has ended, its processes are killed and its file is removed."""
    stray = known(sleeper.pid, "broker-1")
    assert stray is not None
    path = file_of(tmp_path, gone(), stray)
    assert reap(tmp_path) == [stray]
    assert sleeper.wait(5) == -9
    assert not path.exists()


def test_stray_that_was_not_yet_written_down_is_killed(tmp_path: Path) -> None:
    """A process that its killed harness had not yet registered is found by its mark."""
    mark = f"mark of {tmp_path}"
    argv = [sys.executable, "-c", "input()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, env={MARK: mark}) as stray:
        file_of(tmp_path, gone(), mark=mark)
        assert [known.pid for known in reap(tmp_path)] == [stray.pid]
        assert stray.wait(5) == -9


def test_starting_is_written_down_before_anything_starts(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    """While a process is started the file exists with the mark, even if other processes end."""
    held = Registry("a", tmp_path)
    held.add(sleeper.pid, "broker-1")
    with held.starting() as environment:
        held.remove(sleeper.pid)
        [path] = tmp_path.glob("*.json")
        assert msgspec.json.decode(path.read_bytes(), type=Entry).mark == environment[MARK]
    assert list(tmp_path.iterdir()) == []


def test_half_a_file_goes_with_its_owner(tmp_path: Path) -> None:
    """A draft that a killed harness was writing is removed; a live harness's stays."""
    (tmp_path / f"{gone().pid}-x.draft").write_bytes(b"{")
    living = tmp_path / f"{os.getpid()}-x.draft"
    living.write_bytes(b"{")
    assert reap(tmp_path) == []
    assert list(tmp_path.iterdir()) == [living]


def test_recycled_id_is_a_stranger(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    """A process with the same id but another start time is never killed."""
    path = file_of(tmp_path, gone(), Known(pid=sleeper.pid, started="boot:1"))
    assert reap(tmp_path) == []
    assert sleeper.poll() is None
    assert not path.exists()


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="others know the time of day alone"
)
def test_a_clock_that_is_set_makes_no_strangers(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Setting the clock changes neither the owners of processes nor which of them are strays."""
    harness, stray = known(os.getpid()), known(sleeper.pid, "broker-1")
    assert harness is not None
    assert stray is not None
    boot_s = psutil.boot_time()
    monkeypatch.setattr(psutil._pslinux, "boot_time", lambda: boot_s - 7)
    file_of(tmp_path, harness, stray)
    assert reap(tmp_path) == []
    file_of(tmp_path, gone(), stray)
    assert reap(tmp_path) == [stray]


def test_without_proc_a_process_is_told_by_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without /proc the wall-clock start time identifies a process."""
    monkeypatch.setattr(registry, "_BOOT", Path("/none"))
    assert (this := known(os.getpid())) is not None
    assert this.started.startswith("epoch:")
    assert this.alive()
    assert known(gone().pid) is None


def test_living_harness_keeps_its_own(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    """Processes of a harness that still runs are left alone."""
    held = Registry("a", tmp_path)
    held.add(sleeper.pid, "broker-1")
    assert reap(tmp_path) == []
    assert sleeper.poll() is None
    assert len(list(tmp_path.glob("*.json"))) == 1
    held.remove(sleeper.pid)
    assert list(tmp_path.iterdir()) == []


def test_copy_lists_what_runs(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    """The run's own folder has the same list, also after the last process has ended."""
    copy = tmp_path / "pids.json"
    held = Registry("a", tmp_path / "state", copy)
    held.add(sleeper.pid, "broker-1")
    [process] = msgspec.json.decode(copy.read_bytes(), type=Entry).processes
    assert (process.pid, process.what) == (sleeper.pid, "broker-1")
    held.remove(sleeper.pid)
    assert msgspec.json.decode(copy.read_bytes(), type=Entry).processes == ()


def test_garbage_is_cleared(tmp_path: Path) -> None:
    """A file that cannot be read is removed."""
    (tmp_path / "1-x.json").write_bytes(b"{")
    assert reap(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_dead_process_is_not_written_down(tmp_path: Path) -> None:
    """A process that ended before it could be registered is not written down."""
    held = Registry("a", tmp_path)
    held.add(gone().pid, "broker-1")
    assert list(tmp_path.iterdir()) == []


def test_state_folder_follows_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state folder follows the XDG Base Directory specification."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_folder() == tmp_path / "faultline" / "processes"


def test_the_processes_of_another_place_are_left_alone(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    """Processes and entries of another host or PID namespace stay.

    If machines or containers share a home, a harness cannot check whether another's owner has
    ended.
    """
    stray = known(sleeper.pid, "broker-1")
    assert stray is not None
    path = file_of(tmp_path, gone(), stray)
    entry = msgspec.json.decode(path.read_bytes(), type=Entry)
    for name in registry.place():
        elsewhere = {**registry.place(), name: "elsewhere"}
        path.write_bytes(msgspec.json.encode(msgspec.structs.replace(entry, place=elsewhere)))
        assert reap(tmp_path) == []
        assert path.exists()
    path.write_bytes(
        msgspec.json.encode(msgspec.structs.replace(entry, place=dict(registry.place())))
    )
    assert reap(tmp_path) == [stray]


def test_a_listed_process_without_the_mark_is_a_stranger(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    """A listed process without the entry's mark is not killed, as this program did not start it.

    Its start time alone may be right.
    """
    listed = known(sleeper.pid, "editor")
    assert listed is not None
    path = file_of(tmp_path, gone(), listed, mark="1 boot:2 a")
    assert reap(tmp_path) == []
    assert sleeper.poll() is None
    assert not path.exists()


def test_an_entry_stays_while_the_engine_holds_something(tmp_path: Path) -> None:
    """An entry stays while the engine holds objects of its run.

    The next command that reaches the engine removes them, and then the entry.
    """
    held = Registry("a", tmp_path)
    held.uses_engine(True)
    [path] = tmp_path.glob("*.json")
    assert registry.left_with_engine(tmp_path) == []
    entry = msgspec.json.decode(path.read_bytes(), type=Entry)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(entry, owner=gone())))
    assert reap(tmp_path) == []
    assert registry.left_with_engine(tmp_path) == [path]
    held.uses_engine(False)
    assert list(tmp_path.iterdir()) == []


def test_a_reader_never_finds_half_a_list(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    """The list in a run's folder is replaced, not overwritten: an open reader sees all of it."""
    copy = tmp_path / "pids.json"
    held = Registry("a", tmp_path / "state", copy)
    held.add(sleeper.pid, "broker-1")
    with copy.open("rb") as opened:
        held.remove(sleeper.pid)
        assert len(msgspec.json.decode(opened.read(), type=Entry).processes) == 1
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["pids.json"]
