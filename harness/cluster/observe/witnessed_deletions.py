"""Passes deletions of records by simulated brokers to `checkers.invariants.deleted_records`."""

from collections.abc import Callable
from typing import Any, NamedTuple

from broker_impl.replica.events import Role
from broker_impl.replica.partition import Partition
from broker_impl.replica.replicas import Replicas
from broker_impl.replica.watermark import CONSUMER
from broker_impl.wire.messages.delete_records_request import DeleteRecordsRequest
from broker_impl.wire.messages.delete_records_response import DeleteRecordsResponse
from broker_impl.wire.messages.fetch_request import FetchRequest
from broker_impl.wire.types import BrokerId, Epoch, TopicPartition
from checkers.invariants import deleted_records
from harness.cluster.observe.reporter import Reporter

OnAnswer = Callable[[Any], None]
Running = dict[BrokerId, Callable[[], Replicas]]
"""By broker: what returns the replicas of its latest life, from its first request on: it has them
then."""


class _Copy(NamedTuple):
    """A follower's replica, and the registration of its broker."""

    partition: Partition
    broker_epoch: Epoch


class _Asked(NamedTuple):
    """A partition of a request, when it arrives at the leader."""

    partition: Partition
    leader_epoch: Epoch
    wanted: int
    copies: dict[BrokerId, _Copy]


class DeletionWitness:
    """Sees requests to delete records to one life of a broker, and their answers.

    A replica counts if the leader takes it for live when the request arrives and when it is
    answered, and if its broker has the same registration then, in which it has fetched before: as
    in Kafka, a leader goes by the log start that the former registration has reported.

    Args:
        reporter: reports violations in the broker's answers.
        replicas: returns the broker's replicas.
        running: the replicas of all brokers.
    """

    def __init__(
        self,
        reporter: Reporter,
        replicas: Callable[[], Replicas],
        running: Running,
    ) -> None:
        self._reporter = reporter
        self._replicas = replicas
        self._running = running
        self._heard: dict[tuple[TopicPartition, BrokerId], Epoch] = {}
        """The registration in which a follower has last fetched a partition by its name."""
        running.pop(reporter.broker, None)

    def __call__(self, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        self._running[self._reporter.broker] = self._replicas
        if isinstance(request, FetchRequest) and request.replica_id != CONSUMER:
            self._hear(request)
        if not isinstance(request, DeleteRecordsRequest):
            return None
        asked = {}
        for topic in request.topics:
            for row in topic.partitions:
                tp = TopicPartition(topic.name, row.partition_index)
                partition = self._replicas().partitions.get(tp)
                if partition is None or partition.role is not Role.LEADER:
                    continue
                wanted = partition.high_watermark if row.offset < 0 else row.offset
                copies = self._copies(tp, partition)
                asked[tp] = _Asked(partition, partition.leader_epoch, wanted, copies)
        return lambda answer: self._answered(asked, answer)

    def _hear(self, request: FetchRequest) -> None:
        follower = self._running.get(request.replica_id)
        if follower is not None:
            epoch = follower().broker_epoch
            for topic in request.topics:
                for row in topic.partitions:
                    tp = TopicPartition(topic.topic, row.partition)
                    self._heard[tp, request.replica_id] = epoch

    def _copies(self, tp: TopicPartition, leader: Partition) -> dict[BrokerId, _Copy]:
        """Return the replicas of live followers, without those in failed directories."""
        found = {}
        for number in sorted(leader.remotes):
            if number not in self._running or number not in self._replicas().live:
                continue
            replicas = self._running[number]()
            partition = replicas.partitions.get(tp)
            has_fetched = self._heard.get((tp, number)) == replicas.broker_epoch
            if (
                has_fetched
                and partition is not None
                and partition.log.topic_id == leader.log.topic_id
            ):
                found[number] = _Copy(partition, replicas.broker_epoch)
        return found

    def _answered(self, asked: dict[TopicPartition, _Asked], answer: DeleteRecordsResponse) -> None:
        for topic in answer.topics:
            for row in topic.partitions:
                tp = TopicPartition(topic.name, row.partition_index)
                before = asked.get(tp)
                partition = self._replicas().partitions.get(tp)
                if row.error_code or before is None or before.partition is not partition:
                    continue
                if (partition.role, partition.leader_epoch) != (Role.LEADER, before.leader_epoch):
                    continue
                starts = {self._reporter.broker: partition.log.start_offset}
                for number, copy in self._copies(tp, partition).items():
                    if _is_same(before.copies.get(number), copy):
                        starts[number] = copy.partition.log.start_offset
                why = deleted_records.remaining(row.low_watermark, before.wanted, starts)
                self._reporter.found(
                    "deleted-on-all-replicas", why, key=str(tp), epochs=(before.leader_epoch,)
                )


def _is_same(before: _Copy | None, now: _Copy) -> bool:
    """Return whether it is the same replica of the same registration, with a log that works."""
    return (
        before is not None
        and before.partition is now.partition
        and before.broker_epoch == now.broker_epoch
        and now.partition.log.offline is None
    )
