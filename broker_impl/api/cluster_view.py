"""What the controller last told this broker about the cluster (UpdateMetadata).

A broker that has registered, and every broker that meets a new controller, is told first who the
brokers are, and then of all topics in one message; after that only of what changes. So the first
message with topics replaces what was known: a topic that was deleted while nobody told us is gone,
and one that was made anew under its name is not judged by the epochs of the old one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.update_metadata_request import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)
from broker_impl.wire.types import BrokerId, Epoch, TopicPartition

NO_LEADER = -1
BEING_DELETED = -2


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A live broker."""

    id: BrokerId
    rack: str | None
    endpoints: dict[str, tuple[str, int]]
    """Listener name to advertised host and port."""


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition's leadership."""

    leader: BrokerId
    leader_epoch: Epoch
    isr: tuple[BrokerId, ...]
    replicas: tuple[BrokerId, ...]


class ClusterView:
    """Brokers and partitions as the controller sees them."""

    def __init__(self) -> None:
        self.is_whole = False
        """The controller has told of the topics, too."""
        self.updates = 0
        """How often it was told something."""
        self._replace_topics = False
        self._met_brokers = False
        self.brokers: dict[BrokerId, BrokerView] = {}
        self.topics: dict[str, dict[int, PartitionView]] = {}
        self.controller_id: BrokerId = -1
        self.controller_epoch: Epoch = -1

    def begin_again(self) -> None:
        """This broker has registered: it will be told everything."""
        self._replace_topics = True

    def update(self, request: UpdateMetadataRequest) -> list[TopicPartition]:
        """Take over what the request says; it has been fenced by controller and broker epoch.

        The answer: partitions of which it says that they are deleted.
        """
        self.updates += 1
        if request.controller_epoch > self.controller_epoch:
            self.begin_again()
        if request.topic_states and self._replace_topics:
            self._replace_topics = False
            self.topics = {}
        # Of no topics in a message after the one about the brokers: there are none.
        self.is_whole = self.is_whole or self._met_brokers or bool(request.topic_states)
        self._met_brokers = True
        self.controller_epoch = request.controller_epoch
        self.controller_id = request.controller_id
        self.brokers = {
            broker.id: BrokerView(
                broker.id,
                broker.rack,
                {point.listener: (point.host, point.port) for point in broker.endpoints},
            )
            for broker in request.live_brokers
        }
        gone = []
        for topic in request.topic_states:
            for state in topic.partition_states:
                self._update_partition(topic.topic_name, state)
                if state.leader == BEING_DELETED:
                    gone.append(TopicPartition(topic.topic_name, state.partition_index))
        return gone

    def _update_partition(self, topic: str, state: UpdateMetadataPartitionState) -> None:
        partitions = self.topics.setdefault(topic, {})
        if state.leader == BEING_DELETED:
            partitions.pop(state.partition_index, None)
            if not partitions:
                del self.topics[topic]
            return
        known = partitions.get(state.partition_index)
        if known is None or is_news(state.leader_epoch, known.leader_epoch):
            partitions[state.partition_index] = PartitionView(
                state.leader, state.leader_epoch, tuple(state.isr), tuple(state.replicas)
            )

    def leader_epochs(self) -> dict[TopicPartition, Epoch]:
        """Of which epoch the leaders are that clients are told."""
        return {tp: partition.leader_epoch for tp, partition in self.partitions()}

    def partition(self, tp: TopicPartition) -> PartitionView | None:
        """The partition, if this broker has heard of it."""
        return self.topics.get(tp.topic, {}).get(tp.partition)

    def not_here(self, tp: TopicPartition) -> ErrorCode:
        """What to say of a partition that this broker does not host."""
        if self.partition(tp) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionView]]:
        """All partitions, by topic and number."""
        for topic in sorted(self.topics):
            for number in sorted(self.topics[topic]):
                yield TopicPartition(topic, number), self.topics[topic][number]


def is_news(told_epoch: Epoch, known_epoch: Epoch) -> bool:
    """Does a leader of the epoch that is told take the place of the one that is known?

    Not one of an earlier epoch: a late message must not send clients back to it (KAFKA-7738).
    """
    return told_epoch >= known_epoch
