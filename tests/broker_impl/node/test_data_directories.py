"""A broker with two data directories, as clients see it (KIP-113)."""

from typing import Any

from broker_impl.wire.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from broker_impl.wire.messages.describe_log_dirs_request import DescribeLogDirsRequest
from tests.broker_impl.node.broker_calls import TP, consume, create, leader, produce


async def alter(cluster: Any, path: str) -> int:
    """Ask for a move of the partition, and return the error code."""
    wanted = [AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(TP.topic, [TP.partition])])]
    answer = await cluster.ask(1, AlterReplicaLogDirsRequest(wanted), 1)
    return int(answer.results[0].partitions[0].error_code)


async def shown(cluster: Any) -> dict[str, list[tuple[int, int, bool]]]:
    """Partition, lag and kind of each log by data directory."""
    answer = await cluster.ask(1, DescribeLogDirsRequest(topics=None), 1)
    return {
        directory.log_dir: [
            (row.partition_index, row.offset_lag, row.is_future_key)
            for topic in directory.topics
            for row in topic.partitions
        ]
        for directory in answer.results
    }


async def test_a_replica_moves(cluster: Any) -> None:
    """A replica moves, has all records, and is where it moved after a restart of the broker."""
    running = await cluster.add(1, log_dirs="/a,/b", replica_fetch_max_bytes="1024")
    await cluster.ready()
    await create(cluster, assignment=[1])
    for number in range(20):
        assert (await produce(cluster, leader(cluster), b"%d" % number)).error_code == 0
    assert await shown(cluster) == {"/a": [(0, 0, False)], "/b": []}
    assert await alter(cluster, "/c") == 57
    assert await alter(cluster, "/b") == 0
    await cluster.until(lambda: not running.broker._logs.futures)
    assert await shown(cluster) == {"/a": [], "/b": [(0, 0, False)]}
    assert (await produce(cluster, 1, b"20")).error_code == 0
    assert await consume(cluster, 1) == [b"%d" % number for number in range(21)]
    await running.stop()
    await running.start()
    await cluster.ready()
    await cluster.until(
        lambda: (known := running.broker.view.partition(TP)) is not None and known.leader == 1
    )
    assert await consume(cluster, 1) == [b"%d" % number for number in range(21)]
    assert await shown(cluster) == {"/a": [], "/b": [(0, 0, False)]}
