"""A ZooKeeper server in the test's own event loop, on any port."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable

import pytest

from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.zookeeper import standalone
from broker_impl.zookeeper.client import SessionState, ZooKeeper
from broker_impl.zookeeper.client_watches import Watch
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.server import Server
from broker_impl.zookeeper.store import Store

TICK_MS = 50


class Site:
    """One server on one disk, which can be restarted on the same port."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.port = 0
        self.server: Server
        self.clients: list[ZooKeeper] = []
        self.states: list[SessionState] = []

    async def start(self, *, connections_max: int = 0, frame_bytes_max: int = 10_000) -> None:
        store = Store(self.disk)
        loop = asyncio.get_running_loop()
        pipeline = standalone.pipeline(
            History(store),
            secret=store.secret(random.Random(1).randbytes),
            tick_ms=TICK_MS,
            wall_ms=lambda: 1_700_000_000_000,
            clock=lambda: loop.time(),
        )
        self.server = Server(
            pipeline, connections_max=connections_max, frame_bytes_max=frame_bytes_max
        )
        self.port = await self.server.start("127.0.0.1", self.port)

    async def stop(self) -> None:
        await self.server.stop()
        self.disk.kill()

    async def client(
        self,
        chroot: str = "",
        *,
        session_timeout_ms: int = 1000,
        on_state: Callable[[SessionState], None] | None = None,
        on_stray: Watch | None = None,
        on_contact: Callable[[float, bool], None] = lambda sent, is_handshake: None,
    ) -> ZooKeeper:
        client = ZooKeeper(
            f"127.0.0.1:{self.port}{chroot}",
            session_timeout_ms=session_timeout_ms,
            rng=random.Random(2),
            on_state=on_state,
            on_stray=on_stray,
            on_contact=on_contact,
        )
        self.clients.append(client)
        await client.start()
        return client


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    await site.start()
    yield site
    for client in site.clients:
        await client.close()
    await site.stop()


async def suspend(site: Site, zk: ZooKeeper) -> None:
    """Cut the client's connection at the server, and wait until the client knows."""
    connection = site.server.serving.clients[zk.session_id]
    [same] = [one for one in site.server.connections if one is connection]
    same.abort()
    await suspended(zk)


async def suspended(zk: ZooKeeper) -> None:
    while zk.state is SessionState.CONNECTED:  # noqa: ASYNC110 - a callback would only set a flag
        await asyncio.sleep(0)
