"""The controller creates, extends and deletes topics."""

import asyncio
from typing import Any

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.node import zk_paths
from broker_impl.wire.messages import create_topics_response, delete_topics_response
from broker_impl.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateableTopicConfig,
    CreateTopicsRequest,
)
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.types import TopicPartition

T0 = TopicPartition("t", 0)


@pytest.fixture
async def two(world: Any) -> Any:
    """Two brokers, one of which is the controller."""
    await world.come(1, 2)
    world.controller = await world.contend(1)
    world.peers = world.controller.peers
    return world


async def create(world: Any, *topics: CreatableTopic, timeout_ms: int = 5000, **more: Any) -> Any:
    answer = await world.controller.runtime.create_topics(
        CreateTopicsRequest(topics=list(topics), timeout_ms=timeout_ms, **more)
    )
    for version in range(2, 8):
        create_topics_response.encode(answer, version)
    return answer.topics


async def delete(world: Any, *names: str, timeout_ms: int = 5000) -> Any:
    answer = await world.controller.runtime.delete_topics(
        DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)
    )
    for version in range(1, 7):
        delete_topics_response.encode(answer, version)
    return answer.responses


def asked(name: str = "t", partitions: int = 1, copies: int = 2, **more: Any) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=copies, **more)


async def test_creation(two: Any) -> None:
    """When CreateTopics returns, the topic is stored, led, and known to the controller's broker."""
    setting = CreateableTopicConfig(name="retention.ms", value="5")
    [row] = await create(two, asked(partitions=3, configs=[setting]))
    assert (row.error_code, row.num_partitions, row.replication_factor) == (0, 3, 2)
    told = [config for config in row.configs if config.name == "retention.ms"]
    assert [(config.value, config.config_source) for config in told] == [("5", 1)]
    data, _ = await two.zk.get(zk_paths.topic_config("t"))
    assert zk_paths.decode("", data, zk_paths.ConfigZnode).config == {"retention.ms": "5"}
    for number in range(3):
        tp = TopicPartition("t", number)
        assert (await two.state(tp)).leader in (1, 2)
        assert two.peers.roles(1, tp)
        assert two.peers.metadata(1, tp)


async def test_several_at_once(two: Any) -> None:
    """Each topic of a request has its own result; collisions within the request are found."""
    rows = await create(
        two, asked("a.b"), asked("a_b"), asked("c", copies=3), asked("d"), asked("d"), asked("e")
    )
    assert [(row.name, row.error_code) for row in rows] == [
        ("a.b", ErrorCode.NONE),
        ("a_b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("c", ErrorCode.INVALID_REPLICATION_FACTOR),
        ("d", ErrorCode.INVALID_REQUEST),
        ("e", ErrorCode.NONE),
    ]
    assert await two.zk.children(zk_paths.TOPICS) == ["a.b", "e"]


async def test_an_assignment_by_hand(two: Any) -> None:
    """With a manual assignment, the first replica leads."""
    rows = [CreatableReplicaAssignment(partition_index=0, broker_ids=[2, 1])]
    [row] = await create(two, asked(partitions=-1, copies=-1, assignments=rows))
    assert row.error_code == 0
    assert (await two.state(T0)).leader == 2


async def test_twice(two: Any) -> None:
    """A second creation gets TOPIC_ALREADY_EXISTS, even if the first was not yet noticed."""
    await create(two, asked())
    [row] = await create(two, asked())
    assert row.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    both = [create(two, asked("u")), create(two, asked("u"))]
    codes = [row.error_code for rows in await asyncio.gather(*both) for row in rows]
    assert codes == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]


async def test_validation_alone(two: Any) -> None:
    """With validate_only nothing is written, and the answer does not wait."""
    [row] = await create(two, asked(), validate_only=True, timeout_ms=0)
    assert (row.error_code, row.num_partitions) == (0, 1)
    assert await two.zk.children(zk_paths.TOPICS) == []


