"""Topics of a cluster: created on demand, deleted, created again, and described."""

import asyncio
import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.node import zk_paths
from broker_impl.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from broker_impl.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import NoNode
from tests.broker_impl.node.broker_calls import (
    TP,
    consume,
    create,
    delete,
    describe,
    leader,
    produce,
    settings_of,
)


async def test_asking_for_a_topic_creates_it(three: Any) -> None:
    """Metadata with auto-creation answers LEADER_NOT_AVAILABLE at first, then the new topic."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="fresh")], allow_auto_topic_creation=True
    )
    first = await three.ask(1, request, 9)
    assert first.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    async with asyncio.timeout(5):
        while True:
            answer = await three.ask(1, request, 9)
            if answer.topics[0].error_code == 0 and answer.topics[0].partitions:
                break
            await asyncio.sleep(0.01)
    assert {b.node_id for b in answer.brokers} == {1, 2, 3}
    row = answer.topics[0].partitions[0]
    assert sorted(row.replica_nodes) == sorted(row.isr_nodes) == [1, 2, 3]


async def test_a_question_that_may_not_create_does_not(three: Any) -> None:
    """Metadata creates no topic without allow_auto_topic_creation, or with an invalid name."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="never")], allow_auto_topic_creation=False
    )
    answer = await three.ask(1, request, 9)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="no/such")], allow_auto_topic_creation=True
    )
    answer = await three.ask(1, request, 9)
    assert answer.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_requests_parked_at_a_topic_that_is_deleted_are_answered(three: Any) -> None:
    """When a topic is deleted, its parked produces and fetches are answered."""
    await create(three)
    number = leader(three)
    for other in set(three.brokers) - {number}:
        # no follower fetches, so nothing is committed
        three.brokers[other].broker._fetchers._tasks.cancel()
    parked = asyncio.create_task(produce(three, number, b"a"))
    reading = asyncio.create_task(consume(three, number, max_wait_ms=60_000))
    waiting = three.brokers[number].broker.waiting
    await three.until(lambda: len(waiting) >= 2)
    await delete(three)
    assert (await parked).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(AssertionError, match="error_code=3"):
        await reading


async def test_a_topic_of_a_deleted_name_is_another_one(three: Any) -> None:
    """A recreated topic has none of the settings, logs, epochs and metadata of the former one."""
    await create(three, config={"retention.ms": "1000", "max.message.bytes": "100"})
    assert (await produce(three, leader(three), b"x" * 200)).error_code == 10
    await produce(three, leader(three), b"old")
    await three.brokers[leader(three)].stop()
    await three.until(lambda: leader(three) > 0 and three.brokers[leader(three)].broker)
    for running in three.brokers.values():
        if running.broker is None:
            await running.start()
    await three.ready()
    await three.until(
        lambda: len(three.brokers[leader(three)].broker.replicas.partitions[TP].isr) == 3
    )
    await delete(three)
    await create(three)
    for number in three.brokers:
        assert settings_of(await describe(three, number))["retention.ms"] == "604800000"
    row = await produce(three, leader(three), b"x" * 200)
    assert (row.error_code, row.base_offset) == (0, 0)
    assert await consume(three, leader(three)) == [b"x" * 200]


async def test_settings_apply_from_the_beginning(
    three: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker whose ZooKeeper server lags behind the creation of a topic applies its settings."""
    get, sync = ZooKeeper.get, ZooKeeper.sync
    synced: list[ZooKeeper] = []

    async def lagging_get(self: ZooKeeper, path: str, *watch: Any) -> Any:
        if path == zk_paths.topic_config("t") and self not in synced:
            raise NoNode(path)
        return await get(self, path, *watch)

    async def recorded_sync(self: ZooKeeper, path: str) -> None:
        await sync(self, path)
        synced.append(self)

    monkeypatch.setattr(ZooKeeper, "get", lagging_get)
    monkeypatch.setattr(ZooKeeper, "sync", recorded_sync)
    await create(three, config={"max.message.bytes": "100"})
    assert (await produce(three, leader(three), b"x" * 200)).error_code == 10


async def test_a_brokers_own_sleep_through_a_deletion_is_no_harm(three: Any) -> None:
    """A broker whose session is lost while a topic is recreated learns the new topic.

    The broker has no replica of the topic.
    """
    controller = three.brokers[1].broker.view.controller_id
    victim = next(number for number in three.brokers if number != controller)
    others = [number for number in three.brokers if number != victim]
    await create(three, assignment=others)
    broker = three.brokers[victim].broker
    broker.view.topics["ghost"] = dict(broker.view.topics["t"])
    known = broker.view.topics["t"][0]
    broker.view.topics["t"][0] = dataclasses.replace(known, leader_epoch=99)
    epoch = broker._session.broker_epoch
    broker._session.expired.set()
    await three.until(lambda: broker._session.broker_epoch > epoch)
    await three.until(lambda: set(broker.view.topics) == {"t"})
    assert broker.view.topics["t"][0].leader_epoch < 99


async def test_settings_are_described_by_brokers_that_do_not_host_the_topic(three: Any) -> None:
    """DescribeConfigs reads from ZooKeeper, so brokers without the topic answer too."""
    await create(three, replicas=1, config={"retention.ms": "1234"})
    for number in three.brokers:
        assert settings_of(await describe(three, number))["retention.ms"] == "1234"


async def test_topics_wait_for_a_controller(three: Any) -> None:
    """Without a controller no topic is created, and the client gets LEADER_NOT_AVAILABLE."""
    broker = three.brokers[1].broker
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="later")], allow_auto_topic_creation=True
    )
    controller = broker._controller_client._controller
    nobody = SimpleNamespace(is_active=False, controller_id=-1)
    broker._controller_client._controller = lambda: nobody
    for _ in range(2):
        answer = await three.ask(1, request, 9)
        assert answer.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert broker._failure is None
    broker._controller_client._controller = controller
    await three.ask(1, request, 9)
    await three.until(lambda: "later" in broker.view.topics)


async def test_records_are_deleted_on_all_replicas_for_good(three: Any) -> None:
    """DeleteRecords returns after the followers have applied it, and survives a broker's kill."""
    await create(three)
    for value in (b"a", b"b", b"c"):
        await produce(three, leader(three), value)
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=2)]
            )
        ],
        timeout_ms=5000,
    )
    answer = await three.ask(leader(three), request, 2)
    row = answer.topics[0].partitions[0]
    assert (row.error_code, row.low_watermark) == (ErrorCode.NONE, 2)
    for running in three.brokers.values():
        assert running.broker._logs.logs[TP].start_offset == 2
        text = running.disk.read("log-start-offset-checkpoint").decode()
        assert text.splitlines()[2:] == ["t 0 2"]
    assert await consume(three, leader(three), offset=2) == [b"c"]
