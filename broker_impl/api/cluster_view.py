"""What the controller last told this broker about the cluster (UpdateMetadata)."""

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
    """Brokers and partitions as the controller sees them; replaced piece by piece."""

    def __init__(self) -> None:
        self.brokers: dict[BrokerId, BrokerView] = {}
        self.topics: dict[str, dict[int, PartitionView]] = {}
        self.controller_id: BrokerId = -1
        self.controller_epoch: Epoch = -1

    def update(self, request: UpdateMetadataRequest) -> ErrorCode:
        """Take over what the request says, unless an older controller sent it (E2)."""
        if request.controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
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
        for topic in request.topic_states:
            for state in topic.partition_states:
                self._update_partition(topic.topic_name, state)
        return ErrorCode.NONE

    def _update_partition(self, topic: str, state: UpdateMetadataPartitionState) -> None:
        partitions = self.topics.setdefault(topic, {})
        if state.leader == BEING_DELETED:
            partitions.pop(state.partition_index, None)
            if not partitions:
                del self.topics[topic]
            return
        known = partitions.get(state.partition_index)
        # A late message must not send clients back to an old leader (KAFKA-7738).
        if known is None or state.leader_epoch >= known.leader_epoch:
            partitions[state.partition_index] = PartitionView(
                state.leader, state.leader_epoch, tuple(state.isr), tuple(state.replicas)
            )

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
