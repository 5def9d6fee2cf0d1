"""Transactions over the wire between brokers, coordinators and readers, without a client."""

import asyncio
from typing import Any

import pytest

from broker_impl.api.registry import APIS
from broker_impl.coordinator import transaction_records
from broker_impl.errors import ErrorCode
from broker_impl.node.coordinators import transaction_coordinator
from broker_impl.node.peers import PeerError
from broker_impl.wire import batch
from broker_impl.wire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from broker_impl.wire.messages.describe_producers_request import (
    DescribeProducersRequest,
    TopicRequest,
)
from broker_impl.wire.messages.describe_transactions_request import DescribeTransactionsRequest
from broker_impl.wire.messages.end_txn_request import EndTxnRequest
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from broker_impl.wire.messages.fetch_response import PartitionData
from broker_impl.wire.messages.find_coordinator_request import FindCoordinatorRequest
from broker_impl.wire.messages.init_producer_id_request import InitProducerIdRequest
from broker_impl.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker_impl.wire.messages.list_transactions_request import ListTransactionsRequest
from broker_impl.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker_impl.wire.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.conftest import WALL_MS

TP = TopicPartition("t", 0)
NONE = ErrorCode.NONE


class Producer:
    """A producer with a transactional id that sends the protocol's requests."""

    def __init__(self, cluster: Any, transactional_id: str = "tx") -> None:
        self.cluster = cluster
        self.transactional_id = transactional_id
        self.id, self.epoch, self.sequence = -1, -1, 0

    async def coordinator(self) -> int:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=[self.transactional_id])
        while True:
            answer = await self.cluster.ask(running(self.cluster), request, 4)
            found = answer.coordinators[0]
            if not found.error_code:
                return int(found.node_id)
            assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE, found
            await asyncio.sleep(0.01)

    async def ask(self, message: Any, version: int) -> Any:
        """Return the coordinator's response, once it has loaded and is not busy."""
        while True:
            answer = await self.cluster.ask(await self.coordinator(), message, version)
            error = error_in(answer)
            if error not in (
                ErrorCode.NOT_COORDINATOR,
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                ErrorCode.CONCURRENT_TRANSACTIONS,
            ):
                return answer
            await asyncio.sleep(0.01)

    async def init(self, version: int = 4) -> int:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=60_000
        )
        answer = await self.ask(request, version)
        self.id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        return int(answer.error_code)

    async def add(self, tp: TopicPartition = TP, version: int = 3) -> int:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(tp.topic, [tp.partition])],
        )
        return int(error_in(await self.ask(request, version)))

    async def send(self, *values: bytes) -> int:
        data = batch.encode_batch(
            [batch.Record(value=value, timestamp_ms=WALL_MS) for value in values],
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            transactional=True,
        )
        rows = [PartitionProduceData(index=TP.partition, records=data)]
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=5000,
            topic_data=[TopicProduceData(name=TP.topic, partition_data=rows)],
        )
        answer = await self.cluster.ask(leader(self.cluster), request, 9)
        error = int(answer.responses[0].partition_responses[0].error_code)
        if not error:
            self.sequence += len(values)
        return error

    async def end(self, *, commit: bool, version: int = 3) -> int:
        request = EndTxnRequest(self.transactional_id, self.id, self.epoch, commit)
        return int((await self.ask(request, version)).error_code)


def error_in(answer: Any) -> int:
    rows = getattr(answer, "results_by_topic_v3_and_below", None)
    if rows:
        return int(rows[0].results_by_partition[0].partition_error_code)
    return int(answer.error_code)


def running(cluster: Any) -> int:
    return next(int(number) for number, each in cluster.brokers.items() if each.broker)


def leader(cluster: Any, tp: TopicPartition = TP) -> int:
    return int(cluster.brokers[running(cluster)].broker.view.partition(tp).leader)


async def fetch(
    cluster: Any, offset: int = 0, *, committed: bool = True, wait_ms: int = 0
) -> PartitionData:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1_000_000)
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        isolation_level=int(committed),
        session_epoch=-1,
        topics=[FetchTopic(topic="t", partitions=[partition])],
    )
    answer = await cluster.ask(leader(cluster), request, 11)
    row: PartitionData = answer.responses[0].partitions[0]
    return row


async def end_offset(cluster: Any, *, committed: bool) -> int:
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(committed),
        topics=[ListOffsetsTopic("t", [ListOffsetsPartition(partition_index=0, timestamp=-1)])],
    )
    answer = await cluster.ask(leader(cluster), request, 5)
    return int(answer.topics[0].partitions[0].offset)


async def stable(cluster: Any, offset: int) -> None:
    """Wait until the last stable offset is `offset`."""
    async with asyncio.timeout(10):
        while True:
            if await end_offset(cluster, committed=True) == offset:
                return
            await asyncio.sleep(0.01)


