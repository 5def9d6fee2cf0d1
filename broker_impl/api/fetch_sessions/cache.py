"""The cache of fetch sessions of one broker (KIP-227): a pure state, to which time is given.

A session remembers the partitions that a client or a follower fetches, and what it was sent of
each. An incremental request names only what has changed for the reader, and its response only what
has changed for the broker.

Most partitions are idle. A partition is *settled* if the same fetch would return the same until its
replica reports a change. A fetch reads the other, *active* partitions, so that its cost depends on
them, and not on the size of the session. The broker therefore must report every change of a
partition that it leads (``changed``).

A follower's fetch also shows that the follower keeps up with its leader. For a settled partition
this is not recorded with each fetch, but at the latest when the partition changes: ``on_kept_up``
is called with the time of the last fetch before the change.

A fetch may wait while its session ends, or while another request continues the session. It then
fails (``error_of``), because the session no longer reports its changes. ``on_end`` is called with
the id of each session that ends.

A full cache gives up a session for a new one as Kafka does: the one that was out of use for
longest, if that is more than two minutes; otherwise the least valuable of those older than two
minutes, if the new one is more valuable. Followers are more valuable than consumers, then sessions
with more partitions. In contrast to Kafka, a follower's new session replaces its former one at
once: the follower has a single fetcher, which has lost it.
"""

import random
from collections.abc import Callable, Iterator, Mapping

from broker_impl.api.fetch_sessions import rules
from broker_impl.api.fetch_sessions.session import (
    CachedPartition,
    Profile,
    Session,
    forgotten_of,
    rows_of,
)
from broker_impl.errors import ErrorCode
from broker_impl.replica.events import FollowerKeptUp
from broker_impl.replica.results import FetchResult
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest
from broker_impl.wire.types import TopicPartition

IDLE_MAX_S = 120.0
"""Kafka's limit for both: how long a session is out of use, and how long a new one is protected."""

_ID_MAX = 2**31 - 1

OnKeptUp = Callable[[TopicPartition, FollowerKeptUp], None]
OnEnd = Callable[[int], None]


