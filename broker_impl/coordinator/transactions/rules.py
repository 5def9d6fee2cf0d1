"""Rules for the producers of a transactional id: small functions, called through this module."""

from collections.abc import Collection
from typing import Final

from broker_impl.coordinator.transactions import states
from broker_impl.coordinator.transactions.metadata import NO_EPOCH, NO_ID, Metadata
from broker_impl.coordinator.transactions.states import TransactionState
from broker_impl.errors import ErrorCode
from broker_impl.wire.types import Epoch, TopicPartition

EPOCH_LAST: Final = 2**15 - 1
"""Used only to fence a producer; no producer ever gets it."""

_WRITE_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}


def written(error: ErrorCode) -> ErrorCode:
    """Return the error that a client gets for a failed write to ``__transaction_state``."""
    return _WRITE_ERRORS.get(error, error)


def is_timeout_allowed(timeout_ms: int, timeout_ms_max: int) -> bool:
    """Return whether a producer may use this transaction timeout."""
    return 0 < timeout_ms <= timeout_ms_max


def is_exhausted(epoch: Epoch) -> bool:
    """Return whether this is the last epoch that a producer can have.

    The only epoch after it, ``EPOCH_LAST``, is used for fencing.
    """
    return epoch >= EPOCH_LAST - 1


def is_known_producer(metadata: Metadata, producer_id: int, producer_epoch: Epoch) -> bool:
    """Return whether InitProducerId may name this producer id for the transactional id (KIP-360).

    A producer may name three kinds of ids:

    - The current producer id; its epoch is checked by `bumped`.
    - Any producer id, if no producer of the transactional id has an epoch yet.
    - The previous producer id with an exhausted epoch. In this case the transactional id got a new
      producer id, but the producer did not receive the response, and repeats its request.
    """
    return (
        metadata.producer_epoch == NO_EPOCH
        or producer_id == metadata.producer_id
        or (producer_id == metadata.last_producer_id and is_exhausted(producer_epoch))
    )


def bumped(metadata: Metadata, expected: Epoch) -> tuple[Epoch, Epoch] | None:
    """Return the producer's next epoch, and the last epoch to store; None if it is fenced.

    expected: the epoch in the producer's request. With -1 the request is from a new producer, and
    the current producer of the transactional id is fenced by the next epoch.

    A repeated request has the stored last epoch, and gets the same response as the first one.
    """
    current = metadata.producer_epoch
    if expected == NO_EPOCH:
        return current + 1, NO_EPOCH
    if current in (NO_EPOCH, expected):
        return current + 1, current
    if expected == metadata.last_producer_epoch:
        return current, metadata.last_producer_epoch
    return None


def refuse_client(metadata: Metadata, producer_id: int, producer_epoch: Epoch) -> ErrorCode:
    """Return the error for a request within a transaction, or NONE.

    A request is rejected if it is not from the transactional id's current producer.
    """
    if producer_id != metadata.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if producer_epoch != metadata.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE


def fenced(epoch: Epoch) -> Epoch:
    """Return the epoch with which the coordinator aborts a producer's transaction (KAFKA-6119).

    It is the next epoch, which fences the producer.
    """
    return epoch + 1


def on_add(state: TransactionState) -> ErrorCode:
    """Return the error for AddPartitionsToTxn in this state of the transaction, or NONE.

    Partitions can be added to an open transaction, and begin one if none is open.
    """
    return ErrorCode.CONCURRENT_TRANSACTIONS if states.is_decided(state) else ErrorCode.NONE


def with_added(
    known: tuple[TopicPartition, ...], new: tuple[TopicPartition, ...]
) -> tuple[TopicPartition, ...]:
    """Return the partitions of a transaction after an addition: each partition once."""
    return tuple(dict.fromkeys((*known, *new)))


_ENDS: Final[dict[tuple[TransactionState, bool], ErrorCode | None]] = {
    (TransactionState.ONGOING, True): None,
    (TransactionState.ONGOING, False): None,
    (TransactionState.PREPARE_COMMIT, True): ErrorCode.CONCURRENT_TRANSACTIONS,
    (TransactionState.PREPARE_ABORT, False): ErrorCode.CONCURRENT_TRANSACTIONS,
    (TransactionState.COMPLETE_COMMIT, True): ErrorCode.NONE,
    (TransactionState.COMPLETE_ABORT, False): ErrorCode.NONE,
}


def on_end(state: TransactionState, is_commit: bool) -> ErrorCode | None:
    """Return the response to EndTxn in this state; None if the transaction must be decided now.

    A repeated request succeeds once the transaction is complete. Every combination that is not in
    the table is INVALID_TXN_STATE.
    """
    return _ENDS.get((state, is_commit), ErrorCode.INVALID_TXN_STATE)


def goes_on_after_loading(state: TransactionState) -> bool:
    """Return whether a new coordinator must send the markers of a transaction in this state.

    It must if the transaction is decided (KAFKA-5131), because it cannot know which markers the
    previous coordinator has sent.
    """
    return states.is_decided(state)


def to_mark(partitions: tuple[TopicPartition, ...]) -> tuple[TopicPartition, ...]:
    """Return the partitions that get a marker when a transaction ends: all of its partitions."""
    return partitions


def gives_way(error: ErrorCode) -> bool:
    """Return whether the pending state change ends when its write has this result.

    It always does. If a failed write left the change pending, no other change of the transactional
    id could ever start (KAFKA-5351).
    """
    return True


def is_to_complete(state: TransactionState, unmarked: Collection[TopicPartition]) -> bool:
    """Return whether the coordinator must store again that the transaction is complete.

    It must if all markers are written and the transaction is still only decided, because the write
    of its completion failed.
    """
    return states.is_decided(state) and not unmarked


def timeout_ms(metadata: Metadata, asked_ms: int) -> int:
    """Return the timeout of transactions from now on: what the producer has asked for.

    Each producer of a transactional id may ask for another one.
    """
    return asked_ms


def begun_ms(metadata: Metadata, now_ms: int) -> int:
    """Return when the transaction began to which partitions are added now.

    Its timeout counts from then, and not from the begin of an earlier transaction.
    """
    return metadata.started_ms if metadata.state is TransactionState.ONGOING else now_ms


def is_timed_out(metadata: Metadata, now_ms: int) -> bool:
    """Return whether the transaction has been open for longer than its producer's timeout."""
    return (
        metadata.state is TransactionState.ONGOING
        and now_ms > metadata.started_ms + metadata.timeout_ms
    )


def may_expire(metadata: Metadata, now_ms: int, expiration_ms: int) -> bool:
    """Return whether the transactional id has expired and may be removed.

    A transactional id never expires in the middle of a transaction.
    """
    return states.is_at_rest(metadata.state) and now_ms >= metadata.updated_ms + expiration_ms


def is_id_needed(metadata: Metadata, expected: Epoch) -> bool:
    """Return whether the producer must get a new id.

    It must if it has none, or if its id has no epoch left that a producer can use.
    """
    return metadata.producer_id == NO_ID or (
        is_exhausted(metadata.producer_epoch) and expected in (NO_EPOCH, metadata.producer_epoch)
    )
