"""The deletion of a topic, replica by replica; the topic is removed once all replicas are deleted.

A replica on a broker that is down delays the deletion of the whole topic, as in Kafka with
ZooKeeper. A broker recognizes the log of a deleted topic by its topic id as well
(`broker_impl.replica.topic_identity`): a replica that was removed from the topic while its broker
was down is not in the assignment, so the deletion does not wait for it. It does wait for a replica
that was removed but has not stopped: its broker could write its ISR over that of a new topic of the
same name (finding 35).
"""

from collections.abc import Container, Iterable, Mapping
from enum import Enum

from broker_impl.wire.types import BrokerId


class DeletionState(Enum):
    """The state of one replica during the deletion; the names are Kafka's."""

    OFFLINE = "offline"
    """The replica must be deleted; no request was sent yet."""
    STARTED = "started"
    """Its broker was sent the order to delete it."""
    SUCCESSFUL = "successful"
    """Its broker has reported the deletion."""
    INELIGIBLE = "ineligible"
    """Its broker is down or could not delete it; the order is sent again later."""


class Event(Enum):
    """An event in the deletion of one replica."""

    ASKED = "asked"
    DONE = "done"
    REFUSED = "refused"
    BROKER_GONE = "broker gone"


TRANSITIONS: Mapping[tuple[DeletionState, Event], DeletionState] = {
    (DeletionState.OFFLINE, Event.ASKED): DeletionState.STARTED,
    (DeletionState.INELIGIBLE, Event.ASKED): DeletionState.STARTED,
    (DeletionState.STARTED, Event.DONE): DeletionState.SUCCESSFUL,
    (DeletionState.STARTED, Event.REFUSED): DeletionState.INELIGIBLE,
    (DeletionState.STARTED, Event.BROKER_GONE): DeletionState.INELIGIBLE,
    (DeletionState.OFFLINE, Event.BROKER_GONE): DeletionState.INELIGIBLE,
    (DeletionState.INELIGIBLE, Event.BROKER_GONE): DeletionState.INELIGIBLE,
    (DeletionState.SUCCESSFUL, Event.BROKER_GONE): DeletionState.SUCCESSFUL,
    # A response to an order that was sent before the broker restarted.
    (DeletionState.INELIGIBLE, Event.DONE): DeletionState.SUCCESSFUL,
    (DeletionState.INELIGIBLE, Event.REFUSED): DeletionState.INELIGIBLE,
    (DeletionState.SUCCESSFUL, Event.DONE): DeletionState.SUCCESSFUL,
    (DeletionState.SUCCESSFUL, Event.REFUSED): DeletionState.SUCCESSFUL,
}

Replica = tuple[int, BrokerId]
"""A partition's number and the broker that holds it."""


class TopicDeletion:
    """The state of the replicas of one topic that is being deleted."""

    def __init__(self, replicas: Iterable[Replica]) -> None:
        self.states: dict[Replica, DeletionState] = dict.fromkeys(replicas, DeletionState.OFFLINE)

    @property
    def is_complete(self) -> bool:
        """Whether all replicas of the topic are deleted on all brokers."""
        return all(map(is_gone, self.states.values()))

    def start(self, live: Container[BrokerId], *, repeat: bool = True) -> list[Replica]:
        """Mark the replicas on live brokers as started, and return those that need an order.

        repeat: whether an order is repeated that a broker refused, or that was sent before the
        broker went down.
        """
        startable = [DeletionState.OFFLINE] + [DeletionState.INELIGIBLE] * repeat
        due = [
            replica
            for replica, state in self.states.items()
            if state in startable and replica[1] in live
        ]
        for replica in due:
            self._move(replica, Event.ASKED)
        return due

    def answered(self, replica: Replica, *, deleted: bool) -> None:
        """Record a broker's response to an order to delete this replica.

        The order may be an earlier one, for a replica that a reassignment removed before the
        topic's deletion was requested (finding 18).
        """
        if replica in self.states:
            self._move(replica, Event.DONE if deleted else Event.REFUSED)

    def forget(self, replica: Replica) -> None:
        """Do not wait for this replica any more."""
        self.states.pop(replica, None)

    def broker_gone(self, broker: BrokerId) -> None:
        """Record that a broker is down; orders that were sent to it may not have arrived."""
        for replica in self.states:
            if replica[1] == broker:
                self._move(replica, Event.BROKER_GONE)

    def _move(self, replica: Replica, event: Event) -> None:
        before = self.states[replica]
        after = TRANSITIONS.get((before, event))
        assert after is not None, (
            f"replica {replica} is {before.name}, where {event.name} cannot happen"
        )
        self.states[replica] = after


def is_gone(state: DeletionState) -> bool:
    """Return whether the deletion of the topic no longer waits for this replica.

    A log that is not deleted takes space until a topic of the same name is created on its broker.
    """
    return state is DeletionState.SUCCESSFUL
