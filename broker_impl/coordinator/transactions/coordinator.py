"""The transaction coordinator: the transactional ids of all partitions that this broker leads.

A partition of ``__transaction_state`` is loaded before requests are answered from it, and unloaded
when another broker becomes its leader. The state of its ids is the fold of its log, in the epoch of
that leadership. A change of leadership with an epoch older than the known one is late and ignored.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

import msgspec

from broker_impl.coordinator import partitioner, transaction_records
from broker_impl.coordinator.transactions import rules
from broker_impl.coordinator.transactions.events import (
    AddPartitions,
    Answered,
    Effect,
    End,
    Event,
    Forgotten,
    InitProducerId,
    Marked,
    Request,
    Resume,
    SendMarkers,
    Tick,
    Unload,
    Written,
)
from broker_impl.coordinator.transactions.metadata import Metadata, Unmarked
from broker_impl.coordinator.transactions.transaction import Transaction
from broker_impl.errors import ErrorCode
from broker_impl.wire.types import Epoch, TopicPartition


class TransactionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Kafka's settings for transaction coordinators; times in milliseconds."""

    timeout_ms_max: int = 900_000
    """transaction.max.timeout.ms"""
    expiration_ms: int = 604_800_000
    """transactional.id.expiration.ms"""
    partitions: int = 50
    """transaction.state.log.num.partitions"""


Known = dict[int, dict[str, Transaction]]
"""The transactional ids of each loaded partition of ``__transaction_state``. A partition that this
broker leads and that is missing here is still being loaded."""


