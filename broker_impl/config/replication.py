"""Settings of replication and of the controller."""

from dataclasses import dataclass

from broker_impl.config.setting import key
from broker_impl.kafka_settings import Kind

RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
"""The values of ``replica.selector.class``: the names of Kafka's own classes (KIP-392)."""


@dataclass(frozen=True, kw_only=True)
class ReplicationSettings:
    """Settings of the in-sync replicas, and of the fetches of followers."""

    replica_lag_time_max_ms: int = key(
        "replica.lag.time.max.ms",
        30_000,
        "A replica that lags for longer than this leaves the ISR.",
        low=1,
        kind=Kind.LONG,
    )
    replica_fetch_wait_max_ms: int = key(
        "replica.fetch.wait.max.ms",
        500,
        "How long the leader holds a follower's fetch that finds no records.",
        low=0,
    )
    replica_fetch_min_bytes: int = key(
        "replica.fetch.min.bytes", 1, "Bytes at which the leader answers a follower's fetch.", low=0
    )
    replica_fetch_max_bytes: int = key(
        "replica.fetch.max.bytes",
        1024 * 1024,
        "Maximum bytes of one partition in a follower's fetch.",
        low=0,
    )
    replica_fetch_response_max_bytes: int = key(
        "replica.fetch.response.max.bytes",
        10 * 1024 * 1024,
        "Maximum bytes of a follower's fetch.",
        low=0,
    )
    replica_fetch_backoff_ms: int = key(
        "replica.fetch.backoff.ms", 1000, "Delay after a failed fetch.", low=0
    )
    replica_socket_timeout_ms: int = key(
        "replica.socket.timeout.ms", 30_000, "A follower's fetch fails after this silence.", low=1
    )
    replica_high_watermark_checkpoint_interval_ms: int = key(
        "replica.high.watermark.checkpoint.interval.ms",
        5000,
        "Time between two high watermark checkpoints.",
        low=1,
        kind=Kind.LONG,
    )

    max_incremental_fetch_session_cache_slots: int = key(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "How many incremental fetch sessions the broker keeps; 0: it creates none.",
        low=0,
    )
    replica_selector_class: str = key(
        "replica.selector.class",
        "",
        "Whether consumers fetch from replicas in their own rack; by default from the leader.",
        one_of=("", RACK_AWARE_SELECTOR, LEADER_SELECTOR),
    )


@dataclass(frozen=True, kw_only=True)
class ControllerSettings:
    """Settings of leader elections, and of the controller's requests."""

    controlled_shutdown_enable: bool = key(
        "controlled.shutdown.enable",
        True,
        "Leadership is moved to other brokers before this broker stops.",
    )
    controlled_shutdown_max_retries: int = key(
        "controlled.shutdown.max.retries",
        3,
        "How often the broker tries to move its leaders.",
        low=0,
    )
    controlled_shutdown_retry_backoff_ms: int = key(
        "controlled.shutdown.retry.backoff.ms",
        500,
        "Delay between two tries.",
        low=0,
        kind=Kind.LONG,
    )
    controller_socket_timeout_ms: int = key(
        "controller.socket.timeout.ms",
        30_000,
        "A controller's request fails after this silence.",
        low=1,
    )
    auto_leader_rebalance_enable: bool = key(
        "auto.leader.rebalance.enable",
        True,
        "Whether the controller restores preferred leaders automatically.",
    )
    leader_imbalance_check_interval_seconds: int = key(
        "leader.imbalance.check.interval.seconds",
        300,
        "How often the controller looks for imbalance.",
        low=1,
        kind=Kind.LONG,
    )
