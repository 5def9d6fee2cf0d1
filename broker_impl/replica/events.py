"""The events that a replica handles and the effects that it asks its broker to carry out."""

from enum import Enum
from uuid import UUID

import msgspec

from broker_impl.errors import ErrorCode
from broker_impl.log.aborted_index import Marker
from broker_impl.wire.types import NO_UUID, BrokerId, Buffer, Epoch, Offset, TopicPartition


class Role(Enum):
    """The role of a replica in its partition."""

    LEADER = "leader"
    FENCED = "fenced"
    """It led, and has found its epoch to be outdated; it waits for the controller's order."""
    FOLLOWER = "follower"
    STOPPED = "stopped"
    """It has not received a role yet, or was ordered to stop."""


class PartitionState(msgspec.Struct, frozen=True):
    """The controller's decision on one partition (a row of LeaderAndIsr)."""

    controller_epoch: Epoch
    leader: BrokerId
    """-1: the partition has no leader."""
    leader_epoch: Epoch
    isr: tuple[BrokerId, ...]
    zk_version: int
    """Version of the partition's state znode that holds this decision."""
    replicas: tuple[BrokerId, ...]


# Events: orders of the controller.


class BecomeLeader(msgspec.Struct, frozen=True):
    """Become the leader in the epoch of ``state``."""

    state: PartitionState


class BecomeFollower(msgspec.Struct, frozen=True):
    """Follow the leader of ``state`` in its epoch; if it has none, wait for one."""

    state: PartitionState


class Stop(msgspec.Struct, frozen=True):
    """Stop leading or following."""


class Configure(msgspec.Struct, frozen=True):
    """The topic's settings changed."""

    isr_min: int


# Events: to a leader.


class Append(msgspec.Struct, frozen=True):
    """Append a producer's batches; ``AppendDone`` is the first effect."""

    records: Buffer
    acks: int
    now_ms: int
    guard: int | None = None
    """The guard under which the batch's transaction was verified (``ProducerStates.guard``)."""
    by_coordinator: bool = False
    """The group coordinator appends for the producer, without sequence numbers."""


class EndTransaction(msgspec.Struct, frozen=True):
    """Append a transaction coordinator's marker; answered as ``Append`` with acks=all is."""

    marker: Marker
    now_ms: int


class DeleteRecords(msgspec.Struct, frozen=True):
    """Delete the records before ``offset``, which are committed."""

    offset: Offset


class FollowerFetched(msgspec.Struct, frozen=True):
    """A follower's fetch at ``offset`` was served: the follower holds everything below it."""

    broker: BrokerId
    leader_epoch: Epoch
    offset: Offset
    log_start: Offset
    eligible: bool
    """The fetch comes from the incarnation of the broker that is registered now."""


class FollowerKeptUp(msgspec.Struct, frozen=True):
    """A follower's incremental fetches went on until ``at`` without naming this partition.

    Its last explicit fetch was at ``offset``, then the log end, where nothing has changed up to
    ``at`` (seconds of the clock): the follower held everything then, too.
    """

    broker: BrokerId
    leader_epoch: Epoch
    offset: Offset
    at: float


class IsrWritten(msgspec.Struct, frozen=True):
    """The write of the state znode succeeded and produced ``zk_version``."""

    zk_version: int


class IsrWriteRefused(msgspec.Struct, frozen=True):
    """The state znode had another version, or the result of the write is unknown."""


class IsrRefreshed(msgspec.Struct, frozen=True):
    """The content of the state znode, read after a write was refused."""

    leader: BrokerId
    leader_epoch: Epoch
    isr: tuple[BrokerId, ...]
    zk_version: int


# Events: to a follower; each names the leader epoch in which its request was sent.


class EpochEndAnswered(msgspec.Struct, frozen=True):
    """The leader answered where the last epoch of this follower's log ends in the leader's log."""

    leader_epoch: Epoch
    asked_epoch: Epoch
    epoch: Epoch
    end_offset: Offset


class Diverged(msgspec.Struct, frozen=True):
    """The leader answered a fetch with the end of the last fetched epoch instead of records."""

    leader_epoch: Epoch
    offset: Offset
    epoch: Epoch
    end_offset: Offset


class Replicated(msgspec.Struct, frozen=True):
    """The leader answered a fetch from ``offset``."""

    leader_epoch: Epoch
    offset: Offset
    records: Buffer
    high_watermark: Offset
    leader_log_start: Offset
    now_ms: int


class BoundsAnswered(msgspec.Struct, frozen=True):
    """After a fetch out of range, the leader answered where its log begins and ends."""

    leader_epoch: Epoch
    log_start: Offset
    log_end: Offset


