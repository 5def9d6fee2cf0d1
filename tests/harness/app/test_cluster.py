"""A cluster to play with: it outlives the command, is found again, and goes when told to."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer

from harness.cluster.toxiproxy import MeshError, find_server

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

FAULTLINE = [sys.executable, "-m", "harness.app.cli"]


@pytest.fixture(autouse=True)
def toxiproxy_server() -> None:
    """Skips, visibly, where no toxiproxy-server can be found."""
    try:
        find_server()
    except MeshError as error:
        pytest.skip(str(error))


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A state folder of its own; whatever is up in it is ended."""
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
    """The process ids of the nodes that a folder's cluster has started."""
    registered: dict[str, Any] = json.loads((folder / "nodes" / "pids.json").read_text())
    return [process["pid"] for process in registered["processes"]]


def test_up_status_down(environment: dict[str, str]) -> None:
    """Up prints where it is; clients can write; a second one is refused; down leaves nothing."""
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


@pytest.mark.docker
def test_a_cluster_of_containers_is_as_good(environment: dict[str, str]) -> None:
    """Up in containers, a client on this machine can write; down leaves nothing with the engine."""
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
    """The process that owns the cluster that is up."""
    told = json.loads(ask(environment, "cluster", "status", "--json").stdout)
    pid = told["keeper"]["pid"]
    assert isinstance(pid, int)
    return pid


def engine_has(*what: str) -> list[str]:
    told = subprocess.run(["docker", *what, "--quiet"], capture_output=True, text=True, check=True)
    return told.stdout.split()


def test_a_killed_harness_leaves_a_history_and_no_strays(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """After a SIGKILL the history can be judged, and the next cluster ends what was left."""
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
    judged = ask(environment, "check", str(folder), "--inline", "--json")
    verdict = json.loads(judged.stdout)
    assert verdict["evidence"]["acked"] > 100
    assert verdict["anomalies"] == {}
    assert judged.returncode == 2
    strays = nodes(folder)
    assert all(map(runs, strays))
    assert ask(environment, "cluster", "up").returncode == 0
    assert not any(map(runs, strays))


def _lines(results: Path) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in results.glob("*/history.jsonl"))


def runs(pid: int) -> bool:
    """One that has ended may stay as a zombie until its new parent looks."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
