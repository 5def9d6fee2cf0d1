"""The configuration of a topic's log, from the settings of the topic and of the broker."""

from typing import Final

from broker_impl.config import BrokerConfig
from broker_impl.log.config import LogConfig
from broker_impl.wire import batch

_CODECS: Final = {
    "uncompressed": batch.NONE,
    "gzip": batch.GZIP,
    "snappy": batch.SNAPPY,
    "lz4": batch.LZ4,
    "zstd": batch.ZSTD,
}
"""Values of ``compression.type``, besides ``producer``."""


def log_config(config: BrokerConfig) -> LogConfig:
    """The configuration of a topic's log, from the topic's settings."""
    is_append_time = config.log_message_timestamp_type == "LogAppendTime"
    return LogConfig(
        segment_bytes=config.log_segment_bytes,
        segment_ms=config.log_roll_ms,
        segment_jitter_ms=config.log_roll_jitter_ms,
        index_interval_bytes=config.log_index_interval_bytes,
        index_bytes_max=config.log_index_size_max_bytes,
        retention_ms=config.log_retention_ms,
        retention_bytes=config.log_retention_bytes,
        message_bytes_max=config.message_max_bytes,
        flush_messages=config.log_flush_interval_messages,
        flush_ms=config.log_flush_interval_ms,
        timestamp_type=batch.LOG_APPEND_TIME if is_append_time else batch.CREATE_TIME,
        compression=_CODECS.get(config.compression_type),
        timestamp_difference_ms_max=config.log_message_timestamp_difference_max_ms,
        cleanup_policy=config.log_cleanup_policy,
        min_cleanable_dirty_ratio=config.log_cleaner_min_cleanable_ratio,
        delete_retention_ms=config.log_cleaner_delete_retention_ms,
        min_compaction_lag_ms=config.log_cleaner_min_compaction_lag_ms,
        max_compaction_lag_ms=config.log_cleaner_max_compaction_lag_ms,
        delete_delay_ms=config.log_segment_delete_delay_ms,
        producer_expiration_ms=config.producer_id_expiration_ms,
        verify_transactions=config.transaction_partition_verification_enable,
    )
