"""Topic ids in a cluster of three brokers (KIP-516): given, returned, kept, and named."""

from typing import Any
from uuid import UUID

import msgspec
import pytest

from broker_impl.errors import ErrorCode
from broker_impl.node import zk_paths
from broker_impl.wire import topic_ids
from broker_impl.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from broker_impl.wire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from broker_impl.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from broker_impl.wire.types import NO_UUID
from tests.broker_impl.node.broker_calls import TP, create, delete, leader


def controller(cluster: Any) -> int:
    live = [running.broker for running in cluster.brokers.values() if running.broker]
    return int(live[0].view.controller_id)


async def described(cluster: Any, number: int, *names: str) -> list[Any]:
    """The topics in a broker's metadata (v10)."""
    topics = [MetadataRequestTopic(name=name) for name in names] or None
    answer = await cluster.ask(number, MetadataRequest(topics=topics), 10)
    return list(answer.topics)


async def stored(cluster: Any, name: str = "t") -> zk_paths.TopicZnode:
    """The topic's znode."""
    path = zk_paths.topic(name)
    zk = next(each.broker for each in cluster.brokers.values() if each.broker)._session.zk
    data, _ = await zk.get(path)
    return zk_paths.decode(path, data, zk_paths.TopicZnode)


async def test_a_new_topic_has_an_id(three: Any) -> None:
    """CreateTopics v7, every broker's Metadata and the topic's znode have the same id."""
    request = CreateTopicsRequest(topics=[CreatableTopic("t", 1, 3)], timeout_ms=5000)
    [made] = (await three.ask(controller(three), request, 7)).topics
    assert made.topic_id != NO_UUID
    await three.until(
        lambda: all("t" in each.broker.view.topics for each in three.brokers.values())
    )
    for number in (1, 2, 3):
        [topic] = await described(three, number, "t")
        assert topic.topic_id == made.topic_id
    znode = await stored(three)
    assert (znode.version, znode.topic_id) == (3, topic_ids.to_text(made.topic_id))


async def test_validation_gives_no_id(three: Any) -> None:
    """A topic that is only validated has no id."""
    request = CreateTopicsRequest(
        topics=[CreatableTopic("t", 1, 3)], timeout_ms=5000, validate_only=True
    )
    [row] = (await three.ask(controller(three), request, 7)).topics
    assert (row.error_code, row.topic_id) == (0, NO_UUID)


async def test_the_id_stays(three: Any) -> None:
    """The id survives more partitions, a reassignment, and a new controller."""
    await create(three, assignment=[1, 2])
    [before] = await described(three, 1, "t")
    more = CreatePartitionsRequest(topics=[CreatePartitionsTopic("t", 2, None)], timeout_ms=5000)
    assert (await three.ask(controller(three), more, 3)).results[0].error_code == 0
    move = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic("t", [ReassignablePartition(0, [3])])]
    )
    answer = await three.ask(controller(three), move, 0)
    assert answer.responses[0].partitions[0].error_code == 0
    await three.until(lambda: leader(three) == 3)
    former = controller(three)
    await three.brokers[former].stop()
    rest = [number for number in (1, 2, 3) if number != former]
    await three.until(lambda: all(three.brokers[n].broker.view.controller_id in rest for n in rest))
    for number in rest:
        [topic] = await described(three, number, "t")
        assert topic.topic_id == before.topic_id
    assert (await stored(three)).topic_id == topic_ids.to_text(before.topic_id)


async def test_a_topic_without_an_id_is_given_one(three: Any) -> None:
    """The controller gives an id to a topic that Kafka 2.7 created, and does so only once."""
    zk = three.brokers[1].broker._session.zk
    old = b'{"partitions":{"0":[1,2,3]},"adding_replicas":{},"removing_replicas":{},"version":2}'
    await zk.create(zk_paths.topic("t"), old)
    await three.until(
        lambda: all("t" in each.broker.view.topics for each in three.brokers.values())
    )
    [topic] = await described(three, 2, "t")
    znode = await stored(three)
    assert (znode.version, znode.topic_id) == (3, topic_ids.to_text(topic.topic_id))
    assert znode.partitions == {"0": [1, 2, 3]}
    former = controller(three)
    await three.brokers[former].stop()
    rest = [number for number in (1, 2, 3) if number != former]
    await three.until(lambda: all(three.brokers[n].broker.view.controller_id in rest for n in rest))
    [after] = await described(three, rest[0], "t")
    assert after.topic_id == topic.topic_id


