"""A cluster that one command has started is tested by another one, through hooks."""

import asyncio
import contextlib
import json
import os
import re
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

from harness.cluster.address import Address
from harness.cluster.mesh.toxiproxy import MeshError, find_server
from harness.cluster.observe.kafka_metadata import KafkaView
from harness.cluster.observe.readiness import TOPIC
from harness.cluster.ports import HOST

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

FAULTLINE = [sys.executable, "-m", "harness.app.cli"]
EXAMPLES = Path(__file__).parents[3] / "examples" / "external"
PORT = "29092"
"""The first port in the examples."""
PORTS = iter(range(21_000 + os.getpid() % 3_000 * 3, 31_000, 3))
"""The first ports of clusters: each test of each process takes others."""
PLAN = """
workload = "{workload}"
time-limit = {seconds}
nemesis = ["kill", "pause", "restart"]
[[schedule]]
id = 1
at_s = 1.0
duration_s = 1.0
fault = "kill"
targets = ["broker-1"]
[[schedule]]
id = 2
at_s = {pause_s}
duration_s = 1.0
fault = "pause"
targets = ["broker-2"]
"""


@pytest.fixture(autouse=True)
def toxiproxy_server() -> None:
    """Skip the test if no toxiproxy-server can be found."""
    try:
        find_server()
    except MeshError as error:
        pytest.skip(str(error))


def ask(
    environment: dict[str, str], *arguments: str, timeout_s: float = 280
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*FAULTLINE, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Return an environment with its own state folder; a cluster in it is ended afterwards."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    yield environment
    subprocess.run([*FAULTLINE, "cluster", "down"], env=environment, check=True, timeout=120)


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Callable[..., Path]:
    """Return a function that starts a cluster of a system, and returns the file of the example."""

    def started(*options: str) -> Path:
        first = next(port for port in PORTS if _are_free(port))
        up = ask(environment, "cluster", "up", "--port", str(first), *options)
        assert up.returncode == 0, up.stderr
        folder = tmp_path / "examples"
        shutil.copytree(EXAMPLES, folder)
        path = folder / "processes.toml"
        numbered = {str(int(PORT) + more): str(first + more) for more in range(3)}
        text = re.sub("|".join(numbered), lambda found: numbered[found[0]], path.read_text())
        path.write_text(text)
        return path

    return started


def _are_free(first: int) -> bool:
    """Return whether three ports are free, which no outgoing connection gets meanwhile."""
    with contextlib.ExitStack() as stack:
        for port in range(first, first + 3):
            tried = stack.enter_context(socket.socket())
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind((HOST, port))
            except OSError:
                return False
    return True


def faults(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "schedule.jsonl").read_text().splitlines()]


def topics(file: Path) -> set[str]:
    """Return the topics of runs in the cluster; ``cluster up`` has created one of its own."""
    brokers = re.findall(r"127\.0\.0\.1:\d+", file.read_text())
    view = KafkaView([Address.of(broker) for broker in brokers])
    found = {partition.topic for partition in asyncio.run(view.partitions())}
    return {name for name in found if name.startswith("faultline-")} - {TOPIC}


def processes(environment: dict[str, str]) -> dict[str, psutil.Process]:
    """Return the process of each broker, by the ids in the cluster's folder."""
    folder = Path(environment["XDG_STATE_HOME"]) / "faultline" / "cluster" / "nodes"
    return {
        path.parent.name: psutil.Process(int(path.read_text()))
        for path in folder.glob("broker-*/pid")
    }


