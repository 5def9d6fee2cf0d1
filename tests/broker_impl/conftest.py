import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import pytest

from broker_impl import config as configuration
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.node.broker import Broker
from broker_impl.node.peers import Peers
from broker_impl.zookeeper import standalone
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.server import Server as ZooKeeperServer
from broker_impl.zookeeper.store import Store

WALL_MS = 1_700_000_000_000


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Let the event loop run until the condition holds."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - any state of any object may be waited for
            await asyncio.sleep(0.005)


class ZooKeeperInLoop:
    """A ZooKeeper server in the test's own event loop, on a disk in memory."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.server: ZooKeeperServer | None = None
        self.port = 0

    async def start(self) -> None:
        store = Store(self.disk, snap_count=100_000)
        pipeline = standalone.pipeline(
            History(store),
            secret=store.secret(lambda count: bytes(range(count))),
            tick_ms=100,
            wall_ms=lambda: WALL_MS,
            clock=asyncio.get_running_loop().time,
        )
        self.server = ZooKeeperServer(pipeline, connections_max=0)
        self.port = await self.server.start("127.0.0.1", self.port)

    async def stop(self) -> None:
        if self.server is not None:
            await self.server.stop()
            self.server = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


class Running:
    """One broker of a cluster in the test's event loop; its disk survives restarts."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings
        self.disk = MemoryDisk()
        self.other_disk = MemoryDisk()
        """The second directory of ``log.dirs``, if there is one."""
        self.broker: Broker | None = None
        self.task: asyncio.Task[None] | None = None
        self.port = 0

    async def start(self) -> None:
        config = configuration.parse(self.settings)
        self.broker = Broker(
            config,
            disks=dict(zip(config.log_directories(), (self.disk, self.other_disk), strict=False)),
            rng=random.Random(config.broker_id),
            wall_ms=lambda: WALL_MS,
        )
        endpoints = await self.broker.start()
        assert endpoints is not None, "nobody has told it to stop"
        self.port = endpoints[0].port
        self.task = asyncio.create_task(self.broker.run())

    async def stop(self) -> None:
        """Stop the broker by a controlled shutdown."""
        if self.broker is not None and self.task is not None:
            self.broker.stop()
            await self.task
            self.broker = self.task = None


class ClusterInLoop:
    """ZooKeeper and brokers, all in one event loop."""

    until = staticmethod(until)

    def __init__(self, zookeeper: ZooKeeperInLoop) -> None:
        self.zookeeper = zookeeper
        self.brokers: dict[int, Running] = {}
        self.inactive: dict[str, str] = {}
        """Settings given to every broker that brokers accept but do not act on."""

    async def add(self, number: int, **settings: str) -> Running:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        for name, value in given.items():
            configuration.check_active(name, value)
        running = Running(
            {
                "broker.id": str(number),
                "zookeeper.connect": self.zookeeper.address,
                "zookeeper.session.timeout.ms": "1000",
                "listeners": "CLIENT://127.0.0.1:0,REPLICATION://127.0.0.1:0",
                "listener.security.protocol.map": "CLIENT:PLAINTEXT,REPLICATION:PLAINTEXT",
                "inter.broker.listener.name": "REPLICATION",
                "replica.lag.time.max.ms": "1000",
                "replica.fetch.wait.max.ms": "100",
                "replica.fetch.backoff.ms": "50",
                "log.segment.delete.delay.ms": "0",
                "controlled.shutdown.max.retries": "0",
            }
            | given
            | self.inactive
        )
        self.brokers[number] = running
        await running.start()
        return running

    @property
    def bootstrap(self) -> str:
        return ",".join(
            f"127.0.0.1:{running.port}" for running in self.brokers.values() if running.broker
        )

    async def ready(self) -> None:
        """Wait until the view of every live broker has all live brokers."""
        alive = {number for number, running in self.brokers.items() if running.broker}

        def agree() -> bool:
            return all(
                running.broker.view.brokers.keys() == alive
                for running in self.brokers.values()
                if running.broker
            )

        await until(agree)

    async def ask(self, number: int, message: Any, version: int, *, timeout_s: float = 10) -> Any:
        """Send one request to the client listener of a broker, and return the response."""
        peers = Peers("test", {})
        peers.update({number: ("127.0.0.1", self.brokers[number].port)})
        try:
            return await peers.request(number, message, version, timeout_s=timeout_s)
        finally:
            peers.close()

    async def stop(self) -> None:
        for running in self.brokers.values():
            with suppress(Exception):
                await running.stop()
        await self.zookeeper.stop()


@pytest.fixture
async def zookeeper() -> AsyncIterator[ZooKeeperInLoop]:
    """A ZooKeeper server."""
    server = ZooKeeperInLoop()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def cluster(zookeeper: ZooKeeperInLoop) -> AsyncIterator[ClusterInLoop]:
    """An empty cluster, to which the test adds brokers."""
    world = ClusterInLoop(zookeeper)
    yield world
    await world.stop()


@pytest.fixture
async def three(cluster: ClusterInLoop) -> ClusterInLoop:
    """Three brokers that know each other; topics get three replicas."""
    await asyncio.gather(
        *(
            cluster.add(number, default_replication_factor="3", min_insync_replicas="2")
            for number in (1, 2, 3)
        )
    )
    await cluster.ready()
    return cluster
