"""The controller's view of the cluster, as plain values read from ZooKeeper or decided here."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from broker_impl.config import Endpoint
from broker_impl.controller import election
from broker_impl.controller.deletion import TopicDeletion
from broker_impl.controller.election import NO_LEADER, Choice
from broker_impl.controller.reassignment import Move
from broker_impl.wire.types import BrokerId, Epoch, TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A registered broker."""

    id: BrokerId
    epoch: Epoch
    """The czxid of its registration; each incarnation of a broker has another one (KIP-380)."""
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Leadership:
    """A partition's leader and ISR, as stored in its state znode."""

    leader: BrokerId
    leader_epoch: Epoch
    isr: tuple[BrokerId, ...]
    controller_epoch: Epoch
    """The epoch of the controller that chose this leader."""
    zk_version: int = 0
    """The znode's version, on which a conditional write depends."""
    zxid: int = field(default=0, compare=False)
    """The znode's mzxid: the transaction that wrote it."""

    def followed_by(self, choice: Choice, controller_epoch: Epoch) -> "Leadership":
        """The state to write for a choice, in a new epoch."""
        return replace(
            self,
            leader=choice.leader,
            leader_epoch=election.next_epoch(self.leader_epoch),
            isr=choice.isr,
            controller_epoch=controller_epoch,
        )


def to_choose_from(known: Leadership, found: Leadership) -> Leadership:
    """The state on which to base the next choice after a conditional write met another state.

    It is the state that was found: the controller must not write back an ISR that the leader has
    changed since (KAFKA-5879).
    """
    return found


