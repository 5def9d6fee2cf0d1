"""The follower's side of an incremental fetch session with one leader (KIP-227).

A pure state: it remembers which requests the leader's session holds, and returns what the next
request must name. A session is lost with any failed request, and the next request is full again:
the leader may have answered it, and would not repeat what it believes to be known.
"""

from typing import NamedTuple

from broker_impl.errors import ErrorCode
from broker_impl.replica.fetch_targets import FetchTarget
from broker_impl.wire.types import TopicPartition

NO_SESSION = 0
_CREATE, _FIRST, _LAST = 0, 1, 2**31 - 1

LOST = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
"""The errors of an incremental request after which a full one can succeed at once."""


class Outgoing(NamedTuple):
    """What a fetch names: the partitions to add or change, and those to remove."""

    session_id: int
    session_epoch: int
    named: list[FetchTarget]
    forgotten: list[TopicPartition]

    @property
    def is_full(self) -> bool:
        """Whether the request lists all partitions, and creates a session."""
        return self.session_epoch == _CREATE


class FetchSession:
    """A follower's session with one leader: what it fetches, and what the leader holds."""

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = _CREATE
        self._wanted: dict[TopicPartition, FetchTarget] = {}
        self._changed: dict[TopicPartition, None] = {}
        """The partitions that may differ from what the leader holds."""
        self._held: dict[TopicPartition, FetchTarget] = {}

    def want(self, target: FetchTarget) -> None:
        """Fetch a partition, or fetch it from another position or in another epoch."""
        self._wanted[target.tp] = target
        self._changed[target.tp] = None

    def leave(self, tp: TopicPartition) -> None:
        """Fetch a partition no longer."""
        if self._wanted.pop(tp, None) is not None:
            self._changed[tp] = None

    def __bool__(self) -> bool:
        """Whether there is anything to fetch."""
        return bool(self._wanted)

    def next(self) -> Outgoing:
        """Return what the next request names; it counts as sent."""
        changed, self._changed = self._changed, {}
        if self._epoch == _CREATE:
            self._held = dict(self._wanted)
            return Outgoing(self._id, _CREATE, list(self._held.values()), [])
        named, forgotten = [], []
        for tp in changed:
            target = self._wanted.get(tp)
            if target is not None and is_sent(self._held.get(tp), target):
                self._held[tp] = target
                named.append(target)
            elif target is None and self._held.pop(tp, None) is not None:
                forgotten.append(tp)
        return Outgoing(self._id, self._epoch, named, forgotten)

    def held(self, tp: TopicPartition) -> FetchTarget | None:
        """Return the request to which a row of the response belongs; None: it was not requested."""
        return self._held.get(tp)

    def answered(self, session_id: int) -> None:
        """Continue the session that a successful response names; 0: there is none."""
        if session_id == NO_SESSION:
            self._id, self._epoch = NO_SESSION, _CREATE
        elif self._epoch == _CREATE:
            self._id, self._epoch = session_id, _FIRST
        else:
            self._epoch = _FIRST if self._epoch == _LAST else self._epoch + 1

    def lost(self) -> None:
        """Begin again with a full request, which ends the former session if it still exists."""
        self._epoch = _CREATE


def is_sent(held: FetchTarget | None, wanted: FetchTarget) -> bool:
    """Return whether a request must name this partition, given what the leader's session holds.

    Any difference is sent: also a new leader epoch, in which nothing else has changed (KIP-320).
    """
    return held != wanted
