"""The state of a whole cluster at one moment, as values: what white-box checks judge.

A snapshot is a consistent cut: all brokers and ZooKeeper between two events, at one virtual time.
Values are shared between snapshots: what is the same object as before has not changed.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

Role = Literal["leader", "follower", "fenced", "stopped", "untold", "offline"]
"""``fenced``: led, and knows that it is over. ``untold``: a log that was loaded, and no order of a
controller yet. ``offline``: its disk failed, and what it holds is not known."""

NOBODY = -1


class Batch(NamedTuple):
    """A record batch, as its header tells."""

    base: int
    """Its first offset."""
    next: int
    """The offset after its last record."""
    epoch: int
    """Of the leader that appended it."""
    crc: int
    """Of its content; two batches with the same CRC-32C are taken to be the same."""
    producer: int = -1
    producer_epoch: int = -1
    sequence: int = -1
    """Of its first record; -1: the producer is not idempotent."""

    @property
    def identity(self) -> tuple[int, int, int, int]:
        """What must be the same on all replicas."""
        return self[:4]


class EpochStart(NamedTuple):
    """An entry of a leader epoch cache: the epoch's first record has this offset."""

    epoch: int
    start: int


class RememberedBatch(NamedTuple):
    """What is remembered of an idempotent producer's batch."""

    last_sequence: int
    last_offset: int
    records: int


class Producer(NamedTuple):
    """What a log remembers of an idempotent producer: at most five batches, oldest first."""

    epoch: int
    batches: tuple[RememberedBatch, ...]


class Batches(msgspec.Struct, frozen=True):
    """The first ``count`` of ``all``, which only grows: a value that shares what it can."""

    all: Sequence[Batch]
    count: int

    @classmethod
    def of(cls, *batches: Batch) -> "Batches":
        """These."""
        return cls(batches, len(batches))


class Compaction(NamedTuple):
    """What was compacted of one log."""

    passes: int = 0
    """How often segments were replaced in this life of the broker."""
    is_wanted: bool = False
    """Does the ``cleanup.policy`` that the broker knows of its topic ask for it?"""


class ReplicaState(msgspec.Struct, frozen=True, kw_only=True):
    """One replica of one partition. Offsets of ends are exclusive."""

    role: Role
    leader_epoch: int = -1
    """-1: the broker was not told yet."""
    log_start: int = 0
    high_watermark: int = 0
    log_end: int
    batches: Batches
    """All that the log holds, and perhaps some that retention has deleted in front of it."""
    epochs: tuple[EpochStart, ...] = ()
    log_number: int = 0
    """Of the logs that this partition has had on this broker in this life of it: a replica that was
    deleted and is back has another."""
    cuts: tuple[int, ...] = ()
    """Where records were cut off of this log in this life of the broker, oldest first: what is
    fetched again at once would otherwise go unnoticed."""
    isr: tuple[int, ...] = ()
    """As a leader knows it to be in ZooKeeper; empty for others."""
    maximal_isr: tuple[int, ...] = ()
    """With whoever a write under way would add (KIP-497)."""
    state_version: int = -1
    """Of the state znode that ``isr`` is from."""
    exposed: int = 0
    """The end that clients were told in this epoch (ListOffsets); 0: none."""
    producers: Mapping[int, Producer] | None = None
    """By producer id; None when they were not looked at."""


class BrokerState(msgspec.Struct, frozen=True, kw_only=True):
    """One broker that runs and has loaded its logs; it may be paused."""

    life: int
    """Counts the starts of this broker."""
    controller_epoch: int = -1
    """The highest it was ordered by."""
    term: int | None = None
    """The controller epoch in which it is the controller."""
    told: Mapping[str, int] = msgspec.field(default_factory=dict)
    """By key: of which epoch the leader is that clients are told (Metadata)."""
    replicas: Mapping[str, ReplicaState]
    """By key (``topic-partition``)."""
    compactions: Mapping[str, Compaction] = {}
    """By key; none of a log of which nothing was replaced, nor is to be."""


class PartitionState(msgspec.Struct, frozen=True, kw_only=True):
    """A partition as ZooKeeper has it."""

    leader: int
    """-1: nobody; -2: it is being deleted."""
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    controller_epoch: int
    version: int
    """Of the state znode: its number of changes."""
    birth: int
    """Tells a topic from an earlier one of the same name."""


class ZooKeeperState(msgspec.Struct, frozen=True, kw_only=True):
    """What ZooKeeper holds, whether it can be reached or not."""

    partitions: Mapping[str, PartitionState]
    controller: int = NOBODY
    controller_epoch: int = 0


class ClusterState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything at one moment."""

    time_ns: int
    """Since the run began, as in the history."""
    brokers: Mapping[int, BrokerState]
    """Those that run and have loaded their logs."""
    zookeeper: ZooKeeperState | None
    """None before there was any."""
    damages: Mapping[int, int] = {}
    """Of brokers, running or not: how many times the disk has lost or changed what was on it."""
    calm_since_ns: int | None = None
    """Since when no fault has been active; None while one is, or when nobody promises calm."""
