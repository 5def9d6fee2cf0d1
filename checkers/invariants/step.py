"""From one snapshot to the next: what has changed, found once for all folds."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol

from model.snapshot import BrokerState, ClusterState, PartitionState, ReplicaState
from model.violation import Violation


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that decide which invariants hold."""

    unclean_elections: bool = False
    """``unclean.leader.election.enable``: committed records may be lost then (rule R15)."""
    isr_min: int | None = None
    """``min.insync.replicas``, if brokers hold the watermark below it (KIP-966, which is later than
    the 2.8 line); None: they do not."""
    isr_min_of: Mapping[str, int] = field(default_factory=dict)
    """That of topics which have one of their own."""
    producer_expiration_s: float = 86_400.0
    """``producer.id.expiration.ms``."""
    recovery_s: float | None = None
    """How long after the last heal the cluster may take to be whole; None: nobody promised."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A replica that is not the same as in the last snapshot."""

    broker: int
    life: int
    key: str
    now: ReplicaState
    before: ReplicaState | None
    """In the last snapshot, if the broker has not been started since."""


@dataclass(frozen=True, slots=True)
class Step:
    """One snapshot, and what is new in it; partitions of deleted topics are left out."""

    now: ClusterState
    changed: list[Changed]
    touched: dict[str, None]
    """Keys of partitions of which anything is new, in the order in which it was found."""
    before: ClusterState | None
    deleted: AbstractSet[str]
    """Keys of partitions whose topics were ever deleted."""

    def replicas(self, key: str) -> Iterator[tuple[int, ReplicaState]]:
        """Those of one partition on the brokers that run, but for failed disks."""
        for number, broker in self.now.brokers.items():
            replica = broker.replicas.get(key)
            if replica is not None and replica.role != "offline":
                yield number, replica

    def partition(self, key: str) -> PartitionState | None:
        """What ZooKeeper says of a partition."""
        zookeeper = self.now.zookeeper
        return None if zookeeper is None else zookeeper.partitions.get(key)

    def partition_before(self, key: str) -> PartitionState | None:
        """What ZooKeeper said of it in the last snapshot."""
        zookeeper = None if self.before is None else self.before.zookeeper
        return None if zookeeper is None else zookeeper.partitions.get(key)

    def damaged(self) -> list[int]:
        """The brokers whose disks have lost something since the last snapshot."""
        known = {} if self.before is None else self.before.damages
        return [number for number, n in self.now.damages.items() if n > known.get(number, 0)]

    def violation(
        self,
        invariant: str,
        why: str,
        *,
        key: str | None = None,
        offset: int | None = None,
        brokers: tuple[int, ...] = (),
        epochs: tuple[int, ...] = (),
    ) -> Violation:
        """One at the time of this snapshot."""
        return Violation(
            invariant=invariant,
            time_ns=self.now.time_ns,
            key=key,
            offset=offset,
            brokers=brokers,
            epochs=epochs,
            why=why,
        )


class Fold(Protocol):
    """One or a few invariants that look at the same things."""

    def step(self, step: Step) -> Iterator[Violation]:
        """Take the next snapshot in."""
        ...


class Stepper:
    """Makes steps of snapshots."""

    def __init__(self) -> None:
        self._before: ClusterState | None = None
        self._births: dict[str, int] = {}
        self._deleted: set[str] = set()

    def step(self, now: ClusterState) -> Step:
        """The next one. A topic that was ever deleted is out of sight for good: brokers that were
        away may still hold an earlier topic of its name."""
        before = self._before
        touched: dict[str, None] = {}
        self._see_partitions(now, touched)
        changed: list[Changed] = []
        for number, broker in now.brokers.items():
            was = None if before is None else before.brokers.get(number)
            if was is not broker:
                self._see_broker(number, broker, was, changed)
        for change in changed:
            touched[change.key] = None
        self._before = now
        return Step(now, changed, touched, before, self._deleted)

    def _see_partitions(self, now: ClusterState, touched: dict[str, None]) -> None:
        before = None if self._before is None else self._before.zookeeper
        if now.zookeeper is None or now.zookeeper is before:
            return
        known = {} if before is None else before.partitions
        for key, state in now.zookeeper.partitions.items():
            if state is known.get(key):
                continue
            if self._births.setdefault(key, state.birth) != state.birth or state.leader == -2:
                self._deleted.add(key)
            if key not in self._deleted:
                touched[key] = None
        self._deleted.update(key for key in known if key not in now.zookeeper.partitions)

    def _see_broker(
        self, number: int, broker: BrokerState, was: BrokerState | None, changed: list[Changed]
    ) -> None:
        known = was.replicas if was is not None and was.life == broker.life else {}
        for key, replica in broker.replicas.items():
            last = known.get(key)
            if replica is not last and replica.role != "offline" and key not in self._deleted:
                changed.append(Changed(number, broker.life, key, replica, last))
