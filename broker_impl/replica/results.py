"""Results of a replica's queries: fetches, listed offsets, and snapshots of its state."""

import msgspec

from broker_impl.errors import ErrorCode
from broker_impl.log.aborted_index import AbortedTransaction
from broker_impl.wire.types import BrokerId, Epoch, Offset

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
"""Timestamps with a special meaning in ListOffsets."""


class FetchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one partition of a fetch."""

    error: ErrorCode = ErrorCode.NONE
    high_watermark: Offset = -1
    last_stable_offset: Offset = -1
    log_start_offset: Offset = -1
    records: list[memoryview] = msgspec.field(default_factory=list)
    cannot_grow: bool = False
    """The same read will not return more records, however long it waits (`log.reading`)."""
    cut_at: int = 0
    """The limit in bytes because of which the read left out batches; 0: it left out none."""
    aborted: list[AbortedTransaction] | None = None
    """The aborted transactions that a read_committed consumer filters out; None for other readers.
    """
    diverging: tuple[Epoch, Offset] | None = None
    """Where the reader's last epoch ends in the leader's log; the reader must truncate."""
    preferred_read_replica: BrokerId = -1
    """The replica to fetch from instead, if no records were read; -1: none."""
    news: bool = False
    """The answer carries a high watermark that this follower has not received: answer at once."""
    settled: bool = False
    """The same fetch gives the same answer until the leader reports a change of the partition."""


class ListedOffset(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one partition of ListOffsets; offset -1: no such offset."""

    error: ErrorCode = ErrorCode.NONE
    timestamp: int = -1
    offset: Offset = -1
    leader_epoch: Epoch = -1


class PartitionSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one replica as plain values, for invariants that span replicas."""

    topic: str
    partition: int
    broker: BrokerId
    role: str
    leader: BrokerId | None
    leader_epoch: Epoch
    epoch_start: Offset
    log_start: Offset
    high_watermark: Offset
    exposed: Offset
    """The highest end offset that this leader returned to clients in this epoch; 0: none.

    Last stable offsets do not count: the last stable offset of another leader may be lower than an
    end offset that clients received for this leader's log.
    """
    log_end: Offset
    isr: tuple[BrokerId, ...]
    maximal_isr: tuple[BrokerId, ...]
    zk_version: int
    controller_epoch: Epoch
    in_sync_at: float
    """When a leader last found that no member of the ISR lags, in seconds of the broker's clock."""
