"""The follower's role: compare logs with the leader, truncate, and append what it sends."""

import math

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.replica import follower, leading, watermark
from broker_impl.replica.events import (
    BoundsAnswered,
    Diverged,
    Effect,
    EpochEndAnswered,
    FetchesPaused,
    FetchRefused,
    HighWatermarkLearnt,
    LogStartAdvanced,
    PartitionState,
    Replicated,
    Role,
    StartFetching,
    StopFetching,
)
from broker_impl.replica.replica_state import ReplicaState, Stage
from broker_impl.wire.types import Epoch, Offset


def become_follower(replica: ReplicaState, state: PartitionState, effects: list[Effect]) -> None:
    """Follow the leader of this state, if there is one; compare logs first if it is another."""
    former = replica.leader
    leading.step_down(replica, effects)
    replica.apply_leader_state(state)
    replica.role = Role.FOLLOWER
    replica.retry_at = -math.inf
    if replica.leader is None:
        if replica.stage is not Stage.NOTHING:
            effects.append(StopFetching(replica.tp))
        replica.stage = Stage.NOTHING
        return
    if follower.starts_over(former, replica.leader):
        _start_over(replica)
    effects.append(StartFetching(replica.tp, replica.leader))


def _start_over(replica: ReplicaState) -> None:
    log = replica.log
    known_by = follower.compares_by(log.epochs.latest)
    truncate_to = follower.on_new_epoch(log.end_offset, replica.high_watermark, known_by)
    if truncate_to is None:
        replica.stage = Stage.EPOCH_END
    else:
        _truncate(replica, truncate_to)
        replica.stage = Stage.FETCH


def _is_awaited(replica: ReplicaState, leader_epoch: Epoch, stage: Stage) -> bool:
    """Whether this response counts: those to requests of another epoch are ignored (KAFKA-7786)."""
    is_awaited = replica.role is Role.FOLLOWER and replica.stage is stage
    return follower.counts(leader_epoch, replica.leader_epoch, is_awaited)


def on_epoch_end(replica: ReplicaState, event: EpochEndAnswered) -> None:
    """Truncate to where the leader's log agrees with this one, or ask about an earlier epoch."""
    asked = _is_awaited(replica, event.leader_epoch, Stage.EPOCH_END)
    if asked and event.asked_epoch == replica.log.epochs.latest:
        _reconcile(replica, (event.epoch, event.end_offset))


def on_diverged(replica: ReplicaState, event: Diverged) -> None:
    """Truncate: the leader's log ended the last epoch elsewhere (KIP-595)."""
    asked = _is_awaited(replica, event.leader_epoch, Stage.FETCH)
    if asked and event.offset == replica.log.end_offset:
        _reconcile(replica, (event.epoch, event.end_offset))


def _reconcile(replica: ReplicaState, answer: tuple[Epoch, Offset]) -> None:
    log = replica.log
    own = log.epochs.end_offset_for(answer[0], log.end_offset)
    offset, agreed = follower.truncation_point(answer, own, log.end_offset, replica.high_watermark)
    _truncate(replica, offset)
    nothing_left_to_ask = agreed or log.epochs.latest == follower.UNDEFINED
    replica.stage = Stage.FETCH if nothing_left_to_ask else Stage.EPOCH_END


def _truncate(replica: ReplicaState, offset: Offset) -> None:
    """Truncate the log, and its epochs even if no record is removed (KAFKA-10706)."""
    log = replica.log
    if follower.cuts(offset, log.end_offset):
        log.truncate_to(offset)
    replica.high_watermark = watermark.bounded(
        replica.high_watermark, log.start_offset, log.end_offset
    )


def on_replicated(
    replica: ReplicaState, event: Replicated, now: float, effects: list[Effect]
) -> None:
    """Append the leader's records, and take over its high watermark and log start."""
    log = replica.log
    start_before = log.start_offset
    if not _is_awaited(replica, event.leader_epoch, Stage.FETCH) or event.offset != log.end_offset:
        return
    if len(event.records):
        try:
            log.append_as_follower(
                event.records, now_ms=event.now_ms, leader_start=event.leader_log_start
            )
        except ApiError:
            replica.retry_at = now + replica.fetch_backoff
            return
    before = replica.high_watermark
    replica.high_watermark, start = _learnt(replica, event.high_watermark, event.leader_log_start)
    if replica.high_watermark != before:
        effects.append(HighWatermarkLearnt(replica.tp))
    if start > log.start_offset:
        log.advance_start(start)
    if log.start_offset > start_before:
        effects.append(LogStartAdvanced(replica.tp))


def _learnt(
    replica: ReplicaState, high_watermark: Offset, leader_log_start: Offset
) -> tuple[Offset, Offset]:
    """This log's high watermark and log start after a response with those of the leader."""
    log = replica.log
    mark = watermark.bounded(high_watermark, log.start_offset, log.end_offset)
    return mark, min(leader_log_start, mark)


def on_fetch_refused(replica: ReplicaState, event: FetchRefused, now: float) -> None:
    """Retry later; an offset out of range asks for the bounds of the leader's log first."""
    if replica.role is not Role.FOLLOWER or event.leader_epoch != replica.leader_epoch:
        return
    if event.error is ErrorCode.OFFSET_OUT_OF_RANGE and replica.stage is Stage.FETCH:
        replica.stage = Stage.BOUNDS
    else:
        replica.retry_at = now + replica.fetch_backoff


def on_fetches_paused(replica: ReplicaState, event: FetchesPaused) -> None:
    """Fetch again later: the quota of throttled replicas is used up (KIP-73)."""
    if _is_awaited(replica, event.leader_epoch, Stage.FETCH):
        replica.retry_at = event.until


def on_bounds(replica: ReplicaState, event: BoundsAnswered, effects: list[Effect]) -> None:
    """Truncate to the end of the leader's log, or start over at its start."""
    if not _is_awaited(replica, event.leader_epoch, Stage.BOUNDS):
        return
    log = replica.log
    if event.log_end < log.end_offset:
        _truncate(replica, event.log_end)  # never fatal: an unclean election (KAFKA-7414)
    elif event.log_start > log.end_offset:
        log.truncate_fully_and_start_at(event.log_start)
        replica.high_watermark = event.log_start  # KAFKA-9491
        effects.append(LogStartAdvanced(replica.tp))
    replica.stage = Stage.FETCH


def would_learn(replica: ReplicaState, high_watermark: Offset, leader_log_start: Offset) -> bool:
    """Return whether a response without records would change this follower's state."""
    mark, start = _learnt(replica, high_watermark, leader_log_start)
    return mark != replica.high_watermark or start > replica.log.start_offset