@pytest.fixture
async def producer(three: Any) -> Producer:
    """The topic `t`, and a producer that has called InitProducerId."""
    controller = three.brokers[1].broker.view.controller_id
    new = CreatableTopic(name="t", num_partitions=2, replication_factor=3)
    request = CreateTopicsRequest(topics=[new], timeout_ms=5000)
    answer = await three.ask(controller, request, 5)
    assert [row.error_code for row in answer.topics] == [0]
    await three.until(
        lambda: all("t" in each.broker.view.topics for each in three.brokers.values())
    )
    producer = Producer(three)
    assert await producer.init() == NONE
    return producer


async def test_a_reader_of_committed_records_waits_for_the_marker(producer: Producer) -> None:
    """read_committed readers wait for the marker in Fetch and ListOffsets (R10, T1, KAFKA-5522)."""
    cluster = producer.cluster
    assert (await producer.add(), await producer.send(b"a", b"b")) == (NONE, NONE)
    row = await fetch(cluster)
    assert (row.high_watermark, row.last_stable_offset, row.records) == (2, 0, b"")
    assert row.aborted_transactions == []
    assert await end_offset(cluster, committed=True) == 0
    assert await end_offset(cluster, committed=False) == 2
    assert (await fetch(cluster, committed=False)).aborted_transactions is None
    assert await producer.end(commit=True) == NONE
    await stable(cluster, 3)
    row = await fetch(cluster)
    assert isinstance(row.records, memoryview)
    assert len(batch.records(row.records)) == 3


async def test_a_parked_reader_is_told_what_was_aborted(producer: Producer) -> None:
    """KAFKA-5376: a parked Fetch returns the aborted transactions together with their records."""
    await producer.add()
    await producer.send(b"a")
    reading = asyncio.create_task(fetch(producer.cluster, wait_ms=8000))
    await asyncio.sleep(0.05)
    assert not reading.done()
    assert await producer.end(commit=False) == NONE
    row = await reading
    assert row.aborted_transactions is not None
    assert [(each.producer_id, each.first_offset) for each in row.aborted_transactions] == [
        (producer.id, 0)
    ]


async def test_a_late_batch_begins_no_transaction(producer: Producer) -> None:
    """T-02 (KAFKA-14402): a batch after the end of its transaction is refused.

    It would otherwise begin a transaction that blocks readers for ever.
    """
    await producer.add()
    await producer.send(b"a")
    await producer.end(commit=True)
    await stable(producer.cluster, 2)
    assert await producer.send(b"late") == ErrorCode.INVALID_TXN_STATE
    assert await end_offset(producer.cluster, committed=False) == 2
    assert (await producer.add(), await producer.send(b"b")) == (NONE, NONE)


async def test_a_partition_has_to_be_added_first(producer: Producer) -> None:
    """KIP-890: a batch for a partition that was not added to the open transaction is refused."""
    assert await producer.add(TopicPartition(TP.topic, 1)) == NONE
    assert await producer.send(b"a") == ErrorCode.INVALID_TXN_STATE


