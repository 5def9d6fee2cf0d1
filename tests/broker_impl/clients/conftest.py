"""Fixtures for the client tests: three brokers for all tests of a file, in its event loop."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio

from broker_impl.wire.types import TopicPartition
from tests.broker_impl.conftest import ClusterInLoop, ZooKeeperInLoop

SETTINGS = {
    "default_replication_factor": "3",
    "min_insync_replicas": "2",
    "num_partitions": "3",
    "offsets_topic_num_partitions": "3",
    "transaction_state_log_num_partitions": "3",
    "group_initial_rebalance_delay_ms": "100",
    "group_min_session_timeout_ms": "1000",
    "log_cleaner_backoff_ms": "50",
}

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}
"""Settings of a topic that is compacted as soon as it has anything to compact."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def brokers() -> AsyncIterator[ClusterInLoop]:
    """Brokers 1, 2 and 3, which know each other."""
    zookeeper = ZooKeeperInLoop()
    await zookeeper.start()
    cluster = ClusterInLoop(zookeeper)
    await asyncio.gather(*(cluster.add(number, **SETTINGS) for number in (1, 2, 3)))
    await cluster.ready()
    yield cluster
    await cluster.stop()


async def compacted(cluster: Any, topic: str) -> None:
    """Wait until the leader of partition 0 has compacted its log up to the active segment."""
    tp = TopicPartition(topic, 0)

    def is_clean() -> bool:
        leader = cluster.brokers[1].broker.view.partition(tp).leader
        log = cluster.brokers[leader].broker._logs.logs[tp]
        return bool(log.rewrites > 0 and log.first_dirty == log.segment_offsets[-1])

    await cluster.until(is_clean, 20)
