"""Opens the logs on a broker's disks, and the replicas on them, with the settings of each topic."""

import asyncio
from collections.abc import Callable, Mapping

from broker_impl.config import BrokerConfig
from broker_impl.log.disk import Disk
from broker_impl.log.manager import LogManager
from broker_impl.node.log_settings import log_config
from broker_impl.replica.events import Effect
from broker_impl.replica.hosted import ReplicaConfig
from broker_impl.replica.replicas import Replicas

Merged = Callable[[str], BrokerConfig]
"""Returns the settings of a topic: the broker's, with the topic's own."""


def logs(
    disks: Mapping[str, Disk],
    config: BrokerConfig,
    merged: Merged,
    cluster_id: str,
    now_ms: int,
) -> LogManager:
    """Open and recover all logs of the data directories."""
    manager = LogManager(
        disks,
        lambda topic: log_config(merged(topic)),
        broker_id=config.broker_id,
        cluster_id=cluster_id,
        retention_check_ms=config.log_retention_check_interval_ms,
        producer_check_ms=config.producer_id_expiration_check_interval_ms,
    )
    manager.open(now_ms)
    return manager


def replicas(
    manager: LogManager,
    config: BrokerConfig,
    merged: Merged,
    *,
    wall_ms: Callable[[], int],
    on_effect: Callable[[Effect], None],
) -> Replicas:
    """Return the replicas of these logs, which have no roles yet."""
    return Replicas(
        config.broker_id,
        manager,
        ReplicaConfig(
            lag_time_max_ms=config.replica_lag_time_max_ms,
            fetch_backoff_ms=config.replica_fetch_backoff_ms,
            min_insync_replicas=lambda topic: merged(topic).min_insync_replicas,
        ),
        clock=asyncio.get_running_loop().time,
        wall_ms=wall_ms,
        on_effect=on_effect,
    )
