"""The deletion of a topic, replica by replica: the topic goes when the last of them is gone.

A replica on a broker that is down keeps the whole topic waiting: without topic ids a new topic of
the same name would find the old log there.
"""

from collections.abc import Container, Iterable, Mapping
from enum import Enum

from broker_impl.wire.types import BrokerId


class State(Enum):
    """Where one replica stands; the names are Kafka's."""

    OFFLINE = "offline"
    """To be deleted; nobody has been asked yet."""
    STARTED = "started"
    """Its broker has been told to delete it."""
    SUCCESSFUL = "successful"
    """Its broker has said that it is gone."""
    INELIGIBLE = "ineligible"
    """Its broker is down, or could not do it: to be tried again."""


class Event(Enum):
    """What happens to a replica that is being deleted."""

    ASKED = "asked"
    DONE = "done"
    REFUSED = "refused"
    BROKER_GONE = "broker gone"


TRANSITIONS: Mapping[tuple[State, Event], State] = {
    (State.OFFLINE, Event.ASKED): State.STARTED,
    (State.INELIGIBLE, Event.ASKED): State.STARTED,
    (State.STARTED, Event.DONE): State.SUCCESSFUL,
    (State.STARTED, Event.REFUSED): State.INELIGIBLE,
    (State.STARTED, Event.BROKER_GONE): State.INELIGIBLE,
    (State.OFFLINE, Event.BROKER_GONE): State.INELIGIBLE,
    (State.INELIGIBLE, Event.BROKER_GONE): State.INELIGIBLE,
    (State.SUCCESSFUL, Event.BROKER_GONE): State.SUCCESSFUL,
    # An answer to an order that was sent before the broker went and came back.
    (State.INELIGIBLE, Event.DONE): State.SUCCESSFUL,
    (State.INELIGIBLE, Event.REFUSED): State.INELIGIBLE,
    (State.SUCCESSFUL, Event.DONE): State.SUCCESSFUL,
    (State.SUCCESSFUL, Event.REFUSED): State.SUCCESSFUL,
}

Replica = tuple[int, BrokerId]
"""A partition's number and the broker that holds it."""


class TopicDeletion:
    """The replicas of one topic on their way out."""

    def __init__(self, replicas: Iterable[Replica]) -> None:
        self.states: dict[Replica, State] = dict.fromkeys(replicas, State.OFFLINE)

    @property
    def is_complete(self) -> bool:
        """Whether nothing of the topic is left on any broker."""
        return all(map(is_gone, self.states.values()))

    def start(self, live: Container[BrokerId]) -> list[Replica]:
        """The replicas that a broker must now be told to delete."""
        due = [
            replica
            for replica, state in self.states.items()
            if state in (State.OFFLINE, State.INELIGIBLE) and replica[1] in live
        ]
        for replica in due:
            self._move(replica, Event.ASKED)
        return due

    def answered(self, replica: Replica, *, deleted: bool) -> None:
        """A broker has answered the order to delete this replica, which may have been an earlier
        one: of a replica that was moved away before the topic was to go (finding 18)."""
        if replica in self.states:
            self._move(replica, Event.DONE if deleted else Event.REFUSED)

    def broker_gone(self, broker: BrokerId) -> None:
        """A broker is down, and whatever it was told may not have reached it."""
        for replica in self.states:
            if replica[1] == broker:
                self._move(replica, Event.BROKER_GONE)

    def _move(self, replica: Replica, event: Event) -> None:
        before = self.states[replica]
        after = TRANSITIONS.get((before, event))
        assert after is not None, f"replica {replica} is {before.name}: {event.name} cannot be"
        self.states[replica] = after


def is_gone(state: State) -> bool:
    """Need nobody wait for this replica? One that was not deleted is found by a new topic of the
    same name."""
    return state is State.SUCCESSFUL
