import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.errors import ErrorCode, StorageError
from broker_impl.node.peers import PeerError, Peers
from broker_impl.server import memory_limits
from broker_impl.wire import batch
from broker_impl.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateableTopicConfig,
    CreateTopicsRequest,
)
from broker_impl.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
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


async def create(
    cluster: Any,
    name: str = "t",
    partitions: int = 1,
    replicas: int = 3,
    assignment: Sequence[int] = (),
    config: Mapping[str, str] | None = None,
) -> None:
    """Create a topic at the controller, and wait until every broker knows it."""
    brokers = [running.broker for running in cluster.brokers.values() if running.broker]
    controller = brokers[0].view.controller_id
    answer = await cluster.ask(
        controller,
        CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=-1 if assignment else partitions,
                    replication_factor=-1 if assignment else replicas,
                    assignments=[CreatableReplicaAssignment(broker_ids=list(assignment))]
                    if assignment
                    else [],
                    configs=[
                        CreateableTopicConfig(name=key, value=value)
                        for key, value in (config or {}).items()
                    ],
                )
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


async def produce(
    cluster: Any,
    number: int,
    *values: bytes,
    acks: int = -1,
    timeout_ms: int = 5000,
    timeout_s: float = 10,
) -> Any:
    """Send one batch to a broker, and return the partition's row of the response."""
    records = batch.encode_batch([batch.Record(b"k", value, 1) for value in values])
    answer = await cluster.ask(
        number,
        ProduceRequest(
            transactional_id=None,
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[
                TopicProduceData(
                    name=TP.topic,
                    partition_data=[PartitionProduceData(index=TP.partition, records=records)],
                )
            ],
        ),
        9,
        timeout_s=timeout_s,
    )
    return answer.responses[0].partition_responses[0]


