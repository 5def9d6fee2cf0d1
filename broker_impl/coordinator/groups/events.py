"""The events that a group handles, and the effects that it returns.

A request carries a ticket, and its answer carries the same ticket; it is given at once, or when
other members have joined or synced, or when a write has ended. A write has a number, under which
its outcome is reported.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from broker_impl.coordinator.records import Committed
from broker_impl.errors import ErrorCode
from broker_impl.wire.types import Offset, TopicPartition

# Answers.


class JoinAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One member's view of its generation; only the leader gets ``members``."""

    error: ErrorCode = ErrorCode.NONE
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    member_id: str = ""
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    """Member id, instance id and subscription of each member."""
    skip_assignment: bool = False


class SyncAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The assignment of one member."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class LeaveAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome for each leaving member."""

    error: ErrorCode = ErrorCode.NONE
    rows: tuple[tuple[str, str | None, ErrorCode], ...] = ()


class DeleteOffsetsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome for each offset to be deleted; ``error`` concerns the whole group."""

    error: ErrorCode = ErrorCode.NONE
    rows: Mapping[TopicPartition, ErrorCode] = {}


# Events: requests. ``refused`` builds the answer if the request does not reach its group.


class Join(msgspec.Struct, frozen=True, kw_only=True):
    """A member requests to be in the next generation."""

    ticket: int
    member_id: str
    fresh_id: str
    """The member id to use if the request has none."""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000
    protocol_type: str = "consumer"
    protocols: tuple[tuple[str, bytes], ...] = ()
    requires_id: bool = False
    """The client understands MEMBER_ID_REQUIRED (v4 and later, KIP-394)."""
    may_skip_assignment: bool = False
    """The client understands that the leader need not assign (v9, KIP-814)."""

    def refused(self, error: ErrorCode) -> JoinAnswer:
        return JoinAnswer(error=error, member_id=self.member_id)


class Sync(msgspec.Struct, frozen=True, kw_only=True):
    """A member requests its assignment; the leader sends the assignments of all members."""

    ticket: int
    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes] = {}

    def refused(self, error: ErrorCode) -> SyncAnswer:
        return SyncAnswer(error=error)


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """A member is alive; answered by an ErrorCode."""

    ticket: int
    member_id: str
    generation: int
    instance_id: str | None = None

    def refused(self, error: ErrorCode) -> ErrorCode:
        return error


class Leave(msgspec.Struct, frozen=True, kw_only=True):
    """Members leave, each named by its member id or its instance id."""

    ticket: int
    members: tuple[tuple[str, str | None], ...]

    def refused(self, error: ErrorCode) -> LeaveAnswer:
        return LeaveAnswer(error=error)


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """Commit offsets; answered by an ErrorCode once they are written."""

    ticket: int
    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None
    offsets: Mapping[TopicPartition, Committed]
    producer_id: int = -1
    """The producer of the transaction that the offsets belong to; -1: none."""
    producer_epoch: int = -1
    guard: int | None = None
    """The guard of the transaction's verification, if the transaction begins here (KIP-890)."""

    def refused(self, error: ErrorCode) -> ErrorCode:
        return error


class DeleteOffsets(msgspec.Struct, frozen=True, kw_only=True):
    """Delete committed offsets, except those of topics that the group is subscribed to."""

    ticket: int
    partitions: tuple[TopicPartition, ...]

    def refused(self, error: ErrorCode) -> DeleteOffsetsAnswer:
        return DeleteOffsetsAnswer(error=error)


class Delete(msgspec.Struct, frozen=True, kw_only=True):
    """Delete the group if it has no members; answered by an ErrorCode."""

    ticket: int

    def refused(self, error: ErrorCode) -> ErrorCode:
        return error


Request = Join | Sync | Heartbeat | Leave | Commit | DeleteOffsets | Delete

# Other events.


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a write; ``offset`` is where it begins in the log, -1 if it was refused."""

    number: int
    error: ErrorCode
    offset: Offset = -1

    @property
    def is_appended(self) -> bool:
        """Is it in this broker's log? If it is in error, others may lack it, now or for ever."""
        return self.offset >= 0


class Marked(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction ended: its offsets count from now on, or never."""

    producer_id: int
    at: Offset
    """The marker's offset in the log."""
    is_commit: bool


class Tick(msgspec.Struct, frozen=True):
    """A deadline may have passed."""


class Expire(msgspec.Struct, frozen=True):
    """Offsets that have not been used for their retention time may be removed."""


class TopicsGone(msgspec.Struct, frozen=True):
    """These partitions were deleted, so their committed offsets have no meaning any more."""

    partitions: tuple[TopicPartition, ...]


class Unload(msgspec.Struct, frozen=True):
    """Another broker coordinates this group from now on."""


Event = Request | Written | Marked | Tick | Expire | TopicsGone | Unload

# Effects.


class Answered(msgspec.Struct, frozen=True):
    """The answer to the request with this ticket."""

    ticket: int
    answer: Any


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """Append these records to the group's partition; report when all in-sync replicas have them."""

    group: str
    number: int
    records: tuple[tuple[bytes, bytes | None], ...]
    producer_id: int = -1
    producer_epoch: int = -1
    guard: int | None = None


Effect = Answered | Write
