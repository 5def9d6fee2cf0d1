"""Bugs in which requests of transactional producers coordinators and leaders accept."""

from broker_impl.coordinator.transactions import states
from broker_impl.coordinator.transactions.metadata import NO_EPOCH, NO_ID, Metadata
from broker_impl.coordinator.transactions.states import TransactionState
from broker_impl.errors import ErrorCode
from broker_impl.log.producers import ProducerEntry
from broker_impl.mutants import mutant
from broker_impl.wire.batch import BatchHeader
from broker_impl.wire.types import Epoch, TopicPartition


@mutant(
    "deleted-partition-awaited",
    of="broker_impl.node.coordinators.markers:is_gone",
    source="KAFKA-5202, KIP-98",
    kind="historic",
    symptom="stuck",
    schedule="A topic is deleted while a transaction is open in it.",
)
def is_gone(unknown_s: float) -> bool:
    """A coordinator waits for a leader of each partition, however long the partition is unknown.

    A deleted partition never has one. The transaction does not end, and each producer with its
    transactional id is answered CONCURRENT_TRANSACTIONS for ever.
    """
    return False


@mutant(
    "added-partitions-replace",
    of="broker_impl.coordinator.transactions.rules:with_added",
    source="T1, KIP-98",
    kind="mutation",
    symptom="invariant:added-partition-kept",
    schedule="A transaction has two AddPartitionsToTxn requests.",
)
def with_added(
    known: tuple[TopicPartition, ...], new: tuple[TopicPartition, ...]
) -> tuple[TopicPartition, ...]:
    """Partitions that are added to a transaction replace the ones that it has.

    Only the last ones get a marker. In the others the transaction never ends, and consumers of
    committed records wait there for ever.
    """
    return new


@mutant(
    "later-epoch-accepted",
    of="broker_impl.coordinator.transactions.rules:refuse_client",
    source="T4, KIP-98",
    kind="mutation",
    symptom="invariant:producer-refused",
    schedule="A request names a later epoch than its transactional id has.",
)
def refuse_client(metadata: Metadata, producer_id: int, producer_epoch: Epoch) -> ErrorCode:
    """A coordinator refuses earlier epochs only.

    A later epoch is not known to it: the request is from a producer of another coordinator, or of
    a transactional id that was forgotten and has begun again.
    """
    if producer_id != metadata.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if producer_epoch < metadata.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE


@mutant(
    "ended-transaction-ends-again",
    of="broker_impl.coordinator.transactions.rules:on_end",
    source="KIP-98",
    kind="mutation",
    symptom="invariant:producer-refused",
    schedule="A producer did not receive the response to its commit, and aborts.",
)
def on_end(state: TransactionState, is_commit: bool) -> ErrorCode | None:
    """A coordinator acknowledges every end of a transaction that has ended.

    A producer that aborts what it has committed takes the records for aborted, and writes them
    again.
    """
    if state is TransactionState.ONGOING:
        return None
    if state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    is_complete = state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
    return ErrorCode.NONE if is_complete else ErrorCode.INVALID_TXN_STATE


@mutant(
    "epoch-for-any-producer",
    of="broker_impl.coordinator.transactions.rules:is_known_producer",
    source="KIP-360",
    kind="mutation",
    symptom="invariant:producer-refused",
    schedule="A producer asks for its next epoch after another one has taken over its "
    "transactional id with a new producer id.",
)
def is_known_producer(metadata: Metadata, producer_id: int, producer_epoch: Epoch) -> bool:
    """A producer may name any producer id when it asks for its next epoch.

    A zombie whose id was replaced gets an epoch of its successor, and fences it.
    """
    return True


@mutant(
    "epoch-begins-anywhere",
    of="broker_impl.log.producers:starts_epoch",
    source="P2, KIP-98, KIP-360",
    kind="mutation",
    symptom="invariant:acknowledged-as-stored",
    schedule="The first batch of a new producer epoch is lost, and the second one arrives.",
)
def starts_epoch(first: int) -> bool:
    """A new producer epoch may begin with any sequence number.

    If several batches are in flight at the beginning of an epoch, and the first is lost on its
    way, the second is accepted in its place; the first is refused when it is sent again.
    """
    return True


@mutant(
    "replaced-epoch-accepted",
    of="broker_impl.coordinator.transactions.rules:bumped",
    source="KIP-360",
    kind="mutation",
    symptom="invariant:producer-refused",
    schedule="A producer whose epoch was replaced asks for its next epoch.",
)
def bumped(metadata: Metadata, expected: Epoch) -> tuple[Epoch, Epoch] | None:
    """A producer of any epoch gets the next epoch of its producer id.

    So a producer that was replaced goes on, and fences the one that has replaced it.
    """
    return metadata.producer_epoch + 1, NO_EPOCH if expected == NO_EPOCH else expected


@mutant(
    "txn-offsets-of-older-epoch",
    of="broker_impl.log.producers:check_epoch",
    source="T4, KIP-98",
    kind="mutation",
    symptom="invariant:producer-refused",
    schedule="A producer was replaced and commits offsets while its successor has a transaction "
    "open.",
)
def check_epoch(entry: ProducerEntry | None, header: BatchHeader) -> None:
    """Offsets of a producer that was replaced are stored in the transaction of its successor.

    The transaction is open in the group's partition, so no coordinator is asked about it. The
    offsets count if it commits, although the records that belong to them were aborted.
    """


@mutant(
    "timeout-since-first-transaction",
    of="broker_impl.coordinator.transactions.rules:begun_ms",
    source="T7, KIP-98",
    kind="mutation",
    symptom="invariant:aborted-after-timeout",
    schedule="A producer has several transactions, together longer than the timeout of one.",
)
def begun_ms(metadata: Metadata, now_ms: int) -> int:
    """The timeout of each transaction counts from the producer's first transaction.

    After that time each transaction is aborted that is open when the coordinator looks, and its
    producer is fenced.
    """
    return metadata.started_ms if metadata.started_ms >= 0 else now_ms


@mutant(
    "txnid-expired-since-begin",
    of="broker_impl.coordinator.transactions.rules:may_expire",
    source="KIP-98",
    kind="mutation",
    symptom="invariant:transactional-id-kept",
    schedule="A transaction lasts for longer than transactional ids are kept.",
)
def may_expire(metadata: Metadata, now_ms: int, expiration_ms: int) -> bool:
    """A transactional id expires at a time after its last transaction has begun, not after its end.

    The producer of a long transaction cannot begin the next one, although it has just ended it.
    """
    begun = metadata.started_ms if metadata.started_ms >= 0 else metadata.updated_ms
    return states.is_at_rest(metadata.state) and now_ms >= begun + expiration_ms


@mutant(
    "timeout-of-former-producer",
    of="broker_impl.coordinator.transactions.rules:timeout_ms",
    source="T7, KIP-98",
    kind="mutation",
    symptom="invariant:aborted-after-timeout",
    schedule="A producer takes over a transactional id with another timeout.",
)
def timeout_ms(metadata: Metadata, asked_ms: int) -> int:
    """The first producer of a transactional id decides the timeout of all later ones.

    After a deployment with a longer timeout, transactions are aborted as early as before.
    """
    return asked_ms if metadata.producer_id == NO_ID else metadata.timeout_ms
