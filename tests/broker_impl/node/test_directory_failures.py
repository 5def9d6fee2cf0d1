"""Brokers that go on after the failure of one of their data directories (KIP-112)."""

import asyncio
from typing import Any

import pytest

from broker_impl.errors import DirectoryFailed, ErrorCode, StorageError
from broker_impl.replica.events import BoundsAnswered
from broker_impl.replica.replica_state import Stage
from broker_impl.wire import batch
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.messages.describe_log_dirs_request import DescribeLogDirsRequest
from broker_impl.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from broker_impl.wire.messages.stop_replica_request import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
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


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_deletion_waits_for_the_directory(cluster: Any, restarts: bool) -> None:
    """A topic stays until its log in the failed directory is deleted; then it can be created.

    A log of the next topic in another directory would prevent a start after the repair.
    """
    broken = await three(cluster)
    if restarts:
        await produce(cluster, 1, b"refused")
        await led_by_another(cluster)
        await broken.stop()
        await broken.start()
        await cluster.until(lambda: 1 in state(cluster, 2, OTHER).isr)
        await cluster.until(lambda: broken.broker.view.partition(OTHER) is not None)
    request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=500)
    answer = await cluster.ask(cluster.brokers[2].broker.view.controller_id, request, 5)
    assert answer.responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    broken.disk.fails = lambda operation, path: False
    await broken.stop()
    await broken.start()
    await cluster.ready()
    request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=10_000)
    answer = await cluster.ask(cluster.brokers[2].broker.view.controller_id, request, 5)
    gone = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert answer.responses[0].error_code in gone
    await create(cluster, "t", assignment=[1, 2, 3])
    assert (await produce(cluster, leader(cluster), b"new")).error_code == 0
    await broken.stop()
    await broken.start()
    await cluster.until(lambda: 1 in state(cluster, 2, TP).isr)


async def test_a_deletion_is_repeated_without_the_directory(cluster: Any) -> None:
    """What was deleted while a directory had failed is confirmed each time."""
    await three(cluster)
    await produce(cluster, 1, b"refused")
    await led_by_another(cluster)
    broker = cluster.brokers[1].broker
    order = StopReplicaRequest(
        controller_epoch=broker.replicas.controller_epoch,
        broker_epoch=broker.replicas.broker_epoch,
        topic_states=[
            StopReplicaTopicState(
                topic_name="u",
                partition_states=[
                    StopReplicaPartitionState(
                        partition_index=0, leader_epoch=-2, delete_partition=True
                    )
                ],
            )
        ],
    )
    for _ in range(2):
        answer = broker.replicas.stop_replica(order)
        assert [row.error_code for row in answer.partition_errors] == [0]


async def test_records_are_deleted_durably_or_not(cluster: Any) -> None:
    """DeleteRecords is refused if the start of the log could not be stored."""
    running = await cluster.add(1, log_dirs="/a,/b")
    await cluster.ready()
    await create(cluster, "t", assignment=[1])
    assert (await produce(cluster, 1, b"a", b"b", b"c")).error_code == 0
    running.disk.fails = lambda operation, path: path == "log-start-offset-checkpoint"
    assert running.broker.replicas.delete_records(TP, 2).error is STORAGE


async def test_other_replicas_go_on_after_a_truncation_that_fails(cluster: Any) -> None:
    """A follower that cannot start its log over loses it, and still follows for others."""
    broken = await three(cluster)
    broken.disk.fails = lambda operation, path: False
    third = cluster.brokers[3]
    await third.stop()
    await cluster.until(lambda: 3 not in state(cluster, 1, TP).isr)
    assert (await produce(cluster, 1, b"a", b"b", b"c")).error_code == 0
    assert cluster.brokers[1].broker.replicas.delete_records(TP, 4).error is ErrorCode.NONE
    third.disk.fails = lambda operation, path: operation == "remove" and path.startswith("t-0/")
    await third.start()
    await cluster.until(lambda: TP in third.broker.replicas.offline)
    records = batch.encode_batch([batch.Record(b"k", b"u", 1)])
    assert cluster.brokers[1].broker.replicas.append(OTHER, records, acks=1).error == 0
    await cluster.until(lambda: third.broker.replicas.logs.logs[OTHER].end_offset == 1)
    await cluster.until(lambda: 3 in state(cluster, 1, OTHER).isr)


async def test_a_log_that_is_half_changed_is_lost_with_all_others(cluster: Any) -> None:
    """The replica whose truncation failed is in no valid state, and is taken offline anyway."""
    broken = await three(cluster)
    broken.disk.fails = lambda operation, path: False
    third = cluster.brokers[3]
    replicas = third.broker.replicas
    assert (await produce(cluster, 1, b"a", b"b", b"c")).error_code == 0
    await cluster.until(lambda: replicas.partitions[TP].high_watermark >= 3)
    replicas.logs.logs[TP].flush()
    third.disk.fails = lambda operation, path: path.startswith("recovery-point")
    partition = replicas.partitions[TP]
    partition.stage = Stage.BOUNDS
    with pytest.raises(DirectoryFailed):
        replicas.handle_event(partition, BoundsAnswered(partition.leader_epoch, 0, 1))
    await cluster.until(lambda: 3 not in state(cluster, 1, TP).isr)
    assert TP not in replicas.partitions
    assert not third.task.done()


async def test_the_last_directory_ends_the_broker(cluster: Any) -> None:
    """A broker without a directory that works ends with the failure."""
    broken = await three(cluster)
    broken.other_disk.fails = lambda operation, path: True
    task, broken.task, broken.broker = broken.task, None, None
    with pytest.raises(StorageError):
        await asyncio.wait_for(task, 20)
