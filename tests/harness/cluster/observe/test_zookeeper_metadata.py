"""The harness's own view of ZooKeeper, read from this project's server."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker_impl.zookeeper.client import ZooKeeper
from harness.cluster.address import Address
from harness.cluster.observe import probe
from harness.cluster.observe.metadata_view import ViewUnavailable
from harness.cluster.observe.zookeeper_metadata import View
from harness.cluster.polling import until
from harness.cluster.ports import HOST, Ports
from harness.cluster.process import Process
from harness.cluster.registry import Registry
from harness.cluster.system import Place
from harness.systems.kafka.system import Kafka
from model.capabilities.control_plane import Partition
from model.plan import Plan
from model.roles import ZOOKEEPER

pytestmark = pytest.mark.cluster


class Server:
    """A ZooKeeper process and its address."""

    def __init__(self, node: Process, port: int) -> None:
        self.node, self.port = node, port
        self.connect = f"{HOST}:{port}"

    async def up(self) -> None:
        async def answers() -> bool:
            return await probe.answers(Address(HOST, self.port), "zookeeper", 1.0)

        await self.node.start()
        async with asyncio.timeout(10):
            await until(answers)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    with Ports() as ports:
        port = ports.reserve()
        listens = {ZOOKEEPER: Address(HOST, port)}
        place = Place(ZOOKEEPER, tmp_path, tmp_path / "data", listens, {}, {})
        argv = Kafka().program(place, Plan()).argv
        node = Process(
            ZOOKEEPER, argv, tmp_path, Registry("zk", tmp_path / "state"), lambda _: None
        )
        server = Server(node, port)
        await server.up()
        yield server
        await node.kill()


@pytest.fixture
async def zookeeper(server: Server) -> AsyncIterator[ZooKeeper]:
    client = ZooKeeper(server.connect, session_timeout_ms=4000, rng=random.Random(1))
    await client.start()
    yield client
    await client.close()


@pytest.fixture
async def view(server: Server) -> AsyncIterator[View]:
    view = View(server.connect, random.Random(2))
    yield view
    await view.close()


STATE = b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":4,"isr":[2,1]}'


async def test_empty_cluster_has_nothing(view: View) -> None:
    """In an empty cluster there is no controller, broker, topic or partition."""
    assert await view.controller() is None
    assert await view.live() == ()
    assert await view.topics() == ()
    assert await view.partition("x-0") is None
    assert await view.partitions() == ()


async def test_znodes_are_read_as_kafka_writes_them(view: View, zookeeper: ZooKeeper) -> None:
    """Controller, brokers, leaders and ISRs are read from the znodes that Kafka documents."""
    await zookeeper.create("/controller", b'{"version":1,"brokerid":3,"timestamp":"1"}')
    for number in (1, 3):
        await zookeeper.ensure_path(f"/brokers/ids/{number}")
    topic = b'{"version":3,"partitions":{"0":[1,2,3],"1":[1]},"adding_replicas":{}}'
    await zookeeper.ensure_path("/brokers/topics")
    await zookeeper.create("/brokers/topics/a-b", topic)
    await zookeeper.ensure_path("/brokers/topics/a-b/partitions/0")
    await zookeeper.create("/brokers/topics/a-b/partitions/0/state", STATE)
    assert await view.controller() == "broker-3"
    assert await view.live() == ("broker-1", "broker-3")
    led = Partition(
        key="a-b-0",
        replicas=("broker-1", "broker-2", "broker-3"),
        leader="broker-2",
        leader_epoch=4,
        isr=("broker-2", "broker-1"),
    )
    unborn = Partition("a-b-1", ("broker-1",), None, -1, ())
    assert await view.partition("a-b-0") == led
    assert await view.partition("a-b-2") is None
    assert await view.partitions() == (led, unborn)
    assert not led.is_whole
    assert not unborn.is_whole
    await zookeeper.set(
        "/brokers/topics/a-b/partitions/0/state", STATE.replace(b"[2,1]", b"[2,1,3]")
    )
    whole = await view.partition("a-b-0")
    assert whole is not None
    assert whole.is_whole


async def test_leader_minus_one_is_none(view: View, zookeeper: ZooKeeper) -> None:
    """A partition without a leader is not whole, whatever its ISR."""
    await zookeeper.ensure_path("/brokers/topics")
    await zookeeper.create("/brokers/topics/x", b'{"version":3,"partitions":{"0":[1]}}')
    await zookeeper.ensure_path("/brokers/topics/x/partitions/0")
    orphan = b'{"controller_epoch":1,"leader":-1,"version":1,"leader_epoch":4,"isr":[1]}'
    await zookeeper.create("/brokers/topics/x/partitions/0/state", orphan)
    partition = await view.partition("x-0")
    assert partition is not None
    assert partition.leader is None
    assert not partition.is_whole


async def test_a_partition_on_its_way(view: View, zookeeper: ZooKeeper) -> None:
    """Adding and removing replicas are listed separately; a moving partition is not whole."""
    await zookeeper.ensure_path("/brokers/topics")
    topic = (
        b'{"version":3,"partitions":{"0":[3,2,1]},'
        b'"adding_replicas":{"0":[3]},"removing_replicas":{"0":[1]}}'
    )
    await zookeeper.create("/brokers/topics/x", topic)
    await zookeeper.ensure_path("/brokers/topics/x/partitions/0")
    await zookeeper.create(
        "/brokers/topics/x/partitions/0/state", STATE.replace(b"[2,1]", b"[2,1,3]")
    )
    [partition] = await view.partitions()
    assert (partition.adding, partition.removing) == (("broker-3",), ("broker-1",))
    assert partition.target == ("broker-3", "broker-2")
    assert partition.is_moving
    assert not partition.is_whole


async def test_blind_while_zookeeper_is_away(
    server: Server, view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without ZooKeeper reads raise; when it is back, they succeed."""
    monkeypatch.setattr("harness.cluster.observe.zookeeper_metadata.READ_TIMEOUT_S", 0.2)
    assert await view.controller() is None
    await server.node.kill()
    with pytest.raises(ViewUnavailable, match="/controller"):
        await view.controller()
    await server.up()

    async def sees() -> bool:
        try:
            return await view.controller() is None
        except ViewUnavailable:
            return False

    async with asyncio.timeout(10):
        await until(sees)
