"""Settings of the group coordinator and of the transaction coordinator."""

from dataclasses import dataclass

from broker_impl.config.setting import INT32_MAX, key
from broker_impl.kafka_settings import Kind


@dataclass(frozen=True, kw_only=True)
class GroupSettings:
    """Settings of consumer groups and of committed offsets."""

    group_min_session_timeout_ms: int = key(
        "group.min.session.timeout.ms", 6_000, "Minimum session timeout of a group's member.", low=1
    )
    group_max_session_timeout_ms: int = key(
        "group.max.session.timeout.ms",
        1_800_000,
        "Maximum session timeout of a group's member.",
        low=1,
    )
    group_initial_rebalance_delay_ms: int = key(
        "group.initial.rebalance.delay.ms",
        3_000,
        "How long the first rebalance of an empty group waits for more members.",
        low=0,
    )
    group_max_size: int = key(
        "group.max.size", INT32_MAX, "Maximum number of members of a group.", low=1
    )
    offsets_topic_num_partitions: int = key(
        "offsets.topic.num.partitions", 50, "Number of partitions of __consumer_offsets.", low=1
    )
    offsets_topic_replication_factor: int = key(
        "offsets.topic.replication.factor",
        3,
        "Replication factor of __consumer_offsets; if not set, fewer live brokers are enough.",
        low=1,
        kind=Kind.SHORT,
    )
    offsets_topic_segment_bytes: int = key(
        "offsets.topic.segment.bytes",
        100 * 1024 * 1024,
        "Maximum size of a segment of __consumer_offsets.",
        low=14,
    )
    offsets_load_buffer_size: int = key(
        "offsets.load.buffer.size",
        5 * 1024 * 1024,
        "How many bytes of __consumer_offsets a coordinator reads at once when it loads groups; "
        "at least one batch, and at most 1 MiB.",
        low=1,
    )
    offsets_retention_minutes: int = key(
        "offsets.retention.minutes", 10_080, "Offsets of an empty group expire after this.", low=1
    )
    offsets_retention_check_interval_ms: int = key(
        "offsets.retention.check.interval.ms",
        600_000,
        "How often offsets are checked for expiry.",
        low=1,
        kind=Kind.LONG,
    )
    offsets_commit_timeout_ms: int = key(
        "offsets.commit.timeout.ms", 5_000, "How long a commit waits for the replicas.", low=1
    )
    offset_metadata_max_bytes: int = key(
        "offset.metadata.max.bytes",
        4_096,
        "Maximum size of the metadata of a committed offset.",
        low=0,
        high=32_767,
    )


@dataclass(frozen=True, kw_only=True)
class TransactionSettings:
    """Settings of transactions and of their coordinator's topic."""

    transaction_state_log_num_partitions: int = key(
        "transaction.state.log.num.partitions",
        50,
        "Number of partitions of __transaction_state.",
        low=1,
    )
    transaction_state_log_replication_factor: int = key(
        "transaction.state.log.replication.factor",
        3,
        "Replication factor of __transaction_state; if not set, fewer live brokers are enough.",
        low=1,
        kind=Kind.SHORT,
    )
    transaction_state_log_min_isr: int = key(
        "transaction.state.log.min.isr",
        2,
        "min.insync.replicas of __transaction_state, at most its replication factor.",
        low=1,
    )
    transaction_state_log_segment_bytes: int = key(
        "transaction.state.log.segment.bytes",
        100 * 1024 * 1024,
        "Maximum size of a segment of __transaction_state.",
        low=14,
    )
    transaction_state_log_load_buffer_size: int = key(
        "transaction.state.log.load.buffer.size",
        5 * 1024 * 1024,
        "How many bytes of __transaction_state a coordinator reads at once when it loads "
        "transactions; at least one batch, and at most 1 MiB.",
        low=1,
    )
    transaction_max_timeout_ms: int = key(
        "transaction.max.timeout.ms",
        900_000,
        "Maximum transaction timeout that a producer may request.",
        low=1,
    )
    transactional_id_expiration_ms: int = key(
        "transactional.id.expiration.ms",
        604_800_000,
        "Unused transactional ids expire after this.",
        low=1,
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = key(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10_000,
        "How often transactions are checked for timeout and expiry.",
        low=1,
    )
    transaction_partition_verification_enable: bool = key(
        "transaction.partition.verification.enable",
        True,
        "Whether the leader asks the coordinator before a transaction begins in a partition "
        "(KIP-890).",
    )
