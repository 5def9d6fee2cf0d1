import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_impl.node import isr_writer, zk_paths
from broker_impl.node.isr_writer import IsrWriter
from broker_impl.replica.events import RefreshIsr, WriteIsr
from broker_impl.wire.types import TopicPartition
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import BadVersion, ConnectionLoss, SessionExpired, ZooKeeperError
from tests.broker_impl.conftest import ZooKeeperInLoop, until
from tests.broker_impl.zookeeper_requests import SteppedZooKeeper, lost, preceded, refused, sent

TP = TopicPartition("t", 0)
WRITE = WriteIsr(TP, leader=1, leader_epoch=3, isr=(1, 2), controller_epoch=9, zk_version=5)


class FakeReplicas:
    """Replicas that record the results of ISR writes."""

    def __init__(self) -> None:
        self.results: list[Any] = []
        self.isr_writes: Counter[TopicPartition] = Counter()
        self.fails: Exception | None = None

    def isr_written(self, tp: TopicPartition, zk_version: int) -> None:
        if self.fails is not None:
            raise self.fails
        self.results.append(("written", tp, zk_version))

    def isr_write_refused(self, tp: TopicPartition) -> None:
        self.results.append(("refused", tp))

    def isr_refreshed(self, tp: TopicPartition, **state: Any) -> None:
        self.results.append(("refreshed", tp, state))


class World:
    """An ISR writer on a real ZooKeeper server, in which the partition's state has version 5."""

    def __init__(self, client: ZooKeeper) -> None:
        self.replicas = FakeReplicas()
        self.client = client
        self.zk: Any = SteppedZooKeeper(client)
        self.failures: list[BaseException] = []
        replicas: Any = self.replicas
        self.ended: list[TopicPartition] = []
        self.writer = IsrWriter(replicas, lambda: self.zk, self.failures.append, self.ended.append)

    async def state(self) -> zk_paths.StateZnode:
        data, _ = await self.client.get(zk_paths.state(TP))
        return zk_paths.decode("", data, zk_paths.StateZnode)

    async def notices(self, count: int) -> list[list[tuple[str, int]]]:
        """Wait for this number of notices, and return the partitions of each, oldest first."""
        folder = zk_paths.ISR_CHANGE_PREFIX.rpartition("/")[0]
        async with asyncio.timeout(10):
            while len(names := await self.client.children(folder)) < count:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.005)
        found = []
        for name in names:
            data, _ = await self.client.get(f"{folder}/{name}")
            notice = zk_paths.decode("", data, zk_paths.IsrChangeZnode)
            found.append([(row.topic, row.partition) for row in notice.partitions])
        return found


@pytest.fixture
async def world(
    monkeypatch: pytest.MonkeyPatch, zookeeper: ZooKeeperInLoop
) -> AsyncIterator[World]:
    monkeypatch.setattr(isr_writer, "_NOTICE_DELAY_S", 0.01)
    monkeypatch.setattr(isr_writer, "_NOTICE_RETRY_S", 0.01)
    client = ZooKeeper(zookeeper.address, session_timeout_ms=5000, rng=random.Random(0))
    await client.start()
    path = zk_paths.state(TP)
    await client.ensure_path(zk_paths.ISR_CHANGE_PREFIX.rpartition("/")[0])
    await client.ensure_path(path)
    for version in range(5):
        await client.set(path, b"", version)
    world = World(client)
    yield world
    await world.writer.close()
    await client.close()


async def test_a_write_of_another_version_is_refused(world: World) -> None:
    """A write that expects an older version changes nothing."""
    await world.client.set(zk_paths.state(TP), b"newer")
    world.writer.write(WRITE)
    await until(lambda: bool(world.replicas.results))
    assert world.replicas.results == [("refused", TP)]
    assert (await world.client.get(zk_paths.state(TP)))[0] == b"newer"


async def test_a_write_is_conditional_and_reported(world: World) -> None:
    """R14: an ISR write is conditional, has this leader's state, and returns the new version."""
    world.writer.write(WRITE)
    await until(lambda: bool(world.replicas.results))
    assert world.replicas.results == [("written", TP, 6)]
    znode = await world.state()
    assert (znode.leader, znode.leader_epoch, znode.isr) == (1, 3, [1, 2])
    assert znode.controller_epoch == 9


