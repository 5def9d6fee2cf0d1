"""Administrative requests to three brokers, as clients see them."""

import asyncio
from typing import Any

from broker_impl.config import RACK_AWARE_SELECTOR
from broker_impl.errors import ErrorCode
from broker_impl.wire import batch
from broker_impl.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from broker_impl.wire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from broker_impl.wire.messages.describe_cluster_request import DescribeClusterRequest
from broker_impl.wire.messages.describe_log_dirs_request import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from broker_impl.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.node.broker_calls import TP, consume, create, leader, produce

PREFERRED = 0


def controller(cluster: Any) -> int:
    return int(cluster.brokers[1].broker.view.controller_id)


async def test_a_partition_moves_under_load(three: Any) -> None:
    """A partition moves without losing acknowledged records, and leaves no replica behind."""
    await create(three, assignment=[1, 2])
    for number in range(5):
        assert (await produce(three, leader(three), b"%d" % number)).error_code == 0
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic("t", [ReassignablePartition(0, [3])])]
    )
    answer = await three.ask(controller(three), request, 0)
    assert answer.responses[0].partitions[0].error_code == 0
    await three.until(lambda: leader(three) == 3)
    await three.until(
        lambda: not any(TP in three.brokers[number].broker._logs.logs for number in (1, 2))
    )
    assert await consume(three, 3) == [b"%d" % number for number in range(5)]
    assert three.brokers[3].broker.view.partition(TP).replicas == (3,)


async def test_more_partitions_are_there_for_clients(three: Any) -> None:
    """Every broker soon knows the partitions that CreatePartitions adds."""
    await create(three)
    request = CreatePartitionsRequest(topics=[CreatePartitionsTopic("t", 3, None)], timeout_ms=5000)
    answer = await three.ask(controller(three), request, 3)
    assert [row.error_code for row in answer.results] == [0]
    last = TopicPartition("t", 2)
    await three.until(
        lambda: all(each.broker.view.partition(last) for each in three.brokers.values())
    )


async def test_the_preferred_leader_leads_again(three: Any) -> None:
    """When ElectLeaders returns, the controller's broker knows that the preferred leader leads."""
    await create(three, assignment=[1, 2, 3])
    await three.brokers[1].stop()
    await three.brokers[1].start()
    await three.ready()
    await three.until(
        lambda: 1 in three.brokers[2].broker.view.partition(TP).isr and leader(three) != 1
    )
    request = ElectLeadersRequest(PREFERRED, [TopicPartitions("t", [0])], 5000)
    number = controller(three)
    answer = await three.ask(number, request, 2)
    assert answer.replica_election_results[0].partition_result[0].error_code == ErrorCode.NONE
    assert three.brokers[number].broker.view.partition(TP).leader == 1


async def test_the_cluster_is_described(three: Any) -> None:
    """DescribeCluster returns the endpoints of the listener that received the request."""
    answer = await three.ask(2, DescribeClusterRequest(), 0)
    assert answer.controller_id == controller(three)
    assert [(row.broker_id, row.port) for row in answer.brokers] == [
        (number, three.brokers[number].port) for number in (1, 2, 3)
    ]


async def test_log_directories_are_described(three: Any) -> None:
    """DescribeLogDirs covers all partitions, or those that the request names."""
    await create(three, partitions=2)
    await produce(three, leader(three), b"a")
    answer = await three.ask(1, DescribeLogDirsRequest(topics=None), 4)
    (directory,) = answer.results
    (topic,) = directory.topics
    sizes = {row.partition_index: row.partition_size for row in topic.partitions}
    assert sizes.keys() == {0, 1}
    assert sizes[0] > sizes[1] == 0
    named = DescribeLogDirsRequest(topics=[DescribableLogDirTopic("t", [1])])
    answer = await three.ask(1, named, 1)
    assert [row.partition_index for row in answer.results[0].topics[0].partitions] == [1]


async def test_readers_are_sent_to_their_rack(cluster: Any) -> None:
    """KIP-392: the leader names a replica in the reader's rack, which serves to its watermark."""
    await asyncio.gather(
        *(
            cluster.add(
                number,
                broker_rack=rack,
                replica_selector_class=RACK_AWARE_SELECTOR,
                default_replication_factor="3",
            )
            for number, rack in ((1, "a"), (2, "b"), (3, "c"))
        )
    )
    await cluster.ready()
    await create(cluster, assignment=[1, 2, 3])
    await produce(cluster, 1, b"x")

    async def read(number: int, rack: str, version: int = 11, offset: int = 0) -> Any:
        partitions = [FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)]
        request = FetchRequest(
            max_wait_ms=2000,
            min_bytes=1,
            max_bytes=1000,
            session_epoch=-1,
            rack_id=rack,
            topics=[FetchTopic(topic="t", partitions=partitions)],
        )
        answer = await cluster.ask(number, request, version)
        return answer.responses[0].partitions[0]

    await cluster.until(
        lambda: cluster.brokers[2].broker._replicas.partitions[TP].high_watermark == 1
    )
    sent = await read(1, "b")
    assert (sent.error_code, sent.preferred_read_replica, bytes(sent.records)) == (0, 2, b"")
    near = await read(2, "b")
    assert [record.value for record in batch.records(near.records)] == [b"x"]
    waiting = asyncio.ensure_future(read(2, "b", offset=1))
    await asyncio.sleep(0.05)
    await produce(cluster, 1, b"y")
    later = await waiting
    assert [record.value for record in batch.records(later.records)] == [b"y"]
    same = await read(1, "a")
    assert (same.preferred_read_replica, len(same.records) > 0) == (-1, True)
    old = await read(2, "b", version=10)
    assert old.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    homeless = await read(2, "", offset=9)
    assert homeless.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
