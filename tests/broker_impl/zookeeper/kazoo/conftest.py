"""An ensemble of three server processes, and kazoo clients at servers that the test selects."""

import itertools
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from harness.cluster.ports import HOST, Ports

WAIT_S = 20.0
"""The longest wait for anything that must happen; a correct ensemble needs a fraction of it."""

TICK_MS = 250
"""Sessions last 0.5 s to 5 s, and a learner may be silent for 1.25 s."""

SESSION_S = 3.0
"""The session timeout of clients that do not ask for another one."""

SERVERS = (1, 2, 3)

RETRY = {"max_tries": -1, "delay": 0.05, "backoff": 1, "max_delay": 0.2}
"""How kazoo repeats connection attempts and requests: often, until it succeeds."""


class Ensemble:
    """Three servers on reserved ports; each may end and start again on its data."""

    def __init__(self, folder: Path, ports: Ports) -> None:
        self._folder = folder
        self._client_ports = {server: ports.reserve() for server in SERVERS}
        self.members = [
            f"{server}={HOST}:{ports.reserve()}:{ports.reserve()}" for server in SERVERS
        ]
        """The members as the option ``--server`` names them."""
        self._processes: dict[int, subprocess.Popen[str]] = {}

    def start(self, *servers: int) -> None:
        """Start these servers, and wait until all that run serve clients."""
        for server in servers:
            with (self._folder / f"{server}.log").open("a") as log:
                self._processes[server] = subprocess.Popen(
                    self._command(server), stdout=subprocess.DEVNULL, stderr=log, text=True
                )
        deadline = time.monotonic() + WAIT_S
        while not all(self.mode(server) for server in self._processes):
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.02)

    def kill(self, *servers: int) -> None:
        """End these servers at once, as SIGKILL does."""
        self._end(signal.SIGKILL, servers)

    def stop(self) -> list[int]:
        """Request a clean end of all servers, and return the exit statuses."""
        return self._end(signal.SIGTERM, list(self._processes))

    @property
    def leader(self) -> int:
        """The server that leads."""
        [leader] = [server for server in self._processes if self.mode(server) == "leader"]
        return leader

    @property
    def followers(self) -> list[int]:
        """The servers that follow."""
        return [server for server in self._processes if self.mode(server) == "follower"]

    def mode(self, server: int) -> str:
        """Return the mode in the answer to ``srvr``; "" if the server does not serve."""
        for line in self.word(server, b"srvr").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ")
        return ""

    def word(self, server: int, word: bytes) -> str:
        """Return the answer to a four-letter word; "" if the server is down."""
        try:
            with socket.create_connection((HOST, self._client_ports[server]), WAIT_S) as asking:
                asking.sendall(word)
                return b"".join(iter(lambda: asking.recv(4096), b"")).decode()
        except ConnectionError:
            return ""

    def hosts(self, first: int) -> str:
        """Return the servers as kazoo tries them, beginning with one of them."""
        order = sorted(SERVERS, key=lambda server: (server - first) % len(SERVERS))
        return ",".join(self.address(server) for server in order)

    def address(self, server: int) -> str:
        """Return the address of one server."""
        return f"{HOST}:{self._client_ports[server]}"

    def serving(self, client: KazooClient) -> int:
        """Return the server to which a client is connected."""
        port = client._connection._socket.getpeername()[1]
        [server] = [server for server in SERVERS if self._client_ports[server] == port]
        return server

    def logs(self) -> str:
        """Return what the servers have logged."""
        return "\n".join(path.read_text() for path in sorted(self._folder.glob("*.log")))

    def _command(self, server: int) -> list[str]:
        members = itertools.chain(*[("--server", member) for member in self.members])
        return [
            *(sys.executable, "-m", "broker_impl.zookeeper"),
            *("--listen", self.address(server), "--data", str(self._folder / str(server))),
            *("--tick-ms", str(TICK_MS), "--connections-max", "0", "--reuse-port"),
            *("--id", str(server), *members),
        ]

    def _end(self, number: signal.Signals, servers: "list[int] | tuple[int, ...]") -> list[int]:
        ended = [self._processes.pop(server) for server in servers]
        for process in ended:
            process.send_signal(number)
        return [process.wait(WAIT_S) for process in ended]


def abandon(client: KazooClient) -> None:
    """Stop a client as if its process had died: its session stays open."""
    client._stopped.set()
    client._connection._socket.shutdown(socket.SHUT_RDWR)
    client._safe_close()


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Three servers that have elected a leader; at the end of the module they stop cleanly."""
    with Ports() as ports:
        ensemble = Ensemble(tmp_path_factory.mktemp("ensemble"), ports)
        try:
            ensemble.start(*SERVERS)
            yield ensemble
        finally:
            statuses = ensemble.stop()
        assert statuses == [0, 0, 0], ensemble.logs()


Connect = Callable[..., KazooClient]
_numbers = itertools.count()


@pytest.fixture
def connect(ensemble: Ensemble) -> Iterator[Connect]:
    """Makes clients at a given server, below a root of the test's own, and closes them.

    A client tries the other servers if its first one does not answer. Its server may not have the
    client's root yet, for which kazoo has a warning; the sync brings it.
    """
    clients: list[KazooClient] = []
    root = f"/test-{next(_numbers)}"

    def make(server: int = 1, *, chroot: str = root, **options: Any) -> KazooClient:
        settings = {
            "timeout": SESSION_S,
            "randomize_hosts": False,
            "connection_retry": RETRY,
            "command_retry": RETRY,
            **options,
        }
        client = KazooClient(ensemble.hosts(server) + chroot, **settings)
        clients.append(client)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "No chroot path exists")
            client.start(WAIT_S)
        client.sync("/")
        return client

    make(chroot="").ensure_path(root)
    yield make
    for client in clients:
        client.stop()
        client.close()


@pytest.fixture
def leading(ensemble: Ensemble, connect: Connect) -> KazooClient:
    """A client at the leader."""
    return connect(ensemble.leader)


@pytest.fixture
def following(ensemble: Ensemble, connect: Connect) -> KazooClient:
    """A client at the first follower."""
    return connect(ensemble.followers[0])


@pytest.fixture
def other(ensemble: Ensemble, connect: Connect) -> KazooClient:
    """A client at the second follower."""
    return connect(ensemble.followers[1])


@pytest.fixture
def three(leading: KazooClient, following: KazooClient, other: KazooClient) -> list[KazooClient]:
    """A client at each server, the leader's first."""
    return [leading, following, other]
