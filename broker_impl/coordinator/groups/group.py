"""One consumer group: its members, generation and assignment, by the classic protocol.

Events in, effects out. A rebalance makes every member join again, waits for the slowest of them,
and begins a new generation with those that joined; the leader among them then assigns partitions,
and each member asks for its share. State that must survive this broker is written before any client
learns of it.
"""

from typing import assert_never

from broker_impl.coordinator.groups import (
    assignment,
    commits,
    joining,
    liveness,
    removal,
    restoring,
)
from broker_impl.coordinator.groups.events import (
    Answered,
    Commit,
    Delete,
    DeleteOffsets,
    Effect,
    Event,
    Expire,
    Heartbeat,
    Join,
    Leave,
    Marked,
    Sync,
    Tick,
    TopicsGone,
    Unload,
    Written,
)
from broker_impl.coordinator.groups.group_state import GroupState
from broker_impl.coordinator.records import GroupRecord


class Group(GroupState):
    """The state machine of one group; see the module."""

    def handle(self, event: Event, now: float, now_ms: int) -> list[Effect]:
        """Handle one event; ``now`` in seconds of the loop, ``now_ms`` of the wall clock."""
        self.now_ms = now_ms
        effects: list[Effect] = []
        match event:
            case Join():
                joining.on_join(self, event, now, effects)
            case Sync():
                assignment.on_sync(self, event, now, effects)
            case Heartbeat():
                effects.append(Answered(event.ticket, liveness.on_heartbeat(self, event, now)))
            case Leave():
                liveness.on_leave(self, event, now, effects)
            case Commit():
                commits.on_commit(self, event, now, effects)
            case DeleteOffsets():
                removal.delete_offsets(self, event, effects)
            case Delete():
                removal.delete_group(self, event, effects)
            case Written(number=number):
                self.writes.pop(number)(event, now, effects)
            case Marked():
                self.offsets.resolve(event.producer_id, event.at, is_commit=event.is_commit)
                removal.write_owed(self, effects)
            case Tick():
                liveness.on_tick(self, now, effects)
            case Expire():
                removal.expire(self, effects)
            case TopicsGone(partitions):
                self.offsets.drop(removal.of_deleted_topics(self, partitions))
                removal.write_owed(self, effects)
            case Unload():
                liveness.on_unload(self, effects)
            case _:
                assert_never(event)
        self.check()
        return effects

    def restore(self, record: GroupRecord, now: float) -> None:
        """Restore the group from its record; each member gets a full session timeout."""
        restoring.restore(self, record, now)
        self.check()
