"""Settings of the quotas of clients and of replication; clients' quotas are in ZooKeeper."""

from dataclasses import dataclass

from broker_impl.config.setting import INT64_MAX, key
from broker_impl.kafka_settings import Kind


@dataclass(frozen=True, kw_only=True)
class QuotaSettings:
    """Settings of the rates by which clients and replicas are throttled."""

    leader_replication_throttled_rate: int = key(
        "leader.replication.throttled.rate",
        INT64_MAX,
        "Bytes per second that followers may fetch of throttled replicas that this broker leads.",
        low=0,
        kind=Kind.LONG,
        dynamic=True,
    )
    follower_replication_throttled_rate: int = key(
        "follower.replication.throttled.rate",
        INT64_MAX,
        "Bytes per second that this broker's throttled followers may fetch.",
        low=0,
        kind=Kind.LONG,
        dynamic=True,
    )
    replication_quota_window_num: int = key(
        "replication.quota.window.num",
        11,
        "Number of windows over which replication is measured.",
        low=1,
    )
    replication_quota_window_size_seconds: int = key(
        "replication.quota.window.size.seconds",
        1,
        "Length of each window of replication in seconds.",
        low=1,
    )
    replica_alter_log_dirs_io_max_bytes_per_second: int = key(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        INT64_MAX,
        "Bytes per second by which replicas may move between this broker's data directories.",
        low=0,
        kind=Kind.LONG,
        dynamic=True,
    )
    alter_log_dirs_replication_quota_window_num: int = key(
        "alter.log.dirs.replication.quota.window.num",
        11,
        "Number of windows over which moves between data directories are measured.",
        low=1,
    )
    alter_log_dirs_replication_quota_window_size_seconds: int = key(
        "alter.log.dirs.replication.quota.window.size.seconds",
        1,
        "Length of each window of moves between data directories in seconds.",
        low=1,
    )

    quota_window_num: int = key(
        "quota.window.num", 11, "Number of windows over which rates are measured.", low=1
    )
    quota_window_size_seconds: int = key(
        "quota.window.size.seconds", 1, "Length of each window in seconds.", low=1
    )
    quota_producer_default: int = key(
        "quota.producer.default",
        INT64_MAX,
        "Bytes per second that a producer may send if no quota in ZooKeeper applies to it.",
        low=1,
        kind=Kind.LONG,
    )
    quota_consumer_default: int = key(
        "quota.consumer.default",
        INT64_MAX,
        "Bytes per second that a consumer may fetch if no quota in ZooKeeper applies to it.",
        low=1,
        kind=Kind.LONG,
    )
