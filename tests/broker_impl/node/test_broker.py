import asyncio
from typing import Any

import pytest

from broker_impl.errors import ErrorCode, StorageError
from broker_impl.wire import batch
from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from broker_impl.wire.messages.init_producer_id_request import InitProducerIdRequest
from broker_impl.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker_impl.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from broker_impl.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker_impl.wire.types import TopicPartition

TP = TopicPartition("t", 0)


async def create(cluster: Any, name: str = "t", partitions: int = 1, replicas: int = 3) -> None:
    """Create a topic at the controller; every broker knows of it afterwards."""
    brokers = [running.broker for running in cluster.brokers.values() if running.broker]
    controller = brokers[0].view.controller_id
    answer = await cluster.ask(
        controller,
        CreateTopicsRequest(
            topics=[
                CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
            ],
            timeout_ms=5000,
        ),
        5,
    )
    assert [row.error_code for row in answer.topics] == [0], answer
    await cluster.until(lambda: all(name in broker.view.topics for broker in brokers))


def leader(cluster: Any, tp: TopicPartition = TP) -> int:
    for running in cluster.brokers.values():
        if running.broker:
            return int(running.broker.view.partition(tp).leader)
    raise AssertionError("no broker runs")


async def produce(cluster: Any, number: int, *values: bytes, acks: int = -1) -> Any:
    """One batch to a broker; the partition's answer."""
    records = batch.encode_batch([batch.Record(b"k", value, 1) for value in values])
    answer = await cluster.ask(
        number,
        ProduceRequest(
            transactional_id=None,
            acks=acks,
            timeout_ms=5000,
            topic_data=[
                TopicProduceData(
                    name=TP.topic,
                    partition_data=[PartitionProduceData(index=TP.partition, records=records)],
                )
            ],
        ),
        9,
    )
    return answer.responses[0].partition_responses[0]


async def consume(cluster: Any, number: int, offset: int = 0) -> list[bytes]:
    """The values from an offset, as a consumer of this broker sees them."""
    answer = await cluster.ask(
        number,
        FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            session_epoch=-1,
            topics=[
                FetchTopic(
                    topic=TP.topic,
                    partitions=[
                        FetchPartition(
                            partition=TP.partition,
                            fetch_offset=offset,
                            partition_max_bytes=1_000_000,
                        )
                    ],
                )
            ],
        ),
        11,
    )
    row = answer.responses[0].partitions[0]
    assert row.error_code == 0, row
    return [record.value or b"" for record in batch.records(row.records)]


async def test_a_record_is_on_every_replica_before_it_is_acknowledged(three: Any) -> None:
    """acks=all: the answer comes when all in-sync replicas have it; consumers see it then."""
    await create(three)
    row = await produce(three, leader(three), b"a", b"b")
    assert (row.error_code, row.base_offset) == (0, 0)
    ends = [
        running.broker.replicas.partitions[TP].log.end_offset for running in three.brokers.values()
    ]
    assert ends == [2, 2, 2]
    assert await consume(three, leader(three)) == [b"a", b"b"]


async def test_others_than_the_leader_send_clients_away(three: Any) -> None:
    """A follower answers NOT_LEADER_OR_FOLLOWER, for a topic that nobody has heard of UNKNOWN."""
    await create(three)
    other = next(number for number in three.brokers if number != leader(three))
    assert (await produce(three, other, b"a")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_controlled_shutdown_moves_the_leaders(three: Any) -> None:
    """The partition is led by another broker by the time the old one is gone; nothing is lost."""
    await create(three)
    old = leader(three)
    await produce(three, old, b"a")
    running = three.brokers[old]
    await running.stop()
    await three.until(lambda: leader(three) not in (old, -1))
    assert await consume(three, leader(three)) == [b"a"]
    await running.start()
    partition = running.broker.replicas.partitions
    await three.until(lambda: TP in partition and partition[TP].log.end_offset == 1)
    await three.until(
        lambda: three.brokers[leader(three)].broker.replicas.partitions[TP].isr == {1, 2, 3}
    )


async def test_a_broker_that_lost_its_session_comes_back(three: Any) -> None:
    """An expired session is followed by a new registration and by following again."""
    await create(three)
    victim = next(number for number in three.brokers if number != leader(three))
    broker = three.brokers[victim].broker
    before = broker._session.broker_epoch
    broker._session.expired.set()
    await three.until(lambda: broker._session.broker_epoch > before)
    await three.ready()
    assert (await produce(three, leader(three), b"a")).error_code == 0
    await three.until(lambda: broker.replicas.partitions[TP].log.end_offset == 1)


async def test_asking_for_a_topic_creates_it(three: Any) -> None:
    """Metadata with auto-creation: LEADER_NOT_AVAILABLE at first, then the topic."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="fresh")], allow_auto_topic_creation=True
    )
    first = await three.ask(1, request, 9)
    assert first.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    async with asyncio.timeout(5):
        while True:
            answer = await three.ask(1, request, 9)
            if answer.topics[0].error_code == 0 and answer.topics[0].partitions:
                break
            await asyncio.sleep(0.01)
    assert {b.node_id for b in answer.brokers} == {1, 2, 3}
    row = answer.topics[0].partitions[0]
    assert sorted(row.replica_nodes) == sorted(row.isr_nodes) == [1, 2, 3]


async def test_a_question_that_may_not_create_does_not(three: Any) -> None:
    """Neither without leave nor for a name that no topic can have."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="never")], allow_auto_topic_creation=False
    )
    answer = await three.ask(1, request, 9)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="no/such")], allow_auto_topic_creation=True
    )
    answer = await three.ask(1, request, 9)
    assert answer.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_producer_ids_are_unique_over_brokers(three: Any) -> None:
    """Blocks are claimed by conditional writes: no id is given twice."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    answers = await asyncio.gather(
        *(three.ask(number, request, 4) for number in (1, 2, 3) for _ in range(5))
    )
    numbers = [answer.producer_id for answer in answers]
    assert len(set(numbers)) == len(numbers)
    assert {answer.producer_epoch for answer in answers} == {0}


async def test_list_offsets_tells_start_and_end(three: Any) -> None:
    """-2 is the start, -1 the end that consumers may read to."""
    await create(three)
    await produce(three, leader(three), b"a", b"b")

    async def offset(timestamp: int) -> int:
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name="t",
                    partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)],
                )
            ],
        )
        answer = await three.ask(leader(three), request, 5)
        row = answer.topics[0].partitions[0]
        assert row.error_code == 0
        return int(row.offset)

    assert (await offset(-2), await offset(-1)) == (0, 2)


async def test_a_full_disk_ends_the_broker(three: Any) -> None:
    """ENOSPC on append: the broker fails with the storage error and appends nothing more."""
    await create(three)
    running = three.brokers[leader(three)]
    running.disk.fails = lambda operation, path: operation == "append" and path.endswith(".log")
    asking = asyncio.create_task(produce(three, leader(three), b"a", acks=1))
    with pytest.raises(StorageError):
        await running.task
    asking.cancel()
    running.broker = running.task = None
