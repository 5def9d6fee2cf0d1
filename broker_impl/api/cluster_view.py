"""This broker's view of the cluster, from the controller's UpdateMetadata requests.

After a broker registers, and after a new controller is elected, the controller first sends the list
of brokers and then all topics in one request; after that it sends changes only. The first request
with topics, or the second request if there are none, therefore replaces the view: topics that were
deleted in the meantime disappear, and a topic that was created again under the same name is not
compared with the old one's epochs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

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
    """A partition's leader, ISR and replicas."""

    leader: BrokerId
    leader_epoch: Epoch
    isr: tuple[BrokerId, ...]
    replicas: tuple[BrokerId, ...]
    offline_replicas: tuple[BrokerId, ...] = ()
    """The replicas in failed log directories of brokers that were alive at this update (KIP-112).

    Replicas on other brokers are not listed: the controller sends no update of the partition when
    such a broker returns.
    """


class ClusterView:
    """The brokers and partitions that the controller has sent."""

    def __init__(self) -> None:
        self.is_whole = False
        """Whether the view includes the topics."""
        self.updates = 0
        """The number of updates received."""
        self._replace_topics = False
        self._met_brokers = False
        self.brokers: dict[BrokerId, BrokerView] = {}
        self.topics: dict[str, dict[int, PartitionView]] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.controller_id: BrokerId = -1
        self.controller_epoch: Epoch = -1
        self._broker_epoch = -1
        """The newest registration of this broker that a controller has named."""
        self.computed: dict[object, Any] = {}
        """What responses have computed from the view and share; each update empties it."""

    def update(self, request: UpdateMetadataRequest) -> list[TopicPartition]:
        """Apply a request that has passed the checks of controller epoch and broker epoch.

        Returns the partitions that it reports as deleted.
        """
        self.updates += 1
        self.computed.clear()
        # A new controller, or one that has seen this broker register, sends the whole state. It may
        # see the registration before this broker knows that it succeeded (KAFKA-9839).
        if (
            request.controller_epoch > self.controller_epoch
            or request.broker_epoch > self._broker_epoch
        ):
            self._replace_topics, self._met_brokers = True, False
        # If the request after the one with the brokers has no topics, there are none.
        if self._replace_topics and (request.topic_states or self._met_brokers):
            self._replace_topics, self.is_whole = False, True
            self.topics, self.topic_ids = {}, {}
        self._met_brokers = True
        self.controller_epoch = request.controller_epoch
        self._broker_epoch = max(self._broker_epoch, request.broker_epoch)
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
            if topic.topic_name in self.topics:
                self.topic_ids[topic.topic_name] = topic.topic_id
        return gone

    def _update_partition(self, topic: str, state: UpdateMetadataPartitionState) -> None:
        partitions = self.topics.setdefault(topic, {})
        if state.leader == BEING_DELETED:
            partitions.pop(state.partition_index, None)
            if not partitions:
                del self.topics[topic]
                self.topic_ids.pop(topic, None)
            return
        known = partitions.get(state.partition_index)
        if known is None or is_news(state.leader_epoch, known.leader_epoch):
            partitions[state.partition_index] = PartitionView(
                state.leader,
                state.leader_epoch,
                tuple(state.isr),
                tuple(state.replicas),
                tuple(number for number in state.offline_replicas if number in self.brokers),
            )

    def offline_replicas(self, partition: PartitionView) -> list[BrokerId]:
        """The replicas that are in failed log directories, or on brokers that are not alive."""
        failed, live = partition.offline_replicas, self.brokers
        return [each for each in partition.replicas if each in failed or each not in live]

    @property
    def has_all_topics(self) -> bool:
        """Whether the view has the topics that the controller sends first, and no older ones."""
        return self.is_whole and not self._replace_topics

    def partition(self, tp: TopicPartition) -> PartitionView | None:
        """The partition, None if this broker does not know it."""
        return self.topics.get(tp.topic, {}).get(tp.partition)

    def not_here(self, tp: TopicPartition) -> ErrorCode:
        """The error for a partition that this broker does not host."""
        if self.partition(tp) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionView]]:
        """All partitions, sorted by topic and number."""
        for topic in sorted(self.topics):
            for number in sorted(self.topics[topic]):
                yield TopicPartition(topic, number), self.topics[topic][number]


def is_news(update_epoch: Epoch, known_epoch: Epoch) -> bool:
    """Return whether an update with leader epoch ``update_epoch`` replaces the known state.

    One with an earlier epoch does not: a late update must not send clients back to a former leader
    (KAFKA-7738).
    """
    return update_epoch >= known_epoch