@pytest.mark.prove
def test_kill_and_pause_by_a_shell_file(
    environment: dict[str, str], tmp_path: Path, start: Callable[..., Path]
) -> None:
    """The faults of the plan are proved, and the cluster has no topic of the run afterwards.

    A node that a hook has started again ends with the cluster.
    """
    file = start()
    before = processes(environment)
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(workload="idempotent", seconds=12, pause_s=7.0))
    results = tmp_path / "results"
    run = ask(
        environment,
        *("run", str(plan), "--target", "external", "--cluster", str(file)),
        *("--results", str(results), "--inline"),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    [folder] = results.iterdir()
    assert [(each["fault"], each["effect"]["proved"]) for each in faults(folder)] == [
        ("kill", True),
        ("pause", True),
    ]
    recorded = json.loads((folder / "plan.json").read_text())
    assert recorded["system"] == "external"
    assert recorded["versions"]["cluster-file"] == "processes.toml"
    assert "kill broker-1: status 0" in (folder / "hooks.log").read_text()
    assert topics(file) == set()
    after = processes(environment)
    assert after["broker-1"].pid != before["broker-1"].pid
    assert after["broker-2"].pid == before["broker-2"].pid
    doctor = ask(environment, "doctor", "--cluster", str(file), "--json")
    possible = {row["name"]: row for row in json.loads(doctor.stdout)["faults"]}
    assert possible["pause"]["is_possible"]
    assert "no hook for cut" in possible["partition"]["missing"][0]
    down = ask(environment, "cluster", "down")
    assert down.returncode == 0, down.stderr
    assert not after["broker-1"].is_running()


@pytest.mark.prove
def test_a_killed_run_is_undone_by_the_next_command(
    environment: dict[str, str], tmp_path: Path, start: Callable[..., Path]
) -> None:
    """A SIGKILL of the run leaves a frozen broker and topics; the next command repairs both."""
    file = start()
    plan = tmp_path / "plan.toml"
    plan.write_text(
        PLAN.format(workload="idempotent", seconds=100, pause_s=2.0).replace(
            "duration_s = 1.0", "duration_s = 60.0"
        )
    )
    run = subprocess.Popen(
        [
            *(*FAULTLINE, "run", str(plan), "--target", "external", "--cluster", str(file)),
            *("--results", str(tmp_path / "results"), "--inline"),
        ],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    broker = processes(environment)["broker-2"]
    end_s = time.monotonic() + 120
    while broker.status() != psutil.STATUS_STOPPED:
        assert time.monotonic() < end_s
        assert run.poll() is None
        time.sleep(0.05)
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert topics(file) != set()
    status = ask(environment, "cluster", "status")
    assert "undone in your cluster: resume broker-2, start broker-1" in status.stderr
    assert broker.status() != psutil.STATUS_STOPPED
    assert topics(file) == set()


def leaves_no_trace(
    environment: dict[str, str], folder: Path, file: Path, **values: object
) -> None:
    """Run a plan: it is valid, both faults are proved, and its topics are removed."""
    plan, results = folder / "plan.toml", folder / "results"
    plan.write_text(PLAN.format(**values))
    run = ask(
        environment,
        *("run", str(plan), "--target", "external", "--cluster", str(file)),
        *("--results", str(results), "--inline"),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    [made] = results.iterdir()
    assert [each["effect"]["proved"] for each in faults(made)] == [True, True]
    assert topics(file) == set()


@pytest.mark.prove
@pytest.mark.real_kafka
@pytest.mark.timeout(600)
def test_apache_kafka(
    environment: dict[str, str], tmp_path: Path, start: Callable[..., Path]
) -> None:
    """The same file tests a release of Apache Kafka, which decides the sessions of members."""
    file = start("--system", "apache-kafka:4.1.0")
    leaves_no_trace(environment, tmp_path, file, workload="groups", seconds=40, pause_s=25.0)


@pytest.mark.docker
def test_containers_by_docker(
    environment: dict[str, str], tmp_path: Path, start: Callable[..., Path]
) -> None:
    """Containers are killed and paused by ``docker``, with the hooks of the other example."""
    file = start("--target", "containers").with_name("docker.toml")
    names = subprocess.run(
        ["docker", "ps", "--format", "{{.Names}}"], capture_output=True, text=True, check=True
    ).stdout.split()
    [broker] = [name for name in names if name.endswith("broker-1")]
    first = re.findall(r"127\.0\.0\.1:(\d+)", file.with_name("processes.toml").read_text())
    text = file.read_text().replace("kafka-{id}", f"{broker.removesuffix('1')}{{id}}")
    for more, port in enumerate(first):
        text = text.replace(str(int(PORT) + more), port)
    file.write_text(text)
    leaves_no_trace(environment, tmp_path, file, workload="idempotent", seconds=20, pause_s=12.0)
