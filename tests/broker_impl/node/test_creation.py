"""Topics whose manual assignment names brokers that are not alive."""

from typing import Any

from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.node.broker_calls import TP, create, produce


async def test_an_absent_broker_may_have_a_replica(cluster: Any) -> None:
    """A topic may have a replica on a dead broker, as in Kafka 2.8.

    The live replicas lead, and the other joins the ISR when its broker comes.
    """
    await cluster.add(1)
    await cluster.ready()
    await create(cluster, "t", assignment=[9, 1])
    view = cluster.brokers[1].broker.view
    assert (view.partition(TP).leader, list(view.partition(TP).isr)) == (1, [1])
    assert (await produce(cluster, 1, b"v", acks=1)).error_code == ErrorCode.NONE
    await cluster.add(9)
    await cluster.until(lambda: sorted(view.partition(TP).isr) == [1, 9])


async def test_a_topic_without_a_living_replica_is_led_later(cluster: Any) -> None:
    """The creation of a topic without a live replica times out, but a leader is elected later."""
    await cluster.add(1)
    await cluster.ready()
    asked = CreatableTopic(
        name="t",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[CreatableReplicaAssignment(broker_ids=[9])],
    )
    answer = await cluster.ask(1, CreateTopicsRequest(topics=[asked], timeout_ms=200), 5)
    assert [row.error_code for row in answer.topics] == [ErrorCode.REQUEST_TIMED_OUT]
    await cluster.add(9)
    view = cluster.brokers[1].broker.view

    def is_led() -> bool:
        found = view.partition(TopicPartition("t", 0))
        return found is not None and bool(found.leader == 9)

    await cluster.until(is_led)
