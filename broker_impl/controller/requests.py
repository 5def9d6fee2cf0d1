"""The requests that the controller owes to brokers, collected while it handles events.

Each broker receives one request of each kind, in this order: UpdateMetadata with the live brokers,
if they have changed (KAFKA-4443: an order to follow names a leader, which the broker must know);
LeaderAndIsr; UpdateMetadata for partitions; StopReplica. The requests are written from the context
when they are drained: a partition that changes twice is sent once, in its latest state.
"""

from collections.abc import Iterable, Mapping

from broker_impl.controller.context import BrokerInfo, Context, Leadership
from broker_impl.wire.messages.leader_and_isr_request import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from broker_impl.wire.messages.stop_replica_request import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from broker_impl.wire.messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from broker_impl.wire.types import NO_UUID, BrokerId, TopicPartition

Order = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest

EPOCH_DURING_DELETE = -2
"""The leader epoch in StopReplica for a topic under deletion: newer than any other (KIP-570)."""
LEADER_DURING_DELETE = -2
"""The leader in UpdateMetadata that makes brokers remove the partition."""
PLAINTEXT = 0


class Outbox:
    """The orders that are due, as sets of partitions."""

    def __init__(self) -> None:
        self._brokers_changed = False
        self._lead_or_follow: dict[BrokerId, dict[TopicPartition, bool]] = {}
        self._metadata: dict[BrokerId, dict[TopicPartition, None]] = {}
        self._stop: dict[BrokerId, dict[TopicPartition, bool]] = {}

    def queue_live_brokers(self) -> None:
        """Queue the list of live brokers for all brokers."""
        self._brokers_changed = True

    def queue_leader_and_isr(
        self, brokers: Iterable[BrokerId], tp: TopicPartition, *, is_new: bool = False
    ) -> None:
        """Queue the roles in this partition for these brokers.

        A queued stop of the replica is removed: it would be sent after the role.
        """
        for broker in brokers:
            self._stop.get(broker, {}).pop(tp, None)
            due = self._lead_or_follow.setdefault(broker, {})
            due[tp] = due.get(tp, False) or is_new

    def queue_metadata(
        self, brokers: Iterable[BrokerId], partitions: Iterable[TopicPartition]
    ) -> None:
        """Queue the metadata of these partitions for these brokers."""
        partition_set = dict.fromkeys(partitions)
        for broker in brokers:
            self._metadata.setdefault(broker, {}).update(partition_set)

    def queue_stop(self, broker: BrokerId, tp: TopicPartition, *, delete: bool) -> None:
        """Queue a stop of this broker's replica of the partition, and with ``delete`` its deletion.

        A queued role for the partition is removed: the broker would reject the stop as outdated if
        a role with the same epoch came first.
        """
        self._lead_or_follow.get(broker, {}).pop(tp, None)
        due = self._stop.setdefault(broker, {})
        due[tp] = due.get(tp, False) or delete

    def drain(self, context: Context, controller_id: BrokerId) -> dict[BrokerId, list[Order]]:
        """Return the requests for each registered broker, in order, and empty the outbox."""
        orders: dict[BrokerId, list[Order]] = {}
        for broker in sorted(context.brokers):
            writer = _Writer(context, controller_id, context.brokers[broker])
            due: list[Order] = []
            if self._brokers_changed:
                due.append(writer.update_metadata(()))
            if roles := self._lead_or_follow.get(broker):
                due.append(writer.leader_and_isr(roles))
            if broker in self._metadata:
                due.append(writer.update_metadata(self._metadata[broker]))
            if stops := self._stop.get(broker):
                due.append(writer.stop_replica(stops))
            if due:
                orders[broker] = due
        self._brokers_changed = False
        self._lead_or_follow, self._metadata, self._stop = {}, {}, {}
        return orders