@pytest.mark.parametrize(
    "error", [BadVersion("v"), ConnectionLoss("cut"), SessionExpired("over")], ids=repr
)
async def test_a_refusal_and_doubt_are_reported_alike(world: World, error: ZooKeeperError) -> None:
    """A refused write and a write in doubt are reported alike: the state must be read again."""
    world.zk.steps.append(refused(error))
    world.writer.write(WRITE)
    await until(lambda: bool(world.replicas.results))
    assert world.replicas.results == [("refused", TP)]
    assert not world.failures


async def test_a_write_is_under_way_until_its_answer(world: World) -> None:
    """The writes of a partition are counted until the last one has ended, whatever its result."""
    counts = []

    async def look() -> None:
        counts.append(world.replicas.isr_writes[TP])

    world.zk.steps.extend([preceded(look), preceded(look)])
    world.writer.write(WRITE)
    world.writer.write(WRITE)
    await until(lambda: bool(world.ended))
    assert counts == [2, 2]
    assert world.replicas.isr_writes == {}
    assert [kind for kind, *_ in world.replicas.results] == ["written", "refused"]
    assert world.ended == [TP]


@pytest.mark.parametrize("end", [sent, refused(SessionExpired("over"))])
async def test_a_lost_write_is_under_way_until_the_session_goes_on(world: World, end: Any) -> None:
    """A write may arrive after its connection was lost, until the next one is used, or none is."""
    seen = []

    async def look() -> None:
        seen.append((list(world.replicas.results), world.replicas.isr_writes[TP]))
        raise ConnectionLoss("again")

    world.zk.steps.extend([lost, preceded(look), end])
    world.writer.write(WRITE)
    await until(lambda: bool(world.ended))
    assert seen == [([("refused", TP)], 1)]
    assert world.replicas.isr_writes == {}
    assert not world.failures


async def test_a_refresh_reports_the_znode(world: World) -> None:
    """A refresh reports leader, epoch, ISR and version, and nothing if the znode is unreadable."""
    world.zk.steps.append(lost)
    world.writer.refresh(RefreshIsr(TP))
    world.writer.refresh(RefreshIsr(TP))  # reads an empty znode
    await asyncio.sleep(0.01)
    assert world.replicas.results == []
    state = zk_paths.StateZnode(controller_epoch=1, leader=2, leader_epoch=4, isr=[2])
    await world.client.set(zk_paths.state(TP), zk_paths.encode(state))
    world.writer.refresh(RefreshIsr(TP))
    await until(lambda: bool(world.replicas.results))
    seen = {"leader": 2, "leader_epoch": 4, "isr": (2,), "zk_version": 6}
    assert world.replicas.results == [("refreshed", TP, seen)]


async def test_changes_gather_in_one_notice(world: World) -> None:
    """KAFKA-2406: changes of many partitions share one notice, and a failed notice is repeated."""
    world.zk.steps.append(lost)
    world.writer.announce(TP)
    world.writer.announce(TopicPartition("t", 1))
    world.writer.announce(TP)
    assert await world.notices(1) == [[("t", 0), ("t", 1)]]
    world.writer.announce(TP)
    assert await world.notices(2) == [[("t", 0), ("t", 1)], [("t", 0)]]


async def test_a_change_while_a_notice_is_created_is_announced_next(world: World) -> None:
    """A change while a notice is being created is announced in the next notice."""

    async def change() -> None:
        world.writer.announce(TP)

    world.zk.steps.append(preceded(change))
    world.writer.announce(TP)
    assert await world.notices(2) == [[("t", 0)], [("t", 0)]]


async def test_a_broken_invariant_is_not_swallowed(world: World) -> None:
    """An assertion that fails in the handling of a result ends the broker."""
    world.replicas.fails = AssertionError("out of order")
    world.writer.write(WRITE)
    await until(lambda: bool(world.failures))
    assert str(world.failures[0]) == "out of order"
