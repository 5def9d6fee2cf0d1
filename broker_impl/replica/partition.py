"""One replica of one partition, leader or follower, as a state machine.

Everything that happens to the replica is an event that is passed to ``handle`` together with the
time; everything that the replica wants done is returned as effects. The state satisfies ``check``
after each call of ``handle``. Queries are methods of the state, and functions of `serving`: they
change nothing, except that they remember which end offset they exposed and which watermark they
sent to a follower.

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

from typing import assert_never

from broker_impl.replica import appending, following, isr_changes, leading
from broker_impl.replica.events import (
    Append,
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
    FetchesPaused,
    FetchRefused,
    FollowerFetched,
    FollowerKeptUp,
    IsrRefreshed,
    IsrWriteRefused,
    IsrWritten,
    Replicated,
    Stop,
    Tick,
)
from broker_impl.replica.replica_state import ReplicaState


class Partition(ReplicaState):
    """One replica, as the module's docstring describes."""

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Handle one event and return its effects; ``now`` is in seconds of the loop's clock."""
        effects: list[Effect] = []
        match event:  # the most frequent first
            case FollowerFetched():
                isr_changes.on_follower_fetched(self, event, now, effects)
            case Replicated():
                following.on_replicated(self, event, now, effects)
            case Append():
                appending.append(self, event, now, effects)
            case FollowerKeptUp():
                isr_changes.on_follower_kept_up(self, event)
            case EndTransaction():
                appending.end_transaction(self, event, now, effects)
            case DeleteRecords(offset):
                leading.delete_records(self, offset, effects)
            case Tick():
                isr_changes.on_tick(self, now, effects)
            case BecomeLeader(state):
                leading.become_leader(self, state, now, effects)
            case BecomeFollower(state):
                following.become_follower(self, state, effects)
            case Stop():
                leading.stop(self, effects)
            case Configure(isr_min):
                self.isr_min = isr_min
                leading.advance(self, now, effects)
            case IsrWritten(zk_version):
                isr_changes.on_written(self, zk_version, now, effects)
            case IsrWriteRefused():
                isr_changes.on_write_refused(self, effects)
            case IsrRefreshed():
                isr_changes.on_refreshed(self, event, now, effects)
            case EpochEndAnswered():
                following.on_epoch_end(self, event)
            case Diverged():
                following.on_diverged(self, event)
            case BoundsAnswered():
                following.on_bounds(self, event, effects)
            case FetchesPaused():
                following.on_fetches_paused(self, event)
            case FetchRefused():
                following.on_fetch_refused(self, event, now)
            case _:
                assert_never(event)
        if self.log.offline is None:  # a failure may have left the log half changed
            self.check()
        return effects