class _Writer:
    """Builds the requests to one broker."""

    def __init__(self, context: Context, controller_id: BrokerId, broker: BrokerInfo) -> None:
        self._context = context
        self._controller_id = controller_id
        self._broker = broker

    def leader_and_isr(self, due: Mapping[TopicPartition, bool]) -> LeaderAndIsrRequest:
        context = self._context
        topics: dict[str, LeaderAndIsrTopicState] = {}
        leaders: dict[BrokerId, None] = {}
        for tp, is_new in due.items():
            state = context.leadership.get(tp)
            if state is None:
                continue  # deleted meanwhile
            leaders[state.leader] = None
            topic = topics.setdefault(
                tp.topic,
                LeaderAndIsrTopicState(
                    topic_name=tp.topic, topic_id=context.topic_ids.get(tp.topic, NO_UUID)
                ),
            )
            topic.partition_states.append(
                LeaderAndIsrPartitionState(
                    partition_index=tp.partition,
                    controller_epoch=state.controller_epoch,
                    leader=state.leader,
                    leader_epoch=state.leader_epoch,
                    isr=list(state.isr),
                    partition_epoch=state.zk_version,
                    replicas=list(context.replicas(tp)),
                    is_new=is_new,
                )
            )
        return LeaderAndIsrRequest(
            controller_id=self._controller_id,
            controller_epoch=context.controller_epoch,
            broker_epoch=self._broker.epoch,
            topic_states=list(topics.values()),
            live_leaders=[
                LeaderAndIsrLiveLeader(broker_id=leader, host_name=first.host, port=first.port)
                for leader in leaders
                if leader in context.brokers
                for first in context.brokers[leader].endpoints[:1]
            ],
        )

    def update_metadata(self, due: Iterable[TopicPartition]) -> UpdateMetadataRequest:
        context = self._context
        topics: dict[str, UpdateMetadataTopicState] = {}
        for tp in due:
            row = self._metadata_row(tp)
            if row is not None:
                topic = topics.setdefault(
                    tp.topic,
                    UpdateMetadataTopicState(
                        topic_name=tp.topic, topic_id=context.topic_ids.get(tp.topic, NO_UUID)
                    ),
                )
                topic.partition_states.append(row)
        return UpdateMetadataRequest(
            controller_id=self._controller_id,
            controller_epoch=context.controller_epoch,
            broker_epoch=self._broker.epoch,
            topic_states=list(topics.values()),
            live_brokers=[
                UpdateMetadataBroker(
                    id=number,
                    rack=broker.rack,
                    endpoints=[
                        UpdateMetadataEndpoint(
                            port=endpoint.port,
                            host=endpoint.host,
                            listener=endpoint.name,
                            security_protocol=PLAINTEXT,
                        )
                        for endpoint in broker.endpoints
                    ],
                )
                for number, broker in sorted(context.brokers.items())
            ],
        )

    def _metadata_row(self, tp: TopicPartition) -> UpdateMetadataPartitionState | None:
        context = self._context
        is_gone = tp.topic in context.deleting or tp.topic not in context.topics
        state = context.leadership.get(tp)
        if state is None:
            if not is_gone:
                return None  # never led: clients see it once it has a leader
            state = Leadership(LEADER_DURING_DELETE, EPOCH_DURING_DELETE, (), -1)
        replicas = () if tp.topic not in context.topics else context.replicas(tp)
        return UpdateMetadataPartitionState(
            partition_index=tp.partition,
            controller_epoch=state.controller_epoch,
            leader=LEADER_DURING_DELETE if is_gone else state.leader,
            leader_epoch=state.leader_epoch,
            isr=list(state.isr),
            zk_version=state.zk_version,
            replicas=list(replicas),
            offline_replicas=[each for each in replicas if not context.is_live(each, tp)],
        )

    def stop_replica(self, due: Mapping[TopicPartition, bool]) -> StopReplicaRequest:
        context = self._context
        topics: dict[str, StopReplicaTopicState] = {}
        for tp, delete in due.items():
            state = context.leadership.get(tp)
            is_gone = tp.topic in context.deleting or state is None
            epoch = EPOCH_DURING_DELETE if is_gone or state is None else state.leader_epoch
            topic = topics.setdefault(tp.topic, StopReplicaTopicState(topic_name=tp.topic))
            topic.partition_states.append(
                StopReplicaPartitionState(
                    partition_index=tp.partition, leader_epoch=epoch, delete_partition=delete
                )
            )
        return StopReplicaRequest(
            controller_id=self._controller_id,
            controller_epoch=context.controller_epoch,
            broker_epoch=self._broker.epoch,
            topic_states=list(topics.values()),
        )
