"""Settings of the log: segments, retention, compaction, syncing and producer state."""

from dataclasses import dataclass

from broker_impl.config.setting import INT64_MAX, key
from broker_impl.kafka_settings import Kind


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """Settings of the log of each partition."""

    log_segment_bytes: int = key(
        "log.segment.bytes", 1024**3, "Maximum size of a segment.", low=14, topic="segment.bytes"
    )
    log_roll_ms: int = key(
        "log.roll.ms",
        7 * 24 * 3_600_000,
        "Maximum age of a segment.",
        low=1,
        topic="segment.ms",
        kind=Kind.LONG,
    )
    log_roll_jitter_ms: int = key(
        "log.roll.jitter.ms",
        0,
        "Largest time by which segments are closed before their maximum age, each by another one.",
        low=0,
        topic="segment.jitter.ms",
        kind=Kind.LONG,
    )
    log_index_interval_bytes: int = key(
        "log.index.interval.bytes",
        4096,
        "Bytes between two index entries.",
        low=0,
        topic="index.interval.bytes",
    )
    log_index_size_max_bytes: int = key(
        "log.index.size.max.bytes",
        10 * 1024 * 1024,
        "Maximum size of an index.",
        low=4,
        topic="segment.index.bytes",
    )
    log_retention_ms: int = key(
        "log.retention.ms",
        7 * 24 * 3_600_000,
        "Age at which segments are deleted.",
        low=-1,
        topic="retention.ms",
        kind=Kind.LONG,
    )
    log_retention_bytes: int = key(
        "log.retention.bytes",
        -1,
        "Size beyond which segments are deleted.",
        low=-1,
        topic="retention.bytes",
        kind=Kind.LONG,
    )
    log_retention_check_interval_ms: int = key(
        "log.retention.check.interval.ms",
        300_000,
        "How often retention is checked.",
        low=1,
        kind=Kind.LONG,
    )
    log_cleanup_policy: tuple[str, ...] = key(
        "log.cleanup.policy",
        ("delete",),
        "Whether old segments are deleted, compacted or both; empty: neither.",
        one_of=("delete", "compact"),
        topic="cleanup.policy",
    )
    log_cleaner_enable: bool = key("log.cleaner.enable", True, "Whether the log cleaner runs.")
    log_cleaner_backoff_ms: int = key(
        "log.cleaner.backoff.ms",
        15_000,
        "How often the cleaner looks for logs to compact.",
        low=1,
        kind=Kind.LONG,
        dynamic=True,
    )
    log_cleaner_dedupe_buffer_size: int = key(
        "log.cleaner.dedupe.buffer.size",
        128 * 1024 * 1024,
        "Memory for the cleaner's map of keys, 24 bytes for each key.",
        low=24,
        kind=Kind.LONG,
        dynamic=True,
    )
    log_cleaner_min_cleanable_ratio: float = key(
        "log.cleaner.min.cleanable.ratio",
        0.5,
        "Share of a log that must be new before it is compacted.",
        low=0,
        high=1,
        topic="min.cleanable.dirty.ratio",
    )
    log_cleaner_delete_retention_ms: int = key(
        "log.cleaner.delete.retention.ms",
        86_400_000,
        "How long tombstones and transaction markers are kept.",
        low=0,
        topic="delete.retention.ms",
        kind=Kind.LONG,
    )
    log_cleaner_min_compaction_lag_ms: int = key(
        "log.cleaner.min.compaction.lag.ms",
        0,
        "Minimum age of a record before it is compacted.",
        low=0,
        topic="min.compaction.lag.ms",
        kind=Kind.LONG,
    )
    log_cleaner_max_compaction_lag_ms: int = key(
        "log.cleaner.max.compaction.lag.ms",
        INT64_MAX,
        "Age of a record at which its log is compacted in any case.",
        low=1,
        topic="max.compaction.lag.ms",
        kind=Kind.LONG,
    )
    log_segment_delete_delay_ms: int = key(
        "log.segment.delete.delay.ms",
        60_000,
        "Delay before a deleted segment is removed from the disk.",
        low=0,
        topic="file.delete.delay.ms",
        kind=Kind.LONG,
    )
    log_flush_interval_messages: int = key(
        "log.flush.interval.messages",
        INT64_MAX,
        "Number of records between two fsyncs.",
        low=1,
        topic="flush.messages",
        kind=Kind.LONG,
    )
    log_flush_interval_ms: int = key(
        "log.flush.interval.ms",
        INT64_MAX,
        "Time between two fsyncs.",
        low=0,
        topic="flush.ms",
        kind=Kind.LONG,
    )
    log_flush_scheduler_interval_ms: int = key(
        "log.flush.scheduler.interval.ms",
        1000,
        "How often the broker looks for logs whose fsync is due.",
        low=1,
        kind=Kind.LONG,
    )
    log_flush_offset_checkpoint_interval_ms: int = key(
        "log.flush.offset.checkpoint.interval.ms",
        60_000,
        "Time between two recovery point checkpoints.",
        low=1,
    )
    producer_id_expiration_ms: int = key(
        "producer.id.expiration.ms",
        604_800_000,
        "The state of an idle producer expires after this. Kafka 2.8 uses "
        "transactional.id.expiration.ms for it.",
        low=1,
    )
    producer_id_expiration_check_interval_ms: int = key(
        "producer.id.expiration.check.interval.ms",
        600_000,
        "How often producer states are checked for expiry.",
        low=1,
    )
