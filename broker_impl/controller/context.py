"""What the controller knows of the cluster: plain values, read from ZooKeeper or decided here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from broker_impl.config import Endpoint
from broker_impl.controller.deletion import TopicDeletion
from broker_impl.controller.election import NO_LEADER, Choice
from broker_impl.controller.reassignment import Move
from broker_impl.wire.types import BrokerId, Epoch, TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A broker that is registered."""

    id: BrokerId
    epoch: Epoch
    """The czxid of its registration: another one is another life of the broker (KIP-380)."""
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Leadership:
    """A partition's state as it stands in ZooKeeper."""

    leader: BrokerId
    leader_epoch: Epoch
    isr: tuple[BrokerId, ...]
    controller_epoch: Epoch
    """Of the controller that chose this leader."""
    zk_version: int = 0
    """Of the znode: what a conditional write must name."""
    zxid: int = field(default=0, compare=False)
    """The mzxid of the znode: of the transaction that wrote it."""

    def followed_by(self, choice: Choice, controller_epoch: Epoch) -> "Leadership":
        """What to write for a choice: each change by a controller begins a new epoch (E1)."""
        return replace(
            self,
            leader=choice.leader,
            leader_epoch=self.leader_epoch + 1,
            isr=choice.isr,
            controller_epoch=controller_epoch,
        )


def to_choose_from(known: Leadership, found: Leadership) -> Leadership:
    """The state from which a choice is made again whose write has met another state than was known.

    What was found: an ISR that its leader has changed since must not be written back (KAFKA-5879).
    """
    return found


@dataclass(slots=True)
class Context:
    """All of it, for one term of one controller."""

    controller_epoch: Epoch
    brokers: dict[BrokerId, BrokerInfo] = field(default_factory=dict)
    """Those that are registered, with those that are about to leave."""
    leaving: dict[BrokerId, None] = field(default_factory=dict)
    """Those that have asked for a controlled shutdown."""
    topics: dict[str, Mapping[int, tuple[BrokerId, ...]]] = field(default_factory=dict)
    """Partition to its replicas; the first of them is the preferred leader."""
    leadership: dict[TopicPartition, Leadership] = field(default_factory=dict)
    """Of those partitions that have ever had a leader."""
    moves: dict[TopicPartition, Move] = field(default_factory=dict)
    """Of those partitions that move to other replicas."""
    deleting: dict[str, TopicDeletion] = field(default_factory=dict)

    def replicas(self, tp: TopicPartition) -> tuple[BrokerId, ...]:
        """The brokers that a partition is assigned to."""
        return self.topics[tp.topic][tp.partition]

    def live_replicas(self, tp: TopicPartition) -> list[BrokerId]:
        """Those of them that are registered."""
        return [number for number in self.replicas(tp) if number in self.brokers]

    def live(self) -> dict[BrokerId, None]:
        """The brokers that are registered."""
        return dict.fromkeys(self.brokers)

    def candidates(self) -> dict[BrokerId, None]:
        """The brokers that may come to lead: registered, and not about to leave."""
        return {number: None for number in self.brokers if number not in self.leaving}

    def returned(self, state: Leadership) -> list[BrokerId]:
        """Those of an ISR that are in another life than the one it speaks of: registered since."""
        brokers = self.brokers
        return [n for n in state.isr if n in brokers and brokers[n].epoch > state.zxid]

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """The partitions of one topic."""
        return [TopicPartition(topic, number) for number in self.topics[topic]]

    def partitions(self) -> Iterator[TopicPartition]:
        """The partitions of all topics that are there to stay."""
        for topic in self.topics:
            if topic not in self.deleting:
                yield from self.partitions_of(topic)

    def partitions_on(self, broker: BrokerId) -> list[TopicPartition]:
        """Those of them that have a replica on this broker."""
        return [tp for tp in self.partitions() if broker in self.replicas(tp)]

    def is_led(self, topic: str) -> bool:
        """Whether each partition of the topic has a leader that is alive."""
        return all(
            tp in self.leadership and self.leadership[tp].leader in self.brokers
            for tp in self.partitions_of(topic)
        )

    def forget_topic(self, topic: str) -> None:
        """The topic is no more."""
        for tp in self.partitions_of(topic):
            self.leadership.pop(tp, None)
            self.moves.pop(tp, None)
        del self.topics[topic]
        self.deleting.pop(topic, None)

    def check(self) -> None:
        """What is always true."""
        assert self.leaving.keys() <= self.brokers.keys(), "only a registered broker can leave"
        assert self.deleting.keys() <= self.topics.keys(), "only what is there is deleted"
        for tp in self.moves:
            assert tp.partition in self.topics.get(tp.topic, {}), f"{tp} moves, and is not there"
        for tp, state in self.leadership.items():
            assert tp.partition in self.topics.get(tp.topic, {}), f"{tp} has a state, no replicas"
            assert state.isr, f"{tp}: an ISR is never empty (KAFKA-5083)"
            assert state.leader == NO_LEADER or state.leader in state.isr, f"{tp}: leader in ISR"
            assert state.controller_epoch <= self.controller_epoch, f"{tp} is of a later controller"
