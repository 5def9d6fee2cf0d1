"""The requests that the controller sends to brokers, and their order."""

from uuid import UUID

import pytest

from broker_impl.config import Endpoint
from broker_impl.controller.context import BrokerInfo, Context, Leadership
from broker_impl.controller.deletion import TopicDeletion
from broker_impl.controller.requests import Order, Outbox
from broker_impl.node.controller.orders import VERSIONS
from broker_impl.wire.messages import leader_and_isr_request, stop_replica_request
from broker_impl.wire.messages import update_metadata_request as update_metadata
from broker_impl.wire.messages.leader_and_isr_request import LeaderAndIsrRequest
from broker_impl.wire.messages.stop_replica_request import StopReplicaRequest
from broker_impl.wire.messages.update_metadata_request import UpdateMetadataRequest
from broker_impl.wire.types import TopicPartition

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


@pytest.fixture
def context() -> Context:
    """Brokers 1 and 2 are live, broker 3 is not; t has two partitions, u has never had a leader."""
    context = Context(controller_epoch=7)
    for number in (1, 2):
        endpoints = (
            Endpoint("CLIENT", "127.0.0.1", 9000 + number),
            Endpoint("REPLICATION", "127.0.0.1", 9100 + number),
        )
        context.brokers[number] = BrokerInfo(number, 100 + number, endpoints, rack=f"r{number}")
    context.topics = {"t": {0: (1, 2), 1: (2, 3)}, "u": {0: (3,)}}
    context.leadership = {
        T0: Leadership(1, 5, (1, 2), 7, zk_version=3),
        T1: Leadership(2, 4, (2, 3), 6),
    }
    context.topic_ids = {name: UUID(int=ord(name)) for name in context.topics}
    context.check()
    return context


def encodable(orders: dict[int, list[Order]]) -> None:
    """Check that every request can be encoded in the version that the controller uses."""
    for order in (order for due in orders.values() for order in due):
        match order:
            case LeaderAndIsrRequest():
                leader_and_isr_request.encode(order, VERSIONS[LeaderAndIsrRequest])
            case UpdateMetadataRequest():
                update_metadata.encode(order, 7)
            case StopReplicaRequest():
                stop_replica_request.encode(order, 3)


def test_nothing_due_is_nothing_sent(context: Context) -> None:
    """An empty outbox sends no request, and an outbox can be drained only once."""
    outbox = Outbox()
    assert outbox.drain(context, 1) == {}
    outbox.queue_leader_and_isr([1], T0)
    assert outbox.drain(context, 1)
    assert outbox.drain(context, 1) == {}


def test_one_request_of_each_kind_in_order(context: Context) -> None:
    """A broker receives live brokers first (KAFKA-4443), then roles, metadata and StopReplica."""
    outbox = Outbox()
    outbox.queue_stop(1, T1, delete=False)
    outbox.queue_metadata([1], [T0])
    outbox.queue_leader_and_isr([1], T0)
    outbox.queue_live_brokers()
    orders = outbox.drain(context, 2)
    encodable(orders)
    kinds = [type(order) for order in orders[1]]
    assert kinds == [
        UpdateMetadataRequest,
        LeaderAndIsrRequest,
        UpdateMetadataRequest,
        StopReplicaRequest,
    ]
    assert [type(order) for order in orders[2]] == [UpdateMetadataRequest]
    for number, due in orders.items():
        for order in due:
            assert order.controller_id == 2
            assert order.controller_epoch == 7
            assert order.broker_epoch == 100 + number


def test_roles(context: Context) -> None:
    """LeaderAndIsr has the present leader, epochs, ISR and version, and the leaders' addresses."""
    outbox = Outbox()
    outbox.queue_leader_and_isr([1, 2], T0, is_new=True)
    outbox.queue_leader_and_isr([2], T1)
    orders = outbox.drain(context, 1)
    encodable(orders)
    [order] = orders[2]
    assert isinstance(order, LeaderAndIsrRequest)
    [topic] = order.topic_states
    row, other = topic.partition_states
    assert (topic.topic_name, topic.topic_id) == ("t", UUID(int=ord("t")))
    assert (row.leader, row.leader_epoch, row.isr, row.partition_epoch) == (1, 5, [1, 2], 3)
    assert (row.controller_epoch, row.replicas, row.is_new) == (7, [1, 2], True)
    assert (other.controller_epoch, other.is_new) == (6, False)
    assert [leader.broker_id for leader in order.live_leaders] == [1, 2]


def test_the_end_of_several_changes(context: Context) -> None:
    """A partition that changes twice before a request is sent is sent once, in its last state."""
    outbox = Outbox()
    outbox.queue_leader_and_isr([1], T0, is_new=True)
    context.leadership[T0] = Leadership(2, 6, (2,), 7, zk_version=4)
    outbox.queue_leader_and_isr([1], T0)
    [order] = outbox.drain(context, 1)[1]
    assert isinstance(order, LeaderAndIsrRequest)
    [row] = order.topic_states[0].partition_states
    assert (row.leader, row.leader_epoch, row.is_new) == (2, 6, True)


