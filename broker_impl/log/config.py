"""What a topic's settings say to its log."""

from dataclasses import dataclass

from broker_impl.wire import batch

_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Settings of one log; the defaults are Kafka's. Times are milliseconds, sizes bytes."""

    segment_bytes: int = 1 << 30
    """A segment is closed before a batch would make it larger than this (`segment.bytes`)."""
    segment_ms: int = 7 * 24 * 3_600_000
    """… or when a batch is this much younger than the segment's first (`segment.ms`)."""
    index_interval_bytes: int = 4096
    """An index entry is made once more than this was appended since the last one."""
    index_bytes_max: int = 10 << 20
    """A segment is closed when one of its indexes has reached this size."""
    retention_ms: int = 7 * 24 * 3_600_000
    """Segments whose newest record is older are deleted; -1 never (`retention.ms`)."""
    retention_bytes: int = -1
    """The oldest segments are deleted while the others alone reach this; -1 never."""
    message_bytes_max: int = 1_048_588
    """The largest batch that a producer may append (`max.message.bytes`)."""
    flush_messages: int = _INT64_MAX
    """An append is synced once this many records are not (`flush.messages`)."""
    flush_ms: int = _INT64_MAX
    """… or once the oldest of them has waited this long (`flush.ms`)."""
    timestamp_type: int = batch.CREATE_TIME
    """Whose time counts: the producer's, or (`LOG_APPEND_TIME`) this broker's."""
    timestamp_difference_ms_max: int = _INT64_MAX
    """How far a producer's time may be from this broker's."""
    cleanup_policy: tuple[str, ...] = ("delete",)
    """`delete`: old segments go. `compact`: the last record of each key stays."""
    min_cleanable_dirty_ratio: float = 0.5
    """A log is compacted when so much of it is new since the last time."""
    delete_retention_ms: int = 86_400_000
    """How long a tombstone, or a marker, stays once it is all that is left (KIP-534)."""
    min_compaction_lag_ms: int = 0
    """Records younger than this are not compacted yet."""
    max_compaction_lag_ms: int = _INT64_MAX
    """A log that holds older ones is compacted, however little of it is new."""
    delete_delay_ms: int = 60_000
    """Between the renaming of a deleted file and its removal (`file.delete.delay.ms`)."""
    producer_expiration_ms: int = 86_400_000
    """An idempotent producer that was silent for this long is forgotten."""
    verify_transactions: bool = True
    """Must a batch that begins a transaction have been verified with the coordinator? (KIP-890)"""

    @property
    def is_compacted(self) -> bool:
        """Is its log compacted?"""
        return "compact" in self.cleanup_policy
