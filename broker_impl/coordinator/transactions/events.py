"""The events that a transactional id handles, and the effects that it returns.

A request carries a ticket, and its answer carries the same ticket; it is given at once or when the
change is stored. A write has a number, under which its outcome is reported.
"""

import msgspec

from broker_impl.errors import ErrorCode
from broker_impl.wire.types import Epoch, TopicPartition


class InitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to InitProducerId: the producer's id and epoch from now on."""

    error: ErrorCode = ErrorCode.NONE
    producer_id: int = -1
    producer_epoch: Epoch = -1


# Events: requests. ``refused`` builds the answer if the request does not reach its id's state.


class InitProducerId(msgspec.Struct, frozen=True, kw_only=True):
    """A producer starts, or requests another epoch; a transaction that was open is aborted."""

    ticket: int
    timeout_ms: int
    producer_id: int = -1
    """The producer's current id; -1: it sends none."""
    producer_epoch: Epoch = -1
    fresh_id: int | None = None
    """A newly allocated id, used if the producer needs a new one."""

    def refused(self, error: ErrorCode) -> InitAnswer:
        return InitAnswer(error=error)


class AddPartitions(msgspec.Struct, frozen=True, kw_only=True):
    """Add partitions to the transaction, or begin it with them; answered by an ErrorCode."""

    ticket: int
    producer_id: int
    producer_epoch: Epoch
    partitions: tuple[TopicPartition, ...]

    def refused(self, error: ErrorCode) -> ErrorCode:
        return error


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The producer commits or aborts; answered by an ErrorCode once the decision is stored (T6)."""

    ticket: int
    producer_id: int
    producer_epoch: Epoch
    is_commit: bool

    def refused(self, error: ErrorCode) -> ErrorCode:
        return error


Request = InitProducerId | AddPartitions | End

# Other events.


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a write."""

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
    """This broker is now the id's coordinator; it completes what was decided (KAFKA-5131)."""


class Tick(msgspec.Struct, frozen=True):
    """Check whether the transaction has timed out or the id has expired."""

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
    """Append this record to the id's partition, and report when all in-sync replicas have it."""

    transactional_id: str
    number: int
    key: bytes
    value: bytes | None


class SendMarkers(msgspec.Struct, frozen=True, kw_only=True):
    """Send a marker to the leaders of these partitions, and repeat until each has written it."""

    transactional_id: str
    producer_id: int
    producer_epoch: Epoch
    is_commit: bool
    partitions: tuple[TopicPartition, ...]


class Forgotten(msgspec.Struct, frozen=True):
    """The transactional id has expired and is removed."""

    transactional_id: str


Effect = Answered | Write | SendMarkers | Forgotten
