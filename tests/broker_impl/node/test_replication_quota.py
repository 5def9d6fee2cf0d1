"""Throttled replicas of a reassignment wait for their quota, and those in sync do not (KIP-73)."""

from typing import Any

import pytest

from broker_impl.api.overrides import DELETE, SET
from broker_impl.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.broker_impl.node.broker_calls import TP, create, leader, produce
from tests.broker_impl.node.test_config_changes import BROKER, TOPIC, alter

BATCHES, BATCH_BYTES = 8, 10_000


def end(cluster: Any, number: int) -> int:
    return int(cluster.brokers[number].broker._replicas.end_offset(TP))


@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_a_new_replica_is_throttled(cluster: Any, side: str) -> None:
    """Each side alone holds a new replica back, while the ISR goes on; without the limit it joins.

    A replica that no list names is not held back.
    """
    for number in (1, 2, 3):
        await cluster.add(number, replica_fetch_max_bytes=str(BATCH_BYTES), min_insync_replicas="2")
    await cluster.ready()
    await create(cluster, assignment=[1, 2])
    for _ in range(BATCHES):
        assert (await produce(cluster, leader(cluster), b"x" * BATCH_BYTES)).error_code == 0
    rate, listed = f"{side}.replication.throttled.rate", f"{side}.replication.throttled.replicas"
    for number in (1, 2, 3):
        assert await alter(cluster, number, BROKER, str(number), (rate, SET, "1000")) == (0, "")
    replicas = "0:1" if side == "leader" else "0:3"
    assert await alter(cluster, 1, TOPIC, "t", (listed, SET, replicas)) == (0, "")
    watching = cluster.brokers[3 if side == "follower" else 1].broker
    quota = watching.quotas.following if side == "follower" else watching.quotas.leading
    if side == "follower":
        await cluster.until(lambda: watching._settings.overrides("t"))
    await cluster.until(lambda: quota.throttles(TP))
    controller = watching.view.controller_id
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic("t", [ReassignablePartition(0, [1, 2, 3])])]
    )
    answer = await cluster.ask(controller, request, 0)
    assert answer.responses[0].partitions[0].error_code == 0
    loop = cluster.brokers[1].broker._replicas.clock
    await cluster.until(lambda: quota.is_used_up(loop() * 1000))
    for number in range(10):  # the ISR replicates what producers send meanwhile
        assert (await produce(cluster, leader(cluster), b"%d" % number)).error_code == 0
    assert 0 < end(cluster, 3) < BATCHES
    assert end(cluster, 2) == BATCHES + 10
    for number in (1, 2, 3):
        assert await alter(cluster, number, BROKER, str(number), (rate, DELETE, None)) == (0, "")
    await cluster.until(lambda: 3 in watching.view.partition(TP).isr)
    assert end(cluster, 3) == BATCHES + 10
