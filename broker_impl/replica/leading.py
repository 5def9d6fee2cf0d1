"""The leader's role: it begins, it advances the high watermark, and it ends."""

import math

from broker_impl.replica import isr, watermark
from broker_impl.replica.events import (
    Effect,
    HighWatermarkAdvanced,
    LeadershipLost,
    LeadershipTaken,
    LogEndAdvanced,
    LogStartAdvanced,
    PartitionState,
    Role,
    StopFetching,
)
from broker_impl.replica.replica_state import UNKNOWN_OFFSET, Remote, ReplicaState, Stage
from broker_impl.wire.types import BrokerId, Offset


def become_leader(
    replica: ReplicaState, state: PartitionState, now: float, effects: list[Effect]
) -> None:
    """Begin to lead in a new epoch; a leader may receive one, too."""
    if replica.stage is not Stage.NOTHING:
        replica.stage = Stage.NOTHING
        effects.append(StopFetching(replica.tp))
    if replica.role is Role.LEADER:
        # Requests parked here were sent in the former epoch: wake them, or they wait in vain.
        effects.append(LogEndAdvanced(replica.tp, replica.log.end_offset))
    else:
        replica.leading_since = state.leader_epoch
    replica.apply_leader_state(state)
    replica.role = Role.LEADER
    replica.isr = replica.maximal_isr = frozenset(state.isr)
    # Before anything is served: a follower that asks about an epoch later than any record must
    # receive the offset where this epoch begins (KAFKA-7415).
    replica.epoch_start = replica.log.end_offset
    replica.log.assign_epoch(state.leader_epoch, replica.epoch_start)
    replica.remotes = _new_remotes(replica, now)
    effects.append(LeadershipTaken(replica.tp, replica.leader_epoch))
    advance(replica, now, effects)


def _new_remotes(replica: ReplicaState, now: float) -> dict[BrokerId, Remote]:
    """Start without knowledge of the followers, even if this replica led in the former epoch.

    Another replica may have led in between and made the followers truncate.
    """
    return {
        broker: Remote(now if broker in replica.isr else -math.inf)
        for broker in replica.replicas
        if broker != replica.me
    }


def stop(replica: ReplicaState, effects: list[Effect]) -> None:
    """Neither lead nor follow any more."""
    step_down(replica, effects)
    if replica.stage is not Stage.NOTHING:
        effects.append(StopFetching(replica.tp))
    replica.stage = Stage.NOTHING
    replica.role = Role.STOPPED
    replica.leader = None


def step_down(replica: ReplicaState, effects: list[Effect]) -> None:
    """Give up what belongs to the leader's role."""
    if replica.role is Role.LEADER:
        effects.append(LeadershipLost(replica.tp))
    replica.isr = replica.maximal_isr = frozenset()
    replica.pending_isr = None
    replica.remotes = {}
    replica.epoch_start = UNKNOWN_OFFSET


def advance(replica: ReplicaState, now: float, effects: list[Effect]) -> None:
    """Recompute the high watermark."""
    if replica.role is not Role.LEADER:
        return
    maximal, lag_max = replica.maximal_isr, replica.lag_max
    ends = [replica.log.end_offset]
    for broker, remote in replica.remotes.items():
        if isr.counts(broker in maximal, now, remote.caught_up_at, lag_max):
            ends.append(remote.log_end)
    replica.replicated = watermark.replicated_end(ends)
    enough = isr.enough_in_sync(len(replica.isr), min(replica.isr_min, len(replica.replicas)))
    before = replica.high_watermark
    replica.high_watermark = watermark.high_watermark(before, replica.replicated, enough)
    if replica.high_watermark != before:
        effects.append(HighWatermarkAdvanced(replica.tp, replica.high_watermark))


def delete_records(replica: ReplicaState, offset: Offset, effects: list[Effect]) -> None:
    """Move the start of the leader's log to ``offset``."""
    if replica.role is Role.LEADER and offset > replica.log.start_offset:
        replica.log.advance_start(offset)
        replica.high_watermark = max(replica.high_watermark, replica.log.start_offset)
        effects.append(LogStartAdvanced(replica.tp))