async def test_a_fenced_producer_neither_sends_nor_ends(producer: Producer) -> None:
    """A fenced producer can neither send nor end.

    Older versions of the protocol have one error code for both cases (KIP-588).
    """
    await producer.add()
    zombie = Producer(producer.cluster)
    zombie.id, zombie.epoch = producer.id, producer.epoch
    assert await producer.init() == NONE
    assert producer.epoch == zombie.epoch + 2  # one epoch is used for the abort
    assert await zombie.send(b"a") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await zombie.add(version=3) == ErrorCode.PRODUCER_FENCED
    assert await zombie.add(version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await zombie.end(commit=True, version=3) == ErrorCode.PRODUCER_FENCED
    assert await zombie.end(commit=True, version=1) == ErrorCode.INVALID_PRODUCER_EPOCH


async def test_what_was_decided_survives_its_coordinator(producer: Producer) -> None:
    """KAFKA-5131: the next coordinator sends the markers that its predecessor did not send."""
    cluster = producer.cluster
    coordinator = await producer.coordinator()
    cluster.brokers[coordinator].broker.transactions._markers.send = lambda *args: None
    await producer.add()
    await producer.send(b"a")
    assert await producer.end(commit=True) == NONE
    assert await end_offset(cluster, committed=True) == 0
    await cluster.brokers[coordinator].stop()
    await cluster.until(lambda: leader(cluster) not in (-1, coordinator))
    await stable(cluster, 2)
    assert await producer.end(commit=True) == NONE, "asked again of the next coordinator"
    assert await producer.end(commit=False) == ErrorCode.INVALID_TXN_STATE


async def test_the_next_transaction_waits_for_the_one_before(
    producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new transaction waits for the markers of the one before, up to a bound.

    A client that is refused would wait for longer than the markers take.
    """
    here = await producer.coordinator()
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic("t", [0])],
    )
    monkeypatch.setattr(transaction_coordinator, "_SETTLE_S", 5.0)
    await producer.add()
    await producer.end(commit=True)
    assert error_in(await producer.cluster.ask(here, request, 3)) == NONE
    monkeypatch.setattr(transaction_coordinator, "_SETTLE_S", 0.01)
    coordinator = producer.cluster.brokers[here].broker.transactions
    monkeypatch.setattr(coordinator._markers, "send", lambda *args: None)
    await producer.end(commit=True)
    answer = await producer.cluster.ask(here, request, 3)
    assert error_in(answer) == ErrorCode.CONCURRENT_TRANSACTIONS


async def test_what_is_going_on_can_be_seen(producer: Producer) -> None:
    """KIP-664: transactions are visible at the coordinator, producers at each replica."""
    cluster = producer.cluster
    await producer.add()
    await producer.send(b"a", b"b")
    here = await producer.coordinator()
    answer = await cluster.ask(here, DescribeTransactionsRequest(["tx", "unknown"]), 0)
    known, unknown = answer.transaction_states
    assert (known.transaction_state, known.producer_id, known.producer_epoch) == (
        "Ongoing",
        producer.id,
        0,
    )
    assert [(topic.topic, topic.partitions) for topic in known.topics] == [("t", [0])]
    assert known.transaction_timeout_ms == 60_000
    elsewhere = (ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, ErrorCode.NOT_COORDINATOR)
    assert unknown.error_code in elsewhere
    answer = await cluster.ask(here, ListTransactionsRequest(["Ongoing", "Odd"], []), 0)
    assert answer.unknown_state_filters == ["Odd"]
    assert [row.transactional_id for row in answer.transaction_states] == ["tx"]
    answer = await cluster.ask(here, ListTransactionsRequest([], [producer.id + 1]), 0)
    assert answer.transaction_states == []
    request = DescribeProducersRequest([TopicRequest("t", [0]), TopicRequest("none", [0])])
    answer = await cluster.ask(leader(cluster), request, 0)
    row = answer.topics[0].partitions[0]
    (state,) = row.active_producers
    assert (state.producer_id, state.last_sequence) == (producer.id, 1)
    assert (state.current_txn_start_offset, state.coordinator_epoch) == (0, -1)
    for number in cluster.brokers[running(cluster)].broker.view.partition(TP).replicas:
        at_replica = await cluster.ask(number, request, 0)
        assert at_replica.topics[0].partitions[0].active_producers[0].last_sequence == 1
    missing = answer.topics[1].partitions[0]
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_markers_of_former_coordinators_are_refused(producer: Producer) -> None:
    """T5: markers of earlier coordinator epochs are refused.

    Admin clients may end hanging transactions by a marker (KIP-664).
    """
    cluster = producer.cluster

    async def mark(coordinator_epoch: int, *, commit: bool, topic: str = "t") -> int:
        marker = WritableTxnMarker(
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            transaction_result=commit,
            topics=[WritableTxnMarkerTopic(topic, [0])],
            coordinator_epoch=coordinator_epoch,
        )
        answer = await cluster.ask(leader(cluster), WriteTxnMarkersRequest([marker]), 1)
        return int(answer.markers[0].topics[0].partitions[0].error_code)

    await producer.add()
    await producer.send(b"a")
    assert await mark(5, commit=False) == NONE
    assert await end_offset(cluster, committed=True) == 2
    assert await mark(4, commit=True) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert await mark(5, commit=True, topic="none") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    producer.epoch -= 1
    assert await mark(5, commit=True) == ErrorCode.INVALID_PRODUCER_EPOCH


async def test_partitions_that_are_not_there_are_not_added(producer: Producer) -> None:
    """If one partition of a request is unknown, none of its partitions is added."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic("t", [0]),
            AddPartitionsToTxnTopic("none", [7]),
        ],
    )
    answer = await producer.cluster.ask(await producer.coordinator(), request, 3)
    errors = [
        row.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for row in topic.results_by_partition
    ]
    assert errors == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_internal_topics_are_no_part_of_a_transaction(producer: Producer) -> None:
    """Clients cannot add internal topics to a transaction: only coordinators write to them."""
    added = await producer.add(TopicPartition("__consumer_offsets", 0))
    assert added == ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def test_verification_is_between_brokers(producer: Producer) -> None:
    """The brokers' version of AddPartitionsToTxn is neither advertised nor open to clients."""
    row = APIS[24]
    assert (row.advertised, row.served) == (range(4), range(5))
    with pytest.raises(PeerError):
        await producer.cluster.ask(1, AddPartitionsToTxnRequest(), 4)


async def test_the_internal_topic_is_made_as_it_has_to_be(producer: Producer) -> None:
    """__transaction_state has fifty partitions, three replicas, and compaction only."""
    brokers = [each.broker for each in producer.cluster.brokers.values()]
    partitions = brokers[0].view.topics[transaction_records.TOPIC]
    assert len(partitions) == 50
    assert {len(view.replicas) for view in partitions.values()} == {3}
    settings = await brokers[0].topic_settings(transaction_records.TOPIC)
    assert settings == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "2",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }
