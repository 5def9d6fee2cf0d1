"""The state that the controller keeps of the cluster."""

from dataclasses import replace
from uuid import UUID

import pytest

from broker_impl.controller.context import BrokerInfo, Context, Leadership, to_choose_from
from broker_impl.controller.deletion import TopicDeletion
from broker_impl.controller.election import Choice
from broker_impl.wire.types import TopicPartition

TP = TopicPartition("t", 0)
STATE = Leadership(1, 5, (1, 2), 6, zk_version=9)


@pytest.fixture
def context() -> Context:
    context = Context(controller_epoch=7)
    context.brokers = {number: BrokerInfo(number, number, ()) for number in (1, 2)}
    context.topics = {"t": {0: (1, 2, 3)}}
    context.topic_ids = {"t": UUID(int=7)}
    context.leadership = {TP: STATE}
    return context


def test_a_choice_begins_a_new_epoch() -> None:
    """Every change by a controller increments the leader epoch (E1)."""
    assert STATE.followed_by(Choice(2, (2,)), 7) == Leadership(2, 6, (2,), 7, zk_version=9)


def test_what_stands_there_counts() -> None:
    """The controller chooses from the state that the leader wrote, not its copy (KAFKA-5879)."""
    found = Leadership(1, 5, (1,), 6, zk_version=10)
    assert to_choose_from(STATE, found) == found


def test_who_is_there(context: Context) -> None:
    """All registered brokers are live, and may come to lead unless they are shutting down."""
    context.leaving[1] = None
    assert list(context.live_for(TP)) == [1, 2]
    assert list(context.candidates_for(TP)) == [2]
    assert context.live_replicas(TP) == [1, 2]
    assert context.is_registration(1, 1)
    assert not context.is_registration(1, 2)
    assert not context.is_registration(3, 3)


def test_an_offline_replica_is_not_alive(context: Context) -> None:
    """A replica in a failed log directory counts as dead for its partition, and for no other."""
    other = TopicPartition("t", 1)
    context.topics["t"] = {0: (1, 2, 3), 1: (1, 2)}
    context.set_offline(1, [TP])
    context.check()
    assert (list(context.live_for(TP)), list(context.live_for(other))) == ([2], [1, 2])
    assert (list(context.candidates_for(TP)), list(context.candidates_for(other))) == ([2], [1, 2])
    assert (context.live_replicas(TP), context.live_replicas(other)) == ([2], [1, 2])
    assert not context.is_live(1, TP)
    assert not context.is_led("t")
    assert context.partitions_on(1) == [TP, other], "it still has its replica"
    context.set_offline(1, [])
    assert context.offline == {}
    assert context.is_live(1, TP)


def test_a_replica_that_is_gone_is_not_offline(context: Context) -> None:
    """A replica that is removed, alone or with its topic, is no longer known as offline."""
    for broker in (1, 2):
        context.set_offline(broker, [TP])
    context.forget_replicas(TP, [1, 3])
    assert context.offline == {2: {TP: None}}
    context.forget_topic("t")
    assert context.offline == {}


@pytest.mark.parametrize(("broker", "tp"), [(3, TP), (2, TopicPartition("t", 1))])
def test_what_cannot_be_offline(context: Context, broker: int, tp: TopicPartition) -> None:
    """A broker that is not registered, or without a replica, has none that could be offline."""
    context.set_offline(broker, [tp])
    with pytest.raises(AssertionError):
        context.check()


def test_a_removed_replica_whose_broker_is_gone(context: Context) -> None:
    """A deletion waits for the assigned replicas of a broker that is gone, and not for others."""
    moved = TopicPartition("t", 1)
    context.topics["t"] = {0: (1, 2, 3), 1: (2, 3)}
    context.removed = {1: {moved: None}}
    context.check()
    context.deleting["t"] = TopicDeletion([(0, 1), (1, 1)])
    context.broker_gone(1)
    assert list(context.deleting["t"].states) == [(0, 1)]
    assert context.removed == {}


def test_a_removed_replica_of_a_topic_that_is_gone(context: Context) -> None:
    """It has no trace in the view; a later topic of the same name has other replicas."""
    context.topics["t"] = {0: (2, 3)}
    context.removed = {1: {TP: None, TopicPartition("u", 0): None}}
    context.forget_topic("t")
    assert context.removed == {1: {TopicPartition("u", 0): None}}


@pytest.mark.parametrize("broker", [2, 3])
def test_what_cannot_be_removed(context: Context, broker: int) -> None:
    """An assigned replica is not removed, and a broker that is not registered stops none."""
    context.topics["t"] = {0: (1, 2)}
    context.removed = {broker: {TP: None}}
    with pytest.raises(AssertionError):
        context.check()


def test_what_is_being_deleted_is_not_led(context: Context) -> None:
    """A topic that is being deleted takes no part in elections."""
    assert context.partitions_on(3) == [TP]
    context.deleting["t"] = TopicDeletion([])
    assert list(context.partitions()) == []
    assert context.partitions_on(3) == []
    assert context.topic_of(UUID(int=7)) == "t"
    context.forget_topic("t")
    assert context.topic_of(UUID(int=7)) is None
    assert (context.topics, context.leadership, context.deleting) == ({}, {}, {})


def test_is_led(context: Context) -> None:
    """A topic counts as led when each of its partitions has a live leader."""
    assert context.is_led("t")
    context.leadership[TP] = replace(STATE, leader=3, isr=(3,))
    assert not context.is_led("t")
    del context.leadership[TP]
    assert not context.is_led("t")


@pytest.mark.parametrize(
    "broken",
    [
        replace(STATE, isr=()),
        replace(STATE, leader=3),
        replace(STATE, controller_epoch=8),
    ],
)
def test_what_must_not_be(context: Context, broken: Leadership) -> None:
    """An empty ISR, a leader outside its ISR, or a later controller epoch fails `Context.check`."""
    context.check()
    context.leadership[TP] = broken
    with pytest.raises(AssertionError):
        context.check()
