"""Two kinds of ensembles on this host, with the same ticks and limits, and without proxies.

A server of Apache ZooKeeper gets the options of its own start script: a heap of at most 1,000 MB
and no others.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from bench.nodes import ROOT, TICK_MS
from harness.systems.apache_zookeeper import logs
from harness.systems.java import jvm
from harness.systems.java.zoo_cfg import MAIN

SERVERS = 3
INIT_LIMIT, SYNC_LIMIT = 20, 8
START_TIMEOUT_S = 60.0
HEAP_MB = 1000
_POLL_S = 0.01
_WORD_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of one server."""

    client: int
    quorum: int
    election: int


Command = Callable[[int, Sequence[Ports], Path], Sequence[str]]
"""Writes the files of a server, and returns its command."""


def ours(number: int, ports: Sequence[Ports], folder: Path) -> Sequence[str]:
    """Return the command of this project's server."""
    members = [
        part
        for other, at in enumerate(ports, 1)
        for part in ("--server", f"{other}=127.0.0.1:{at.quorum}:{at.election}")
    ]
    return [
        sys.executable, "-m", "broker_impl.zookeeper",
        "--listen", f"127.0.0.1:{ports[number - 1].client}",
        "--data", str(folder / "data"),
        "--tick-ms", str(TICK_MS),
        "--connections-max", "0",
        "--init-limit", str(INIT_LIMIT),
        "--sync-limit", str(SYNC_LIMIT),
        "--id", str(number),
        *members,
    ]  # fmt: skip


def apache(classpath: Sequence[Path]) -> Command:
    """Return what makes the commands of a release of Apache ZooKeeper with these jars."""

    def command(number: int, ports: Sequence[Ports], folder: Path) -> Sequence[str]:
        (folder / "data").mkdir(exist_ok=True)
        (folder / "data" / "myid").write_text(str(number))
        lines = [
            f"tickTime={TICK_MS}",
            f"dataDir={folder / 'data'}",
            f"clientPort={ports[number - 1].client}",
            "clientPortAddress=127.0.0.1",
            "admin.enableServer=false",
            "maxClientCnxns=0",
            "4lw.commands.whitelist=*",
            f"initLimit={INIT_LIMIT}",
            f"syncLimit={SYNC_LIMIT}",
            *(
                f"server.{other}=127.0.0.1:{at.quorum}:{at.election}"
                for other, at in enumerate(ports, 1)
            ),
        ]
        (folder / "zoo.cfg").write_text("\n".join(lines) + "\n")
        logs.write_configuration(folder)
        properties = (f"-D{name}={value}" for name, value in logs.properties(folder).items())
        jars = ":".join(map(str, classpath))
        return [
            str(jvm.find()), f"-Xmx{HEAP_MB}m", *properties, "-cp", jars, MAIN,
            str(folder / "zoo.cfg"),
        ]  # fmt: skip

    return command


class Ensemble:
    """Three servers; leaving the block ends them."""

    def __init__(self, name: str, folder: Path, command: Command) -> None:
        self.name = name
        self.ports = _free_ports(SERVERS)
        self._folder = folder / name.replace(" ", "-")
        self._command = command
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def start(self) -> None:
        """Start all servers, and wait until each serves clients."""
        for number in range(1, SERVERS + 1):
            self.start_one(number)
        await self.serving()

    def start_one(self, number: int) -> None:
        """Start a server that does not run."""
        folder = self._folder / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "log").open("ab") as log:
            self._processes[number] = subprocess.Popen(
                self._command(number, self.ports, folder),
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def stop(self) -> None:
        """Stop all servers with SIGTERM, and kill those that do not end."""
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            try:
                process.wait(10.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def kill(self, number: int) -> None:
        """Kill a server with SIGKILL."""
        process = self._processes.pop(number)
        process.kill()
        process.wait()

    async def serving(self) -> None:
        """Wait until every server serves clients; raises RuntimeError."""
        deadline = time.monotonic() + START_TIMEOUT_S
        for number in self._processes:
            while not await self.mode(number):
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{self.name} did not start; its logs: {self._folder}")
                await asyncio.sleep(_POLL_S)

    async def leader(self) -> int:
        """Return the number of the server that leads; raises RuntimeError if none does."""
        for number in self._processes:
            if await self.mode(number) == "leader":
                return number
        raise RuntimeError(f"no server of {self.name} leads")

    async def mode(self, number: int) -> str:
        """Return a server's role; empty if it does not serve clients."""
        answer = await _word("srvr", self.ports[number - 1].client)
        lines = [line for line in answer.splitlines() if line.startswith("Mode: ")]
        return lines[0].removeprefix("Mode: ") if lines else ""

    def client_ports(self) -> dict[int, int]:
        """Return the client ports of the servers that run, by their numbers."""
        return {number: self.ports[number - 1].client for number in sorted(self._processes)}

    def cpu_s(self) -> float:
        """Return the CPU seconds that the running servers have used."""
        times = [psutil.Process(each.pid).cpu_times() for each in self._processes.values()]
        return float(sum(each.user + each.system for each in times))

    def resident_mb(self) -> float:
        """Return the mean of the resident memory (RSS) of the servers, in 10^6 bytes."""
        sizes = [psutil.Process(each.pid).memory_info().rss for each in self._processes.values()]
        return float(sum(sizes)) / len(sizes) / 1e6


async def _word(word: str, port: int) -> str:
    """Send a four-letter word, and return its answer; empty if there is none."""
    try:
        async with asyncio.timeout(_WORD_TIMEOUT_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(word.encode())
                return (await reader.read()).decode()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return ""


def _free_ports(servers: int) -> Sequence[Ports]:
    """Return ports that no other program listens on now."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(3 * servers):
            free = stack.enter_context(socket.socket())
            free.bind(("127.0.0.1", 0))
            found.append(free.getsockname()[1])
    return [Ports(*found[at : at + 3]) for at in range(0, len(found), 3)]
