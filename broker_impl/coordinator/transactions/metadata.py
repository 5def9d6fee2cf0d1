"""The stored state of one transactional id."""

from typing import Final, NamedTuple

import msgspec

from broker_impl.coordinator.transactions.states import TransactionState
from broker_impl.wire.types import Epoch, TopicPartition

NO_ID: Final = -1
NO_EPOCH: Final = -1


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """One transactional id's producer and transaction.

    Times are milliseconds of the wall clock; -1 means never.
    """

    producer_id: int = NO_ID
    producer_epoch: Epoch = NO_EPOCH
    """-1: no producer has used the id yet."""
    last_producer_id: int = NO_ID
    """The producer id before its epochs were exhausted and a new id was allocated; kept in memory
    only, so lost at the next load."""
    last_producer_epoch: Epoch = NO_EPOCH
    """The epoch before the last bump, if the producer itself requested the bump: it may repeat that
    request (KIP-360)."""
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: tuple[TopicPartition, ...] = ()
    """The transaction's partitions, including those of ``__consumer_offsets``."""
    started_ms: int = -1
    updated_ms: int = -1


class Unmarked(NamedTuple):
    """A transaction that is decided, and has partitions without a marker."""

    producer_id: int
    producer_epoch: Epoch
    partitions: tuple[TopicPartition, ...]
