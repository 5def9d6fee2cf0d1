"""The quota of replication on one side, leader or follower (KIP-73).

It limits the replicas that a topic's list of throttled replicas names, while they are not in sync:
a reassignment then leaves room for other traffic. Replicas in the ISR are never held back, because
producers wait for them.
"""

from collections.abc import Callable, Mapping
from typing import Final

from broker_impl.api.quotas.rate import Rate
from broker_impl.wire.types import BrokerId, TopicPartition

UNLIMITED: Final = 2**63 - 1
LEADERS: Final = "leader.replication.throttled.replicas"
FOLLOWERS: Final = "follower.replication.throttled.replicas"
"""The settings of a topic that list its throttled replicas, as ``*`` or ``partition:broker,…``."""


def names(replicas: str, partition: int, broker: BrokerId) -> bool:
    """Return whether a list of throttled replicas names this one."""
    items = [item.strip() for item in replicas.split(",")]
    return "*" in items or f"{partition}:{broker}" in items


class ReplicationQuota:
    """What throttled replicas of one broker have used on one side, and what they may use.

    listed: ``LEADERS`` or ``FOLLOWERS``. limit: the present bytes per second. overrides: the
    settings of a topic. samples, window_ms: ``replication.quota.window.num`` and
    ``replication.quota.window.size.seconds``.
    """

    def __init__(
        self,
        listed: str,
        broker: BrokerId,
        *,
        limit: Callable[[], int],
        overrides: Callable[[str], Mapping[str, str]],
        samples: int,
        window_ms: float,
    ) -> None:
        self._listed = listed
        self._broker = broker
        self._limit = limit
        self._overrides = overrides
        self._used = Rate(samples, window_ms)

    def throttles(self, tp: TopicPartition) -> bool:
        """Return whether this broker's replica counts towards the quota."""
        if self._limit() == UNLIMITED:
            return False
        return names(self._overrides(tp.topic).get(self._listed, ""), tp.partition, self._broker)

    def record(self, size: int, now_ms: float) -> None:
        """Record the bytes of a throttled replica."""
        self._used.record(size, now_ms)

    def is_used_up(self, now_ms: float) -> bool:
        """Return whether throttled replicas must wait."""
        rate, _ = self._used.measure(now_ms)
        return rate > self._limit()
