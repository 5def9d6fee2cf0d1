"""What happens to a replica, and what it wants done: the values that pass its one door."""

from enum import Enum

import msgspec

from broker_impl.errors import ErrorCode
from broker_impl.log.transactions import Marker
from broker_impl.wire.types import BrokerId, Buffer, Epoch, Offset, TopicPartition


class Role(Enum):
    """What this replica is for its partition."""

    LEADER = "leader"
    FENCED = "fenced"
    """It led, and has seen that its epoch is over; it waits for the controller's order."""
    FOLLOWER = "follower"
    STOPPED = "stopped"
    """Not told yet, or told to stop."""


class PartitionState(msgspec.Struct, frozen=True):
    """The controller's decision on one partition (a row of LeaderAndIsr)."""

    controller_epoch: Epoch
    leader: BrokerId
    """-1: nobody leads."""
    leader_epoch: Epoch
    isr: tuple[BrokerId, ...]
    zk_version: int
    """Version of the partition's state znode that holds this decision."""
    replicas: tuple[BrokerId, ...]


# Events: orders of the controller.


class BecomeLeader(msgspec.Struct, frozen=True):
    """Lead in the epoch of ``state``."""

    state: PartitionState


class BecomeFollower(msgspec.Struct, frozen=True):
    """Follow the leader of ``state`` (or wait for one) in its epoch."""

    state: PartitionState


class Stop(msgspec.Struct, frozen=True):
    """Neither lead nor follow."""


class Configure(msgspec.Struct, frozen=True):
    """The topic's settings changed."""

    isr_min: int


# Events: to a leader.


class Append(msgspec.Struct, frozen=True):
    """A producer's batches; answered by an ``AppendDone`` that comes before other effects."""

    records: Buffer
    acks: int
    now_ms: int
    guard: int | None = None
    """What the batch's transaction was verified under (``ProducerStates.guard``)."""
    by_coordinator: bool = False
    """In a producer's name, by the coordinator of its group: without sequence numbers."""


class EndTransaction(msgspec.Struct, frozen=True):
    """A coordinator's marker; answered as ``Append`` is, by the rules of acks=all."""

    marker: Marker
    now_ms: int


class DeleteRecords(msgspec.Struct, frozen=True):
    """What lies before ``offset``, which is committed, is not to be read any more."""

    offset: Offset


class FollowerFetched(msgspec.Struct, frozen=True):
    """A follower was served: it holds everything below ``offset``."""

    broker: BrokerId
    leader_epoch: Epoch
    offset: Offset
    log_start: Offset
    eligible: bool
    """The fetch is of the incarnation of the broker that is registered now."""


class IsrWritten(msgspec.Struct, frozen=True):
    """The znode was written; ``zk_version`` is its version since."""

    zk_version: int


class IsrWriteRefused(msgspec.Struct, frozen=True):
    """The znode had another version, or nobody knows whether it was written."""


class IsrRefreshed(msgspec.Struct, frozen=True):
    """The znode as it was read after a refusal."""

    leader: BrokerId
    leader_epoch: Epoch
    isr: tuple[BrokerId, ...]
    zk_version: int


# Events: to a follower; each names the leader epoch in which its question was asked.


class EpochEndAnswered(msgspec.Struct, frozen=True):
    """The leader told where the last epoch of this log ended in its own."""

    leader_epoch: Epoch
    asked_epoch: Epoch
    epoch: Epoch
    end_offset: Offset


class Diverged(msgspec.Struct, frozen=True):
    """The leader told, instead of serving a fetch, where the last fetched epoch ended."""

    leader_epoch: Epoch
    offset: Offset
    epoch: Epoch
    end_offset: Offset


class Replicated(msgspec.Struct, frozen=True):
    """The leader served a fetch from ``offset``."""

    leader_epoch: Epoch
    offset: Offset
    records: Buffer
    high_watermark: Offset
    leader_log_start: Offset
    now_ms: int


class BoundsAnswered(msgspec.Struct, frozen=True):
    """The leader told where its log begins and ends, after a fetch outside of it."""

    leader_epoch: Epoch
    log_start: Offset
    log_end: Offset


class FetchRefused(msgspec.Struct, frozen=True):
    """The leader answered a question with an error."""

    leader_epoch: Epoch
    error: ErrorCode


# Events: to any.


class Tick(msgspec.Struct, frozen=True):
    """Time passed; due each half of replica.lag.time.max.ms."""


Event = (
    Append
    | EndTransaction
    | DeleteRecords
    | FollowerFetched
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
)


# Effects.


class AppendResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an append on the leader itself; ``error`` says that nothing was appended."""

    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    base_offset: Offset = -1
    last_offset: Offset = -1
    log_append_time: int = -1
    log_start_offset: Offset = -1
    required_offset: Offset = -1
    """acks=all waits until the high watermark is here."""
    leader_epoch: Epoch = -1


class AppendDone(msgspec.Struct, frozen=True):
    """The answer to ``Append`` and ``EndTransaction``."""

    result: AppendResult


class LogEndAdvanced(msgspec.Struct, frozen=True):
    """The leader has news for its followers: records, or that a new epoch began at ``to``."""

    tp: TopicPartition
    to: Offset


class HighWatermarkAdvanced(msgspec.Struct, frozen=True):
    """The leader has committed records up to ``to``: acknowledge, serve consumers."""

    tp: TopicPartition
    to: Offset


class HighWatermarkLearnt(msgspec.Struct, frozen=True):
    """A follower knows another high watermark than before: serve consumers that read from it."""

    tp: TopicPartition


class LogStartAdvanced(msgspec.Struct, frozen=True):
    """The log begins later here, or a follower has told so of its own."""

    tp: TopicPartition


class WriteIsr(msgspec.Struct, frozen=True):
    """Write the state znode if its version is still ``zk_version``.

    To be answered by IsrWritten, or, on a bad version and whenever the outcome is not known (a lost
    connection, a lost session), by IsrWriteRefused.
    """

    tp: TopicPartition
    leader: BrokerId
    leader_epoch: Epoch
    isr: tuple[BrokerId, ...]
    controller_epoch: Epoch
    zk_version: int


class RefreshIsr(msgspec.Struct, frozen=True):
    """Read the state znode and answer by IsrRefreshed; asked again at each tick until answered."""

    tp: TopicPartition


class IsrChanged(msgspec.Struct, frozen=True):
    """The committed ISR, as the znode has it, is another one now."""

    tp: TopicPartition
    before: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]


class LeadershipTaken(msgspec.Struct, frozen=True):
    """This replica leads in this epoch, perhaps as it did in the one before."""

    tp: TopicPartition
    leader_epoch: Epoch


class LeadershipLost(msgspec.Struct, frozen=True):
    """Whoever waits at this leader is to be sent elsewhere."""

    tp: TopicPartition


class StartFetching(msgspec.Struct, frozen=True):
    """There is something to ask of this leader (a new epoch, a new leader)."""

    tp: TopicPartition
    leader: BrokerId


class StopFetching(msgspec.Struct, frozen=True):
    """There is nothing to ask any more."""

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
