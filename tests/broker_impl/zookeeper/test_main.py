import asyncio
import json
import random
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from broker_impl.errors import STORAGE_FAILED
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.client_watches import WatchEvent
from broker_impl.zookeeper.errors import ConnectionLoss
from broker_impl.zookeeper.records import EventType

pytestmark = pytest.mark.slow


class Process:
    """Consecutive server processes with one data directory and one reserved port."""

    def __init__(self, folder: Path, port: int) -> None:
        self.data = folder / "data"
        self.port_file = folder / "port"
        self.port = port
        self._process: asyncio.subprocess.Process

    async def start(self, *options: str, listen: str = "") -> str:
        """Start the server, and return the first line that it prints."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "broker_impl.zookeeper", "--listen", listen or f"127.0.0.1:{self.port}"),
            *("--data", str(self.data), "--port-file", str(self.port_file)),
            *("--tick-ms", "100", "--reuse-port", *options),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert self._process.stdout is not None
        return (await self._process.stdout.readline()).decode().strip()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def stop(self, number: signal.Signals) -> tuple[int, str]:
        """Send a signal, and return the exit status and the text on stderr."""
        if self._process.returncode is None:
            self._process.send_signal(number)
        return await self.ended()

    async def ended(self) -> tuple[int, str]:
        _, said = await self._process.communicate()
        assert self._process.returncode is not None
        return self._process.returncode, said.decode()

    @asynccontextmanager
    async def client(self, session_timeout_ms: int = 2000) -> AsyncIterator[ZooKeeper]:
        zk = ZooKeeper(
            f"127.0.0.1:{self.port}",
            session_timeout_ms=session_timeout_ms,
            rng=random.Random(1),
        )
        await zk.start()
        try:
            yield zk
        finally:
            await zk.close()


@pytest.fixture
def port() -> Iterator[int]:
    """A port that stays reserved between server processes: bound, but not listening."""
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


@pytest.fixture
async def process(tmp_path: Path, port: int) -> AsyncIterator[Process]:
    process = Process(tmp_path, port)
    assert await process.start() == f"listening 127.0.0.1:{port}"
    yield process
    await process.stop(signal.SIGKILL)


async def test_what_was_acknowledged_survives_sigkill(process: Process) -> None:
    """After three kills in the middle of writes, all acknowledged nodes and the session exist."""
    acknowledged: list[str] = []

    async def write(zk: ZooKeeper, worker: int) -> None:
        for number in range(10_000):
            path = f"/{worker}-{number}"
            try:
                acknowledged.append(await zk.create(path, path.encode()))
            except ConnectionLoss:
                await zk.connected()

    async with process.client(session_timeout_ms=2000) as zk:
        await zk.create("/mine", ephemeral=True)
        session_id = zk.session_id
        workers = [asyncio.ensure_future(write(zk, worker)) for worker in range(4)]
        for kill in range(3):
            while len(acknowledged) < 100 * (kill + 1):  # noqa: ASYNC110 - workers count
                await asyncio.sleep(0.001)
            await process.stop(signal.SIGKILL)
            await process.start()
            await zk.connected()
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        there = set(await zk.children("/"))
        assert [path for path in acknowledged if path[1:] not in there] == []
        assert (await zk.get(acknowledged[0]))[0] == acknowledged[0].encode()
        assert (await zk.get("/mine"))[1].ephemeral_owner == zk.session_id == session_id


async def test_a_session_whose_owner_died_expires_after_a_restart(process: Process) -> None:
    """A session whose client died expires after a restart, and its nodes' watches fire.

    The session of a live client stays.
    """
    async with process.client() as witness, process.client(1500) as owner:
        await owner.create("/e", ephemeral=True)
        await process.stop(signal.SIGKILL)
        await owner.close()  # there is no server to close the session at: it expires
        await process.start()
        await witness.connected()
        gone: asyncio.Future[WatchEvent] = asyncio.get_running_loop().create_future()
        assert await witness.exists("/e", gone.set_result) is not None
        assert await gone == WatchEvent(EventType.DELETED, "/e")
        assert await witness.exists("/e") is None


async def test_sigterm_is_a_clean_stop(process: Process) -> None:
    """SIGTERM exits with status 0, and all data is there afterwards."""
    async with process.client() as zk:
        await zk.create("/a")
        status, said = await process.stop(signal.SIGTERM)
        assert (status, said) == (0, "")
        await process.start()
        await zk.connected()
        assert await zk.children("/") == ["a", "zookeeper"]


async def test_a_torn_log_is_mended(process: Process) -> None:
    """A torn entry at the end of the log is cut off, with a log message."""
    async with process.client() as zk:
        await zk.create("/a")
        await process.stop(signal.SIGKILL)
        [log] = (process.data / "version-2").glob("log.*")
        with log.open("ab") as file:
            file.write(b"\0\0\0\0\x12\x34\x56\x78\0\0\0\x50half")
        await process.start()
        await zk.connected()
        await zk.create("/b")
        assert await zk.children("/") == ["a", "b", "zookeeper"]
        _, said = await process.stop(signal.SIGTERM)
        assert "the log is incomplete" in said
        await process.start()
        await zk.connected()
        assert await zk.children("/") == ["a", "b", "zookeeper"]


async def test_the_port_is_published(tmp_path: Path) -> None:
    """Port 0 selects any port, and the port file is written before the line is printed."""
    process = Process(tmp_path, 0)
    line = await process.start()
    port = json.loads(process.port_file.read_text())["CLIENT"]
    assert line == f"listening 127.0.0.1:{port}"
    await process.stop(signal.SIGTERM)


async def test_a_second_server_on_the_same_data_is_refused(process: Process) -> None:
    """A second server on the same data prints one line and exits with 74; the first continues."""
    second = Process(process.data.parent, 0)
    second.port_file = process.data.parent / "other"
    assert await second.start() == ""
    status, said = await second.ended()
    assert status == STORAGE_FAILED
    assert said.startswith("zookeeper: ")
    assert said.count("\n") == 1
    async with process.client() as zk:
        assert await zk.create("/a") == "/a"


async def test_a_port_that_is_taken_ends_the_start(tmp_path: Path) -> None:
    """A server whose port is taken prints one line and exits with status 1."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = Process(tmp_path, taken.getsockname()[1])
        assert await process.start() == ""
        status, said = await process.ended()
    assert (status, said.count("\n")) == (1, 1)


async def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    """An address without a port, and a tick of 0 ms, are refused."""
    for options, listen in (((), "127.0.0.1"), (("--tick-ms", "0"), "")):
        process = Process(tmp_path, 0)
        await process.start(*options, listen=listen)
        assert (await process.ended())[0] == 2


async def test_a_server_stays_small(tmp_path: Path, port: int) -> None:
    """A server with five thousand nodes needs less than 60 MB, however slow its disk is.

    A session lasts at most twenty ticks, so the ticks of this server are long.
    """
    process = Process(tmp_path, port)
    await process.start("--tick-ms", "10000")
    async with process.client(session_timeout_ms=200_000) as zk:
        await asyncio.gather(*[zk.create(f"/{number}", bytes(100)) for number in range(5_000)])
        assert psutil.Process(process.pid).memory_info().rss < 60_000_000
    await process.stop(signal.SIGKILL)
