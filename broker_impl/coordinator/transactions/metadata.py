"""What is known of one transactional id, as it is kept."""

from typing import Final

import msgspec

from broker_impl.coordinator.transactions.states import State
from broker_impl.wire.types import Epoch, TopicPartition

NO_ID: Final = -1
NO_EPOCH: Final = -1


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """Times are milliseconds of the wall clock, -1 never."""

    producer_id: int = NO_ID
    producer_epoch: Epoch = NO_EPOCH
    """-1: no producer has had it yet."""
    last_producer_id: int = NO_ID
    """Before an exhausted epoch led to another id; known until the next load only."""
    last_producer_epoch: Epoch = NO_EPOCH
    """Before the last bump, if the producer itself asked for that: it may ask again (KIP-360)."""
    timeout_ms: int
    state: State = State.EMPTY
    partitions: tuple[TopicPartition, ...] = ()
    """Of the transaction; those of groups' offsets included."""
    started_ms: int = -1
    updated_ms: int = -1
