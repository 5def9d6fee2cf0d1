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
    """The error that a client gets for a failed write to ``__transaction_state``."""
    return _WRITE_ERRORS.get(error, error)


def is_timeout_allowed(timeout_ms: int, timeout_ms_max: int) -> bool:
    """May a producer use this transaction timeout?"""
    return 0 < timeout_ms <= timeout_ms_max


def is_exhausted(epoch: Epoch) -> bool:
    """Is this the last epoch that a producer can have? The one after it only fences."""
    return epoch >= EPOCH_LAST - 1


def is_known_producer(metadata: Metadata, producer_id: int, producer_epoch: Epoch) -> bool:
    """May a producer with this id and epoch continue to use the transactional id (KIP-360)?

    Yes under the current producer id; under any id, if the transactional id was just created here;
    and under the previous id if its epochs are exhausted, because the producer then did not get the
    answer with the new id.
    """
    return (
        metadata.producer_epoch == NO_EPOCH
        or producer_id == metadata.producer_id
        or (producer_id == metadata.last_producer_id and is_exhausted(producer_epoch))
    )


def bumped(metadata: Metadata, expected: Epoch) -> tuple[Epoch, Epoch] | None:
    """The next epoch and the one to remember as the last; None: the producer is fenced.

    expected: the epoch that the producer believes it has; -1: it sends none, and the current owner
    of the transactional id is fenced. A repeated request gets the same answer as the first.
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
    """Why a request within a transaction is not from the current producer; NONE: it is."""
    if producer_id != metadata.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if producer_epoch != metadata.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE


def fenced(epoch: Epoch) -> Epoch:
    """The epoch under which a transaction is aborted that its producer did not end (KAFKA-6119)."""
    return epoch + 1


def on_add(state: TransactionState) -> ErrorCode:
    """May partitions be added to the transaction, or begin one?"""
    return ErrorCode.CONCURRENT_TRANSACTIONS if states.is_decided(state) else ErrorCode.NONE


_ENDS: Final[dict[tuple[TransactionState, bool], ErrorCode | None]] = {
    (TransactionState.ONGOING, True): None,
    (TransactionState.ONGOING, False): None,
    (TransactionState.PREPARE_COMMIT, True): ErrorCode.CONCURRENT_TRANSACTIONS,
    (TransactionState.PREPARE_ABORT, False): ErrorCode.CONCURRENT_TRANSACTIONS,
    (TransactionState.COMPLETE_COMMIT, True): ErrorCode.NONE,
    (TransactionState.COMPLETE_ABORT, False): ErrorCode.NONE,
}


def on_end(state: TransactionState, is_commit: bool) -> ErrorCode | None:
    """The answer to EndTxn; None: decide the transaction now.

    A repeated request succeeds once the transaction is complete; every other combination that the
    table does not list is INVALID_TXN_STATE.
    """
    return _ENDS.get((state, is_commit), ErrorCode.INVALID_TXN_STATE)


def goes_on_after_loading(state: TransactionState) -> bool:
    """Must a new coordinator send markers for this state? Yes, if it is decided (KAFKA-5131).

    The coordinator cannot know how many of them its predecessor sent.
    """
    return states.is_decided(state)


def to_mark(partitions: tuple[TopicPartition, ...]) -> tuple[TopicPartition, ...]:
    """The partitions in which a transaction's end is marked: all of its partitions."""
    return partitions


def gives_way(error: ErrorCode) -> bool:
    """May another change start after a failed write? Yes, or none ever could (KAFKA-5351)."""
    return True


def is_to_complete(state: TransactionState, unmarked: Collection[TopicPartition]) -> bool:
    """Are all markers written, while the completion is not stored yet because its write failed?"""
    return states.is_decided(state) and not unmarked


def is_timed_out(metadata: Metadata, now_ms: int) -> bool:
    """Has the transaction been open for longer than its producer's timeout?"""
    return (
        metadata.state is TransactionState.ONGOING
        and now_ms > metadata.started_ms + metadata.timeout_ms
    )


def may_expire(metadata: Metadata, now_ms: int, expiration_ms: int) -> bool:
    """May the transactional id be removed? Never in the middle of a transaction."""
    return states.is_at_rest(metadata.state) and now_ms >= metadata.updated_ms + expiration_ms


def is_id_needed(metadata: Metadata, expected: Epoch) -> bool:
    """Must the producer get a new id, because its current one has no epoch left?"""
    return metadata.producer_id == NO_ID or (
        is_exhausted(metadata.producer_epoch) and expected in (NO_EPOCH, metadata.producer_epoch)
    )