class FetchRefused(msgspec.Struct, frozen=True):
    """The leader answered a request with an error."""

    leader_epoch: Epoch
    error: ErrorCode


class FetchesPaused(msgspec.Struct, frozen=True):
    """The next fetch is to wait until this time, in seconds of the loop's clock (KIP-73)."""

    leader_epoch: Epoch
    until: float


# Events: to any.


class Tick(msgspec.Struct, frozen=True):
    """Time has passed; due every half of replica.lag.time.max.ms."""


Event = (
    Append
    | EndTransaction
    | DeleteRecords
    | FollowerFetched
    | FollowerKeptUp
    | Replicated
    | Tick
    | BecomeLeader
    | BecomeFollower
    | Stop
    | Configure
    | IsrWritten
    | IsrWriteRefused
    | IsrRefreshed
    | EpochEndAnswered
    | Diverged
    | BoundsAnswered
    | FetchRefused
    | FetchesPaused
)


# Effects.


class AppendResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an append on the leader; with an ``error``, nothing was appended."""

    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    record_errors: tuple[tuple[int, str], ...] = ()
    """The records for which the batch was rejected, by number, with the reasons (KIP-467)."""
    base_offset: Offset = -1
    last_offset: Offset = -1
    log_append_time: int = -1
    log_start_offset: Offset = -1
    required_offset: Offset = -1
    """With acks=all, the append waits until the high watermark reaches this offset."""
    leader_epoch: Epoch = -1
    topic_id: UUID = NO_UUID
    """The id of the topic to whose log the records were appended."""


class AppendDone(msgspec.Struct, frozen=True):
    """The result of ``Append`` or ``EndTransaction``."""

    result: AppendResult


class LogEndAdvanced(msgspec.Struct, frozen=True):
    """The leader's log has grown, or a new epoch began at ``to``: followers can fetch."""

    tp: TopicPartition
    to: Offset


class HighWatermarkAdvanced(msgspec.Struct, frozen=True):
    """The leader has committed records up to ``to``: acknowledge appends, serve consumers."""

    tp: TopicPartition
    to: Offset


class HighWatermarkLearnt(msgspec.Struct, frozen=True):
    """A follower's high watermark changed: serve the consumers that read from this follower."""

    tp: TopicPartition


class LogStartAdvanced(msgspec.Struct, frozen=True):
    """The log start moved forward, here or, as its fetch reports, on a follower."""

    tp: TopicPartition


class WriteIsr(msgspec.Struct, frozen=True):
    """Write the state znode if its version is still ``zk_version``.

    The answer is IsrWritten, or IsrWriteRefused if the version differs or the result is unknown
    (the connection or the session was lost).
    """

    tp: TopicPartition
    leader: BrokerId
    leader_epoch: Epoch
    isr: tuple[BrokerId, ...]
    controller_epoch: Epoch
    zk_version: int


class RefreshIsr(msgspec.Struct, frozen=True):
    """Read the state znode and answer with IsrRefreshed; repeated at each tick until answered."""

    tp: TopicPartition


class IsrChanged(msgspec.Struct, frozen=True):
    """The committed ISR, as stored in the state znode, changed."""

    tp: TopicPartition
    before: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]


class LeadershipTaken(msgspec.Struct, frozen=True):
    """This replica leads in this epoch; it may have led in the previous epoch too."""

    tp: TopicPartition
    leader_epoch: Epoch


class LeadershipLost(msgspec.Struct, frozen=True):
    """The replica no longer leads: requests that wait at it must be answered with an error."""

    tp: TopicPartition


class StartFetching(msgspec.Struct, frozen=True):
    """The replica has a request to send to its leader (a new epoch, or a new leader)."""

    tp: TopicPartition
    leader: BrokerId


class StopFetching(msgspec.Struct, frozen=True):
    """The replica has no request to send to a leader any more."""

    tp: TopicPartition


Effect = (
    AppendDone
    | LogEndAdvanced
    | HighWatermarkAdvanced
    | HighWatermarkLearnt
    | LogStartAdvanced
    | WriteIsr
    | RefreshIsr
    | IsrChanged
    | LeadershipTaken
    | LeadershipLost
    | StartFetching
    | StopFetching
)


def changes_reads_of(effect: Effect) -> TopicPartition | None:
    """Return the partition of which a fetch from here may return something else after this effect.

    Retention, which moves a log's start without an effect, is reported by ``LogManager.tick``.
    """
    match effect:
        case (
            LogEndAdvanced(tp)
            | HighWatermarkAdvanced(tp)
            | LogStartAdvanced(tp)
            | LeadershipTaken(tp)
            | LeadershipLost(tp)
            | IsrChanged(tp)
        ):
            return tp
        case _:
            return None