async def test_deletion_by_id(three: Any) -> None:
    """DeleteTopics v6 deletes by id or by name, and rejects ids that no topic has."""
    for name in "tuv":
        await create(three, name)
    ids = {topic.name: topic.topic_id for topic in await described(three, 1)}
    unknown = UUID(int=5)
    asked = [
        DeleteTopicState(topic_id=ids["t"]),
        DeleteTopicState(name="u"),
        DeleteTopicState(topic_id=unknown),
        DeleteTopicState(name="w"),
    ]
    request = DeleteTopicsRequest(topics=asked, timeout_ms=5000)
    answer = await three.ask(controller(three), request, 6)
    assert [(row.name, row.topic_id, row.error_code) for row in answer.responses] == [
        ("t", ids["t"], ErrorCode.NONE),
        ("u", NO_UUID, ErrorCode.NONE),
        (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID),
        ("w", NO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    await three.until(lambda: list(three.brokers[2].broker.view.topics) == ["v"])
    assert list(three.brokers[2].broker.view.topic_ids) == ["v"]


async def test_a_name_and_an_id_at_once(three: Any) -> None:
    """A request that names a topic both by name and by id deletes nothing."""
    await create(three)
    [topic] = await described(three, 1)
    both = DeleteTopicState(name="t", topic_id=topic.topic_id)
    request = DeleteTopicsRequest(topics=[both, DeleteTopicState(name="t")], timeout_ms=5000)
    answer = await three.ask(controller(three), request, 6)
    assert [row.error_code for row in answer.responses] == [ErrorCode.INVALID_REQUEST] * 2
    assert "t" in three.brokers[1].broker.view.topics


async def test_another_broker_is_not_the_controller(three: Any) -> None:
    """A broker that is not the controller returns the names and ids with NOT_CONTROLLER."""
    other = next(number for number in (1, 2, 3) if number != controller(three))
    asked = [DeleteTopicState(topic_id=UUID(int=5)), DeleteTopicState(name="t")]
    answer = await three.ask(other, DeleteTopicsRequest(topics=asked, timeout_ms=5000), 6)
    assert [(row.name, row.topic_id, row.error_code) for row in answer.responses] == [
        (None, UUID(int=5), ErrorCode.NOT_CONTROLLER),
        ("t", NO_UUID, ErrorCode.NOT_CONTROLLER),
    ]


async def test_a_new_topic_of_the_same_name_has_another_id(three: Any) -> None:
    """The id of a deleted topic is not used again."""
    await create(three)
    [before] = await described(three, 1, "t")
    await delete(three)
    await create(three)
    [after] = await described(three, 1, "t")
    assert after.topic_id not in (before.topic_id, NO_UUID)


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize(
    "asked",
    [MetadataRequestTopic(topic_id=UUID(int=5), name=None), MetadataRequestTopic(name=None)],
)
async def test_metadata_is_asked_by_name(
    three: Any, version: int, asked: MetadataRequestTopic
) -> None:
    """As in Kafka 2.8, Metadata v10 and v11 reject a request that names a topic by its id."""
    await create(three)
    topics = [msgspec.structs.replace(asked), MetadataRequestTopic(name="t")]
    answer = await three.ask(1, MetadataRequest(topics=topics), version)
    assert [(row.name, row.error_code) for row in answer.topics] == [
        ("", ErrorCode.INVALID_REQUEST),
        ("t", ErrorCode.INVALID_REQUEST),
    ]


async def test_a_log_that_is_left_of_a_deleted_topic(three: Any) -> None:
    """The next topic of its name gets neither its log nor its settings there."""
    away, *rest = [number for number in (1, 2, 3) if number != controller(three)]
    stays = controller(three)
    await create(three, assignment=[stays, away], config={"segment.ms": "7"})
    [before] = await described(three, stays, "t")
    await three.brokers[away].stop()
    move = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic("t", [ReassignablePartition(0, [stays, *rest])])]
    )
    answer = await three.ask(stays, move, 0)
    assert answer.responses[0].partitions[0].error_code == 0
    view = three.brokers[stays].broker.view
    await three.until(lambda: list(view.partition(TP).replicas) == [stays, *rest])
    await three.brokers[away].start()
    logs = three.brokers[away].broker._logs.logs
    await three.until(lambda: TP in logs and logs[TP].config.segment_ms == 7)
    await delete(three)
    assert logs[TP].topic_id == before.topic_id
    await create(three, assignment=[away])
    await three.until(lambda: TP in logs and logs[TP].topic_id != before.topic_id)
    assert logs[TP].config.segment_ms == 7 * 24 * 3_600_000
