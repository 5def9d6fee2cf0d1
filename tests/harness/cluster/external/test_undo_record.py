"""What a killed run has broken is undone by the next command."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest

from harness.cluster.external import undo_record
from harness.cluster.external.hooks import Call
from harness.cluster.external.undo_record import Record, UndoRecord, folder
from harness.cluster.registry import Known, known, place
from tests.harness.cluster.external.conftest import FakeCluster

P = "faultline-00c0ffee-"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the test have its own state folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def shell(what: str, script: str, where: Path) -> Call:
    return Call(what=what, hook=["sh", "-c", script], folder=str(where), timeout_s=10)


def records() -> list[Record]:
    return [
        msgspec.json.decode(path.read_bytes(), type=Record)
        for path in sorted(folder().glob("*.json"))
    ]


def test_a_record_has_what_is_not_yet_undone(tmp_path: Path) -> None:
    """The file is private, has the changes that remain, and disappears with the last of them."""
    record = UndoRecord(tmp_path / "hooks.log", (), P)
    resume = shell("resume broker-1", "true", tmp_path)
    start = shell("start broker-2", "true", tmp_path)
    record.breaks("paused", "broker-1", resume)
    record.breaks("down", "broker-2", start)
    assert [one.undo for one in records()] == [(resume, start)]
    [path] = folder().glob("*.json")
    assert (path.stat().st_mode & 0o777, folder().stat().st_mode & 0o777) == (0o600, 0o700)
    assert [call for _, call in record.left] == [start, resume]
    record.heals("paused", "broker-1")
    assert record.is_broken("down", "broker-2")
    assert not record.is_broken("paused", "broker-1")
    record.close()
    assert [one.undo for one in records()] == [(start,)]
    record.heals("down", "broker-2")
    record.close()
    assert records() == []


def test_a_running_owner_undoes_its_own_changes(tmp_path: Path) -> None:
    record = UndoRecord(tmp_path / "hooks.log", (), P)
    record.breaks("paused", "broker-1", shell("resume broker-1", "touch undone", tmp_path))
    assert undo_record.undo_left() == undo_record.Undone()
    assert not (tmp_path / "undone").exists()


def ended() -> Known:
    """Return the record of a process that has ended."""
    process = subprocess.Popen(["sleep", "600"])
    record = known(process.pid, "harness")
    assert record is not None
    process.kill()
    process.wait()
    return record


def left_by_killed_run(tmp_path: Path, cluster: FakeCluster, *undo: Call) -> None:
    record = Record(
        owner=ended(),
        place=dict(place()),
        log=str(tmp_path / "hooks.log"),
        observed=tuple((at.host, at.port) for at in (b.address for b in cluster.brokers.values())),
        prefix=P,
        undo=undo,
    )
    folder().mkdir(parents=True, exist_ok=True)
    (folder() / "1-run.json").write_bytes(msgspec.json.encode(record))


async def in_thread() -> undo_record.Undone:
    return await asyncio.to_thread(undo_record.undo_left)


async def test_a_killed_run(tmp_path: Path, cluster: FakeCluster) -> None:
    """The latest change is undone first; topics and groups of the run are removed."""
    cluster.topics = [f"{P}topic0", "orders"]
    left_by_killed_run(
        tmp_path,
        cluster,
        shell("resume broker-1", "echo resumed >>order", tmp_path),
        shell("start broker-2", "echo started >>order", tmp_path),
    )
    undone = await in_thread()
    assert undone.done == (
        "start broker-2",
        "resume broker-1",
        "removed 1 topics and 0 groups from the cluster",
    )
    assert undone.left == ()
    assert (tmp_path / "order").read_text() == "started\nresumed\n"
    assert cluster.topics == ["orders"]
    assert records() == []


async def test_a_hook_that_fails_is_tried_again(tmp_path: Path, cluster: FakeCluster) -> None:
    """The record is kept as long as a hook fails, and the failure has its last line."""
    script = "test -e fixed || { echo no; exit 1; }"
    left_by_killed_run(tmp_path, cluster, shell("start broker-2", script, tmp_path))
    undone = await in_thread()
    assert undone.left == ("the hook start broker-2 failed (status 1): no",)
    assert len(records()) == 1
    (tmp_path / "fixed").touch()
    assert (await in_thread()).done == ("start broker-2",)
    assert records() == []


async def test_a_hook_of_a_killed_run_still_runs(tmp_path: Path, cluster: FakeCluster) -> None:
    """Its process group is ended before anything is undone."""
    hook = await asyncio.create_subprocess_exec("sleep", "600", start_new_session=True)
    left_by_killed_run(tmp_path, cluster)
    [path] = folder().glob("*.json")
    running = known(hook.pid, "pause broker-1")
    assert running is not None
    record = msgspec.structs.replace(records()[0], hooks=(running,))
    path.write_bytes(msgspec.json.encode(record))
    assert (await in_thread()).done == ("ended the hook pause broker-1",)
    assert await hook.wait() == -signal.SIGKILL


def test_hooks_are_recorded_while_they_run(tmp_path: Path) -> None:
    record = UndoRecord(tmp_path / "hooks.log", (), P)
    record.hook_started(os.getpid(), "kill broker-1")
    [found] = records()
    assert [(each.pid, each.what) for each in found.hooks] == [(os.getpid(), "kill broker-1")]
    record.hook_ended(os.getpid())
    assert [one.hooks for one in records()] == [()]


def test_a_damaged_record_is_reported() -> None:
    folder().mkdir(parents=True)
    (folder() / "x.json").write_bytes(b"{")
    [line] = undo_record.undo_left().left
    assert line.startswith(str(folder() / "x.json"))
