"""What happens to a transactional id, and what it wants done: the two sides of its door.

A request carries a ticket; its answer comes back under it, at once or when what it changed is kept.
What is written is told of under a number.
"""

import msgspec

from broker_impl.errors import ErrorCode
from broker_impl.wire.types import Epoch, TopicPartition


class InitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Who a producer is from now on."""

    error: ErrorCode = ErrorCode.NONE
    producer_id: int = -1
    producer_epoch: Epoch = -1


# Events: requests. ``refused`` is the answer of whoever cannot even ask the transactional id.


class InitProducerId(msgspec.Struct, frozen=True, kw_only=True):
    """A producer begins, or wants another epoch; what was open before is aborted."""

    ticket: int
    timeout_ms: int
    producer_id: int = -1
    """What the producer has been until now; -1: it does not say."""
    producer_epoch: Epoch = -1
    fresh_id: int | None = None
    """The id that it gets if it needs a new one."""

    def refused(self, error: ErrorCode) -> InitAnswer:
        return InitAnswer(error=error)


class AddPartitions(msgspec.Struct, frozen=True, kw_only=True):
    """These become part of the transaction, which begins with the first; an ErrorCode answers."""

    ticket: int
    producer_id: int
    producer_epoch: Epoch
    partitions: tuple[TopicPartition, ...]

    def refused(self, error: ErrorCode) -> ErrorCode:
        return error


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The producer decides; an ErrorCode answers once that is kept (T6)."""

    ticket: int
    producer_id: int
    producer_epoch: Epoch
    is_commit: bool

    def refused(self, error: ErrorCode) -> ErrorCode:
        return error


Request = InitProducerId | AddPartitions | End

# Events: the rest.


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a write."""

    number: int
    error: ErrorCode


class Marked(msgspec.Struct, frozen=True, kw_only=True):
    """The marker of this producer epoch is in a partition's log, on all in-sync replicas.

    Or the partition is gone.
    """

    producer_id: int
    producer_epoch: Epoch
    partition: TopicPartition


class Resume(msgspec.Struct, frozen=True):
    """This broker coordinates the id since now; what was decided is carried out (KAFKA-5131)."""


class Tick(msgspec.Struct, frozen=True):
    """Time-outs and expiry may be due."""

    expiration_ms: int


class Unload(msgspec.Struct, frozen=True):
    """Another broker coordinates this id from now on."""


Event = Request | Written | Marked | Resume | Tick | Unload

# Effects.


class Answered(msgspec.Struct, frozen=True):
    """The answer to the request with this ticket."""

    ticket: int
    answer: InitAnswer | ErrorCode


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """Append this record to the id's partition, and tell when all in-sync replicas have it."""

    transactional_id: str
    number: int
    key: bytes
    value: bytes | None


class SendMarkers(msgspec.Struct, frozen=True, kw_only=True):
    """Have the leaders of these partitions write a marker, again and again until each has."""

    transactional_id: str
    producer_id: int
    producer_epoch: Epoch
    is_commit: bool
    partitions: tuple[TopicPartition, ...]


class Forgotten(msgspec.Struct, frozen=True):
    """The transactional id has expired."""

    transactional_id: str


Effect = Answered | Write | SendMarkers | Forgotten
