"""The controller's figures of the cluster."""

from uuid import UUID

from broker_impl.controller import figures
from broker_impl.controller.context import BrokerInfo, Context, Leadership
from broker_impl.controller.deletion import TopicDeletion
from broker_impl.wire.types import TopicPartition


def test_partitions_are_counted_by_their_leaders() -> None:
    """Offline: never led, or without a live leader; imbalanced: not led by the first replica."""
    context = Context(1)
    context.brokers = {n: BrokerInfo(n, n, ()) for n in (1, 2)}
    context.topics = {
        "t": {0: (1, 2), 1: (1, 2), 2: (3, 1), 3: (1, 2), 4: (2, 1)},
        "gone": {0: (3,)},
    }
    context.topic_ids = dict.fromkeys(context.topics, UUID(int=1))
    leaders = {0: 1, 1: 2, 2: 3, 3: -1}
    for number, leader in leaders.items():
        state = Leadership(leader, 1, (max(leader, 1),), 1)
        context.leadership[TopicPartition("t", number)] = state
    context.deleting["gone"] = TopicDeletion(())
    assert figures.of(context) == figures.Figures(topics=1, partitions=5, offline=3, imbalanced=3)
    context.set_offline(1, [TopicPartition("t", 0), TopicPartition("t", 2)])
    # Broker 1 leads t-0, and is a follower in t-2.
    assert figures.of(context) == figures.Figures(topics=1, partitions=5, offline=4, imbalanced=3)
