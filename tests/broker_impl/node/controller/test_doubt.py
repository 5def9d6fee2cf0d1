"""The connection to ZooKeeper is lost at any request of a controller."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from broker_impl.node import directory_notices, zk_paths
from broker_impl.wire import topic_ids
from broker_impl.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.types import TopicPartition
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import ConnectionLoss
from tests.broker_impl.zookeeper_requests import (
    LaggingZooKeeper,
    Request,
    Step,
    SteppedWrites,
    SteppedZooKeeper,
    answer_lost,
    lost,
    sent,
)

T0 = TopicPartition("t", 0)


class WithoutTopic(SteppedWrites):
    """A client whose next server lacks a new topic until it answers another write."""

    is_behind = False

    async def exists(self, path: str, *watch: Any) -> Any:
        if self.is_behind and path == self._path:
            return None
        return await self._zk.exists(path, *watch)

    async def multi(self, ops: Sequence[Any]) -> Any:
        self.is_behind = False
        return await super().multi(ops)

    async def answer_lost(self, request: Request) -> Any:
        """The step that loses the connection after the write took effect."""
        await request()
        self.is_behind = True
        raise ConnectionLoss("after")


async def live(world: Any, number: int, *, done: bool) -> int:
    """Take a controller through one term with all kinds of work; return its number of requests."""
    doubtful: list[SteppedZooKeeper] = []
    steps = [sent] * (number - 1) + [answer_lost if done else lost] * bool(number)

    def through(zk: ZooKeeper) -> SteppedZooKeeper:
        doubtful.append(SteppedZooKeeper(zk, steps))
        return doubtful[0]

    await world.come(1, 2)
    contender = await world.contend(1, through=through)
    rows = [CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2])]
    topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=rows)
    created = await contender.runtime.create_topics(
        CreateTopicsRequest(topics=[topic], timeout_ms=5000)
    )
    assert created.topics[0].error_code == 0
    assert await world.led(T0, 1, 1, 2) == 0
    await world.go(1)
    assert await world.led(T0, 2, 2) == 1
    await world.come(1)
    row = zk_paths.PartitionName(topic="t", partition=0)
    notice = zk_paths.encode(zk_paths.IsrChangeZnode(partitions=[row]))
    await world.gone(await world.zk.create(zk_paths.ISR_CHANGE_PREFIX, notice, sequential=True))
    await directory_notices.announce(world.zk, 2)
    while names := await world.zk.children(zk_paths.LOG_DIR_EVENTS):
        await world.gone(f"{zk_paths.LOG_DIR_EVENTS}/{names[0]}")
    deleted = await contender.runtime.delete_topics(
        DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000)
    )
    assert deleted.responses[0].error_code == 0
    assert await world.zk.children(zk_paths.TOPICS) == []
    assert await world.zk.children(zk_paths.TOPIC_CONFIGS) == []
    assert contender.runtime.controller_epoch == 1
    return doubtful[0].asked


@pytest.mark.slow
@pytest.mark.parametrize("done", [False, True], ids=["lost", "done"])
async def test_each_request_in_doubt(world: Any, done: bool) -> None:
    """The controller completes its work in one term, whether the request took effect or not."""
    requests = await live(world, 0, done=done)
    assert requests > 40
    for number in range(1, requests + 1):
        for contender in world.contenders:
            await contender.stop()
        world.contenders.clear()
        await world.go(1, 2)
        await world.zk.delete(zk_paths.CONTROLLER_EPOCH)
        async with asyncio.timeout(20):
            await live(world, number, done=done)


@pytest.mark.parametrize("syncs", [True, False])
async def test_an_election_in_doubt_on_a_server_that_lags(world: Any, syncs: bool) -> None:
    """The brokers learn of an election whose write took effect but was not answered.

    The server of the next connection lags. If a sync brings it up to date, the state is not written
    again.
    """
    zk = LaggingZooKeeper(zk_paths.state(T0), syncs=syncs)
    await world.come(1, 2)
    contender = await world.contend(3, through=zk.around)
    await world.topic("t", [1, 2])
    await world.led(T0, 1, 1, 2)
    await world.until(lambda: bool(contender.peers.metadata(2, T0)))
    zk.steps.append(zk.answer_lost)
    await world.go(1)
    await world.until(lambda: len(contender.peers.metadata(2, T0)) == 2)
    assert [row.leader_epoch for row in contender.peers.roles(2, T0)] == [0, 1]
    assert contender.peers.metadata(2, T0)[-1].leader == 2
    assert zk.written == (2 if syncs else 3)  # the first write is that of the first leader
    assert await world.led(T0, 2, 2) == 1


@pytest.mark.parametrize("step", [lost, answer_lost])
async def test_a_first_state_in_doubt(world: Any, step: Step) -> None:
    """A topic that the controller finds without leaders gets them after a lost connection."""
    zk = SteppedWrites(zk_paths.state(T0), [step])
    await world.come(1, 2)
    # It has an id: the controller does not write it, which would be another reason for an election.
    topic = zk_paths.TopicZnode(partitions={"0": [1, 2]}, topic_id=topic_ids.to_text(UUID(int=7)))
    await world.zk.create(zk_paths.topic("t"), zk_paths.encode(topic))
    contender = await world.contend(3, through=zk.around)
    assert await world.led(T0, 1, 1, 2) == 0
    await world.until(lambda: bool(contender.peers.roles(2, T0)))
    [role] = contender.peers.roles(2, T0)
    assert (role.leader, role.is_new) == (1, True)
    assert zk.written == 2


async def test_a_creation_in_doubt_on_a_server_that_lags(world: Any) -> None:
    """The client learns that its topic is created, also if the next server does not have it yet.

    The controller writes it again, is answered that it exists, and counts its own write as done.
    """
    zk = WithoutTopic(zk_paths.topic("t"))
    await world.come(1, 2)
    contender = await world.contend(1, through=zk.around)
    zk.steps.append(zk.answer_lost)
    rows = [CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2])]
    topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=rows)
    created = await contender.runtime.create_topics(
        CreateTopicsRequest(topics=[topic], timeout_ms=5000)
    )
    assert (zk.written, created.topics[0].error_code) == (2, 0)
    assert await world.led(T0, 1, 1, 2) == 0