class TransactionCoordinator:
    """Pass requests and events to their transactional ids; each call returns its effects."""

    def __init__(self, config: TransactionConfig) -> None:
        self._config = config
        self._led: dict[int, Epoch] = {}
        """The leader epoch of each partition that this broker leads."""
        self._known: Known = {}
        self._numbers = count(1)

    # Leadership.

    def begin(self, partition: int, epoch: Epoch) -> list[Effect]:
        """This broker leads the partition; it answers COORDINATOR_LOAD_IN_PROGRESS until loaded."""
        if partition in self._led and self._led[partition] >= epoch:
            return []
        effects = self._unload_partition(partition)
        self._led[partition] = epoch
        return effects

    def loaded(
        self,
        partition: int,
        epoch: Epoch,
        records: Iterable[tuple[bytes, bytes | None]],
        now_ms: int,
    ) -> list[Effect]:
        """Build the partition's transactional ids from all keys and values of its log, in order.

        Transactions that were already decided continue with their markers.
        """
        if self._led.get(partition) != epoch or partition in self._known:
            return []
        transactions = self._known[partition] = {
            transactional_id: Transaction(transactional_id, metadata, self._next_number)
            for transactional_id, metadata in fold(records).items()
        }
        return [
            effect
            for transaction in transactions.values()
            for effect in transaction.handle(Resume(), now_ms)
        ]

    def end(self, partition: int, epoch: Epoch) -> list[Effect]:
        """Unload a partition that another broker leads since this epoch."""
        if partition not in self._led or self._led[partition] > epoch:
            return []
        del self._led[partition]
        return self._unload_partition(partition)

    def _unload_partition(self, partition: int) -> list[Effect]:
        return [
            effect
            for transaction in unloaded(self._known, partition).values()
            for effect in transaction.handle(Unload(), 0)
        ]

    def epoch_of(self, transactional_id: str) -> Epoch | None:
        """The leader epoch used for markers and writes of this id; None: not led here."""
        return self._led.get(self.partition_of(transactional_id))

    def partition_of(self, transactional_id: str) -> int:
        """The partition of ``__transaction_state`` that an id belongs to."""
        return partitioner.partition_of(transactional_id, self._config.partitions)

    # Requests.

    def _find(self, transactional_id: str) -> dict[str, Transaction] | ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        partition = self.partition_of(transactional_id)
        if partition not in self._led:
            return ErrorCode.NOT_COORDINATOR
        return loaded_of(self._known, partition)

    def request(self, transactional_id: str, request: Request, now_ms: int) -> list[Effect]:
        """Handle a client's request for its transactional id."""
        error = self._refusal(request)
        known = self._find(transactional_id)
        if isinstance(known, ErrorCode):
            error = error or known
        elif error is ErrorCode.NONE:
            transaction = known.get(transactional_id)
            if transaction is None and isinstance(request, InitProducerId):
                blank = Metadata(timeout_ms=request.timeout_ms)
                transaction = known[transactional_id] = Transaction(
                    transactional_id, blank, self._next_number
                )
            if transaction is not None:
                return self._handle(known, transaction, request, now_ms)
            error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return [Answered(request.ticket, request.refused(error))]

    def _refusal(self, request: Request) -> ErrorCode:
        match request:
            case InitProducerId(timeout_ms=timeout_ms):
                if (request.producer_id < 0) != (request.producer_epoch < 0):
                    return ErrorCode.INVALID_REQUEST
                if not rules.is_timeout_allowed(timeout_ms, self._config.timeout_ms_max):
                    return ErrorCode.INVALID_TRANSACTION_TIMEOUT
            case AddPartitions() | End():
                pass
        return ErrorCode.NONE

    def needs_id(self, transactional_id: str, producer_epoch: Epoch) -> bool:
        """Must a producer id be allocated before InitProducerId can be handled?"""
        known = self._find(transactional_id)
        if isinstance(known, ErrorCode):
            return False
        transaction = known.get(transactional_id)
        return transaction is None or transaction.needs_id(producer_epoch)

    # Other events.

    def _event(self, transactional_id: str, event: Event, now_ms: int) -> list[Effect]:
        known = self._find(transactional_id)
        if isinstance(known, ErrorCode):
            return []
        transaction = known.get(transactional_id)
        return [] if transaction is None else self._handle(known, transaction, event, now_ms)

    def written(
        self, transactional_id: str, number: int, error: ErrorCode, now_ms: int
    ) -> list[Effect]:
        """Handle the outcome of a write."""
        return self._event(transactional_id, Written(number=number, error=error), now_ms)

    def marked(self, sent: SendMarkers, partition: TopicPartition, now_ms: int) -> list[Effect]:
        """Handle a marker that is written to its partition, or whose partition is gone."""
        event = Marked(
            producer_id=sent.producer_id, producer_epoch=sent.producer_epoch, partition=partition
        )
        return self._event(sent.transactional_id, event, now_ms)

    def tick(self, now_ms: int) -> list[Effect]:
        """Abort transactions that have timed out, and remove ids that have expired."""
        event = Tick(self._config.expiration_ms)
        return [
            effect
            for known in self._led_and_loaded()
            for transaction in tuple(known.values())
            for effect in self._handle(known, transaction, event, now_ms)
        ]

    def _handle(
        self, known: dict[str, Transaction], transaction: Transaction, event: Event, now_ms: int
    ) -> list[Effect]:
        effects = transaction.handle(event, now_ms)
        if transaction.is_blank or any(isinstance(effect, Forgotten) for effect in effects):
            del known[transaction.transactional_id]
        return effects

    def _led_and_loaded(self) -> list[dict[str, Transaction]]:
        return [self._known[partition] for partition in self._led if partition in self._known]

    def _next_number(self) -> int:
        return next(self._numbers)

    # Queries.

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: Epoch,
        partitions: tuple[TopicPartition, ...],
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Is the transaction of this producer open, and are these part of it (KIP-890)?"""
        known = self._find(transactional_id)
        if isinstance(known, ErrorCode):
            return dict.fromkeys(partitions, known)
        transaction = known.get(transactional_id)
        if transaction is None:
            return dict.fromkeys(partitions, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return transaction.verify(producer_id, producer_epoch, partitions)

    def describe(self, transactional_id: str) -> Metadata | ErrorCode:
        """The stored state of a transactional id, as DescribeTransactions reports it."""
        known = self._find(transactional_id)
        if isinstance(known, ErrorCode):
            return known
        transaction = known.get(transactional_id)
        if transaction is None or transaction.metadata.producer_id < 0:
            return ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return transaction.metadata

    def all(self) -> Iterator[tuple[str, Metadata]]:
        """Iterate over all transactional ids that are loaded here."""
        for known in self._led_and_loaded():
            for transactional_id, transaction in known.items():
                if transaction.metadata.producer_id >= 0:
                    yield transactional_id, transaction.metadata

    def unmarked(self) -> dict[str, Unmarked]:
        """The transactions that wait for markers, by transactional id."""
        return {
            name: Unmarked(
                transaction.metadata.producer_id,
                transaction.metadata.producer_epoch,
                transaction.unmarked,
            )
            for known in self._led_and_loaded()
            for name, transaction in known.items()
            if transaction.unmarked
        }

    @property
    def is_loading(self) -> bool:
        """Is any partition that this broker leads not loaded yet?"""
        return any(partition not in self._known for partition in self._led)


def loaded_of(known: Known, partition: int) -> dict[str, Transaction] | ErrorCode:
    """All ids of a loaded partition; until then, an error that makes clients retry.

    An id counts as new only once all ids of the partition are known.
    """
    return known.get(partition, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def unloaded(known: Known, partition: int) -> dict[str, Transaction]:
    """Remove and return the ids of a partition.

    The next time that this broker leads the partition, other brokers have coordinated its ids in
    between, so it must load them again (KAFKA-9307).
    """
    return known.pop(partition, {})


def fold(records: Iterable[tuple[bytes, bytes | None]]) -> dict[str, Metadata]:
    """Fold a partition's log: the last value of each transactional id, without the removed ids.

    Raises WireError for a malformed record.
    """
    found: dict[str, Metadata] = {}
    for key, value in records:
        transactional_id = transaction_records.decode_key(key)
        if transactional_id is None:
            continue
        if value is None:
            found.pop(transactional_id, None)
        else:
            found[transactional_id] = transaction_records.decode_value(value)
    return found
