"""What a broker has counted since it started, as plain numbers for its metrics.

Each place that counts something adds to one number or to one list, so that counting costs a request
about a microsecond, whether or not metrics are read. The numbers never decrease while the broker
runs, except that those of a topic disappear with it.
"""

from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

LIMITS_MS: Final = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
"""The upper limits of the ranges in which durations are counted; longer ones have a range more."""
FOLLOWER_FETCH: Final = -1
"""The number that stands for a Fetch by a follower, whose API key is that of consumers' fetches."""


class Durations:
    """How long something took, each time: the sum, and the number in each range."""

    __slots__ = ("in_range", "sum_ms")

    def __init__(self) -> None:
        self.in_range = [0] * (len(LIMITS_MS) + 1)
        """The number of durations in each range of ``LIMITS_MS``; the last one has no limit."""
        self.sum_ms = 0.0

    def add(self, ms: float) -> None:
        """Count one duration in milliseconds."""
        self.in_range[bisect_left(LIMITS_MS, ms)] += 1
        self.sum_ms += ms

    @property
    def count(self) -> int:
        """How many durations were counted."""
        return sum(self.in_range)


@dataclass(slots=True)
class TopicCounts:
    """What clients wrote to and read from the replicas of one topic."""

    bytes_in: int = 0
    bytes_out: int = 0
    messages_in: int = 0
    produces: int = 0
    """Partitions of Produce requests whose batch was appended."""
    fetches: int = 0
    """Partitions of fetches that were answered without an error."""


@dataclass(slots=True)
class Counts:
    """The counts of one broker."""

    topics: dict[str, TopicCounts] = field(default_factory=dict)
    requests: dict[int, Durations] = field(default_factory=dict)
    """From the arrival of a request to its answer, by API key (or ``FOLLOWER_FETCH``)."""
    failed_produces: int = 0
    """Partitions of Produce requests whose batch was rejected."""
    failed_fetches: int = 0
    """Partitions of fetches that were answered with an error."""
    replication_bytes_in: int = 0
    replication_bytes_out: int = 0
    isr_shrinks: int = 0
    """ISRs that this leader has made smaller."""
    isr_expands: int = 0
    """ISRs that this leader has made larger."""
    elections: int = 0
    """Leaders of partitions that this controller has elected."""
    unclean_elections: int = 0
    """Those of them that were not in sync: records may be lost."""
    expired_sessions: int = 0

    def produced(self, topic: str, size: int, records: int) -> None:
        """Count the append of a client's batch of this many bytes and records."""
        counts = self._of(topic)
        counts.bytes_in += size
        counts.messages_in += records
        counts.produces += 1

    def fetched(self, topic: str, size: int, *, by_follower: bool) -> None:
        """Count the bytes of one partition in the response to a fetch."""
        if by_follower:
            self.replication_bytes_out += size
            return
        counts = self._of(topic)
        counts.bytes_out += size
        counts.fetches += 1

    def answered(self, kind: int, seconds: float) -> None:
        """Count a request of this API key (or ``FOLLOWER_FETCH``)."""
        durations = self.requests.get(kind)
        if durations is None:
            durations = self.requests[kind] = Durations()
        durations.add(seconds * 1000)

    def isr_changed(self, before: Collection[int], after: Collection[int]) -> None:
        """Count a change of an ISR; one that replaces members is both smaller and larger."""
        self.isr_shrinks += not set(before) <= set(after)
        self.isr_expands += not set(after) <= set(before)

    def elected(self, leader: int, in_sync: Collection[int] | None) -> None:
        """Count an election; ``in_sync``: the ISR before it, None for a partition's first one."""
        self.elections += 1
        self.unclean_elections += in_sync is not None and leader not in in_sync

    def forget(self, topic: str) -> None:
        """Drop the counts of a topic that this broker no longer hosts."""
        self.topics.pop(topic, None)

    def _of(self, topic: str) -> TopicCounts:
        counts = self.topics.get(topic)
        if counts is None:
            counts = self.topics[topic] = TopicCounts()
        return counts
