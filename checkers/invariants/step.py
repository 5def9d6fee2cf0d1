"""Finds what has changed from one snapshot to the next, once for all folds."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol

from checkers.invariants.table import VIOLATIONS
from model.snapshot import BrokerState, ClusterState, PartitionState, ReplicaState
from model.violation import Violation


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that decide which invariants hold."""

    unclean_elections: bool = False
    """``unclean.leader.election.enable``: with it, committed records may be lost (rule R15)."""
    isr_min: int | None = None
    """``min.insync.replicas``, if brokers hold the watermark while the ISR is smaller (KIP-966,
    which is later than the 2.8 line); None if they do not."""
    isr_min_of: Mapping[str, int] = field(default_factory=dict)
    """``min.insync.replicas`` of the topics that set it themselves."""
    producer_expiration_s: float = 7 * 86_400.0
    """``producer.id.expiration.ms``."""
    recovery_s: float | None = None
    """How long after the last heal the cluster may take to become whole; None if nothing is
    promised."""
    lag_max_s: float = 30.0
    """``replica.lag.time.max.ms``."""
    steady_clocks: bool = True
    """Whether the wall clocks of all brokers are right, because no fault changes them."""

    @property
    def forgets_producers(self) -> bool:
        """Whether brokers may forget a silent producer in the course of a run.

        A run has no day, but ``producer.id.expiration.ms`` counts from the newest timestamp of a
        producer, which may be hours old.
        """
        return self.producer_expiration_s < 86_400.0


@dataclass(frozen=True, slots=True)
class Changed:
    """A replica that has changed since the last snapshot."""

    broker: int
    life: int
    key: str
    now: ReplicaState
    before: ReplicaState | None
    """Its state in the last snapshot; None if it had none, or if the broker has started since."""


@dataclass(frozen=True, slots=True)
class Step:
    """One snapshot, and what is new in it; partitions of deleted topics are left out."""

    now: ClusterState
    changed: list[Changed]
    touched: dict[str, None]
    """Partitions of which anything is new, in the order in which it was found."""
    before: ClusterState | None
    deleted: AbstractSet[str]
    """Topics that were ever deleted."""
    is_last: bool = False
    """Whether the run is over with this snapshot."""

    def is_deleted(self, key: str) -> bool:
        """Return whether the topic of a partition was ever deleted."""
        return _topic(key) in self.deleted

    def replicas(self, key: str) -> Iterator[tuple[int, ReplicaState]]:
        """Yield the replicas of a partition on the brokers that run, except those on failed
        disks."""
        for number, broker in self.now.brokers.items():
            replica = broker.replicas.get(key)
            if replica is not None and replica.role != "offline":
                yield number, replica

    def partition(self, key: str) -> PartitionState | None:
        """Return a partition's state in ZooKeeper."""
        zookeeper = self.now.zookeeper
        return None if zookeeper is None else zookeeper.partitions.get(key)

    def partition_before(self, key: str) -> PartitionState | None:
        """Return a partition's state in ZooKeeper at the last snapshot."""
        zookeeper = None if self.before is None else self.before.zookeeper
        return None if zookeeper is None else zookeeper.partitions.get(key)

    def is_compacted(self, key: str) -> bool:
        """Return whether the batches of a partition's replicas differ because of compaction."""
        return key in self.now.compacted

    def damaged(self) -> list[int]:
        """Return the brokers whose disks have lost something since the last snapshot."""
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
        """Return a violation at the time of this snapshot. Raises :class:`ValueError` for a name
        that the table of invariants does not have."""
        if invariant not in VIOLATIONS:
            raise ValueError(f"{invariant!r} is not an invariant of checkers.invariants.table")
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
    """One invariant, or a few that read the same state."""

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        ...


class Stepper:
    """Turns snapshots into steps."""

    def __init__(self) -> None:
        self._before: ClusterState | None = None
        self._births: dict[str, int] = {}
        self._deleted: set[str] = set()

    def step(self, now: ClusterState, *, is_last: bool = False) -> Step:
        """Return the next step. A topic that was ever deleted is left out from then on: brokers
        that were away may still hold an earlier topic of its name. All of its partitions are: one
        that was added shortly before the deletion may be in no snapshot of ZooKeeper."""
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
        return Step(now, changed, touched, before, self._deleted, is_last)

    def _see_partitions(self, now: ClusterState, touched: dict[str, None]) -> None:
        before = None if self._before is None else self._before.zookeeper
        if now.zookeeper is None or now.zookeeper is before:
            return
        known = {} if before is None else before.partitions
        for key, state in now.zookeeper.partitions.items():
            if state is known.get(key):
                continue
            touched[key] = None
            if self._births.setdefault(key, state.birth) != state.birth or state.leader == -2:
                self._deleted.add(_topic(key))
        gone = (key for key in known if key not in now.zookeeper.partitions)
        self._deleted.update(_topic(key) for key in gone)
        for key in [key for key in touched if _topic(key) in self._deleted]:
            del touched[key]

    def _see_broker(
        self, number: int, broker: BrokerState, was: BrokerState | None, changed: list[Changed]
    ) -> None:
        known = was.replicas if was is not None and was.life == broker.life else {}
        for key, replica in broker.replicas.items():
            last = known.get(key)
            if replica is last or replica.role == "offline":
                continue
            if _topic(key) not in self._deleted:
                changed.append(Changed(number, broker.life, key, replica, last))


def _topic(key: str) -> str:
    return key.rpartition("-")[0]
