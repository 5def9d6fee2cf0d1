"""The requests that a follower sends to the leaders of its partitions."""

from collections.abc import Callable

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


class FetchTargets:
    """The partitions that follow each leader, and the requests that are due."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` returns seconds of the loop."""
        self._clock = clock
        self._following: dict[BrokerId, dict[TopicPartition, Partition]] = {}

    def follow(self, leader: BrokerId, partition: Partition) -> None:
        """Add a partition that follows this leader."""
        self._following.setdefault(leader, {})[partition.tp] = partition

    def unfollow(self, partition: Partition) -> None:
        """Remove a partition, before it is given another leader or none."""
        leader = partition.leader
        if leader is not None and leader in self._following:
            self._following[leader].pop(partition.tp, None)
            if not self._following[leader]:
                del self._following[leader]

    def by_leader(self) -> dict[BrokerId, list[FetchTarget]]:
        """Return the fetch targets for which a request is due, by leader."""
        plan = {leader: self.of(leader) for leader in self._following}
        return {leader: targets for leader, targets in plan.items() if targets}

    def of(self, leader: BrokerId) -> list[FetchTarget]:
        """Return the fetch targets for which a request to this leader is due."""
        now = self._clock()
        targets = []
        for tp, partition in self._following.get(leader, {}).items():
            if partition.retry_at <= now:
                assert partition.stage is not Stage.NOTHING, (
                    f"{tp}: the follower has no next request"
                )
                log = partition.log
                targets.append(
                    FetchTarget(
                        tp,
                        partition.stage,
                        partition.leader_epoch,
                        log.end_offset,
                        follower.compares_by(log.epochs.latest),
                        log.start_offset,
                    )
                )
        return targets

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