class FetchSessions:
    """The sessions of one broker, in the order of their last use."""

    def __init__(self, slots: int, rng: random.Random, on_kept_up: OnKeptUp, on_end: OnEnd) -> None:
        """``slots``: max.incremental.fetch.session.cache.slots; with 0 there are no sessions."""
        self._slots = slots
        self._rng = rng
        self._on_kept_up = on_kept_up
        self._on_end = on_end
        self._sessions: dict[int, Session] = {}
        self._holders: dict[TopicPartition, dict[int, Session]] = {}

    def begin(self, request: FetchRequest, version: int, now: float) -> Session | ErrorCode | None:
        """Return the session of a request, after its changes; None: the request is a full fetch.

        An incremental request that removes the last partition of its session ends the session.
        """
        session = self._sessions.get(request.session_id)
        if session is not None and session.profile.replica_id != request.replica_id:
            session = None  # it belongs to another reader, which needs it
        if rules.is_full(request.session_epoch):
            if session is not None:
                self._remove(session.id)
            return None
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        error = rules.epoch_error(request.session_epoch, session.epoch)
        if error is not ErrorCode.NONE:
            return error
        self._update(session, request, _profile(request, version))
        if not session.partitions:
            self._remove(session.id)
            return None
        session.epoch = rules.next_epoch(session.epoch)
        session.used_at = now
        self._sessions[session.id] = self._sessions.pop(session.id)
        self.check()
        return session

    def create(
        self,
        request: FetchRequest,
        version: int,
        asked: Mapping[TopicPartition, FetchPartition],
        results: Mapping[TopicPartition, FetchResult],
        now: float,
    ) -> int:
        """Return the id of a new session for an answered full fetch; 0: it gets none."""
        if request.session_epoch != rules.CREATE or not asked:
            return rules.NO_SESSION
        if request.replica_id >= 0:
            self._remove_those_of(request.replica_id)
        if not self._has_room(rules.Worth(request.replica_id >= 0, len(asked)), now):
            return rules.NO_SESSION
        session = Session(self._new_id(), _profile(request, version), now)
        self._sessions[session.id] = session
        session.begin(asked, results)
        for tp in asked:
            self._holders.setdefault(tp, {})[session.id] = session
        self.check()
        return session.id

    def error_of(self, session: Session, session_epoch: int) -> ErrorCode:
        """The error for a fetch of this session epoch that ``begin`` accepted, and that waited."""
        if self._sessions.get(session.id) is not session:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        return rules.epoch_error(rules.next_epoch(session_epoch), session.epoch)

    def changed(self, tp: TopicPartition) -> None:
        """Have all sessions read this partition again: its replica has changed."""
        for session in self._holders.get(tp, {}).values():
            self._activate(session, tp)

    def holders(self, tp: TopicPartition) -> Iterator[int]:
        """The ids of the sessions that have this partition."""
        return iter(self._holders.get(tp, ()))

    def find(self, number: int) -> Session | None:
        """Return the session with this id, if there is one."""
        return self._sessions.get(number)

    def __len__(self) -> int:
        return len(self._sessions)

    def check(self) -> None:
        """Assert what holds between two calls, as far as that takes constant time."""
        assert len(self._sessions) <= self._slots, "there are more sessions than slots"

    def _update(self, session: Session, request: FetchRequest, profile: Profile) -> None:
        if profile != session.profile:
            for tp in session.partitions:
                self._activate(session, tp)
            session.profile = profile
        for tp, row in rows_of(request.topics).items():
            self._activate(session, tp)
            session.put(tp, row)
            self._holders.setdefault(tp, {})[session.id] = session
        for tp in forgotten_of(request.forgotten_topics_data):
            if tp in session.partitions:
                self._activate(session, tp)
                session.drop(tp)
                self._release(tp, session)

    def _activate(self, session: Session, tp: TopicPartition) -> None:
        cached = session.partitions.get(tp)
        if cached is not None:
            if cached.is_settled:
                self._report(session, cached)
            session.changed(cached)

    def _report(self, session: Session, cached: CachedPartition) -> None:
        """Report how long a follower has kept up with a settled partition."""
        if session.profile.replica_id >= 0:
            asked = cached.asked
            self._on_kept_up(
                cached.tp,
                FollowerKeptUp(
                    session.profile.replica_id,
                    asked.current_leader_epoch,
                    asked.fetch_offset,
                    session.used_at,
                ),
            )

    def _has_room(self, worth: rules.Worth, now: float) -> bool:
        """Return whether a new session has a slot; another one may have been removed for it."""
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if rules.is_stale(oldest.used_at, now, IDLE_MAX_S):
            self._remove(oldest.id)
            return True
        replaceable = [
            each
            for each in self._sessions.values()
            if rules.may_replace(worth, each.worth, each.created_at, now, IDLE_MAX_S)
        ]
        if replaceable:
            self._remove(min(replaceable, key=_worth_of).id)
        return bool(replaceable)

    def _remove_those_of(self, replica_id: int) -> None:
        former = [s.id for s in self._sessions.values() if s.profile.replica_id == replica_id]
        for number in former:
            self._remove(number)

    def _remove(self, number: int) -> None:
        session = self._sessions.pop(number, None)
        if session is None:
            return
        for tp, cached in session.partitions.items():
            if cached.is_settled:
                self._report(session, cached)
            self._release(tp, session)
        self._on_end(number)

    def _release(self, tp: TopicPartition, session: Session) -> None:
        holders = self._holders[tp]
        del holders[session.id]
        if not holders:
            del self._holders[tp]

    def _new_id(self) -> int:
        """An id that no session has; a random one, as a client may know one of a former process."""
        while True:
            number = self._rng.randint(1, _ID_MAX)
            if number not in self._sessions:
                return number


def _profile(request: FetchRequest, version: int) -> Profile:
    return Profile(request.replica_id, request.isolation_level, request.rack_id, version)


def _worth_of(session: Session) -> tuple[rules.Worth, int]:
    return session.worth, session.id
