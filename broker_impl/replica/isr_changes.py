"""Changes of the in-sync replicas: the leader proposes them, and writes the state znode."""

from broker_impl.replica import isr, leading
from broker_impl.replica.events import (
    Effect,
    FollowerFetched,
    FollowerKeptUp,
    IsrChanged,
    IsrRefreshed,
    LogStartAdvanced,
    RefreshIsr,
    Role,
    WriteIsr,
)
from broker_impl.replica.replica_state import UNKNOWN_OFFSET, ReplicaState
from broker_impl.wire.types import BrokerId


def on_follower_fetched(
    replica: ReplicaState, event: FollowerFetched, now: float, effects: list[Effect]
) -> None:
    """Record what the follower holds; it may join the ISR, and records may become committed."""
    remote = replica.remotes.get(event.broker)
    if remote is None or event.leader_epoch != replica.leader_epoch:
        return
    leader_end = replica.log.end_offset
    if event.log_start > remote.log_start != UNKNOWN_OFFSET:
        effects.append(LogStartAdvanced(replica.tp))
    remote.record_fetch(event.offset, event.log_start, leader_end, now)
    if _may_join(replica, event):
        _propose(replica, replica.isr | {event.broker}, effects)
    elif event.offset == leader_end == replica.replicated == replica.high_watermark:
        return  # an idle partition, as most are: nothing is left to replicate or commit
    leading.advance(replica, now, effects)


def on_follower_kept_up(replica: ReplicaState, event: FollowerKeptUp) -> None:
    """Record until when the follower fetched at what was the log end."""
    remote = replica.remotes.get(event.broker)
    if remote is None or event.leader_epoch != replica.leader_epoch:
        return
    if remote.log_end == event.offset:
        remote.record_keeping_up(event.at)


def is_settled(replica: ReplicaState, broker: BrokerId) -> bool:
    """Return whether further fetches of this follower at its log end would change nothing.

    The follower is in the ISR, and everything in the leader's log is replicated and committed.
    """
    end = replica.log.end_offset
    return (
        replica.remotes[broker].log_end == end == replica.replicated == replica.high_watermark
        and broker in replica.isr
        and replica.pending_isr is None
    )


def _may_join(replica: ReplicaState, event: FollowerFetched) -> bool:
    return (
        replica.pending_isr is None
        and event.broker not in replica.isr
        and isr.may_join(event.offset, replica.high_watermark, replica.epoch_start, event.eligible)
        and isr.begins_there(event.log_start, replica.log.start_offset)
    )


def on_tick(replica: ReplicaState, now: float, effects: list[Effect]) -> None:
    """Propose to remove followers that lag from the ISR, or read the state znode again."""
    if replica.role is not Role.LEADER:
        return
    if replica.isr_in_doubt:
        effects.append(RefreshIsr(replica.tp))
    elif replica.pending_isr is None:
        late = _late_members(replica, now)
        if late:
            _propose(replica, replica.isr - late, effects)
        else:
            replica.in_sync_at = now
    # The follower that held back the watermark may have stopped counting.
    leading.advance(replica, now, effects)


def _late_members(replica: ReplicaState, now: float) -> set[BrokerId]:
    leader_end, lag_max = replica.log.end_offset, replica.lag_max
    return {
        broker
        for broker, remote in replica.remotes.items()
        if broker in replica.isr
        and isr.out_of_sync(remote.log_end, leader_end, now, remote.caught_up_at, lag_max)
    }


def _propose(replica: ReplicaState, proposed: frozenset[BrokerId], effects: list[Effect]) -> None:
    replica.pending_isr = proposed
    replica.maximal_isr = isr.maximal(replica.isr, proposed)
    effects.append(_write(replica, proposed))


def _write(replica: ReplicaState, proposed: frozenset[BrokerId]) -> WriteIsr:
    return WriteIsr(
        replica.tp,
        replica.me,
        replica.leader_epoch,
        tuple(sorted(proposed)),
        replica.controller_epoch,
        replica.zk_version,
    )


def on_written(replica: ReplicaState, zk_version: int, now: float, effects: list[Effect]) -> None:
    """The pending ISR is stored: it counts from now on."""
    if replica.pending_isr is not None and isr.confirms(zk_version, replica.zk_version):
        _settle(replica, replica.pending_isr, zk_version, now, effects)


def on_write_refused(replica: ReplicaState, effects: list[Effect]) -> None:
    """Read the state znode: it has changed, or the result of the write is unknown."""
    if replica.pending_isr is not None and isr.looks_again():
        replica.isr_in_doubt = True
        effects.append(RefreshIsr(replica.tp))


def on_refreshed(
    replica: ReplicaState, event: IsrRefreshed, now: float, effects: list[Effect]
) -> None:
    """Compare the state znode, read after a refused write, with what this leader knows."""
    if replica.role is not Role.LEADER or not replica.isr_in_doubt:
        return
    if event.leader_epoch < replica.leader_epoch or event.zk_version < replica.zk_version:
        return  # read from a server that lags: read again at the next tick
    if event.leader != replica.me or event.leader_epoch > replica.leader_epoch:
        # Deposed. The controller's order follows; until then no client may use this replica as
        # leader.
        leading.step_down(replica, effects)
        replica.role = Role.FENCED
    elif event.zk_version > replica.zk_version:
        _settle(replica, frozenset(event.isr), event.zk_version, now, effects)
    else:
        # Nothing was written, but the pending write may still arrive and add a member that the
        # controller could elect. Only a successful write at this version rules that out.
        assert replica.pending_isr is not None, (
            "the ISR is in doubt only while a write of it is pending"
        )
        replica.isr_in_doubt = False
        effects.append(_write(replica, replica.pending_isr))


def _settle(
    replica: ReplicaState,
    members: frozenset[BrokerId],
    zk_version: int,
    now: float,
    effects: list[Effect],
) -> None:
    before, replica.isr = replica.isr, members
    replica.maximal_isr = members
    replica.pending_isr = None
    replica.isr_in_doubt = False
    replica.zk_version = zk_version
    if members != before:
        effects.append(IsrChanged(replica.tp, tuple(sorted(before)), tuple(sorted(members))))
    leading.advance(replica, now, effects)
