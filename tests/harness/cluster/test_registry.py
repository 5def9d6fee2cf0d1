"""Strays of a dead harness are ended; strangers and the living are left alone."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from harness.cluster.registry import Entry, Known, Registry, known, reap, state_folder


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def gone() -> Known:
    """A process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        entry = known(process.pid)
    assert entry is not None
    return entry


def file_of(folder: Path, owner: Known, *processes: Known) -> Path:
    path = folder / f"{owner.pid}-x.json"
    path.write_bytes(msgspec.json.encode(Entry(owner=owner, processes=processes)))
    return path


def test_stray_of_a_dead_harness_is_killed(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    """When the owner has gone its processes are killed and its file goes too."""
    stray = known(sleeper.pid, "broker-1")
    assert stray is not None
    path = file_of(tmp_path, gone(), stray)
    assert reap(tmp_path) == [stray]
    assert sleeper.wait(5) == -9
    assert not path.exists()


def test_recycled_id_is_a_stranger(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    """A process with the same id but another start time is never touched."""
    path = file_of(tmp_path, gone(), Known(pid=sleeper.pid, started=1.0))
    assert reap(tmp_path) == []
    assert sleeper.poll() is None
    assert not path.exists()


def test_living_harness_keeps_its_own(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    """Processes of a harness that still runs are its own business."""
    registry = Registry("a", tmp_path)
    registry.add(sleeper.pid, "broker-1")
    assert reap(tmp_path) == []
    assert sleeper.poll() is None
    assert len(list(tmp_path.glob("*.json"))) == 1
    registry.remove(sleeper.pid)
    assert list(tmp_path.iterdir()) == []


def test_copy_lists_what_runs(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    """The run's own folder has the same list, also after the last process has ended."""
    copy = tmp_path / "pids.json"
    registry = Registry("a", tmp_path / "state", copy)
    registry.add(sleeper.pid, "broker-1")
    [process] = msgspec.json.decode(copy.read_bytes(), type=Entry).processes
    assert (process.pid, process.what) == (sleeper.pid, "broker-1")
    registry.remove(sleeper.pid)
    assert msgspec.json.decode(copy.read_bytes(), type=Entry).processes == ()


def test_garbage_is_cleared(tmp_path: Path) -> None:
    """A file that cannot be read helps nobody and is removed."""
    (tmp_path / "1-x.json").write_bytes(b"{")
    assert reap(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_dead_process_is_not_written_down(tmp_path: Path) -> None:
    """A process that has ended before it could be asked is no stray."""
    registry = Registry("a", tmp_path)
    registry.add(gone().pid, "broker-1")
    assert list(tmp_path.iterdir()) == []


def test_state_folder_follows_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state folder is where the desktop standard says."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_folder() == tmp_path / "faultline" / "processes"
