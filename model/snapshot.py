"""The state of a whole cluster at one moment, as values that the invariant checks read.

A snapshot is a consistent cut: all brokers and ZooKeeper between two events, at one virtual time.
Snapshots share values: an object that is identical to that of an earlier snapshot has not changed.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from model.ensemble_snapshot import EnsembleState

Role = Literal["leader", "follower", "fenced", "stopped", "untold", "offline"]
"""The role of a replica on its broker.

``fenced``: it was the leader, and knows that its epoch is over. ``untold``: its log was loaded, and
no LeaderAndIsr request has named it yet. ``offline``: its disk failed, so its content is unknown.
"""

NOBODY = -1


class Batch(NamedTuple):
    """A record batch, as described by its header."""

    base: int
    """The first offset."""
    next: int
    """The offset after its last record."""
    epoch: int
    """The epoch of the leader that appended the batch."""
    crc: int
    """The CRC-32C of the content; two batches with the same CRC are taken to be the same."""
    producer: int = -1
    producer_epoch: int = -1
    sequence: int = -1
    """The sequence number of the first record; -1 if the producer is not idempotent."""
    is_transactional: bool = False
    is_control: bool = False
    """Whether it is a marker, which ends its producer's transaction."""
    newest_ms: int = -1
    """The largest timestamp of its records; -1 if they have none."""
    horizon_ms: int = -1
    """When its tombstones or its marker may be removed from a compacted log; -1: no pass has set
    that."""

    @property
    def identity(self) -> tuple[int, int, int, int]:
        """The fields that must be the same on all replicas."""
        return self[:4]


class EpochStart(NamedTuple):
    """An entry of a leader epoch cache: the offset of the first record of an epoch."""

    epoch: int
    start: int


class RememberedBatch(NamedTuple):
    """A batch of an idempotent producer in the producer state of a log."""

    last_sequence: int
    last_offset: int
    records: int


class Producer(NamedTuple):
    """An idempotent producer's state in a log: its epoch and up to five batches, oldest first."""

    epoch: int
    batches: tuple[RememberedBatch, ...]
    open_since: int | None = None
    """The first offset of its open transaction."""


class Batches(msgspec.Struct, frozen=True):
    """The first ``count`` batches of ``all``, a list that only grows and that snapshots share."""

    all: Sequence[Batch]
    count: int

    @classmethod
    def of(cls, *batches: Batch) -> "Batches":
        """Create a value with exactly these batches."""
        return cls(batches, len(batches))


class Compaction(NamedTuple):
    """The compaction state of one log."""

    passes: int = 0
    """How often segments were replaced since the broker's last start."""
    is_wanted: bool = False
    """True if the topic's ``cleanup.policy``, as the broker knows it, includes compaction."""
    lag_ms: int = 0
    """The topic's ``min.compaction.lag.ms``, as the broker knows it."""
    age_ms: int = 0
    """How old the newest record was that the last of these passes has read."""


class DeletedSegment(NamedTuple):
    """A segment that retention has deleted, and what its log was like then."""

    number: int
    """Counts the segments of the log that were deleted since the broker's last start."""
    base: int
    next: int
    start: int
    """The log start before."""
    bytes_left: int
    """The size of the segments that remained."""
    at_ms: int
    """When it was deleted, by the clock of the broker."""
    retention_bytes: int = -1
    """The topic's setting, as the broker knew it; -1: segments are not deleted by size."""
    retention_ms: int = -1
    """The topic's setting, as the broker knew it; -1: segments are not deleted by time."""


class KeptSegment(NamedTuple):
    """The first segment of a log, and the log, after retention has looked at it."""

    base: int
    next: int
    bytes: int
    is_active: bool
    """Whether it is the only segment."""
    start: int
    """The log start."""
    log_bytes: int
    high_watermark: int
    at_ms: int
    """When retention looked at it, by the clock of the broker."""
    retention_bytes: int = -1
    """The topic's setting, as the broker knew it; -1: segments are not deleted by size."""
    retention_ms: int = -1
    """The topic's setting, as the broker knew it; -1: segments are not deleted by time."""
    cuts: int = 0
    """How often the log had been truncated."""


class KeyedRecord(NamedTuple):
    """A record of a compacted log, or the marker that ends a transaction there."""

    offset: int
    key: bytes
    """Empty for a marker."""
    value_crc: int | None
    """The CRC-32 of the value; None: the record is a tombstone."""
    producer: int = -1
    """The producer id of a transaction's record or marker; -1: it is in no transaction."""
    commits: bool | None = None
    """Whether a marker commits its transaction; None: it is no marker."""
    timestamp_ms: int = -1
    """-1 for a marker."""
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Unmarked(NamedTuple):
    """A transaction that is committed or aborted, and has partitions without a marker."""

    producer: int
    producer_epoch: int
    partitions: tuple[str, ...]


