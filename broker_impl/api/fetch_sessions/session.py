"""One fetch session: the partitions of one reader, and what it was sent of each."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from broker_impl.api.fetch_sessions import rules
from broker_impl.replica.results import FetchResult
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchTopic, ForgottenTopic
from broker_impl.wire.types import BrokerId, TopicPartition


class Profile(NamedTuple):
    """What a request says of its reader as a whole; it decides what each partition returns."""

    replica_id: BrokerId
    isolation_level: int
    rack_id: str
    version: int


class Reading(NamedTuple):
    """The result of a read, and the number of the partition's last change before it."""

    result: FetchResult
    read_at: int


class CachedPartition:
    """One partition of a session."""

    __slots__ = ("asked", "changed_at", "is_settled", "rank", "sent", "tp")

    def __init__(self, tp: TopicPartition, asked: FetchPartition, number: int) -> None:
        self.tp: Final = tp
        self.asked = asked
        """The row of the last request that named the partition."""
        self.rank = number
        """Its place in the order of the session."""
        self.sent = rules.NOTHING_SENT
        self.changed_at = number
        """The number of its last change, by a request or in its replica."""
        self.is_settled = False
        """It need not be read before it changes again."""


class Session:
    """A session between two requests; the active partitions are those that are not settled."""

    def __init__(self, number: int, profile: Profile, now: float) -> None:
        self.id: Final = number
        self.profile = profile
        self.epoch = rules.next_epoch(rules.CREATE)
        """The session epoch of the next request."""
        self.created_at: Final = now
        self.used_at = now
        """Seconds: when the last request arrived."""
        self.partitions: dict[TopicPartition, CachedPartition] = {}
        self.active: dict[TopicPartition, CachedPartition] = {}
        self._count = 0

    @property
    def worth(self) -> rules.Worth:
        """How valuable this session is to the cache."""
        return rules.Worth(self.profile.replica_id >= 0, len(self.partitions))

    def begin(
        self,
        asked: Mapping[TopicPartition, FetchPartition],
        results: Mapping[TopicPartition, FetchResult],
    ) -> None:
        """Take over the partitions of the full fetch that created the session, and its results."""
        for tp, row in asked.items():
            self.put(tp, row)
            self.partitions[tp].sent = rules.sent(results[tp])

    def put(self, tp: TopicPartition, row: FetchPartition) -> None:
        """Add a partition at the end of the order, or replace how it is fetched."""
        cached = self.partitions.get(tp)
        if cached is None:
            self.partitions[tp] = self.active[tp] = CachedPartition(tp, row, self._next())
        else:
            if not rules.is_remembered(cached.asked.current_leader_epoch, row.current_leader_epoch):
                cached.sent = rules.NOTHING_SENT
            cached.asked = row
            self.changed(cached)

    def drop(self, tp: TopicPartition) -> None:
        """Remove a partition."""
        del self.partitions[tp]
        self.active.pop(tp, None)

    def changed(self, cached: CachedPartition) -> None:
        """Have the partition read by the next fetch, and by one that waits now."""
        cached.changed_at = self._next()
        cached.is_settled = False
        self.active[cached.tp] = cached

    def in_order(self) -> list[CachedPartition]:
        """Return the active partitions in the order of the session."""
        return sorted(self.active.values(), key=_rank)

    def answered(self, read: Mapping[TopicPartition, Reading]) -> list[TopicPartition]:
        """Return which of these partitions the response shows, in order, and remember them."""
        found = sorted((self.partitions[tp] for tp in read), key=_rank)
        shown = []
        for cached in found:
            result, read_at = read[cached.tp]
            if rules.is_shown(cached.sent, result):
                shown.append(cached.tp)
            cached.sent = rules.sent(result)
            if rules.goes_last(result):
                cached.rank = self._next()
            if rules.is_settled(result, read_at, cached.changed_at):
                cached.is_settled = True
                self.active.pop(cached.tp, None)
        return shown

    def _next(self) -> int:
        """Number the changes and the places, so that none is used twice."""
        self._count += 1
        return self._count


def rows_of(topics: Iterable[FetchTopic]) -> dict[TopicPartition, FetchPartition]:
    """Return the partitions of a request, in its order."""
    return {
        TopicPartition(topic.topic, row.partition): row
        for topic in topics
        for row in topic.partitions
    }


def forgotten_of(topics: Iterable[ForgottenTopic]) -> list[TopicPartition]:
    """Return the partitions that a request removes from its session."""
    return [TopicPartition(topic.topic, number) for topic in topics for number in topic.partitions]


def _rank(cached: CachedPartition) -> int:
    return cached.rank
