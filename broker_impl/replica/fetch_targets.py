"""The requests that a follower sends to the leaders of its partitions."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from broker_impl.replica import follower
from broker_impl.replica.partition import Partition
from broker_impl.replica.replica_state import Stage
from broker_impl.wire.types import BrokerId, Epoch, Offset, TopicPartition


class FetchTarget(msgspec.Struct, frozen=True):
    """The next request to the leader of one partition, within one leader epoch."""

    tp: TopicPartition
    stage: Stage
    leader_epoch: Epoch
    offset: Offset
    last_epoch: Epoch
    """The epoch of the last record in this log; -1 if the log has no epochs."""
    log_start: Offset


class FetchChanges(NamedTuple):
    """What changed in the requests to one leader since the last call."""

    due: list[FetchTarget]
    """The fetch targets that are new or may have changed."""
    gone: list[TopicPartition]
    """The partitions for which no request is due any more, or not before their next retry."""


class FetchTargets:
    """The partitions that follow each leader, and the requests that are due.

    With thousands of partitions, most fetch targets stay the same from one request to the next.
    ``changes`` looks at those partitions only that were touched, which the owner reports.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` returns seconds of the loop."""
        self._clock = clock
        self._following: dict[BrokerId, dict[TopicPartition, Partition]] = {}
        self._touched: dict[BrokerId, dict[TopicPartition, None]] = {}
        self._delayed: dict[BrokerId, dict[TopicPartition, None]] = {}
        """The partitions that wait for a retry."""

    def follow(self, leader: BrokerId, partition: Partition) -> None:
        """Add a partition that follows this leader."""
        self._following.setdefault(leader, {})[partition.tp] = partition
        self._touch(leader, partition.tp)

    def unfollow(self, partition: Partition) -> None:
        """Remove a partition, before it is given another leader or none."""
        leader = partition.leader
        if leader is not None and leader in self._following:
            if self._following[leader].pop(partition.tp, None) is not None:
                self._touch(leader, partition.tp)
            if not self._following[leader]:
                del self._following[leader]

    def touch(self, partition: Partition) -> None:
        """Note that the fetch target of a partition may have changed."""
        leader = partition.leader
        if leader is not None and partition.tp in self._following.get(leader, ()):
            self._touch(leader, partition.tp)

    def _touch(self, leader: BrokerId, tp: TopicPartition) -> None:
        self._touched.setdefault(leader, {})[tp] = None

    def leaders(self) -> list[BrokerId]:
        """Return the brokers that lead a partition which this broker follows."""
        return list(self._following)

    def changes(self, leader: BrokerId) -> FetchChanges:
        """Return what changed since the last call for this leader, also by the passing of time."""
        now = self._clock()
        delayed = self._delayed.setdefault(leader, {})
        touched = self._touched.pop(leader, {})
        following = self._following.get(leader, {})
        found = FetchChanges([], [])
        for tp in touched | delayed:
            partition = following.get(tp)
            if partition is not None and partition.retry_at <= now:
                delayed.pop(tp, None)
                found.due.append(_target(partition))
                continue
            if partition is None:
                delayed.pop(tp, None)
            else:
                delayed[tp] = None
            if tp in touched:
                found.gone.append(tp)
        return found

    def by_leader(self) -> dict[BrokerId, list[FetchTarget]]:
        """Return the fetch targets for which a request is due, by leader."""
        plan = {leader: self.of(leader) for leader in self._following}
        return {leader: targets for leader, targets in plan.items() if targets}

    def of(self, leader: BrokerId) -> list[FetchTarget]:
        """Return the fetch targets for which a request to this leader is due."""
        now = self._clock()
        following = self._following.get(leader, {})
        return [_target(each) for each in following.values() if each.retry_at <= now]

    def next_retry(self, leader: BrokerId) -> float | None:
        """Return when the next request to this leader that was delayed after an error is due.

        The time is in seconds of the clock; None if no request is delayed.
        """
        now = self._clock()
        waiting = [
            partition.retry_at
            for partition in self._following.get(leader, {}).values()
            if partition.retry_at > now
        ]
        return min(waiting, default=None)


def _target(partition: Partition) -> FetchTarget:
    """The next request for this partition."""
    assert partition.stage is not Stage.NOTHING, f"{partition.tp}: the follower has no next request"
    log = partition.log
    return FetchTarget(
        partition.tp,
        partition.stage,
        partition.leader_epoch,
        log.end_offset,
        follower.compares_by(log.epochs.latest),
        log.start_offset,
    )
