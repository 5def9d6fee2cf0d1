"""Brokers in one process: records reach every replica, leaders move, and requests are answered."""

import asyncio
from typing import Any

import pytest

from broker_impl.errors import ErrorCode, StorageError
from broker_impl.node.peers import PeerError, Peers
from broker_impl.server import memory_limits
from broker_impl.wire import batch
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from broker_impl.wire.messages.init_producer_id_request import InitProducerIdRequest
from broker_impl.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker_impl.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.broker_impl.node.broker_calls import TP, consume, create, leader, leader_by, produce


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

    async def row(*timestamps: int, version: int = 5) -> Any:
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
        return answer.topics[0].partitions[0]

    async def offset(*timestamps: int, version: int = 5) -> tuple[int, int]:
        found = await row(*timestamps, version=version)
        return found.error_code, found.offset

    assert (await offset(-2), await offset(-1)) == ((0, 0), (0, 2))
    assert await offset(-3, version=7) == (0, 0)
    assert await offset(-3, version=6) == (ErrorCode.UNSUPPORTED_VERSION, -1)
    assert await offset(-4, version=7) == (ErrorCode.UNSUPPORTED_VERSION, -1)
    assert await offset(-2, -1) == (ErrorCode.INVALID_REQUEST, -1)
    assert (await row(-1, version=0)).old_style_offsets == [2]
    assert (await row(-2, version=0)).old_style_offsets == [0]


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
