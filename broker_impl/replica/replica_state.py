"""The state of one replica, its invariants, and simple queries of it; no transitions."""

import math
from collections.abc import Container
from enum import Enum

from broker_impl.errors import ErrorCode
from broker_impl.log.partition_log import PartitionLog
from broker_impl.replica import fencing, isr, watermark
from broker_impl.replica.events import PartitionState, Role
from broker_impl.replica.results import PartitionSnapshot
from broker_impl.wire.types import BrokerId, Epoch, Offset, TopicPartition

UNKNOWN_OFFSET = -1


class Stage(Enum):
    """The next kind of request that a follower sends to its leader."""

    NOTHING = "nothing"
    EPOCH_END = "epoch end"
    """Where the last epoch of this log ends in the leader's log (OffsetForLeaderEpoch)."""
    FETCH = "fetch"
    BOUNDS = "bounds"
    """Where the leader's log begins and ends (ListOffsets)."""


class Remote:
    """What a leader knows about one follower in the current epoch."""

    __slots__ = (
        "caught_up_at",
        "fetched_at",
        "high_watermark_sent",
        "leader_end_then",
        "log_end",
        "log_start",
    )

    def __init__(self, caught_up_at: float) -> None:
        self.log_end: Offset = UNKNOWN_OFFSET
        self.log_start: Offset = UNKNOWN_OFFSET
        self.caught_up_at = caught_up_at
        """Seconds: when the follower last held all of the leader's log."""
        self.fetched_at = -math.inf
        self.leader_end_then: Offset = math.inf  # type: ignore[assignment]  # before any fetch
        self.high_watermark_sent: Offset = UNKNOWN_OFFSET

    def record_fetch(
        self, offset: Offset, log_start: Offset, leader_end: Offset, now: float
    ) -> None:
        """Record a fetch from ``offset``: the follower holds everything before it."""
        self.log_end, self.log_start = offset, log_start
        self.caught_up_at = isr.caught_up_at(
            self.caught_up_at, offset, leader_end, now, self.leader_end_then, self.fetched_at
        )
        self.leader_end_then = leader_end
        self.fetched_at = now

    def record_keeping_up(self, at: float) -> None:
        """Record that the follower fetched until ``at``, and held everything until then."""
        self.caught_up_at = max(self.caught_up_at, at)
        self.fetched_at = max(self.fetched_at, at)


