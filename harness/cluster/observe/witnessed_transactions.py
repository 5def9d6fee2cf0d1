"""Passes what simulated brokers accept for transactions to `checkers.invariants.transactional`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from broker_impl.coordinator.transactions.metadata import Metadata
from broker_impl.errors import ErrorCode, WireError
from broker_impl.node.broker import Broker
from broker_impl.replica.events import Role
from broker_impl.wire import batch
from broker_impl.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from broker_impl.wire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from broker_impl.wire.messages.end_txn_request import EndTxnRequest
from broker_impl.wire.messages.offset_fetch_request import OffsetFetchRequest
from broker_impl.wire.messages.produce_request import ProduceRequest
from broker_impl.wire.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from broker_impl.wire.messages.update_metadata_request import UpdateMetadataRequest
from broker_impl.wire.types import TopicPartition
from checkers.invariants import transactional
from checkers.invariants.coordinated import Transaction
from checkers.invariants.transactional import Accepted, Coordinated
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_offsets import being_deleted

OnAnswer = Callable[[Any], None]


class _Producer(NamedTuple):
    id: int
    epoch: int


class _Begun(NamedTuple):
    """A transaction that a request would begin in a partition."""

    producer: _Producer
    end: int
    """The end of the partition's log when the request arrived."""


@dataclass
class OpenTransactions:
    """What all brokers of a run know, and what they have accepted so far."""

    brokers: dict[int, Broker] = field(default_factory=dict)
    """The last life of each broker, from its first request on: it has its replicas then."""
    begun: Counter[str] = field(default_factory=Counter)
    """The requests that add partitions to a transaction, by transactional id."""
    offsets: dict[tuple[str, _Producer], dict[str, int]] = field(default_factory=dict)
    """The offsets that a group has accepted in a producer's current transaction, by partition."""

    deletions: Counter[str] = field(default_factory=Counter)
    """How often brokers have learned that a partition is being deleted."""

    def delete(self, partitions: Iterable[str]) -> None:
        """Forget the offsets of partitions that are being deleted: they do not count any more."""
        for partition in partitions:
            self.deletions[partition] += 1
            for offsets in self.offsets.values():
                offsets.pop(partition, None)

    def end(self, producer: _Producer) -> None:
        """Forget a transaction that its producer ends."""
        for key in [key for key in self.offsets if key[1] == producer]:
            del self.offsets[key]

    def coordinated(self, name: str) -> Coordinated:
        """Return what is known of a transactional id now."""
        newest, epoch, transaction, coordinators = -1, -1, None, 0
        for broker in self.brokers.values():
            home = broker.transactions.partition_of(name)
            known = broker.replicas.leader_epoch(home)
            newest = max(newest, known)
            found = broker.transactions.describe(name)
            knows_none = found is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            is_coordinator = knows_none or isinstance(found, Metadata)
            coordinators += is_coordinator
            if known > epoch and is_coordinator:
                epoch, transaction = known, _transaction(found)
        return Coordinated(newest, epoch, transaction, self.begun[name], coordinators == 1)


def _transaction(found: Metadata | ErrorCode) -> Transaction | None:
    if not isinstance(found, Metadata):
        return None
    partitions = {str(tp) for tp in found.partitions}
    return Transaction(found.producer_id, found.producer_epoch, found.state.name, partitions)