@dataclass(slots=True)
class Context:
    """The controller's view of the cluster during one term."""

    controller_epoch: Epoch
    brokers: dict[BrokerId, BrokerInfo] = field(default_factory=dict)
    """The registered brokers, including those that are shutting down."""
    leaving: dict[BrokerId, None] = field(default_factory=dict)
    """The brokers that have requested a controlled shutdown."""
    offline: dict[BrokerId, dict[TopicPartition, None]] = field(default_factory=dict)
    """The partitions whose replica on this broker is in a failed log directory (KIP-112)."""
    topics: dict[str, Mapping[int, tuple[BrokerId, ...]]] = field(default_factory=dict)
    """Partition to its replicas; the first replica is the preferred leader."""
    topic_ids: dict[str, UUID] = field(default_factory=dict)
    """The id of each topic (KIP-516)."""
    leadership: dict[TopicPartition, Leadership] = field(default_factory=dict)
    """The state of each partition that has ever had a leader."""
    moves: dict[TopicPartition, Move] = field(default_factory=dict)
    """The partitions with a reassignment in progress."""
    deleting: dict[str, TopicDeletion] = field(default_factory=dict)
    removed: dict[BrokerId, dict[TopicPartition, None]] = field(default_factory=dict)
    """The replicas that reassignments removed and that this broker has not stopped yet.

    Until then it may write an ISR as the leader (finding 35).
    """

    def replicas(self, tp: TopicPartition) -> tuple[BrokerId, ...]:
        """The brokers to which a partition is assigned."""
        return self.topics[tp.topic][tp.partition]

    def is_live(self, broker: BrokerId, tp: TopicPartition) -> bool:
        """Whether a broker is registered, and its replica of the partition is not offline."""
        return broker in self.brokers and tp not in self.offline.get(broker, ())

    def live_replicas(self, tp: TopicPartition) -> list[BrokerId]:
        """The replicas of a partition that are alive."""
        return [number for number in self.replicas(tp) if self.is_live(number, tp)]

    def live_for(self, tp: TopicPartition) -> dict[BrokerId, None]:
        """The brokers that are alive for this partition: the others have no live replica of it."""
        return {number: None for number in self.brokers if self.is_live(number, tp)}

    def candidates_for(self, tp: TopicPartition) -> dict[BrokerId, None]:
        """The brokers that can lead this partition: alive for it, and not shutting down."""
        return {number: None for number in self.live_for(tp) if number not in self.leaving}

    def is_registration(self, broker: BrokerId, epoch: Epoch) -> bool:
        """Whether this is the broker epoch of the broker's current registration."""
        return broker in self.brokers and self.brokers[broker].epoch == epoch

    def set_offline(self, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
        """Replace the partitions whose replica on this broker is offline."""
        self.offline.pop(broker, None)
        offline = dict.fromkeys(partitions)
        if offline:
            self.offline[broker] = offline

    def returned(self, state: Leadership) -> list[BrokerId]:
        """The members of an ISR that have registered again since that ISR was written."""
        brokers = self.brokers
        return [n for n in state.isr if n in brokers and brokers[n].epoch > state.zxid]

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """The partitions of one topic."""
        return [TopicPartition(topic, number) for number in self.topics[topic]]

    def partitions(self) -> Iterator[TopicPartition]:
        """The partitions of all topics that are not being deleted."""
        for topic in self.topics:
            if topic not in self.deleting:
                yield from self.partitions_of(topic)

    def partitions_on(self, broker: BrokerId) -> list[TopicPartition]:
        """The partitions with a replica on this broker, except of topics that are being deleted."""
        return [tp for tp in self.partitions() if broker in self.replicas(tp)]

    def is_led(self, topic: str) -> bool:
        """Whether each partition of the topic has a live leader."""
        return all(
            tp in self.leadership and self.is_live(self.leadership[tp].leader, tp)
            for tp in self.partitions_of(topic)
        )

    def broker_gone(self, broker: BrokerId) -> None:
        """Record that a broker is not registered any more, or registered again.

        Deletions wait for its return. They do not wait for replicas that were removed before: the
        session with which the broker could write their ISRs is over.
        """
        self.leaving.pop(broker, None)
        for tp in self.removed.pop(broker, ()):
            if tp.topic in self.deleting:
                self.deleting[tp.topic].forget((tp.partition, broker))
        for deletion in self.deleting.values():
            deletion.broker_gone(broker)

    def forget_topic(self, topic: str) -> None:
        """Remove a deleted topic."""
        for broker, removed in self.removed.items():
            self.removed[broker] = {tp: None for tp in removed if tp.topic != topic}
        for tp in self.partitions_of(topic):
            self.leadership.pop(tp, None)
            self.moves.pop(tp, None)
            self.forget_replicas(tp, self.replicas(tp))
        del self.topics[topic]
        self.topic_ids.pop(topic, None)
        self.deleting.pop(topic, None)

    def forget_replicas(self, tp: TopicPartition, brokers: Iterable[BrokerId]) -> None:
        """Forget which of these replicas, which the partition no longer has, are offline."""
        for broker in brokers:
            self.set_offline(broker, (each for each in self.offline.get(broker, ()) if each != tp))

    def topic_of(self, topic_id: UUID) -> str | None:
        """Return the name of the topic with this id; None if there is none."""
        return next((name for name, known in self.topic_ids.items() if known == topic_id), None)

    def check(self) -> None:
        """Assert the invariants of the view."""
        assert self.topic_ids.keys() == self.topics.keys(), "every topic has an id, and no other"
        assert self.leaving.keys() <= self.brokers.keys(), "only a registered broker can shut down"
        assert self.deleting.keys() <= self.topics.keys(), "only an existing topic can be deleted"
        for broker, partitions in self.offline.items():
            assert broker in self.brokers, "only a registered broker has offline replicas"
            for tp in partitions:
                assert broker in self.topics.get(tp.topic, {}).get(tp.partition, ()), (
                    f"{tp} is offline on broker {broker}, which has no replica of it"
                )
        for broker, partitions in self.removed.items():
            assert broker in self.brokers, "only a registered broker has to stop a replica"
            for tp in partitions:
                assert broker not in self.topics.get(tp.topic, {}).get(tp.partition, ()), (
                    f"{tp} is assigned to broker {broker}, and removed from it"
                )
        for tp in self.moves:
            assert tp.partition in self.topics.get(tp.topic, {}), (
                f"{tp} is being reassigned, but does not exist"
            )
        for tp, state in self.leadership.items():
            assert tp.partition in self.topics.get(tp.topic, {}), (
                f"{tp} has a leader and ISR, but no assigned replicas"
            )
            assert state.isr, f"{tp}: the ISR is empty (KAFKA-5083)"
            assert state.leader == NO_LEADER or state.leader in state.isr, (
                f"{tp}: the leader is not in the ISR"
            )
            assert state.controller_epoch <= self.controller_epoch, (
                f"{tp} was written by a later controller"
            )
