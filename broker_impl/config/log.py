"""Settings of the log: segments, retention, compaction, syncing and producer state."""

from dataclasses import dataclass

from broker_impl.config.setting import INT64_MAX, key
from broker_impl.kafka_settings import Kind


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """Settings of the log of each partition."""

    log_segment_bytes: int = key(
        "log.segment.bytes", 1024**3, "Size of a segment.", low=14, topic="segment.bytes"
    )
    log_roll_ms: int = key(
        "log.roll.ms",
        7 * 24 * 3_600_000,
        "Age of a segment.",
        low=1,
        topic="segment.ms",
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
        "Size of an index.",
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
        "How often retention looks.",
        low=1,
        kind=Kind.LONG,
    )
    log_cleanup_policy: tuple[str, ...] = key(
        "log.cleanup.policy",
        ("delete",),
        "What happens to old segments.",
        one_of=("delete", "compact"),
        topic="cleanup.policy",
    )
    log_cleaner_enable: bool = key("log.cleaner.enable", True, "Compacted logs are compacted.")
    log_cleaner_backoff_ms: int = key(
        "log.cleaner.backoff.ms",
        15_000,
        "How often logs to compact are looked for.",
        low=1,
        kind=Kind.LONG,
    )
    log_cleaner_dedupe_buffer_size: int = key(
        "log.cleaner.dedupe.buffer.size",
        128 * 1024 * 1024,
        "Room for keys, 24 bytes each.",
        low=24,
        kind=Kind.LONG,
    )
    log_cleaner_min_cleanable_ratio: float = key(
        "log.cleaner.min.cleanable.ratio",
        0.5,
        "How much of a log is new when it is compacted.",
        low=0,
        high=1,
        topic="min.cleanable.dirty.ratio",
    )
    log_cleaner_delete_retention_ms: int = key(
        "log.cleaner.delete.retention.ms",
        86_400_000,
        "How long tombstones and markers stay.",
        low=0,
        topic="delete.retention.ms",
        kind=Kind.LONG,
    )
    log_cleaner_min_compaction_lag_ms: int = key(
        "log.cleaner.min.compaction.lag.ms",
        0,
        "Age below which nothing is compacted.",
        low=0,
        topic="min.compaction.lag.ms",
        kind=Kind.LONG,
    )
    log_cleaner_max_compaction_lag_ms: int = key(
        "log.cleaner.max.compaction.lag.ms",
        INT64_MAX,
        "Age at which a log is compacted in any case.",
        low=1,
        topic="max.compaction.lag.ms",
        kind=Kind.LONG,
    )
    log_segment_delete_delay_ms: int = key(
        "log.segment.delete.delay.ms",
        60_000,
        "Wait before a deleted file is removed.",
        low=0,
        topic="file.delete.delay.ms",
        kind=Kind.LONG,
    )
    log_flush_interval_messages: int = key(
        "log.flush.interval.messages",
        INT64_MAX,
        "Records between two fsyncs.",
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
        "How often a due fsync is looked for.",
        low=1,
        kind=Kind.LONG,
    )
    log_flush_offset_checkpoint_interval_ms: int = key(
        "log.flush.offset.checkpoint.interval.ms", 60_000, "Between recovery points.", low=1
    )
    producer_id_expiration_ms: int = key(
        "producer.id.expiration.ms", 86_400_000, "Idle producers are forgotten after this.", low=1
    )
    producer_id_expiration_check_interval_ms: int = key(
        "producer.id.expiration.check.interval.ms",
        600_000,
        "How often they are looked for.",
        low=1,
    )