class TransactionWitness:
    """Sees requests within transactions, and for stable offsets, to one life of a broker.

    Args:
        reporter: reports violations in the broker's answers.
        broker: the broker.
        transactions: what is known of all brokers.
        keeps: whether what was committed is kept, because no election is unclean.
    """

    def __init__(
        self,
        reporter: Reporter,
        broker: Broker,
        transactions: OpenTransactions,
        *,
        keeps: bool,
    ) -> None:
        self._reporter = reporter
        self._broker = broker
        self._transactions = transactions
        self._keeps = keeps
        transactions.brokers.pop(reporter.broker, None)

    def __call__(self, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        self._transactions.brokers[self._reporter.broker] = self._broker
        match request:
            case ProduceRequest() if request.transactional_id:
                return self._produce(request, request.transactional_id)
            case TxnOffsetCommitRequest():
                return self._commit(request)
            case OffsetFetchRequest() if request.require_stable and self._keeps:
                return lambda answer: self._fetched(request, answer)
            case AddPartitionsToTxnRequest() if not request.transactions:
                self._transactions.begun[request.v3_and_below_transactional_id] += 1
            case AddOffsetsToTxnRequest():
                self._transactions.begun[request.transactional_id] += 1
            case UpdateMetadataRequest():
                self._transactions.delete(being_deleted(request))
            case EndTxnRequest():
                self._transactions.end(_Producer(request.producer_id, request.producer_epoch))
            case _:
                pass
        return None

    def _begun(self, tp: TopicPartition, producer: _Producer) -> _Begun | None:
        """Return what a batch of the producer would begin here; None: nothing is verified."""
        partition = self._broker.replicas.partitions.get(tp)
        if partition is None or partition.role is not Role.LEADER or producer.id < 0:
            return None
        if not partition.log.config.verify_transactions or self._is_open(tp, producer.id):
            return None
        return _Begun(producer, partition.log.end_offset)

    def _is_open(self, tp: TopicPartition, producer_id: int) -> bool:
        return self._open_epoch(tp, producer_id) is not None

    def _open_epoch(self, tp: TopicPartition, producer_id: int) -> int | None:
        """Return the epoch of the producer's open transaction in the log here; None: none is."""
        partition = self._broker.replicas.partitions.get(tp)
        entry = None if partition is None else partition.log.producers.entries.get(producer_id)
        is_open = entry is not None and entry.transaction_start is not None
        return entry.epoch if entry is not None and is_open else None

    def _produce(self, request: ProduceRequest, name: str) -> OnAnswer | None:
        begun = {
            tp: each
            for tp, producer in _producers(request)
            if (each := self._begun(tp, producer)) is not None
        }
        if not begun:
            return None
        before = self._transactions.coordinated(name)

        def on_answer(answer: Any) -> None:
            after = self._transactions.coordinated(name)
            for topic in answer.responses:
                for row in topic.partition_responses:
                    tp = TopicPartition(topic.name, row.index)
                    each = begun.get(tp)
                    if each is not None and not row.error_code and row.base_offset >= each.end:
                        self._accepted(name, before, after, Accepted(*each.producer, str(tp)))

        return on_answer

    def _commit(self, request: TxnOffsetCommitRequest) -> OnAnswer:
        name = request.transactional_id
        producer = _Producer(request.producer_id, request.producer_epoch)
        home = self._broker.groups.partition_of(request.group_id)
        begun = self._begun(home, producer)
        before = None if begun is None else self._transactions.coordinated(name)
        leader_epoch = self._broker.replicas.leader_epoch(home)
        open_epoch = self._open_epoch(home, producer.id)
        offsets = {
            str(TopicPartition(topic.name, row.partition_index)): row.committed_offset
            for topic in request.topics
            for row in topic.partitions
        }
        deletions = {each: self._transactions.deletions[each] for each in offsets}

        def on_answer(answer: Any) -> None:
            accepted = [
                str(TopicPartition(topic.name, row.partition_index))
                for topic in answer.topics
                for row in topic.partitions
                if not row.error_code
            ]
            if not accepted:
                return
            known = self._transactions.offsets.setdefault((request.group_id, producer), {})
            known.update(
                (partition, offsets[partition])
                for partition in accepted
                if self._transactions.deletions[partition] == deletions[partition]
            )
            if self._broker.replicas.leader_epoch(home) == leader_epoch:
                why = transactional.replaced(open_epoch, *producer)
                self._reporter.found("producer-refused", why, about=f"group {request.group_id}")
            if before is not None:
                after = self._transactions.coordinated(name)
                self._accepted(name, before, after, Accepted(*producer, str(home)))

        return on_answer

    def _accepted(
        self, name: str, before: Coordinated, after: Coordinated, accepted: Accepted
    ) -> None:
        why = transactional.outside(before, after, accepted)
        self._reporter.found("accepted-outside-transaction", why, about=name)

    def _fetched(self, request: OffsetFetchRequest, answer: Any) -> None:
        rows = [(request.group_id, answer.topics)]
        if request.groups:
            rows = [(group.group_id, group.topics) for group in answer.groups]
        for name, topics in rows:
            answered = [
                str(TopicPartition(topic.name, row.partition_index))
                for topic in topics
                for row in topic.partitions
                if not row.error_code
            ]
            found = transactional.unsettled(answered, self._open(name))
            if found is not None:
                partition, producer, offset = found
                why = (
                    "an offset was returned as stable, but the open transaction of producer"
                    f" {producer} has committed {offset}"
                )
                about = f"group {name}, {partition}"
                self._reporter.found("stable-offset-settled", why, about=about)

    def _open(self, group: str) -> Mapping[int, Mapping[str, int]]:
        """Return the offsets that wait for a transaction, by producer and partition.

        A transaction counts if it is open in the log that this broker reads as the coordinator.
        """
        home = self._broker.groups.partition_of(group)
        partition = self._broker.replicas.partitions.get(home)
        if partition is None:
            return {}
        entries = partition.log.producers.entries
        return {
            producer.id: offsets
            for (name, producer), offsets in self._transactions.offsets.items()
            if name == group
            and (entry := entries.get(producer.id)) is not None
            and entry.transaction_start is not None
            and entry.epoch == producer.epoch
        }


def _producers(request: ProduceRequest) -> Iterator[tuple[TopicPartition, _Producer]]:
    """Yield the producers of the transactional batches of a request, by partition."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if isinstance(data.records, memoryview):
                with suppress(WireError):
                    header = batch.parse_header(data.records)
                    if header.is_transactional:
                        producer = _Producer(header.producer_id, header.producer_epoch)
                        yield TopicPartition(topic.name, data.index), producer
