"""The controller obeys what Kafka's command line tools write to ZooKeeper."""

from typing import Any

import pytest

from broker_impl.node import zk_paths
from broker_impl.wire.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
async def four(world: Any) -> Any:
    """Four brokers, the controller among them, and two partitions with replicas on two of them."""
    await world.come(1, 2, 3, 4)
    world.controller = await world.contend(4)
    world.peers = world.controller.peers
    await world.topic("t", [1, 2], [2, 1])
    await world.led(T0, 1, 1, 2)
    await world.led(T1, 2, 2, 1)
    return world


async def asks(world: Any, path: str, znode: Any) -> None:
    await world.zk.create(path, zk_paths.encode(znode))


async def moves(world: Any, *rows: tuple[int, list[int]]) -> None:
    """Write a request as ``kafka-reassign-partitions --zookeeper`` does."""
    wanted = [zk_paths.WantedReplicas("t", number, replicas) for number, replicas in rows]
    znode = zk_paths.ReassignPartitionsZnode(partitions=wanted)
    await asks(world, zk_paths.REASSIGN_PARTITIONS, znode)


async def requested(world: Any) -> list[int]:
    """The partitions whose moves are still in the request."""
    path = zk_paths.REASSIGN_PARTITIONS
    data, _ = await world.zk.get(path)
    rows = zk_paths.decode(path, data, zk_paths.ReassignPartitionsZnode).partitions
    return [row.partition for row in rows]


async def in_sync(world: Any, tp: TopicPartition, *isr: int) -> None:
    """The leader writes another ISR, with a notice to the controller."""
    state = await world.state(tp)
    state.isr = list(isr)
    await world.zk.set(zk_paths.state(tp), zk_paths.encode(state))
    notice = zk_paths.IsrChangeZnode(partitions=[zk_paths.PartitionName(*tp)])
    await world.zk.create(zk_paths.ISR_CHANGE_PREFIX, zk_paths.encode(notice), sequential=True)


async def test_moves_leave_the_request_when_they_are_over(four: Any) -> None:
    """Each move is removed from the request at its end, and the request with its last move."""
    await moves(four, (0, [1, 3]), (1, [2, 3]), (7, [1, 2]))
    await four.until(lambda: bool(four.peers.roles(3, T0) and four.peers.roles(3, T1)))
    assert await requested(four) == [0, 1]
    await in_sync(four, T0, 1, 2, 3)
    await four.until(lambda: bool(four.peers.stops(2, T0)))
    assert await requested(four) == [1]
    await in_sync(four, T1, 2, 1, 3)
    await four.gone(zk_paths.REASSIGN_PARTITIONS)
    await moves(four, (0, [3, 1]))
    await four.gone(zk_paths.REASSIGN_PARTITIONS)
    data, _ = await four.zk.get(zk_paths.topic("t"))
    znode = zk_paths.decode(zk_paths.topic("t"), data, zk_paths.TopicZnode)
    assert (znode.partitions, znode.adding_replicas) == ({"0": [3, 1], "1": [2, 3]}, {})


async def test_the_next_controller_ends_the_request(four: Any) -> None:
    """A controller that finds a request whose moves have begun waits for their end."""
    await moves(four, (0, [1, 3]))
    await four.until(lambda: bool(four.peers.roles(3, T0)))
    epoch = (await four.state(T0)).leader_epoch
    await four.controller.stop()
    four.contenders.remove(four.controller)
    second = await four.contend(2)
    await four.until(lambda: bool(second.peers.roles(3, T0)))
    assert await requested(four) == [0]
    assert (await four.state(T0)).leader_epoch == epoch
    await in_sync(four, T0, 1, 2, 3)
    await four.gone(zk_paths.REASSIGN_PARTITIONS)


async def test_preferred_replicas_are_elected(four: Any) -> None:
    """The named partitions get their preferred leaders, others keep theirs."""
    await four.topic("u", [1, 2])
    other = TopicPartition("u", 0)
    await four.led(other, 1, 1, 2)
    await four.go(1)
    for tp in (T0, other):
        await four.led(tp, 2, 2)
    await four.come(1)
    for tp in (T0, other):
        await in_sync(four, tp, 2, 1)
    znode = zk_paths.PreferredElectionZnode(partitions=[zk_paths.PartitionName("t", 0)])
    await four.zk.create(zk_paths.PREFERRED_ELECTION, zk_paths.encode(znode))
    await four.gone(zk_paths.PREFERRED_ELECTION)
    assert [(await four.state(tp)).leader for tp in (T0, other)] == [1, 2]


@pytest.mark.parametrize("path", [zk_paths.REASSIGN_PARTITIONS, zk_paths.PREFERRED_ELECTION])
@pytest.mark.parametrize("data", [b"no JSON", b'{"version":1,"partitions":[]}'])
async def test_a_request_without_effect_is_removed(four: Any, path: str, data: bytes) -> None:
    """A request that cannot be read, or names no partition, does not block later ones."""
    await four.zk.create(path, data)
    await four.gone(path)
    await moves(four, (0, [1, 3]))
    await four.until(lambda: bool(four.peers.roles(3, T0)))
