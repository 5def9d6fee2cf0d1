"""``faultline cluster``: it outlives its command, is found again, and ends on request."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer

from harness.cluster.mesh.toxiproxy import MeshError, find_server

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

FAULTLINE = [sys.executable, "-m", "harness.app.cli"]


@pytest.fixture(autouse=True)
def toxiproxy_server() -> None:
    """Skip the test if no toxiproxy-server can be found."""
    try:
        find_server()
    except MeshError as error:
        pytest.skip(str(error))


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Return an environment with its own state folder; a cluster in it is ended afterwards."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    yield environment
    subprocess.run([*FAULTLINE, "cluster", "down"], env=environment, check=True, timeout=60)


def ask(environment: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*FAULTLINE, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def nodes(folder: Path) -> list[int]:
    """Return the process ids of the nodes in a cluster's folder."""
    registered: dict[str, Any] = json.loads((folder / "nodes" / "pids.json").read_text())
    return [process["pid"] for process in registered["processes"]]


def test_up_status_down(environment: dict[str, str]) -> None:
    """Up prints the bootstrap servers, clients can write, and down leaves no process.

    A second cluster is refused.
    """
    up = ask(environment, "cluster", "up")
    assert up.returncode == 0, up.stderr
    status = ask(environment, "cluster", "status", "--json")
    told = json.loads(status.stdout)
    assert told["bootstrap"] == up.stdout.strip()
    pids = nodes(Path(told["folder"]))
    assert len(pids) == 5
    errors: list[Any] = []
    producer = Producer({"bootstrap.servers": up.stdout.strip(), "acks": "all"})
    producer.produce("hello", b"world", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(20) == 0
    assert errors == [None]
    again = ask(environment, "cluster", "up")
    assert (again.returncode, again.stdout) == (64, "")
    assert told["bootstrap"] in again.stderr
    assert ask(environment, "cluster", "down").stdout == "down\n"
    assert not any(map(runs, pids))
    assert ask(environment, "cluster", "status").returncode == 69


@pytest.mark.prove
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_an_up_that_is_ended_leaves_nothing(
    number: signal.Signals, environment: dict[str, str], tmp_path: Path
) -> None:
    """An interrupted or killed ``cluster up`` leaves neither its keeper nor nodes."""
    words = [*FAULTLINE, "cluster", "up"]
    home = tmp_path / "state" / "faultline" / "cluster"
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as starting:
        until(lambda: (home / "nodes" / "pids.json").exists() and nodes(home) != [])
        pids = [*nodes(home), *children_named(starting.pid, "harness.app.cluster")]
        starting.send_signal(number)
        _, told = starting.communicate(timeout=60)
    until(lambda: not any(map(runs, pids)))
    if number is not signal.SIGKILL:
        assert (starting.returncode, told.strip()) == (70, "faultline: interrupted")
        assert not home.exists()
    assert ask(environment, "cluster", "status").stdout == "down\n"


@pytest.mark.prove
def test_down_ends_what_status_cannot_see(environment: dict[str, str], tmp_path: Path) -> None:
    """``cluster down`` ends clusters whose keeper was killed or whose files are lost.

    Clients reach the brokers at the requested ports.
    """
    home = tmp_path / "state" / "faultline" / "cluster"
    for lose in ("keeper", "files"):
        port = free_ports(2)
        up = ask(environment, "cluster", "up", "--brokers", "2", "--port", str(port))
        assert up.returncode == 0, up.stderr
        assert up.stdout == f"127.0.0.1:{port},127.0.0.1:{port + 1}\n"
        pids = [keeper(environment), *nodes(home)]
        if lose == "keeper":
            psutil.Process(pids[0]).kill()
        else:
            shutil.rmtree(home)
        assert ask(environment, "cluster", "down").stdout == "down\n"
        assert not any(map(runs, pids))
        assert not home.exists()
    taken = ask(environment, "cluster", "up", "--brokers", "2", "--port", "65535")
    assert (taken.returncode, taken.stdout) == (64, "")


@pytest.mark.docker
def test_a_cluster_of_containers_is_as_good(environment: dict[str, str]) -> None:
    """A cluster of containers accepts writes, and down leaves nothing in the engine."""
    up = ask(environment, "cluster", "up", "--target", "containers", "--brokers", "2")
    assert up.returncode == 0, up.stderr
    mine = f"label=faultline.owner={keeper(environment)}"
    assert len(engine_has("ps", "--all", "--filter", mine)) == 4
    errors: list[Any] = []
    producer = Producer({"bootstrap.servers": up.stdout.strip(), "acks": "all"})
    producer.produce("hello", b"world", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(20) == 0
    assert errors == [None]
    assert ask(environment, "cluster", "down").stdout == "down\n"
    for kind in (("ps", "--all"), ("network", "ls"), ("volume", "ls")):
        assert engine_has(*kind, "--filter", mine) == []


def keeper(environment: dict[str, str]) -> int:
    """Return the id of the process that owns the running cluster."""
    told = json.loads(ask(environment, "cluster", "status", "--json").stdout)
    pid = told["keeper"]["pid"]
    assert isinstance(pid, int)
    return pid


def engine_has(*what: str) -> list[str]:
    told = subprocess.run(["docker", *what, "--quiet"], capture_output=True, text=True, check=True)
    return told.stdout.split()


@pytest.mark.prove
def test_a_killed_harness_leaves_a_history_and_no_strays(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """After a SIGKILL the history can be judged, and the next command ends the left processes."""
    results = tmp_path / "results"
    arguments = ["run", "--nemesis", "none", "--time-limit", "60", "--results", str(results)]
    with subprocess.Popen([*FAULTLINE, *arguments, "--inline"], env=environment) as harness:
        deadline = time.monotonic() + 60
        while not _lines(results) > 500:
            assert time.monotonic() < deadline
            assert harness.poll() is None
            time.sleep(0.1)
        harness.send_signal(signal.SIGKILL)
    (folder,) = results.iterdir()
    strays = nodes(folder)
    assert all(map(runs, strays))
    judged = ask(environment, "check", str(folder), "--inline", "--json")
    verdict = json.loads(judged.stdout)
    assert verdict["evidence"]["acked"] > 100
    assert verdict["anomalies"] == {}
    assert judged.returncode == 2
    assert not any(map(runs, strays))
    assert "ended processes of a killed command" in judged.stderr


def until(done: Callable[[], bool], patience_s: float = 60.0) -> None:
    """Wait until a condition on other processes holds."""
    deadline = time.monotonic() + patience_s
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def children_named(pid: int, name: str) -> list[int]:
    found = [child.pid for child in psutil.Process(pid).children() if name in child.cmdline()]
    assert found
    return found


def free_ports(count: int) -> int:
    """Return the first of `count` adjacent ports without a listener."""
    for first in range(20_000, 60_000, count):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise AssertionError("no port is free")


def _lines(results: Path) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in results.glob("*/history.jsonl"))


def runs(pid: int) -> bool:
    """Check whether a process runs; a zombie does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
