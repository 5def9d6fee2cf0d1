"""What brokers accept for transactions is compared with the state of their coordinators."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.api.cluster_view import BEING_DELETED
from broker_impl.coordinator.transactions.metadata import Metadata
from broker_impl.coordinator.transactions.states import TransactionState
from broker_impl.errors import ErrorCode
from broker_impl.log.producers import ProducerEntry
from broker_impl.replica.events import Role
from broker_impl.wire import batch
from broker_impl.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from broker_impl.wire.messages.end_txn_request import EndTxnRequest
from broker_impl.wire.messages.offset_fetch_request import OffsetFetchRequest
from broker_impl.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker_impl.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from broker_impl.wire.messages.update_metadata_request import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from broker_impl.wire.types import TopicPartition
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_transactions import OpenTransactions, TransactionWitness

DATA = TopicPartition("x", 0)
OFFSETS = TopicPartition("__consumer_offsets", 3)
HOME = TopicPartition("__transaction_state", 2)
ONGOING, COMMITTED = TransactionState.ONGOING, TransactionState.COMPLETE_COMMIT


class Broker:
    """A broker that leads a partition and coordinates the group g and the transactional id t."""

    def __init__(self, *, keeps: bool = True, verifies: bool = True) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.known: Metadata | ErrorCode = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        self.found: list[str] = []
        self.newest = 5
        log = SimpleNamespace(
            config=SimpleNamespace(verify_transactions=verifies),
            producers=SimpleNamespace(entries=self.entries),
            end_offset=10,
        )
        led = SimpleNamespace(role=Role.LEADER, log=log)
        broker: Any = SimpleNamespace(
            replicas=SimpleNamespace(
                partitions={DATA: led, OFFSETS: led}, leader_epoch=lambda tp: self.newest
            ),
            groups=SimpleNamespace(partition_of=lambda name: OFFSETS),
            transactions=SimpleNamespace(
                describe=lambda name: self.known, partition_of=lambda name: HOME
            ),
        )
        self.transactions = OpenTransactions()
        self.witness = TransactionWitness(
            Reporter(1, lambda: 0, lambda violation: self.found.append(violation.invariant)),
            broker,
            self.transactions,
            keeps=keeps,
        )

    def becomes(self, state: TransactionState, *partitions: TopicPartition) -> None:
        """Change the transaction of producer 7 in epoch 2."""
        self.known = Metadata(
            producer_id=7, producer_epoch=2, timeout_ms=1, state=state, partitions=partitions
        )

    def begins(self, *, epoch: int = 2, ends: bool = False) -> None:
        """Change the producer's entry in the log."""
        self.entries[7] = ProducerEntry(epoch=epoch, transaction_start=None if ends else 10)

    def produce(self, base_offset: int = 10, code: int = 0) -> list[str]:
        """Answer a batch of producer 7; return the violations."""
        records = batch.encode_batch(
            [batch.Record(None, b"", 1)],
            producer_id=7,
            producer_epoch=2,
            base_sequence=0,
            transactional=True,
        )
        topic = TopicProduceData("x", [PartitionProduceData(0, memoryview(records))])
        request = ProduceRequest(transactional_id="t", topic_data=[topic])
        on_answer = self.witness(request)
        row = SimpleNamespace(index=0, error_code=code, base_offset=base_offset)
        return self.answered(on_answer, responses=_topics(partition_responses=[row]))

    def commit(self, code: int = 0) -> list[str]:
        """Answer a commit of offset 40 for the partition x-0; return the violations."""
        on_answer = self.witness(_offset_commit())
        row = SimpleNamespace(partition_index=0, error_code=code)
        return self.answered(on_answer, topics=_topics(partitions=[row]))

    def fetch(self, code: int = 0, *, stable: bool = True, group: str = "g") -> list[str]:
        """Answer a request for the offset of x-0; return the violations."""
        on_answer = self.witness(OffsetFetchRequest(group_id=group, require_stable=stable))
        row = SimpleNamespace(partition_index=0, error_code=code)
        return self.answered(on_answer, topics=_topics(partitions=[row]))

    def answered(self, on_answer: Any, **answer: Any) -> list[str]:
        """Call the function with an answer; return the violations."""
        self.found.clear()
        if on_answer is not None:
            on_answer(SimpleNamespace(**answer))
        return list(self.found)


def _offset_commit() -> TxnOffsetCommitRequest:
    """A commit of offset 40 for the partition x-0, by producer 7 in epoch 2."""
    return TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="g",
        producer_id=7,
        producer_epoch=2,
        topics=[TxnOffsetCommitRequestTopic("x", [TxnOffsetCommitRequestPartition(0, 40)])],
    )


def _topics(**rows: Any) -> list[Any]:
    return [SimpleNamespace(name="x", **rows)]


def test_records_are_accepted_in_open_transactions_only() -> None:
    """A batch that was appended before, and one that was refused, are right."""
    broker = Broker()
    broker.becomes(COMMITTED)
    assert broker.produce() == ["accepted-outside-transaction"]
    assert broker.produce(base_offset=9) == []
    assert broker.produce(code=48) == []
    broker.becomes(ONGOING, TopicPartition("x", 1))
    assert broker.produce() == ["accepted-outside-transaction"]
    broker.becomes(ONGOING, DATA)
    assert broker.produce() == []


def test_a_decided_transaction_does_not_begin() -> None:
    """It may, if another broker takes itself for the coordinator, and takes it for open."""
    broker = Broker()
    broker.becomes(TransactionState.PREPARE_COMMIT, DATA)
    assert broker.produce() == ["accepted-outside-transaction"]
    broker.transactions.brokers[2] = broker.transactions.brokers[1]
    assert broker.produce() == []


