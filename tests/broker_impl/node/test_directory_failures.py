"""Brokers that go on after the failure of one of their data directories (KIP-112)."""

import asyncio
from typing import Any

import pytest

from broker_impl.errors import ErrorCode, StorageError
from broker_impl.wire.messages.describe_log_dirs_request import DescribeLogDirsRequest
from broker_impl.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.node.broker_calls import TP, consume, create, leader, produce

STORAGE = ErrorCode.KAFKA_STORAGE_ERROR
OTHER = TopicPartition("u", 0)


async def three(cluster: Any) -> Any:
    """Three brokers with two directories each: topic "t" is in the first one, "u" in the other.

    Broker 1 leads both.
    """
    await asyncio.gather(*(cluster.add(number, log_dirs="/a,/b") for number in (1, 2, 3)))
    await cluster.ready()
    await create(cluster, "t", assignment=[1, 2, 3])
    await create(cluster, "u", assignment=[1, 2, 3])
    assert (await produce(cluster, leader(cluster), b"before")).error_code == 0
    broken = cluster.brokers[1]
    broken.disk.fails = lambda operation, path: True
    return broken


def state(cluster: Any, number: int, tp: TopicPartition) -> Any:
    """What a broker knows about a partition."""
    return cluster.brokers[number].broker.view.partition(tp)


async def offline(cluster: Any, number: int) -> list[int]:
    """The offline replicas of "t", as a broker reports them."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    answer = await cluster.ask(number, request, 9)
    return list(answer.topics[0].partitions[0].offline_replicas)


async def directories(cluster: Any) -> dict[str, int]:
    """The error of each data directory of broker 1."""
    answer = await cluster.ask(1, DescribeLogDirsRequest(topics=None), 1)
    return {row.log_dir: row.error_code for row in answer.results}


async def led_by_another(cluster: Any) -> None:
    """Wait until another broker leads "t", and broker 1 is not in its ISR."""

    def is_moved() -> bool:
        known = state(cluster, 2, TP)
        return known.leader in (2, 3) and 1 not in known.isr

    await cluster.until(is_moved)


async def test_other_brokers_lead_what_is_lost(cluster: Any) -> None:
    """Only the replica in the failed directory goes offline; a restart brings it back."""
    broken = await three(cluster)
    assert (await produce(cluster, 1, b"refused")).error_code == STORAGE
    await led_by_another(cluster)
    assert broken.broker is not None
    assert not broken.task.done()
    assert state(cluster, 2, OTHER).leader == 1
    assert sorted(state(cluster, 2, OTHER).isr) == [1, 2, 3]
    assert await directories(cluster) == {"/a": STORAGE, "/b": 0}
    assert await offline(cluster, 2) == [1]
    now = leader(cluster)
    assert (await produce(cluster, now, b"after")).error_code == 0
    assert await consume(cluster, now) == [b"before", b"after"]
    assert (await produce(cluster, 1, b"refused")).error_code == STORAGE

    broken.disk.fails = lambda operation, path: False
    await broken.stop()
    await broken.start()
    await cluster.until(lambda: 1 in state(cluster, 2, TP).isr)
    assert await offline(cluster, 2) == []
    assert await directories(cluster) == {"/a": 0, "/b": 0}


async def test_a_lost_follower_leaves_the_isr(cluster: Any) -> None:
    """A follower that cannot store what it fetches leaves the ISR, and the leader stays."""
    await three(cluster)
    cluster.brokers[1].disk.fails = lambda operation, path: False
    cluster.brokers[3].disk.fails = lambda operation, path: True
    assert (await produce(cluster, 1, b"after")).error_code == 0
    await cluster.until(lambda: 3 not in state(cluster, 2, TP).isr)
    assert state(cluster, 2, TP).leader == 1
    assert sorted(state(cluster, 2, OTHER).isr) == [1, 2, 3]
    assert await offline(cluster, 1) == [3]


async def test_a_restart_without_the_directory(cluster: Any) -> None:
    """A broker that starts without a directory begins no log again that may be in it."""
    broken = await three(cluster)
    await produce(cluster, 1, b"refused")
    await led_by_another(cluster)
    await broken.stop()
    await broken.start()
    await cluster.until(lambda: 1 in state(cluster, 2, OTHER).isr)
    await create(cluster, "v", assignment=[1, 2, 3])
    assert TP not in broken.broker.replicas.logs.logs
    assert TopicPartition("v", 0) in broken.broker.replicas.logs.logs
    assert 1 not in state(cluster, 2, TP).isr
    assert await offline(cluster, 2) == [1]


async def test_the_only_replica_is_lost(cluster: Any) -> None:
    """Without another replica the partition has no leader, until the broker starts again."""
    running = await cluster.add(1, log_dirs="/a,/b")
    await cluster.ready()
    await create(cluster, "t", assignment=[1])
    assert (await produce(cluster, 1, b"before")).error_code == 0
    running.disk.fails = lambda operation, path: True
    assert (await produce(cluster, 1, b"refused")).error_code == STORAGE
    await cluster.until(lambda: state(cluster, 1, TP).leader == -1)
    assert list(state(cluster, 1, TP).isr) == [1]
    running.disk.fails = lambda operation, path: False
    await running.stop()
    await running.start()
    await cluster.until(
        lambda: (known := running.broker.view.partition(TP)) is not None and known.leader == 1
    )
    assert await consume(cluster, 1) == [b"before"]


async def test_the_last_directory_ends_the_broker(cluster: Any) -> None:
    """A broker without a directory that works ends with the failure."""
    broken = await three(cluster)
    broken.other_disk.fails = lambda operation, path: True
    task, broken.task, broken.broker = broken.task, None, None
    with pytest.raises(StorageError):
        await asyncio.wait_for(task, 20)
