"""The measured processes: started in a temporary folder, ended through their own handles."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

ROOT = Path(__file__).resolve().parent.parent
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 15.0
BROKER = ("-m", "broker_impl")
NO_SETTINGS: Mapping[str, object] = {}
TICK_MS = 500
"""ZooKeeper's tick time, as in the tested clusters.

A session lasts up to one tick longer than its timeout.
"""

_POLL_S = 0.02


@dataclass(eq=False, slots=True)
class Node:
    """A process that listens on a port."""

    name: str
    process: "subprocess.Popen[bytes]"
    port: int

    @property
    def address(self) -> str:
        """The listening address, host:port."""
        return f"127.0.0.1:{self.port}"

    def cpu_s(self) -> float:
        """Return the CPU seconds that it has used."""
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    def resident_mb(self) -> float:
        """Return its resident memory (RSS), in 10^6 bytes."""
        return float(psutil.Process(self.process.pid).memory_info().rss) / 1e6


class Nodes:
    """All processes of one benchmark; leaving the block ends them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[Node] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop(*reversed(self._running))

    def zookeeper(self, name: str) -> Node:
        """Start a ZooKeeper."""
        data = str(self._folder / name / "data")
        arguments = ("--listen", "127.0.0.1:0", "--data", data, "--tick-ms", str(TICK_MS))
        return self._start(name, ("-m", "broker_impl.zookeeper", *arguments))

    def cluster(
        self, name: str, brokers: int, settings: Mapping[str, object] = NO_SETTINGS
    ) -> list[Node]:
        """Start a ZooKeeper and this many brokers with default settings, except for these."""
        zookeeper = self.zookeeper(f"{name}-zookeeper")
        return [self._broker(f"{name}-{n}", n, zookeeper, settings) for n in range(1, brokers + 1)]

    def null_broker(self, topics: list[str]) -> Node:
        """Start the broker that stores nothing; it has these topics from the start."""
        return self._start("null", ("-m", "bench.null_broker", *topics))

    def program(self, name: str, command: Sequence[str], folder: Path, port: int) -> Node:
        """Start a program of another project, which will listen on this port of the loopback.

        ``folder`` exists, and gets the program's output.
        """
        node = Node(name, _run(command, folder), port)
        self._running.append(node)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not _accepts(port):
            _check(node, folder, deadline)
        return node

    def kill(self, node: Node) -> None:
        """Kill a process with SIGKILL."""
        node.process.kill()
        node.process.wait()
        self._running.remove(node)

    def stop(self, *nodes: Node) -> None:
        """Stop these processes with SIGTERM, and kill those that do not end."""
        for node in nodes:
            node.process.terminate()
        for node in nodes:
            try:
                node.process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                node.process.kill()
                node.process.wait()
            self._running.remove(node)

    def _broker(
        self, name: str, number: int, zookeeper: Node, others: Mapping[str, object]
    ) -> Node:
        settings = {
            "broker.id": number,
            "listeners": "CLIENT://127.0.0.1:0,REPLICATION://127.0.0.1:0",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,REPLICATION:PLAINTEXT",
            "inter.broker.listener.name": "REPLICATION",
            "zookeeper.connect": zookeeper.address,
            "log.dirs": self._folder / name / "data",
            "log.segment.delete.delay.ms": 0,
            **others,
        }
        given = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        return self._start(name, (*BROKER, *given))

    def _start(self, name: str, command: tuple[str, ...]) -> Node:
        folder = self._folder / name
        folder.mkdir()
        port_file = folder / "ports.json"
        process = _run((sys.executable, *command, "--port-file", str(port_file)), folder)
        node = Node(name, process, 0)
        self._running.append(node)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not port_file.exists():
            _check(node, folder, deadline)
        node.port = json.loads(port_file.read_bytes())["CLIENT"]
        return node


def _run(command: Sequence[str], folder: Path) -> "subprocess.Popen[bytes]":
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _check(node: Node, folder: Path, deadline: float) -> None:
    """Wait a moment; raise an error if the process has ended or did not start in time."""
    if node.process.poll() is not None or time.monotonic() > deadline:
        raise RuntimeError(f"{node.name} did not start:\n{(folder / 'log').read_text()}")
    time.sleep(_POLL_S)


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