@pytest.mark.parametrize("timeout_ms", [0, 30])
async def test_a_creation_out_of_time(two: Any, timeout_ms: int) -> None:
    """A creation that times out continues, and the topic exists afterwards."""
    two.peers.silent.add(1)
    [row] = await create(two, asked(), timeout_ms=timeout_ms)
    assert row.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert (await two.state(T0)).leader in (1, 2)


async def test_a_bad_setting(two: Any) -> None:
    """Settings are checked before anything is written."""
    setting = CreateableTopicConfig(name="no.such", value="5")
    [row] = await create(two, asked(configs=[setting]))
    assert row.error_code == ErrorCode.INVALID_CONFIG
    assert "no.such" in row.error_message
    assert await two.zk.children(zk_paths.TOPICS) == []


async def test_old_settings_are_not_inherited(two: Any) -> None:
    """Settings that an earlier topic of the same name left behind are overwritten."""
    old = zk_paths.encode(zk_paths.ConfigZnode(config={"retention.ms": "1"}))
    await two.zk.create(zk_paths.topic_config("t"), old)
    await create(two, asked())
    data, _ = await two.zk.get(zk_paths.topic_config("t"))
    assert zk_paths.decode("", data, zk_paths.ConfigZnode).config == {}


async def test_a_partition_without_a_live_replica(two: Any) -> None:
    """A partition without a live replica gets its leader as soon as one of its brokers comes."""
    await two.topic("t", [3])
    await two.topic("u", [1])
    await two.led(TopicPartition("u", 0), 1, 1)
    assert await two.zk.exists(zk_paths.state(T0)) is None
    await two.come(3)
    await two.led(T0, 3, 3)


async def test_an_unregistered_controller(world: Any) -> None:
    """A controller that is not registered as a broker does not wait for its own broker."""
    await world.come(1)
    world.controller = await world.contend(9)
    [row] = await create(world, asked(copies=1))
    assert row.error_code == 0


async def test_more_partitions(two: Any) -> None:
    """Partitions that a tool adds in ZooKeeper get leaders, and existing ones do not change."""
    await two.topic("t", [1, 2])
    await two.led(T0, 1, 1, 2)
    znode = zk_paths.TopicZnode(partitions={"0": [2, 1], "1": [2, 1]})
    await two.zk.set(zk_paths.topic("t"), zk_paths.encode(znode))
    await two.led(TopicPartition("t", 1), 2, 2, 1)
    state = await two.state(T0)
    assert (state.leader, state.leader_epoch) == (1, 0)


async def test_a_topic_that_cannot_be_read(two: Any) -> None:
    """A topic whose znode is unreadable is skipped, and the others are not."""
    for name, data in (("bad", b"?"), ("worse", b'{"partitions":{"x":[1]},"version":2}')):
        await two.zk.create(zk_paths.topic(name), data)
    await create(two, asked())
    assert (await two.state(T0)).leader in (1, 2)
    assert two.controller.runtime.controller_epoch == 1


async def test_deletion(two: Any) -> None:
    """A deleted topic leaves all metadata, then all disks, and then ZooKeeper."""
    await create(two, asked(partitions=2))
    [row] = await delete(two, "t")
    assert row.error_code == 0
    assert await two.zk.children(zk_paths.TOPICS) == []
    assert await two.zk.children(zk_paths.TOPIC_CONFIGS) == []
    assert await two.zk.children(zk_paths.DELETE_TOPICS) == []
    for broker in (1, 2):
        assert two.peers.metadata(broker, T0)[-1].leader == -2
        [stop] = two.peers.stops(broker, T0)
        assert (stop.leader_epoch, stop.delete_partition) == (-2, True)
    [row] = await create(two, asked())
    assert row.error_code == 0
    assert (await two.state(T0)).leader_epoch == 0