def test_a_transaction_that_has_begun_in_a_log_needs_no_verification() -> None:
    """Its later batches are not verified, nor is any where the setting says so."""
    broker = Broker()
    broker.becomes(COMMITTED)
    broker.begins()
    assert broker.produce() == []
    lenient = Broker(verifies=False)
    lenient.becomes(COMMITTED)
    assert lenient.produce() == []


def test_a_later_coordinator_may_know_more() -> None:
    """No broker knows the state in the latest leader epoch."""
    broker = Broker()
    broker.known = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert broker.produce() == []


def test_a_broker_that_starts_knows_nothing_yet() -> None:
    """It has no replicas before its first request, and what it knew before has ended with it."""
    broker = Broker()
    broker.becomes(COMMITTED)
    starting: Any = SimpleNamespace()
    reporter = Reporter(2, lambda: 0, lambda _: None)
    TransactionWitness(reporter, starting, broker.transactions, keeps=True)
    assert broker.produce() == ["accepted-outside-transaction"]
    reporter = Reporter(1, lambda: 0, lambda _: None)
    TransactionWitness(reporter, starting, broker.transactions, keeps=True)
    assert broker.transactions.coordinated("t").is_certain is False


def test_offsets_are_accepted_in_open_transactions_only() -> None:
    """The transaction must have the partition of the group's offsets."""
    broker = Broker()
    broker.becomes(COMMITTED)
    assert broker.commit() == ["accepted-outside-transaction"]
    assert broker.commit(code=48) == []
    broker.becomes(ONGOING, OFFSETS)
    assert broker.commit() == []


def test_a_partition_may_be_added_meanwhile() -> None:
    """The request that adds it arrives between the commit and its answer."""
    broker = Broker()
    broker.becomes(COMMITTED)
    on_answer = broker.witness(_offset_commit())
    broker.witness(AddOffsetsToTxnRequest(transactional_id="t", group_id="g"))
    row = SimpleNamespace(partition_index=0, error_code=0)
    assert broker.answered(on_answer, topics=_topics(partitions=[row])) == []


def test_offsets_of_a_replaced_producer_are_refused() -> None:
    """The commit names epoch 2, while a transaction of the producer is open in the log."""
    broker = Broker()
    broker.becomes(ONGOING, OFFSETS)
    broker.begins()
    assert broker.commit() == []
    broker.begins(epoch=3)
    assert broker.commit(code=47) == []
    assert broker.commit() == ["producer-refused"]
    broker.begins(epoch=3, ends=True)
    assert broker.commit() == []


def test_a_leader_of_another_epoch_may_have_another_log() -> None:
    """The open transaction of the successor may have been truncated meanwhile."""
    broker = Broker()
    broker.becomes(ONGOING, OFFSETS)
    broker.begins(epoch=3)
    on_answer = broker.witness(_offset_commit())
    broker.newest = 6
    row = SimpleNamespace(partition_index=0, error_code=0)
    assert broker.answered(on_answer, topics=_topics(partitions=[row])) == []


@pytest.mark.parametrize("keeps", [True, False])
def test_offsets_are_stable_once_their_transaction_has_ended(keeps: bool) -> None:
    """Only requests for stable offsets wait, and nothing is judged with unclean elections."""
    broker = Broker(keeps=keeps)
    broker.becomes(ONGOING, OFFSETS)
    broker.commit()
    broker.begins()
    assert broker.fetch() == (["stable-offset-settled"] if keeps else [])
    assert broker.fetch(code=88) == []
    assert broker.fetch(stable=False) == []
    assert broker.fetch(group="other") == []
    broker.begins(ends=True)
    assert broker.fetch() == []


def test_the_next_transaction_of_a_producer_has_other_offsets() -> None:
    """Both have the same epoch, in the protocol of Kafka 2.8."""
    broker = Broker()
    broker.becomes(ONGOING, OFFSETS)
    broker.commit()
    broker.witness(EndTxnRequest(transactional_id="t", producer_id=7, producer_epoch=2))
    broker.begins()
    assert broker.fetch() == []


def test_a_refused_offset_is_not_waited_for() -> None:
    """Neither is one of another partition."""
    broker = Broker()
    broker.becomes(ONGOING, OFFSETS)
    broker.commit(code=25)
    broker.begins()
    assert broker.fetch() == []


def test_offsets_of_a_deleted_topic_wait_for_no_transaction() -> None:
    """They do not count any more, nor does a commit that is answered after the deletion."""

    def update(leader: int) -> UpdateMetadataRequest:
        state = UpdateMetadataPartitionState(partition_index=0, leader=leader)
        topic = UpdateMetadataTopicState(topic_name="x", partition_states=[state])
        return UpdateMetadataRequest(topic_states=[topic])

    broker = Broker()
    broker.becomes(ONGOING, OFFSETS)
    broker.commit()
    broker.begins()
    broker.witness(update(leader=1))
    assert broker.fetch() == ["stable-offset-settled"]
    broker.witness(update(leader=BEING_DELETED))
    assert broker.fetch() == []
    on_answer = broker.witness(_offset_commit())
    broker.witness(update(leader=BEING_DELETED))
    broker.answered(on_answer, topics=_topics(partitions=[_accepted_row()]))
    assert broker.fetch() == []
    broker.commit()
    assert broker.fetch() == ["stable-offset-settled"]


def _accepted_row() -> SimpleNamespace:
    return SimpleNamespace(partition_index=0, error_code=0)
