"""Leftovers of killed commands are removed, and nothing else."""

import contextlib
import fcntl
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.app import clean, cli, cluster, leftovers, temporary
from harness.app.refused import Refused
from harness.app.search import temp_dir
from harness.cluster import registry
from harness.cluster.containers import container_cleanup, engine
from harness.cluster.node import ClusterError
from harness.cluster.registry import MARK, Entry, Known, known, place
from model.plan import Plan

pytestmark = pytest.mark.prove


def gone() -> Known:
    """Return the entry of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        entry = known(process.pid)
    assert entry is not None
    return entry


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Redirect every place for leftovers to empty folders below this one."""
    for name in ("memory", "temporary", "results"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(temp_dir, "MEMORY", tmp_path / "memory")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(engine, "connect", no_engine)
    return tmp_path


def no_engine() -> None:
    raise engine.EngineError("no container engine answers")


def entry(name: str, owner: Known, **more: Any) -> Path:
    folder = registry.state_folder()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{owner.pid}-{name}.json"
    path.write_bytes(msgspec.json.encode(Entry(owner=owner, place=dict(place()), **more)))
    return path


@pytest.fixture
def start() -> Iterator[Callable[[str], Known]]:
    """Start processes with a mark, as nodes have it."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(mark: str) -> Known:
        argv = [sys.executable, "-c", "input()"]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, env={MARK: mark})
        started.append(process)
        found = known(process.pid, "broker-1")
        assert found is not None
        return found

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def left_folder(where: Path, name: str, owner: Known | None) -> Path:
    """Make a temporary folder with a file, owned by a process; without an owner it is a user's."""
    path = where / name
    path.mkdir(parents=True)
    (path / "file").touch()
    if owner is not None:
        with temporary.folder(where, "x") as made:
            owned = msgspec.json.decode((made / temporary.OWNER).read_bytes())
        owned["owner"] = msgspec.to_builtins(owner)
        (path / temporary.OWNER).write_bytes(msgspec.json.encode(owned))
    return path


def test_clean_removes_what_the_dead_have_left_and_nothing_else(
    home: Path, start: Callable[[str], Known], capsys: pytest.CaptureFixture[str]
) -> None:
    """``clean`` removes leftovers of ended processes, and lists them.

    These are processes, temporary folders of checks, searches and Spark, and the folder of a
    cluster without its keeper. The test has one of each kind that must stay.
    """
    living = known(os.getpid())
    assert living is not None
    stray, kept = start("dead"), start("living")
    entry("a", gone(), mark="dead", processes=(stray,))
    entry("b", living, mark="living", processes=(kept,))
    (home / "memory" / "faultline-old").mkdir()
    held = home / "memory" / "faultline-held"
    held.mkdir()
    lock = os.open(held, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    run = home / "results" / "run"
    for folder in (run, home / "results" / "going"):
        (folder / ".spark").mkdir(parents=True)
        (folder / "nodes").mkdir()
    for folder, owner in ((run, gone()), (home / "results" / "going", living)):
        record = msgspec.json.encode(Entry(owner=owner))
        (folder / "nodes" / "pids.json").write_bytes(record)
    doomed = [
        left_folder(home / "temporary", "faultline-check-a", gone()),
        left_folder(run, ".check-a", gone()),
        home / "memory" / "faultline-old",
        run / ".spark",
        home / "state" / "faultline" / "cluster",
    ]
    doomed[-1].mkdir(parents=True)
    staying = [
        left_folder(home / "temporary", "faultline-check-b", living),
        left_folder(home / "temporary", "faultline-notes", None),
        left_folder(run, ".check-b", living),
        held,
        home / "results" / "going" / ".spark",
        run / "nodes" / "pids.json",
    ]
    (home / "temporary" / "faultline-link").symlink_to(doomed[0])
    with pytest.raises(SystemExit) as exit_:
        cli.main(["clean", "--results", str(home / "results")])
    os.close(lock)
    told = capsys.readouterr()
    assert exit_.value.code == 0
    assert not stray.alive()
    assert kept.alive()
    assert f"ended processes of a killed command: {stray.pid} broker-1\n" in told.out
    assert [path for path in doomed if path.exists()] == []
    assert [str(path) for path in doomed if str(path) not in told.out] == []
    assert [path for path in staying if not path.exists()] == []


def test_with_nothing_left_clean_says_so(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without leftovers ``clean`` says so; a missing container engine is no error."""
    with pytest.raises(SystemExit) as exit_:
        cli.main(["clean", "--results", str(home / "nowhere")])
    assert (exit_.value.code, capsys.readouterr().out) == (0, "there was nothing to remove\n")


@pytest.mark.parametrize("arguments", [["mutants", "list"], ["check", "/nowhere"], ["run", "-h"]])
def test_the_next_command_ends_strays(
    arguments: list[str],
    home: Path,
    start: Callable[[str], Known],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Any next command, even a wrong one, ends strays and reports them in one line on stderr."""
    stray = start("dead")
    entry("a", gone(), mark="dead", processes=(stray,))
    with pytest.raises(SystemExit):
        cli.main(arguments)
    told = capsys.readouterr()
    assert not stray.alive()
    assert told.err.startswith("faultline: ended processes of a killed command: ")
    assert "ended processes" not in told.out


def test_a_command_without_a_home_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a readable state folder a command works, and no strays are ended."""
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/dev/null")
    with pytest.raises(SystemExit) as exit_:
        cli.main(["mutants", "list"])
    assert (exit_.value.code, capsys.readouterr().err) == (0, "")


class Client:
    """An engine's client with the methods that the removal needs."""

    def close(self) -> None:
        pass


@pytest.mark.parametrize("refuses", [False, True])
def test_containers_of_a_killed_run_go_with_the_next_command(
    refuses: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next command removes a killed run's objects from the engine.

    The entry of the run stays until the engine holds none of them.
    """
    said: list[str] = []
    path = entry("a", gone(), engine=True)
    leftovers.remove_if_any(said.append)
    assert said == ["not removed: containers, networks and volumes: no container engine answers"]
    assert path.exists()

    def reap(client: Client, removed: Callable[[str], object]) -> list[str]:
        removed("container 1")
        return ["network n: in use"] if refuses else []

    monkeypatch.setattr(engine, "connect", Client)
    monkeypatch.setattr(container_cleanup, "reap", reap)
    said.clear()
    leftovers.remove_if_any(said.append)
    assert said[0] == "removed from the container engine: container 1"
    assert said[1:] == (["not removed: network n: in use"] if refuses else [])
    assert path.exists() is refuses


def test_a_failure_to_look_for_leftovers_stops_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the search for leftovers fails, the command continues."""
    entry("a", gone())
    said: list[str] = []

    def fail() -> None:
        raise ClusterError("no idea")

    monkeypatch.setattr(leftovers, "remove", fail)
    leftovers.remove_if_any(said.append)
    assert said == ["the search for leftovers of earlier commands failed: no idea"]


def test_two_commands_do_not_start_a_cluster_at_once(home: Path) -> None:
    """A second ``cluster up`` is refused while the first holds the lock, and leaves its files."""
    state = home / "state" / "faultline"
    (state / "cluster").mkdir(parents=True)
    with (state / "cluster.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Refused, match="another command is starting or stopping"):
            cluster.up(Plan(), lambda line: None)
        assert clean.clean(home / "results").folders == ()
    assert (state / "cluster").exists()


@pytest.mark.parametrize(
    ("port", "why"), [(0, "ports must be from 1"), (65_534, "ports must be from 1")]
)
def test_ports_that_cannot_be_are_refused(port: int, why: str, home: Path) -> None:
    """Ports outside the valid range are refused before any start."""
    with pytest.raises(Refused, match=why):
        cluster.up(Plan(brokers=3), lambda line: None, port)


def _second_of_two(taken: socket.socket) -> int:
    """Bind a socket to a port after one that is free, and return the port."""
    while True:
        with socket.socket() as before, contextlib.suppress(OSError):
            before.bind(("127.0.0.1", 0))
            port: int = before.getsockname()[1] + 1
            taken.bind(("127.0.0.1", port))
            return port


def test_a_port_that_is_taken_is_refused(home: Path) -> None:
    """A port in use is refused with its number, even if it is not the first."""
    with socket.socket() as taken:
        port = _second_of_two(taken)
        taken.listen()
        with pytest.raises(Refused, match=f"port {port} cannot be used: Address already in use"):
            cluster.up(Plan(brokers=2), lambda line: None, port - 1)