async def consume(
    cluster: Any, number: int, offset: int = 0, max_wait_ms: int = 100
) -> list[bytes]:
    """The values from an offset on, as a consumer reads them from this broker."""
    answer = await cluster.ask(
        number,
        FetchRequest(
            max_wait_ms=max_wait_ms,
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
    """acks=all: the answer comes when all in-sync replicas have the records, which can be read."""
    await create(three)
    row = await produce(three, leader(three), b"a", b"b")
    assert (row.error_code, row.base_offset) == (0, 0)
    ends = [
        running.broker.replicas.partitions[TP].log.end_offset for running in three.brokers.values()
    ]
    assert ends == [2, 2, 2]
    assert await consume(three, leader(three)) == [b"a", b"b"]


async def test_others_than_the_leader_send_clients_away(three: Any) -> None:
    """A follower answers a Produce with NOT_LEADER_OR_FOLLOWER."""
    await create(three)
    other = next(number for number in three.brokers if number != leader(three))
    assert (await produce(three, other, b"a")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_controlled_shutdown_moves_the_leaders(three: Any) -> None:
    """A controlled shutdown moves leaderships before the broker stops, and no record is lost."""
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
    """A broker whose session expired registers again and follows its leaders again."""
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
    """Metadata with auto-creation answers LEADER_NOT_AVAILABLE at first, then the new topic."""
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
    """Metadata creates no topic without allow_auto_topic_creation, or with an invalid name."""
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
    """Brokers claim blocks of producer ids by conditional writes, so that no id is given twice."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    answers = await asyncio.gather(
        *(three.ask(number, request, 4) for number in (1, 2, 3) for _ in range(5))
    )
    numbers = [answer.producer_id for answer in answers]
    assert len(set(numbers)) == len(numbers)
    assert {answer.producer_epoch for answer in answers} == {0}


async def test_list_offsets_tells_start_and_end(three: Any) -> None:
    """ListOffsets: -2 is the start, -1 the end for consumers, -3 (v7) the largest timestamp."""
    await create(three)
    await produce(three, leader(three), b"a", b"b")

    async def offset(*timestamps: int, version: int = 5) -> tuple[int, int]:
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name="t",
                    partitions=[
                        ListOffsetsPartition(partition_index=0, timestamp=timestamp)
                        for timestamp in timestamps
                    ],
                )
            ],
        )
        answer = await three.ask(leader(three), request, version)
        row = answer.topics[0].partitions[0]
        return row.error_code, row.offset

    assert (await offset(-2), await offset(-1)) == ((0, 0), (0, 2))
    assert await offset(-3, version=7) == (0, 0)
    assert await offset(-3, version=6) == (ErrorCode.UNSUPPORTED_VERSION, -1)
    assert await offset(-4, version=7) == (ErrorCode.UNSUPPORTED_VERSION, -1)
    assert await offset(-2, -1) == (ErrorCode.INVALID_REQUEST, -1)


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


def settings_of(answer: Any) -> dict[str, str]:
    return {row.name: row.value for row in answer.results[0].configs}


async def describe(cluster: Any, number: int, topic: str = "t") -> Any:
    resource = DescribeConfigsResource(
        resource_type=2, resource_name=topic, configuration_keys=None
    )
    return await cluster.ask(number, DescribeConfigsRequest(resources=[resource]), 4)


async def delete(cluster: Any, topic: str = "t") -> None:
    brokers = [running.broker for running in cluster.brokers.values() if running.broker]
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000)
    answer = await cluster.ask(brokers[0].view.controller_id, request, 5)
    assert [row.error_code for row in answer.responses] == [0]
    await cluster.until(lambda: not any(topic in broker.view.topics for broker in brokers))


async def test_requests_parked_at_a_topic_that_is_deleted_are_answered(three: Any) -> None:
    """When a topic is deleted, its parked produces and fetches are answered."""
    await create(three)
    number = leader(three)
    for other in set(three.brokers) - {number}:
        # no follower fetches, so nothing is committed
        three.brokers[other].broker._fetchers._tasks.cancel()
    parked = asyncio.create_task(produce(three, number, b"a"))
    reading = asyncio.create_task(consume(three, number, max_wait_ms=60_000))
    waiting = three.brokers[number].broker.waiting
    await three.until(lambda: len(waiting) >= 2)
    await delete(three)
    assert (await parked).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(AssertionError, match="error_code=3"):
        await reading


async def test_a_topic_of_a_deleted_name_is_another_one(three: Any) -> None:
    """A recreated topic has none of the settings, logs, epochs and metadata of the former one."""
    await create(three, config={"retention.ms": "1000", "max.message.bytes": "100"})
    assert (await produce(three, leader(three), b"x" * 200)).error_code == 10
    await produce(three, leader(three), b"old")
    await three.brokers[leader(three)].stop()
    await three.until(lambda: leader(three) > 0 and three.brokers[leader(three)].broker)
    for running in three.brokers.values():
        if running.broker is None:
            await running.start()
    await three.ready()
    await three.until(
        lambda: len(three.brokers[leader(three)].broker.replicas.partitions[TP].isr) == 3
    )
    await delete(three)
    await create(three)
    for number in three.brokers:
        assert settings_of(await describe(three, number))["retention.ms"] == "604800000"
    row = await produce(three, leader(three), b"x" * 200)
    assert (row.error_code, row.base_offset) == (0, 0)
    assert await consume(three, leader(three)) == [b"x" * 200]


async def test_a_brokers_own_sleep_through_a_deletion_is_no_harm(three: Any) -> None:
    """A broker whose session is lost while a topic is recreated learns the new topic.

    The broker has no replica of the topic.
    """
    controller = three.brokers[1].broker.view.controller_id
    victim = next(number for number in three.brokers if number != controller)
    others = [number for number in three.brokers if number != victim]
    await create(three, assignment=others)
    broker = three.brokers[victim].broker
    broker.view.topics["ghost"] = dict(broker.view.topics["t"])
    known = broker.view.topics["t"][0]
    broker.view.topics["t"][0] = dataclasses.replace(known, leader_epoch=99)
    epoch = broker._session.broker_epoch
    broker._session.expired.set()
    await three.until(lambda: broker._session.broker_epoch > epoch)
    await three.until(lambda: set(broker.view.topics) == {"t"})
    assert broker.view.topics["t"][0].leader_epoch < 99


async def test_settings_are_told_by_brokers_that_do_not_host_the_topic(three: Any) -> None:
    """DescribeConfigs reads from ZooKeeper, so brokers without the topic answer too.

    Without ZooKeeper the answer is REQUEST_TIMED_OUT.
    """
    await create(three, replicas=1, config={"retention.ms": "1234"})
    for number in three.brokers:
        assert settings_of(await describe(three, number))["retention.ms"] == "1234"
    await three.zookeeper.stop()
    answer = await describe(three, 1)
    assert answer.results[0].error_code == ErrorCode.REQUEST_TIMED_OUT


async def test_acks_all_answers_for_each_partition_by_itself(three: Any) -> None:
    """acks=all: each partition of a Produce has its own result, committed or not."""
    await create(three, partitions=2)
    await three.until(lambda: {0, 1} <= set(three.brokers[1].broker.view.topics["t"]))
    view = three.brokers[1].broker.view
    leaders = {p: view.topics["t"][p].leader for p in (0, 1)}
    records = batch.encode_batch([batch.Record(b"k", b"v", 1)])
    for p, number in leaders.items():
        request = ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=0,
            topic_data=[
                TopicProduceData(
                    name="t",
                    partition_data=[
                        PartitionProduceData(index=p, records=records),
                        PartitionProduceData(index=7, records=records),
                        PartitionProduceData(index=8, records=None),
                        PartitionProduceData(index=9, records=records),
                        PartitionProduceData(index=9, records=records),
                    ],
                )
            ],
        )
        answer = await three.ask(number, request, 9)
        rows = {row.index: row.error_code for row in answer.responses[0].partition_responses}
        assert rows == {
            p: ErrorCode.REQUEST_TIMED_OUT,
            7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            8: ErrorCode.INVALID_RECORD,
            9: ErrorCode.INVALID_REQUEST,
        }
    request.acks = 5
    answer = await three.ask(leaders[1], request, 9)
    errors = {row.error_code for row in answer.responses[0].partition_responses}
    assert errors == {ErrorCode.INVALID_REQUIRED_ACKS}


async def test_acks_0_is_not_answered_and_an_error_hangs_up(three: Any) -> None:
    """KAFKA-955: acks=0 has no response, so an error closes the connection.

    The client then has to look for the leader again.
    """
    await create(three)
    other = next(number for number in three.brokers if number != leader(three))
    with pytest.raises(PeerError, match="did not answer"):
        await produce(three, leader(three), b"a", acks=0, timeout_s=0.1)
    assert await consume(three, leader(three)) == [b"a"]
    with pytest.raises(PeerError, match="the connection was lost"):
        await produce(three, other, b"a", acks=0)


async def test_a_leader_that_was_replaced_acknowledges_nothing(three: Any) -> None:
    """A replaced leader, cut off from ZooKeeper and orders, cannot commit without followers."""
    await create(three)
    number = leader(three)
    zombie = three.brokers[number].broker
    zombie._tasks.cancel()  # its session is not renewed
    await zombie._session.zk.close()
    await three.until(lambda: leader_by(three, number) not in (number, -1))
    parked = asyncio.create_task(produce(three, number, b"lost", timeout_ms=500))
    row = await produce(three, leader_by(three, number), b"kept")
    assert row.error_code == 0
    assert (await parked).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert await consume(three, leader_by(three, number)) == [b"kept"]


def leader_by(cluster: Any, other_than: int) -> int:
    """The leader in the metadata of another broker."""
    witness = next(number for number in cluster.brokers if number != other_than)
    return int(cluster.brokers[witness].broker.view.partition(TP).leader)


async def test_topics_wait_for_a_controller(three: Any) -> None:
    """Without a controller no topic is created, and the client gets LEADER_NOT_AVAILABLE."""
    broker = three.brokers[1].broker
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="later")], allow_auto_topic_creation=True
    )
    controller = broker._errands._controller
    nobody = SimpleNamespace(is_active=False, controller_id=-1)
    broker._errands._controller = lambda: nobody
    for _ in range(2):
        answer = await three.ask(1, request, 9)
        assert answer.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert broker._failure is None
    broker._errands._controller = controller
    await three.ask(1, request, 9)
    await three.until(lambda: "later" in broker.view.topics)


async def test_readers_that_never_read_do_not_fill_the_memory(
    three: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bound on unread responses each Fetch gets one batch, whatever it asks for.

    Clients that never read their responses therefore cannot fill the memory.
    """
    monkeypatch.setattr(memory_limits, "UNREAD_BYTES_MAX", 16 * 1024 * 1024)
    await create(three)
    number = leader(three)
    for _ in range(16):
        assert (await produce(three, number, b"x" * 1_000_000)).error_code == 0
    server = three.brokers[number].broker._server
    readers = [Peers(f"reader-{n}", {}) for n in range(20)]
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_epoch=-1,
        topics=[
            FetchTopic(
                topic="t",
                partitions=[FetchPartition(fetch_offset=0, partition_max_bytes=2**31 - 1)],
            )
        ],
    )
    asking = []
    for peers in readers:
        peers.update({number: ("127.0.0.1", three.brokers[number].port)})
        link = await peers._link(number)
        assert link.transport is not None
        link.transport.pause_reading()
        asking += [link.send("reader", request, 11) for _ in range(3)]
    await asyncio.sleep(0.3)
    unread = sum(connection._unread() for connection in server._connections)
    assert 8_000_000 < unread < 16 * 1024 * 1024 + 20 * 2_000_000
    for peers in readers:
        peers.close()
    await asyncio.gather(*asking, return_exceptions=True)
    await three.until(lambda: server.bounds.answer_room() == 16 * 1024 * 1024)


async def test_records_are_deleted_on_all_replicas_for_good(three: Any) -> None:
    """DeleteRecords returns after the followers have applied it, and survives a broker's kill."""
    await create(three)
    for value in (b"a", b"b", b"c"):
        await produce(three, leader(three), value)
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=2)]
            )
        ],
        timeout_ms=5000,
    )
    answer = await three.ask(leader(three), request, 2)
    row = answer.topics[0].partitions[0]
    assert (row.error_code, row.low_watermark) == (ErrorCode.NONE, 2)
    for running in three.brokers.values():
        assert running.broker._logs.logs[TP].start_offset == 2
        text = running.disk.read("log-start-offset-checkpoint").decode()
        assert text.splitlines()[2:] == ["t 0 2"]
    assert await consume(three, leader(three), offset=2) == [b"c"]