async def test_what_cannot_be_deleted(two: Any) -> None:
    """DeleteTopics of an unknown topic returns UNKNOWN_TOPIC_OR_PARTITION."""
    [row] = await delete(two, "t")
    assert row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_deletion_is_not_allowed(world: Any) -> None:
    """With delete.topic.enable=false, topics are deleted neither by request nor by a znode."""
    await world.come(1)
    world.controller = await world.contend(1, delete_topic_enable="false")
    await world.topic("t", [1])
    await world.led(T0, 1, 1)
    [row] = await delete(world, "t")
    assert row.error_code == ErrorCode.TOPIC_DELETION_DISABLED
    await world.zk.create(zk_paths.delete_topic("t"))
    await world.gone(zk_paths.delete_topic("t"))
    assert (await world.state(T0)).leader == 1


async def test_a_wish_in_zookeeper(two: Any) -> None:
    """A tool may request a deletion by a znode; the znode of an unknown topic is removed."""
    await create(two, asked())
    await two.zk.create(zk_paths.delete_topic("t"))
    await two.zk.create(zk_paths.delete_topic("nothing"))
    await two.gone(zk_paths.topic("t"))
    await two.gone(zk_paths.delete_topic("t"))
    await two.gone(zk_paths.delete_topic("nothing"))


async def test_a_broker_that_is_down_keeps_the_topic(two: Any) -> None:
    """A topic exists until every broker with a replica has deleted it, dead brokers included.

    The old log must not be taken for that of a new topic of the same name.
    """
    await create(two, asked())
    await two.go(2)
    await two.until(lambda: bool(two.peers.roles(1, T0)[1:]))
    [row] = await delete(two, "t", timeout_ms=20)
    assert row.error_code == ErrorCode.REQUEST_TIMED_OUT
    [row] = await create(two, asked(copies=1))
    assert row.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert two.peers.stops(2, T0) == []
    await two.come(2)
    await two.gone(zk_paths.delete_topic("t"))
    assert len(two.peers.stops(2, T0)) == 1


async def test_a_deletion_survives_its_controller(two: Any) -> None:
    """The next controller completes a deletion."""
    await create(two, asked())
    await two.go(2)
    await delete(two, "t", timeout_ms=20)
    two.contenders.remove(two.controller)
    await two.controller.stop()
    await two.contend(1)
    await two.come(2)
    await two.gone(zk_paths.delete_topic("t"))
    assert await two.zk.exists(zk_paths.topic("t")) is None


async def test_a_refused_deletion_is_tried_again(two: Any, monkeypatch: Any) -> None:
    """A broker that could not delete a replica is asked again after a while."""
    monkeypatch.setattr("broker_impl.node.controller.term._DELETION_RETRY_S", 0.02)
    await two.topic("t", [2])
    await two.led(T0, 2, 2)
    two.peers.keeping.add(2)
    [row] = await delete(two, "t", timeout_ms=50)
    assert row.error_code == ErrorCode.REQUEST_TIMED_OUT
    await two.until(lambda: len(two.peers.stops(2, T0)) >= 2)
    two.peers.keeping.clear()
    await two.gone(zk_paths.delete_topic("t"))


async def test_a_refused_deletion_is_repeated_after_a_pause(two: Any) -> None:
    """The answers of other brokers and later events do not repeat a refused deletion at once.

    A replica in a failed log directory cannot be deleted before its broker restarts.
    """
    await two.topic("t", [2, 1])
    await two.led(T0, 2, 2, 1)
    two.peers.keeping.add(2)
    [row] = await delete(two, "t", timeout_ms=100)
    assert row.error_code == ErrorCode.REQUEST_TIMED_OUT
    await two.topic("u", [1])
    await two.led(TopicPartition("u", 0), 1, 1)
    assert (len(two.peers.stops(1, T0)), len(two.peers.stops(2, T0))) == (1, 1)


async def test_a_topic_removed_by_hand(two: Any) -> None:
    """Brokers remove a topic from their metadata when its znodes were deleted by hand."""
    await create(two, asked())
    for path in (
        zk_paths.state(T0),
        zk_paths.partition(T0),
        zk_paths.partitions("t"),
        zk_paths.topic("t"),
    ):
        await two.zk.delete(path)
    await two.until(lambda: two.peers.metadata(1, T0)[-1].leader == -2)
