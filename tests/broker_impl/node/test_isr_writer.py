import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_impl.node import isr_writer, zk_paths
from broker_impl.node.isr_writer import IsrWriter
from broker_impl.replica.events import RefreshIsr, WriteIsr
from broker_impl.wire.types import TopicPartition
from broker_impl.zookeeper.errors import BadVersion, ConnectionLoss, SessionExpired
from tests.broker_impl.conftest import until

TP = TopicPartition("t", 0)
WRITE = WriteIsr(TP, leader=1, leader_epoch=3, isr=(1, 2), controller_epoch=9, zk_version=5)


class FakeReplicas:
    """Replicas that record the results of ISR writes."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.fails: Exception | None = None

    def isr_written(self, tp: TopicPartition, zk_version: int) -> None:
        if self.fails is not None:
            raise self.fails
        self.told.append(("written", tp, zk_version))

    def isr_write_refused(self, tp: TopicPartition) -> None:
        self.told.append(("refused", tp))

    def isr_refreshed(self, tp: TopicPartition, **state: Any) -> None:
        self.told.append(("refreshed", tp, state))


class FakeZooKeeper:
    """The state znode of one partition, and the ISR notices that were created."""

    def __init__(self) -> None:
        self.data = b""
        self.version = 5
        self.errors: list[Exception] = []
        self.notices: list[bytes] = []

    def _fail(self) -> None:
        if self.errors:
            raise self.errors.pop(0)

    async def set(self, path: str, data: bytes, version: int) -> Any:
        assert path == zk_paths.state(TP)
        self._fail()
        if version != self.version:
            raise BadVersion(path)
        self.data, self.version = data, version + 1
        return self

    async def get(self, path: str) -> tuple[bytes, Any]:
        self._fail()
        return self.data, self

    async def create(self, path: str, data: bytes, *, sequential: bool) -> str:
        assert (path, sequential) == (zk_paths.ISR_CHANGE_PREFIX, True)
        self._fail()
        self.notices.append(data)
        return path


class World:
    def __init__(self) -> None:
        self.replicas = FakeReplicas()
        self.zk: Any = FakeZooKeeper()
        self.failures: list[BaseException] = []
        replicas: Any = self.replicas
        self.writer = IsrWriter(replicas, lambda: self.zk, self.failures.append)


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(isr_writer, "_NOTICE_DELAY_S", 0.01)
    monkeypatch.setattr(isr_writer, "_NOTICE_RETRY_S", 0.01)
    world = World()
    yield world
    await world.writer.close()


async def test_a_write_is_conditional_and_told(world: World) -> None:
    """R14: an ISR write is conditional, has this leader's state, and returns the new version."""
    world.writer.write(WRITE)
    await until(lambda: bool(world.replicas.told))
    assert world.replicas.told == [("written", TP, 6)]
    znode = zk_paths.decode("", world.zk.data, zk_paths.StateZnode)
    assert (znode.leader, znode.leader_epoch, znode.isr) == (1, 3, [1, 2])
    assert znode.controller_epoch == 9


@pytest.mark.parametrize(
    "error", [BadVersion("v"), ConnectionLoss("cut"), SessionExpired("over")], ids=repr
)
async def test_a_refusal_and_doubt_are_told_alike(world: World, error: Exception) -> None:
    """A refused write and a write in doubt are reported alike: the state must be read again."""
    world.zk.errors = [error]
    world.writer.write(WRITE)
    await until(lambda: bool(world.replicas.told))
    assert world.replicas.told == [("refused", TP)]
    assert not world.failures


async def test_a_refresh_tells_what_is_there(world: World) -> None:
    """A refresh reports leader, epoch, ISR and version, and nothing if the znode is unreadable."""
    world.zk.errors = [ConnectionLoss("cut")]
    world.writer.refresh(RefreshIsr(TP))
    world.writer.refresh(RefreshIsr(TP))  # reads an empty znode
    await asyncio.sleep(0.01)
    assert world.replicas.told == []
    state = zk_paths.StateZnode(controller_epoch=1, leader=2, leader_epoch=4, isr=[2])
    world.zk.data = zk_paths.encode(state)
    world.writer.refresh(RefreshIsr(TP))
    await until(lambda: bool(world.replicas.told))
    seen = {"leader": 2, "leader_epoch": 4, "isr": (2,), "zk_version": 5}
    assert world.replicas.told == [("refreshed", TP, seen)]


async def test_changes_gather_in_one_notice(world: World) -> None:
    """KAFKA-2406: changes of many partitions share one notice, and a failed notice is repeated."""
    world.zk.errors = [ConnectionLoss("cut")]
    world.writer.announce(TP)
    world.writer.announce(TopicPartition("t", 1))
    world.writer.announce(TP)
    await until(lambda: bool(world.zk.notices))
    [notice] = world.zk.notices
    told = zk_paths.decode("", notice, zk_paths.IsrChangeZnode).partitions
    assert [(name.topic, name.partition) for name in told] == [("t", 0), ("t", 1)]
    world.writer.announce(TP)
    await until(lambda: len(world.zk.notices) == 2)


async def test_a_change_during_the_telling_is_told_of_too(world: World) -> None:
    """A change while a notice is being created is announced in the next notice."""
    create = world.zk.create

    async def create_and_change(*args: Any, **options: Any) -> str:
        world.zk.create = create
        world.writer.announce(TP)
        return str(await create(*args, **options))

    world.zk.create = create_and_change
    world.writer.announce(TP)
    await until(lambda: len(world.zk.notices) == 2)


async def test_a_broken_invariant_is_not_swallowed(world: World) -> None:
    """An assertion that fails in the handling of a result ends the broker."""
    world.replicas.fails = AssertionError("out of order")
    world.writer.write(WRITE)
    await until(lambda: bool(world.failures))
    assert str(world.failures[0]) == "out of order"