class ReplicaState:
    """The state of one replica; ``check`` holds between any two events."""

    def __init__(
        self,
        broker_id: BrokerId,
        tp: TopicPartition,
        log: PartitionLog,
        *,
        high_watermark: Offset,
        isr_min: int,
        lag_max: float,
        fetch_backoff: float,
    ) -> None:
        """Start as a stopped replica of the log.

        ``high_watermark`` is the checkpointed value, 0 if there is none; ``lag_max`` and
        ``fetch_backoff`` are in seconds.
        """
        self.me = broker_id
        self.tp = tp
        self.log = log
        self.isr_min = isr_min
        self.lag_max = lag_max
        self.fetch_backoff = fetch_backoff
        self.role = Role.STOPPED
        self.controller_epoch: Epoch = -1
        self.leader: BrokerId | None = None
        self.leader_epoch: Epoch = -1
        self.replicas: tuple[BrokerId, ...] = ()
        self.high_watermark = watermark.bounded(high_watermark, log.start_offset, log.end_offset)
        # As a leader.
        self.leading_since: Epoch = -1
        """The first epoch of this uninterrupted leadership: the log was not truncated since then.
        """
        self.epoch_start: Offset = UNKNOWN_OFFSET
        self.isr: frozenset[BrokerId] = frozenset()
        self.pending_isr: frozenset[BrokerId] | None = None
        self.maximal_isr: frozenset[BrokerId] = frozenset()
        self.isr_in_doubt = False
        """The pending write was refused, or its result is unknown."""
        self.zk_version = -1
        self.in_sync_at = -math.inf
        """When this leader last found that no member of the ISR lags, in seconds of its clock."""
        self.remotes: dict[BrokerId, Remote] = {}
        self.replicated: Offset = self.high_watermark
        """The offset below which all counted replicas hold every record.

        It is ahead of the high watermark while that may not advance.
        """
        self.exposed: Offset = 0
        """The highest end offset that clients received in this epoch."""
        # As a follower.
        self.stage = Stage.NOTHING
        self.retry_at = -math.inf
        self.checked: tuple[Epoch, Offset] = (-1, self.high_watermark)

    def apply_leader_state(self, state: PartitionState) -> None:
        """Take over the leader, the epochs and the replicas of a newer state of the partition."""
        stale = fencing.leader_and_isr(state.leader_epoch, self.leader_epoch)
        assert not stale, f"{self.tp}: the leader epoch does not increase"
        self.controller_epoch = state.controller_epoch
        self.leader_epoch = state.leader_epoch
        self.leader = state.leader if state.leader >= 0 else None
        self.replicas = state.replicas
        self.zk_version = state.zk_version
        # The controller's write came after this leader's own, or instead of it (KAFKA-12686).
        self.pending_isr = None
        self.isr_in_doubt = False
        self.exposed = 0

    def check(self) -> None:
        """Assert the invariants that involve this replica only."""
        log = self.log
        assert log.start_offset <= self.high_watermark <= log.end_offset, (
            f"{self.tp}: log start {log.start_offset}, high watermark {self.high_watermark} and "
            f"log end {log.end_offset} are not in this order"
        )
        if self.role is Role.LEADER:
            epoch, high_watermark = self.checked
            assert self.leader == self.me, (
                f"{self.tp}: this replica leads, but its leader is {self.leader}"
            )
            assert self.me in self.isr, f"{self.tp}: the leader is not in the ISR"
            assert self.isr <= self.maximal_isr, (
                f"{self.tp}: the maximal ISR lacks a member of the ISR"
            )
            assert log.epochs.latest == self.leader_epoch, (
                f"{self.tp}: the leader's epoch is {self.leader_epoch}, but the last epoch "
                f"of its log is {log.epochs.latest}"
            )
            assert self.leader_epoch > epoch or self.high_watermark >= high_watermark, (
                f"{self.tp}: the high watermark went back within epoch {epoch}"
            )
            assert self.exposed <= self.high_watermark, (
                f"{self.tp}: consumers were shown records above the high watermark"
            )
            self.checked = (self.leader_epoch, self.high_watermark)

    @property
    def last_stable_offset(self) -> Offset:
        """The end of what read_committed reads: the start of the first open transaction (T1)."""
        unstable = self.log.producers.first_unstable(self.high_watermark)
        return watermark.last_stable_offset(self.high_watermark, unstable, self.log.start_offset)

    def deletable(self, offset: Offset) -> Offset | None:
        """The new log start if the records before ``offset`` are deleted; None: out of range.

        -1 deletes all committed records.
        """
        end = watermark.deletable_end(self.high_watermark, self.log.end_offset)
        return watermark.deletable(offset, end)

    def low_watermark(self, live: Container[BrokerId]) -> Offset:
        """The lowest log start of all live replicas; -1: one has not reported its own."""
        starts = [remote.log_start for broker, remote in self.remotes.items() if broker in live]
        return watermark.low_watermark(self.log.start_offset, starts)

    def refusal(self, current_leader_epoch: Epoch) -> ErrorCode:
        """The error with which this replica refuses to answer as the leader; NONE if it answers."""
        error = fencing.current_leader_epoch(current_leader_epoch, self.leader_epoch)
        if error is ErrorCode.NONE and self.role is not Role.LEADER:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return error

    def read_refusal(self, current_leader_epoch: Epoch, *, from_follower: bool) -> ErrorCode:
        """The error with which this replica refuses reads; NONE if it serves them.

        With ``from_follower``, a follower serves them too.
        """
        error = self.refusal(current_leader_epoch)
        if error is ErrorCode.NOT_LEADER_OR_FOLLOWER and from_follower:
            return ErrorCode.NONE if self.role is Role.FOLLOWER else error
        return error

    def snapshot(self) -> PartitionSnapshot:
        """Return this replica's state as plain values."""
        return PartitionSnapshot(
            topic=self.tp.topic,
            partition=self.tp.partition,
            broker=self.me,
            role=self.role.value,
            leader=self.leader,
            leader_epoch=self.leader_epoch,
            epoch_start=self.epoch_start,
            log_start=self.log.start_offset,
            high_watermark=self.high_watermark,
            exposed=self.exposed,
            log_end=self.log.end_offset,
            isr=tuple(sorted(self.isr)),
            maximal_isr=tuple(sorted(self.maximal_isr)),
            zk_version=self.zk_version,
            controller_epoch=self.controller_epoch,
            in_sync_at=self.in_sync_at,
        )