class ReplicaState(msgspec.Struct, frozen=True, kw_only=True):
    """One replica of one partition. End offsets are exclusive."""

    role: Role
    leader_epoch: int = -1
    """The leader epoch; -1 if no LeaderAndIsr request has named the replica yet."""
    log_start: int = 0
    high_watermark: int = 0
    log_end: int
    batches: Batches
    """All batches in the log, and possibly earlier ones that retention has deleted."""
    epochs: tuple[EpochStart, ...] = ()
    log_number: int = 0
    """Counts the logs of this partition on this broker since its last start.

    It changes when a replica is deleted and created again.
    """
    cuts: tuple[int, ...] = ()
    """The offsets at which the log was truncated since the broker's last start, oldest first.
    Without them, a truncation that is followed at once by a fetch would go unnoticed."""
    deleted: tuple[DeletedSegment, ...] = ()
    """The segments that retention has deleted last, oldest first."""
    kept: KeptSegment | None = None
    """What retention has left when it ran last, if it could have deleted something."""
    records: Sequence[KeyedRecord] | None = None
    """The records of a compacted log with their keys, in a list that only grows; None for other
    logs, and for a follower unless it has just loaded or compacted it."""
    compacted_to: int = 0
    """Below it, compaction has removed the records that others below it replace."""
    isr: tuple[int, ...] = ()
    """The ISR in ZooKeeper as the leader knows it; empty for other replicas."""
    maximal_isr: tuple[int, ...] = ()
    """The ISR and the replicas that the leader's pending ISR change would add (KIP-497)."""
    state_version: int = -1
    """The version of the partition state znode from which ``isr`` was taken."""
    exposed: int = 0
    """The highest end offset that clients received from this leader in its epoch; 0 for none.

    The offset was part of a ListOffsets response.
    """
    in_sync_at: float = -math.inf
    """When a leader last found that no member of the ISR lags, in seconds of its broker's clock."""
    producers: Mapping[int, Producer] | None = None
    """The producer state by producer id; ``None`` if the snapshot does not include it."""


class Shown(NamedTuple):
    """A partition as a broker returns it to clients."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    topic_id: str = ""
    """Empty if the topic has none."""


class KeptSettings(NamedTuple):
    """The settings of a topic as a broker that hosts it knows them."""

    overrides: Mapping[str, str]
    """Those that differ from the broker's own, by name."""
    is_applied: bool
    """Whether its logs of the topic have them."""
    topic_id: str = ""
    """The topic's id, as in all of these logs; empty if one of them has none, or another one."""


class BrokerState(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that runs and has loaded its logs; it may be paused."""

    life: int
    """The number of starts of this broker."""
    controller_epoch: int = -1
    """The highest controller epoch of the requests that it has received."""
    term: int | None = None
    """The controller epoch in which this broker is the controller; ``None`` if it is not."""
    shown: Mapping[str, Shown] = {}
    """The partitions that the broker returns to clients in Metadata responses."""
    settings: Mapping[str, KeptSettings] = {}
    """The settings of the topics that it hosts; empty in most snapshots while faults are active."""
    lacks_directory: bool = False
    """Whether a data directory has failed (KIP-112): a replica that is missing may be in it."""
    unmarked: Mapping[str, Unmarked] = {}
    """The transactions that it coordinates and that wait for markers, by transactional id."""
    replicas: Mapping[str, ReplicaState]
    """The replicas by partition (``topic-partition``)."""
    compactions: Mapping[str, Compaction] = {}
    """Compaction states by partition, for logs that were compacted or should be compacted."""


class PartitionState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a partition in ZooKeeper."""

    leader: int
    """-1: no leader; -2: the partition is being deleted."""
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    controller_epoch: int
    version: int
    """The version of the state znode: how often it was changed."""
    birth: int
    """Distinguishes a topic from an earlier one with the same name."""
    topic_id: str = ""
    """Empty if the topic has none (KIP-516)."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    """The replicas that a reassignment adds and removes; none if none is in progress (KIP-455)."""


class ZooKeeperState(msgspec.Struct, frozen=True, kw_only=True):
    """The data in ZooKeeper, whether or not it can be reached."""

    partitions: Mapping[str, PartitionState]
    settings: Mapping[str, Mapping[str, str]] = {}
    """The settings of the topics that have any, by topic."""
    deleting: Mapping[str, int] = {}
    """The topics that are being deleted, each with the zxid of the order."""
    controller: int = NOBODY
    controller_epoch: int = 0


class ClusterState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of all brokers and ZooKeeper at one moment."""

    time_ns: int
    """Nanoseconds since the run began, as in the history."""
    brokers: Mapping[int, BrokerState]
    """The brokers that run and have loaded their logs."""
    zookeeper: ZooKeeperState | None
    """``None`` before ZooKeeper first started. With an ensemble it is what is committed."""
    ensemble: EnsembleState | None = None
    """The servers of the ensemble; ``None`` if ZooKeeper is one server."""
    compacted: Mapping[str, None] = {}
    """The partitions of which a broker has ever replaced segments: each replica is compacted at its
    own time, so their batches differ."""
    damages: Mapping[int, int] = {}
    """By broker, running or not: how often its disk has lost or changed stored data."""
    calm_since_ns: int | None = None
    """The time since which no fault has been active.

    ``None`` while a fault is active, and once a disk was damaged in a way that the cluster need not
    recover from.
    """