def test_metadata(context: Context) -> None:
    """UpdateMetadata has all brokers with all listeners, and offline replicas.

    It leaves out partitions that never had a leader.
    """
    outbox = Outbox()
    outbox.queue_metadata([1], [T0, T1, U0])
    orders = outbox.drain(context, 1)
    encodable(orders)
    [order] = orders[1]
    assert isinstance(order, UpdateMetadataRequest)
    assert [(broker.id, broker.rack) for broker in order.live_brokers] == [(1, "r1"), (2, "r2")]
    assert [point.listener for point in order.live_brokers[0].endpoints] == [
        "CLIENT",
        "REPLICATION",
    ]
    [topic] = order.topic_states
    assert topic.topic_id == context.topic_ids["t"]
    assert [row.offline_replicas for row in topic.partition_states] == [[], [3]]


def test_metadata_of_offline_replicas(context: Context) -> None:
    """Replicas in failed log directories are offline, like those on dead brokers (KIP-112)."""
    context.set_offline(2, [T1])
    outbox = Outbox()
    outbox.queue_metadata([1], [T0, T1])
    [order] = outbox.drain(context, 1)[1]
    assert isinstance(order, UpdateMetadataRequest)
    [topic] = order.topic_states
    assert [row.offline_replicas for row in topic.partition_states] == [[], [2, 3]]


def test_a_topic_on_its_way_out(context: Context) -> None:
    """A topic in deletion is sent to brokers with leader -2, and stopped in epoch -2 (KIP-570).

    Leader -2 removes the topic from the metadata; epoch -2 deletes the replica whatever its
    epoch.
    """
    context.deleting["t"] = TopicDeletion([(0, 1), (0, 2), (1, 2), (1, 3)])
    outbox = Outbox()
    outbox.queue_metadata([1], [T0])
    outbox.queue_stop(1, T0, delete=True)
    metadata, stop = outbox.drain(context, 1)[1]
    assert isinstance(metadata, UpdateMetadataRequest)
    assert isinstance(stop, StopReplicaRequest)
    assert metadata.topic_states[0].partition_states[0].leader == -2
    [row] = stop.topic_states[0].partition_states
    assert (row.leader_epoch, row.delete_partition) == (-2, True)


def test_a_topic_that_is_gone(context: Context) -> None:
    """Brokers receive leader -2 for a topic even after the controller has forgotten it."""
    context.forget_topic("t")
    outbox = Outbox()
    outbox.queue_metadata([1], [T0])
    orders = outbox.drain(context, 1)
    encodable(orders)
    [order] = orders[1]
    assert isinstance(order, UpdateMetadataRequest)
    assert order.topic_states[0].partition_states[0].leader == -2


def test_a_stop_names_the_epoch(context: Context) -> None:
    """StopReplica has the epoch that excluded the broker, so that it undoes no later request."""
    outbox = Outbox()
    outbox.queue_stop(1, T0, delete=False)
    [order] = outbox.drain(context, 1)[1]
    assert isinstance(order, StopReplicaRequest)
    [row] = order.topic_states[0].partition_states
    assert (row.leader_epoch, row.delete_partition) == (5, False)


def test_who_is_to_stop_is_told_no_role(context: Context) -> None:
    """A broker that stops a replica receives no LeaderAndIsr for it.

    From a LeaderAndIsr it would learn the epoch, and then reject the StopReplica of that epoch
    as old.
    """
    outbox = Outbox()
    outbox.queue_leader_and_isr([1, 2], T0)
    outbox.queue_stop(1, T0, delete=False)
    orders = outbox.drain(context, 1)
    assert [type(order) for order in orders[1]] == [StopReplicaRequest]
    assert [type(order) for order in orders[2]] == [LeaderAndIsrRequest]


def test_a_role_that_follows_a_stop(context: Context) -> None:
    """A broker that gets a role in a partition after a stop receives the role, and not the stop."""
    outbox = Outbox()
    outbox.queue_stop(1, T0, delete=True)
    outbox.queue_stop(2, T0, delete=True)
    outbox.queue_stop(2, T1, delete=True)
    outbox.queue_leader_and_isr([1, 2], T0)
    orders = outbox.drain(context, 1)
    assert [type(order) for order in orders[1]] == [LeaderAndIsrRequest]
    role, stop = orders[2]
    assert isinstance(role, LeaderAndIsrRequest)
    assert isinstance(stop, StopReplicaRequest)
    assert [row.partition_index for row in stop.topic_states[0].partition_states] == [1]


def test_brokers_that_are_gone_are_told_nothing(context: Context) -> None:
    """Dead brokers receive no requests; they receive the full state when they register again."""
    outbox = Outbox()
    outbox.queue_leader_and_isr([3], T1)
    outbox.queue_stop(3, T1, delete=True)
    assert outbox.drain(context, 1) == {}
