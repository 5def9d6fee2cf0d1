"""The settings of a topic that its logs use."""

from dataclasses import dataclass
from zlib import crc32

from broker_impl.wire import batch

INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Settings of one log; the defaults are Kafka's. Times are milliseconds, sizes bytes."""

    segment_bytes: int = 1 << 30
    """A segment is closed before a batch would make it larger than this (`segment.bytes`)."""
    segment_ms: int = 7 * 24 * 3_600_000
    """A segment is closed when a batch is this much newer than the segment's first
    (`segment.ms`)."""
    segment_jitter_ms: int = 0
    """Each segment is closed by up to this much earlier (`segment.jitter.ms`)."""
    index_interval_bytes: int = 4096
    """An index entry is added once more than this was appended since the last
    (`index.interval.bytes`)."""
    index_bytes_max: int = 10 << 20
    """A segment is closed when one of its indexes has reached this size (`segment.index.bytes`)."""
    retention_ms: int = 7 * 24 * 3_600_000
    """Segments whose newest record is older than this are deleted; -1: never (`retention.ms`)."""
    retention_bytes: int = -1
    """The oldest segment is deleted while the log keeps at least this size without it; -1: never
    (`retention.bytes`)."""
    message_bytes_max: int = 1_048_588
    """The largest batch that a producer may append (`max.message.bytes`)."""
    flush_messages: int = INT64_MAX
    """The log is synced once this many records are not synced (`flush.messages`)."""
    flush_ms: int = INT64_MAX
    """The log is synced once its oldest record that is not synced has waited this long
    (`flush.ms`)."""
    timestamp_type: int = batch.CREATE_TIME
    """Whose timestamps are stored: the producer's, or with `LOG_APPEND_TIME` this broker's."""
    compression: int | None = None
    """The codec with which batches are stored; None: the producer's (`compression.type`)."""
    timestamp_difference_ms_max: int = INT64_MAX
    """How far a producer's timestamp may be from this broker's clock."""
    cleanup_policy: tuple[str, ...] = ("delete",)
    """`delete`: old segments are deleted. `compact`: only the last record of each record key is
    kept."""
    min_cleanable_dirty_ratio: float = 0.5
    """A log is compacted when more than this share of it is new since the last pass."""
    delete_retention_ms: int = 86_400_000
    """How long a tombstone stays after the pass that finds it to be its key's last record, and a
    marker after the pass that finds no record of its transaction left (KIP-534)."""
    min_compaction_lag_ms: int = 0
    """Records younger than this are not compacted yet."""
    max_compaction_lag_ms: int = INT64_MAX
    """A log that holds older new records than this is compacted, however small their share is."""
    delete_delay_ms: int = 60_000
    """The time between the renaming of a deleted file and its removal (`file.delete.delay.ms`)."""
    producer_expiration_ms: int = 7 * 86_400_000
    """The state of an idempotent producer is removed after this time without a batch."""
    verify_transactions: bool = True
    """Must a batch that begins a transaction have been verified with the coordinator? (KIP-890)"""

    def age_max_ms(self, segment: str) -> int:
        """The age at which a segment is closed; ``segment``: its path without the ending.

        In a compacted log that is after `max.compaction.lag.ms` at the latest, because only closed
        segments are compacted (KIP-354). The jitter is another one for each segment, so that logs
        that were created together are not rolled together. It is computed from the path, where
        Kafka draws it.
        """
        age_ms = self.segment_ms
        if self.is_compacted:
            age_ms = min(age_ms, self.max_compaction_lag_ms)
        if not self.segment_jitter_ms:
            return age_ms
        jitter_max = min(self.segment_jitter_ms, age_ms)
        return age_ms - crc32(segment.encode()) % jitter_max

    @property
    def deletes_old(self) -> bool:
        """Does the cleanup policy include `delete`?"""
        return "delete" in self.cleanup_policy

    @property
    def is_compacted(self) -> bool:
        """Does the cleanup policy include `compact`?"""
        return "compact" in self.cleanup_policy
