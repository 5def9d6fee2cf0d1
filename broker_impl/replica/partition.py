"""One replica of one partition, leader or follower, as a state machine.

Everything that happens to the replica is an event that is passed to ``handle`` together with the
time; everything that the replica wants done is returned as effects. The state satisfies ``check``
after each call of ``handle``. The other methods are queries: they change nothing, except that they
remember which end offset they exposed and which watermark they sent to a follower.

While the leader changes the in-sync replicas, it keeps two sets: ``isr`` as stored in the state
znode, and ``maximal_isr``, which also contains a replica that the pending write adds. The high
watermark waits for all of ``maximal_isr`` (KIP-497), so that whichever of them the controller
elects has every acknowledged record.

A leader with fewer in-sync replicas than min.insync.replicas commits nothing (KIP-966). Until
another replica joins, it exposes no more than it did when it was elected, not even what its
predecessor had committed. For the watermark, min.insync.replicas is limited to the number of
assigned replicas; otherwise a topic with fewer replicas could never be read. Appends with acks=all
to such a topic are still refused.
"""

import math
from collections.abc import Container, Mapping
from enum import Enum
from typing import assert_never

import msgspec

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.log import reading
from broker_impl.log.aborted_index import AbortedTransaction
from broker_impl.log.partition_log import Appended, PartitionLog
from broker_impl.replica import acks, fencing, follower, isr, selection, watermark
from broker_impl.replica.events import (
    Append,
    AppendDone,
    AppendResult,
    BecomeFollower,
    BecomeLeader,
    BoundsAnswered,
    Configure,
    DeleteRecords,
    Diverged,
    Effect,
    EndTransaction,
    EpochEndAnswered,
    Event,
    FetchRefused,
    FollowerFetched,
    HighWatermarkAdvanced,
    HighWatermarkLearnt,
    IsrChanged,
    IsrRefreshed,
    IsrWriteRefused,
    IsrWritten,
    LeadershipLost,
    LeadershipTaken,
    LogEndAdvanced,
    LogStartAdvanced,
    PartitionState,
    RefreshIsr,
    Replicated,
    Role,
    StartFetching,
    Stop,
    StopFetching,
    Tick,
    WriteIsr,
)
from broker_impl.wire.types import BrokerId, Epoch, Offset, TopicPartition

UNKNOWN_OFFSET = -1
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
"""Timestamps with a special meaning in ListOffsets."""


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


class FetchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one partition of a fetch."""

    error: ErrorCode = ErrorCode.NONE
    high_watermark: Offset = -1
    last_stable_offset: Offset = -1
    log_start_offset: Offset = -1
    records: list[memoryview] = msgspec.field(default_factory=list)
    cannot_grow: bool = False
    """The same read will not return more records, however long it waits (`log.reading`)."""
    aborted: list[AbortedTransaction] | None = None
    """The aborted transactions that a read_committed consumer filters out; None for other readers.
    """
    diverging: tuple[Epoch, Offset] | None = None
    """Where the reader's last epoch ends in the leader's log; the reader must truncate."""
    preferred_read_replica: BrokerId = -1
    """The replica to fetch from instead, if no records were read; -1: none."""
    news: bool = False
    """The answer carries a high watermark that this follower has not received: answer at once."""


class ListedOffset(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one partition of ListOffsets; offset -1: no such offset."""

    error: ErrorCode = ErrorCode.NONE
    timestamp: int = -1
    offset: Offset = -1
    leader_epoch: Epoch = -1


class PartitionSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one replica as plain values, for invariants that span replicas."""

    topic: str
    partition: int
    broker: BrokerId
    role: str
    leader: BrokerId | None
    leader_epoch: Epoch
    epoch_start: Offset
    log_start: Offset
    high_watermark: Offset
    exposed: Offset
    """The highest end offset that this leader returned to clients in this epoch; 0: none.

    Last stable offsets do not count: the last stable offset of another leader may be lower than an
    end offset that clients received for this leader's log.
    """
    log_end: Offset
    isr: tuple[BrokerId, ...]
    maximal_isr: tuple[BrokerId, ...]
    zk_version: int
    controller_epoch: Epoch


class Partition:
    """The state of one replica, as the module's docstring describes."""

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
        self._checked: tuple[Epoch, Offset] = (-1, self.high_watermark)

    # Events in, effects out.

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Handle one event and return its effects; ``now`` is in seconds of the loop's clock."""
        effects: list[Effect] = []
        match event:  # the most frequent first
            case FollowerFetched():
                self._follower_fetched(event, now, effects)
            case Replicated():
                self._replicated(event, now, effects)
            case Append():
                self._append(event, now, effects)
            case EndTransaction():
                self._end_transaction(event, now, effects)
            case DeleteRecords(offset):
                self._delete_records(offset, effects)
            case Tick():
                self._tick(now, effects)
            case BecomeLeader(state):
                self._become_leader(state, now, effects)
            case BecomeFollower(state):
                self._become_follower(state, effects)
            case Stop():
                self._stop(effects)
            case Configure(isr_min):
                self.isr_min = isr_min
                self._advance(now, effects)
            case IsrWritten(zk_version):
                self._isr_written(zk_version, now, effects)
            case IsrWriteRefused():
                self._isr_write_refused(effects)
            case IsrRefreshed():
                self._isr_refreshed(event, now, effects)
            case EpochEndAnswered():
                self._epoch_end_answered(event)
            case Diverged():
                self._diverged(event)
            case BoundsAnswered():
                self._bounds_answered(event, effects)
            case FetchRefused():
                self._fetch_refused(event, now)
            case _:
                assert_never(event)
        self.check()
        return effects

    def check(self) -> None:
        """Assert the invariants that involve this replica only."""
        log = self.log
        assert log.start_offset <= self.high_watermark <= log.end_offset, (
            f"{self.tp}: log start {log.start_offset}, high watermark {self.high_watermark} and "
            f"log end {log.end_offset} are not in this order"
        )
        if self.role is Role.LEADER:
            epoch, high_watermark = self._checked
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
            self._checked = (self.leader_epoch, self.high_watermark)

    # Orders of the controller.

    def _take_office(self, state: PartitionState) -> None:
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

    def _become_leader(self, state: PartitionState, now: float, effects: list[Effect]) -> None:
        if self.stage is not Stage.NOTHING:
            self.stage = Stage.NOTHING
            effects.append(StopFetching(self.tp))
        if self.role is Role.LEADER:
            # Requests parked here were sent in the former epoch: wake them, so that they do not
            # wait in vain.
            effects.append(LogEndAdvanced(self.tp, self.log.end_offset))
        else:
            self.leading_since = state.leader_epoch
        self._take_office(state)
        self.role = Role.LEADER
        self.isr = self.maximal_isr = frozenset(state.isr)
        # Before anything is served: a follower that asks about an epoch later than any record must
        # receive the offset where this epoch begins (KAFKA-7415).
        self.epoch_start = self.log.end_offset
        self.log.assign_epoch(state.leader_epoch, self.epoch_start)
        # The knowledge about followers belongs to the former epoch, even if this replica led in it:
        # another replica may have led in between and made the followers truncate.
        self.remotes = {
            broker: Remote(now if broker in self.isr else -math.inf)
            for broker in state.replicas
            if broker != self.me
        }
        effects.append(LeadershipTaken(self.tp, self.leader_epoch))
        self._advance(now, effects)

    def _become_follower(self, state: PartitionState, effects: list[Effect]) -> None:
        former = self.leader
        self._step_down(effects)
        self._take_office(state)
        self.role = Role.FOLLOWER
        self.retry_at = -math.inf
        if self.leader is None:
            if self.stage is not Stage.NOTHING:
                effects.append(StopFetching(self.tp))
            self.stage = Stage.NOTHING
            return
        if follower.starts_over(former, self.leader):
            self._start_over()
        effects.append(StartFetching(self.tp, self.leader))

    def _start_over(self) -> None:
        log = self.log
        known_by = follower.compares_by(log.epochs.latest)
        truncate_to = follower.on_new_epoch(log.end_offset, self.high_watermark, known_by)
        if truncate_to is None:
            self.stage = Stage.EPOCH_END
        else:
            self._truncate(truncate_to)
            self.stage = Stage.FETCH

    def _stop(self, effects: list[Effect]) -> None:
        self._step_down(effects)
        if self.stage is not Stage.NOTHING:
            effects.append(StopFetching(self.tp))
        self.stage = Stage.NOTHING
        self.role = Role.STOPPED
        self.leader = None

    def _step_down(self, effects: list[Effect]) -> None:
        if self.role is Role.LEADER:
            effects.append(LeadershipLost(self.tp))
        self.isr = self.maximal_isr = frozenset()
        self.pending_isr = None
        self.remotes = {}
        self.epoch_start = UNKNOWN_OFFSET

    # As a leader.

    def _append(self, event: Append, now: float, effects: list[Effect]) -> None:
        refused = self._append_refusal(event.acks)
        if refused is not None:
            effects.append(AppendDone(refused))
            return
        try:
            appended = self.log.append_as_leader(
                event.records,
                leader_epoch=self.leader_epoch,
                now_ms=event.now_ms,
                guard=event.guard,
                by_coordinator=event.by_coordinator,
            )
        except ApiError as error:
            effects.append(AppendDone(AppendResult(error=error.code, message=error.message)))
            return
        self._appended(appended, now, effects)

    def _end_transaction(self, event: EndTransaction, now: float, effects: list[Effect]) -> None:
        refused = self._append_refusal(-1)
        if refused is not None:
            effects.append(AppendDone(refused))
            return
        try:
            appended = self.log.append_marker(
                event.marker, leader_epoch=self.leader_epoch, now_ms=event.now_ms
            )
        except ApiError as error:
            effects.append(AppendDone(AppendResult(error=error.code, message=error.message)))
            return
        self._appended(appended, now, effects)

    def _append_refusal(self, acks: int) -> AppendResult | None:
        if self.role is not Role.LEADER:
            return AppendResult(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if acks == -1 and not isr.enough_in_sync(len(self.isr), self.isr_min):
            return AppendResult(
                error=ErrorCode.NOT_ENOUGH_REPLICAS,
                message=f"{len(self.isr)} in sync, {self.isr_min} wanted",
            )
        return None

    def _appended(self, appended: Appended, now: float, effects: list[Effect]) -> None:
        log = self.log
        result = AppendResult(
            base_offset=appended.base_offset,
            last_offset=appended.last_offset,
            log_append_time=appended.log_append_time,
            log_start_offset=log.start_offset,
            required_offset=appended.last_offset + 1,
            leader_epoch=self.leader_epoch,
        )
        effects.append(AppendDone(result))
        if not appended.duplicate:
            effects.append(LogEndAdvanced(self.tp, log.end_offset))
            self._advance(now, effects)

    def acknowledged(self, result: AppendResult) -> ErrorCode | None:
        """The response to an append with acks=all; None: still waiting."""
        leads = self.role is Role.LEADER
        if acks.is_abandoned(leads, result.leader_epoch, self.leading_since):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return acks.outcome(
            result.required_offset,
            self.high_watermark,
            self.replicated,
            len(self.maximal_isr),
            self.isr_min,
        )

    def _delete_records(self, offset: Offset, effects: list[Effect]) -> None:
        if self.role is Role.LEADER and offset > self.log.start_offset:
            self.log.advance_start(offset)
            self.high_watermark = max(self.high_watermark, self.log.start_offset)
            effects.append(LogStartAdvanced(self.tp))

    def _follower_fetched(self, event: FollowerFetched, now: float, effects: list[Effect]) -> None:
        remote = self.remotes.get(event.broker)
        if remote is None or event.leader_epoch != self.leader_epoch:
            return
        leader_end = self.log.end_offset
        remote.log_end = event.offset
        if event.log_start > remote.log_start != UNKNOWN_OFFSET:
            effects.append(LogStartAdvanced(self.tp))
        remote.log_start = event.log_start
        remote.caught_up_at = isr.caught_up_at(
            remote.caught_up_at,
            event.offset,
            leader_end,
            now,
            remote.leader_end_then,
            remote.fetched_at,
        )
        remote.leader_end_then = leader_end
        remote.fetched_at = now
        if (
            self.pending_isr is None
            and event.broker not in self.isr
            and isr.may_join(event.offset, self.high_watermark, self.epoch_start, event.eligible)
            and isr.begins_there(event.log_start, self.log.start_offset)
        ):
            self._propose(self.isr | {event.broker}, effects)
        elif event.offset == leader_end == self.replicated == self.high_watermark:
            return  # an idle partition, as most are: nothing is left to replicate or commit
        self._advance(now, effects)

    def _advance(self, now: float, effects: list[Effect]) -> None:
        """Recompute the high watermark."""
        if self.role is not Role.LEADER:
            return
        maximal, lag_max = self.maximal_isr, self.lag_max
        ends = [self.log.end_offset]
        for broker, remote in self.remotes.items():
            if isr.counts(broker in maximal, now, remote.caught_up_at, lag_max):
                ends.append(remote.log_end)
        self.replicated = watermark.replicated_end(ends)
        enough = isr.enough_in_sync(len(self.isr), min(self.isr_min, len(self.replicas)))
        before = self.high_watermark
        self.high_watermark = watermark.high_watermark(before, self.replicated, enough)
        if self.high_watermark != before:
            effects.append(HighWatermarkAdvanced(self.tp, self.high_watermark))

    def _tick(self, now: float, effects: list[Effect]) -> None:
        if self.role is not Role.LEADER:
            return
        if self.isr_in_doubt:
            effects.append(RefreshIsr(self.tp))
        elif self.pending_isr is None:
            leader_end = self.log.end_offset
            late = {
                broker
                for broker, remote in self.remotes.items()
                if broker in self.isr
                and isr.out_of_sync(
                    remote.log_end, leader_end, now, remote.caught_up_at, self.lag_max
                )
            }
            if late:
                self._propose(self.isr - late, effects)
        # The follower that held back the watermark may have stopped counting.
        self._advance(now, effects)

    def _propose(self, proposed: frozenset[BrokerId], effects: list[Effect]) -> None:
        self.pending_isr = proposed
        self.maximal_isr = isr.maximal(self.isr, proposed)
        effects.append(self._write_isr(proposed))

    def _write_isr(self, proposed: frozenset[BrokerId]) -> WriteIsr:
        return WriteIsr(
            self.tp,
            self.me,
            self.leader_epoch,
            tuple(sorted(proposed)),
            self.controller_epoch,
            self.zk_version,
        )

    def _isr_written(self, zk_version: int, now: float, effects: list[Effect]) -> None:
        if self.pending_isr is not None and isr.confirms(zk_version, self.zk_version):
            self._settle(self.pending_isr, zk_version, now, effects)

    def _isr_write_refused(self, effects: list[Effect]) -> None:
        if self.pending_isr is not None and isr.looks_again():
            self.isr_in_doubt = True
            effects.append(RefreshIsr(self.tp))

    def _isr_refreshed(self, event: IsrRefreshed, now: float, effects: list[Effect]) -> None:
        if self.role is not Role.LEADER or not self.isr_in_doubt:
            return
        if event.leader_epoch < self.leader_epoch or event.zk_version < self.zk_version:
            return  # read from a server that lags: read again at the next tick
        if event.leader != self.me or event.leader_epoch > self.leader_epoch:
            # Deposed. The controller's order follows; until then no client may use this replica as
            # leader.
            self._step_down(effects)
            self.role = Role.FENCED
        elif event.zk_version > self.zk_version:
            self._settle(frozenset(event.isr), event.zk_version, now, effects)
        else:
            # Nothing was written, but the pending write may still arrive and add a member that the
            # controller could elect. Only a successful write at this version rules that out.
            assert self.pending_isr is not None, (
                "the ISR is in doubt only while a write of it is pending"
            )
            self.isr_in_doubt = False
            effects.append(self._write_isr(self.pending_isr))

    def _settle(
        self, members: frozenset[BrokerId], zk_version: int, now: float, effects: list[Effect]
    ) -> None:
        before, self.isr = self.isr, members
        self.maximal_isr = members
        self.pending_isr = None
        self.isr_in_doubt = False
        self.zk_version = zk_version
        if members != before:
            effects.append(IsrChanged(self.tp, tuple(sorted(before)), tuple(sorted(members))))
        self._advance(now, effects)

    # As a follower. A response to a request of another epoch is ignored (KAFKA-7786).

    def _asked(self, leader_epoch: Epoch, stage: Stage) -> bool:
        is_awaited = self.role is Role.FOLLOWER and self.stage is stage
        return follower.counts(leader_epoch, self.leader_epoch, is_awaited)

    def _epoch_end_answered(self, event: EpochEndAnswered) -> None:
        asked = self._asked(event.leader_epoch, Stage.EPOCH_END)
        if asked and event.asked_epoch == self.log.epochs.latest:
            self._reconcile((event.epoch, event.end_offset))

    def _diverged(self, event: Diverged) -> None:
        asked = self._asked(event.leader_epoch, Stage.FETCH)
        if asked and event.offset == self.log.end_offset:
            self._reconcile((event.epoch, event.end_offset))

    def _reconcile(self, answer: tuple[Epoch, Offset]) -> None:
        log = self.log
        own = log.epochs.end_offset_for(answer[0], log.end_offset)
        offset, agreed = follower.truncation_point(answer, own, log.end_offset, self.high_watermark)
        self._truncate(offset)
        nothing_left_to_ask = agreed or log.epochs.latest == follower.UNDEFINED
        self.stage = Stage.FETCH if nothing_left_to_ask else Stage.EPOCH_END

    def _truncate(self, offset: Offset) -> None:
        """Truncate the log, and its epochs even if no record is removed (KAFKA-10706)."""
        log = self.log
        if follower.cuts(offset, log.end_offset):
            log.truncate_to(offset)
        self.high_watermark = watermark.bounded(
            self.high_watermark, log.start_offset, log.end_offset
        )

    def _replicated(self, event: Replicated, now: float, effects: list[Effect]) -> None:
        log = self.log
        if not self._asked(event.leader_epoch, Stage.FETCH) or event.offset != log.end_offset:
            return
        if len(event.records):
            try:
                log.append_as_follower(event.records, now_ms=event.now_ms)
            except ApiError:
                self.retry_at = now + self.fetch_backoff
                return
        before = self.high_watermark
        self.high_watermark, start = self._learnt(event.high_watermark, event.leader_log_start)
        if self.high_watermark != before:
            effects.append(HighWatermarkLearnt(self.tp))
        if start > log.start_offset:
            log.advance_start(start)
            effects.append(LogStartAdvanced(self.tp))

    def _learnt(self, high_watermark: Offset, leader_log_start: Offset) -> tuple[Offset, Offset]:
        """This log's high watermark and log start after a response with those of the leader."""
        log = self.log
        mark = watermark.bounded(high_watermark, log.start_offset, log.end_offset)
        return mark, min(leader_log_start, mark)

    def _fetch_refused(self, event: FetchRefused, now: float) -> None:
        if self.role is not Role.FOLLOWER or event.leader_epoch != self.leader_epoch:
            return
        if event.error is ErrorCode.OFFSET_OUT_OF_RANGE and self.stage is Stage.FETCH:
            self.stage = Stage.BOUNDS
        else:
            self.retry_at = now + self.fetch_backoff

    def _bounds_answered(self, event: BoundsAnswered, effects: list[Effect]) -> None:
        if not self._asked(event.leader_epoch, Stage.BOUNDS):
            return
        log = self.log
        if event.log_end < log.end_offset:
            self._truncate(event.log_end)  # never fatal: an unclean election (KAFKA-7414)
        elif event.log_start > log.end_offset:
            log.truncate_fully_and_start_at(event.log_start)
            self.high_watermark = event.log_start  # KAFKA-9491
            effects.append(LogStartAdvanced(self.tp))
        self.stage = Stage.FETCH

    # Queries.

    def would_learn(self, high_watermark: Offset, leader_log_start: Offset) -> bool:
        """Return whether a response without records would change this follower's state."""
        mark, start = self._learnt(high_watermark, leader_log_start)
        return mark != self.high_watermark or start > self.log.start_offset

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
        return min([self.log.start_offset, *starts])

    def _read_limit(self, replica_id: BrokerId, isolation: int, stable: Offset) -> Offset:
        end = self.log.end_offset
        return watermark.read_limit(replica_id, isolation, self.high_watermark, stable, end)

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

    def preferred_read_replica(
        self, offset: Offset, rack: str, racks: Mapping[BrokerId, str | None]
    ) -> BrokerId | None:
        """The replica from which a consumer in this rack should fetch; None: from this leader.

        ``racks`` contains the live brokers.
        """
        if self.role is not Role.LEADER:
            return None
        log = self.log
        me = selection.Candidate(
            self.me, racks.get(self.me), log.start_offset, log.end_offset, is_in_sync=True
        )
        others = [
            selection.Candidate(
                broker, racks[broker], remote.log_start, remote.log_end, broker in self.isr
            )
            for broker, remote in self.remotes.items()
            if broker in racks
        ]
        return selection.preferred(rack, me, others, offset)

    def read(
        self,
        offset: Offset,
        *,
        replica_id: BrokerId,
        isolation: int,
        bytes_max: int,
        last_fetched_epoch: Epoch,
        at_least_one: bool,
    ) -> FetchResult:
        """Return whole batches from the one that contains ``offset``, up to this reader's limit."""
        log = self.log
        diverging = None
        if last_fetched_epoch >= 0:
            answer = log.epochs.end_offset_for(last_fetched_epoch, log.end_offset)
            if follower.UNDEFINED in answer:
                return FetchResult(error=ErrorCode.OFFSET_OUT_OF_RANGE)
            if follower.diverges(last_fetched_epoch, offset, answer):
                diverging = answer
        # OFFSET_OUT_OF_RANGE takes precedence over a diverging epoch (KAFKA-12996): only offsets
        # that exist in this log can be compared.
        if offset < log.start_offset or (diverging is None and offset > log.end_offset):
            return FetchResult(error=ErrorCode.OFFSET_OUT_OF_RANGE)
        stable = self.last_stable_offset
        limit = self._read_limit(replica_id, isolation, stable)
        found = reading.NOTHING
        if diverging is None and offset < limit:
            found = log.read_from(
                offset,
                bytes_max=bytes_max,
                limit=limit,
                at_least_one=at_least_one,
                skip_empty=replica_id < 0,
            )
        return FetchResult(
            high_watermark=self.high_watermark,
            last_stable_offset=stable,
            log_start_offset=log.start_offset,
            records=found.records,
            cannot_grow=found.cannot_grow,
            diverging=diverging,
        )

    def with_aborted(self, offset: Offset, result: FetchResult) -> FetchResult:
        """Return the result with the aborted transactions, for a read_committed consumer."""
        if result.error is not ErrorCode.NONE:
            return result
        aborted = self.log.aborted_transactions(offset, result.records)
        return msgspec.structs.replace(result, aborted=aborted)

    def answer_follower(self, broker: BrokerId, result: FetchResult) -> FetchResult:
        """Return the result with the high watermark as of now, after the fetch was counted."""
        if result.error is not ErrorCode.NONE or result.diverging is not None:
            return result
        remote = self.remotes[broker]
        news = self.high_watermark > remote.high_watermark_sent
        if news or result.high_watermark != self.high_watermark:
            remote.high_watermark_sent = self.high_watermark
            return FetchResult(
                high_watermark=self.high_watermark,
                last_stable_offset=self.last_stable_offset,
                log_start_offset=result.log_start_offset,
                records=result.records,
                cannot_grow=result.cannot_grow,
                news=news,
            )
        return result

    def list_offset(self, timestamp: int, *, isolation: int, replica_id: int) -> ListedOffset:
        """The offset of the first record at or after a time; LATEST, EARLIEST: the log's ends.

        Both ends are as this reader may see them. Until the high watermark has reached the start of
        the epoch, a client's request for an offset beyond it is refused: a former leader may have
        returned a later end (KIP-207).
        """
        log = self.log
        consumer = replica_id == watermark.CONSUMER
        limit = self._read_limit(replica_id, isolation, self.last_stable_offset)
        behind = consumer and self.high_watermark < self.epoch_start
        if timestamp == LATEST:
            if behind:
                return ListedOffset(error=ErrorCode.OFFSET_NOT_AVAILABLE)
            if consumer and not isolation:
                self.exposed = max(self.exposed, limit)
            end = watermark.listed_end(limit, self.high_watermark)
            return ListedOffset(offset=end, leader_epoch=self.leader_epoch)
        if timestamp == EARLIEST:
            first = log.epochs.entries[:1]
            epoch = first[0].epoch if first and first[0].start <= log.start_offset else -1
            return ListedOffset(offset=log.start_offset, leader_epoch=epoch)
        if timestamp == MAX_TIMESTAMP:
            found = log.offset_of_max_timestamp(limit=log.end_offset)
        else:
            found = log.offset_for_timestamp(timestamp, limit=log.end_offset)
        if found is not None and found.offset < limit:
            return ListedOffset(
                timestamp=found.timestamp, offset=found.offset, leader_epoch=found.leader_epoch
            )
        return ListedOffset(error=ErrorCode.OFFSET_NOT_AVAILABLE if behind else ErrorCode.NONE)

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
        )
