"""Passes the epochs of requests to simulated brokers to `checkers.invariants.fenced`."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from broker_impl.replica.events import Role
from broker_impl.replica.partition import Partition
from broker_impl.replica.replicas import Replicas
from broker_impl.wire.messages.fetch_request import FetchRequest
from broker_impl.wire.messages.fetch_response import FetchResponse
from broker_impl.wire.messages.leader_and_isr_request import LeaderAndIsrRequest
from broker_impl.wire.messages.list_offsets_request import ListOffsetsRequest
from broker_impl.wire.messages.list_offsets_response import ListOffsetsResponse
from broker_impl.wire.messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from broker_impl.wire.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from broker_impl.wire.messages.stop_replica_request import StopReplicaRequest
from broker_impl.wire.messages.update_metadata_request import UpdateMetadataRequest
from broker_impl.wire.messages.write_txn_markers_request import WriteTxnMarkersRequest
from broker_impl.wire.types import TopicPartition
from checkers.invariants import fenced
from checkers.invariants.fenced import Known
from harness.cluster.observe.reporter import Reporter

OnAnswer = Callable[[Any], None]
Row = tuple[TopicPartition, Any]


class _Asked(NamedTuple):
    """A partition of a request, when it arrives."""

    epoch: int
    """The leader epoch of the request."""
    partition: Partition
    known: int
    """The leader epoch of the broker."""


class _Sent(NamedTuple):
    """A marker for a partition that this broker leads, when it arrives."""

    partition: Partition
    led_in: int
    known: tuple[int, int]
    """The latest epochs of the producer, and of the coordinators of its markers, in the log."""


class EpochWitness:
    """Sees the requests with epochs to one life of a broker, and their answers.

    Args:
        reporter: reports violations in the broker's answers.
        replicas: returns the broker's replicas.
    """

    def __init__(self, reporter: Reporter, replicas: Callable[[], Replicas]) -> None:
        self._reporter = reporter
        self._replicas = replicas

    def __call__(self, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        match request:
            case FetchRequest() | OffsetForLeaderEpochRequest():
                asked = self._asked(
                    (TopicPartition(topic.topic, row.partition), row)
                    for topic in request.topics
                    for row in topic.partitions
                )
            case ListOffsetsRequest():
                asked = self._asked(
                    (TopicPartition(topic.name, row.partition_index), row)
                    for topic in request.topics
                    for row in topic.partitions
                )
            case LeaderAndIsrRequest() | StopReplicaRequest() | UpdateMetadataRequest():
                known = self._known()
                return lambda answer: self._ordered(request, known, answer)
            case WriteTxnMarkersRequest():
                return self._marked(request)
            case _:
                return None
        return (lambda answer: self._answered(asked, answer)) if asked else None

    # Leader epochs.

    def _asked(self, rows: Iterable[Row]) -> dict[TopicPartition, _Asked]:
        partitions = self._replicas().partitions
        return {
            tp: _Asked(row.current_leader_epoch, partition, partition.leader_epoch)
            for tp, row in rows
            if row.current_leader_epoch >= 0 and (partition := partitions.get(tp)) is not None
        }

    def _answered(self, asked: dict[TopicPartition, _Asked], answer: Any) -> None:
        partitions = self._replicas().partitions
        for tp, row in _answers(answer):
            was = asked.get(tp)
            if was is not None and partitions.get(tp) is was.partition:
                known = Known(was.known, was.partition.leader_epoch)
                self._found(str(tp), fenced.of_leader(was.epoch, known, row.error_code))

    # Epochs of controllers and brokers.

    def _known(self) -> tuple[int, int]:
        replicas = self._replicas()
        return replicas.controller_epoch, replicas.broker_epoch

    def _ordered(self, request: Any, before: tuple[int, int], answer: Any) -> None:
        error = answer.error_code
        of_controller, of_broker = map(Known, before, self._known())
        self._found(
            None,
            fenced.of_order(
                "controller",
                request.controller_epoch,
                of_controller,
                error,
                fenced.STALE_CONTROLLER_EPOCH,
            ),
        )
        self._found(
            None,
            fenced.of_order(
                "broker", request.broker_epoch, of_broker, error, fenced.STALE_BROKER_EPOCH
            ),
        )

    # Epochs of producers and coordinators.

    def _marked(self, request: WriteTxnMarkersRequest) -> OnAnswer:
        sent: dict[tuple[int, TopicPartition], _Sent] = {}
        for marker in request.markers:
            for topic in marker.topics:
                for index in topic.partition_indexes:
                    tp = TopicPartition(topic.name, index)
                    partition = self._replicas().partitions.get(tp)
                    if partition is None or partition.role is not Role.LEADER:
                        continue
                    entry = partition.log.producers.entries.get(marker.producer_id)
                    if entry is not None:
                        known = entry.epoch, entry.coordinator_epoch
                        place = marker.producer_id, tp
                        sent[place] = _Sent(partition, partition.leader_epoch, known)
        epochs = {
            marker.producer_id: (marker.producer_epoch, marker.coordinator_epoch)
            for marker in request.markers
        }

        def on_answer(answer: Any) -> None:
            for marker in answer.markers:
                for topic in marker.topics:
                    for row in topic.partitions:
                        tp = TopicPartition(topic.name, row.partition_index)
                        was = sent.get((marker.producer_id, tp))
                        if was is not None and self._still_leads(was, tp):
                            why = fenced.of_marker(
                                *epochs[marker.producer_id], was.known, row.error_code
                            )
                            self._found(str(tp), why)

        return on_answer

    def _still_leads(self, was: _Sent, tp: TopicPartition) -> bool:
        """Whether nothing that the log had when the marker arrived may have been truncated."""
        now = self._replicas().partitions.get(tp)
        return now is was.partition and now.role is Role.LEADER and now.leader_epoch == was.led_in

    def _found(self, key: str | None, why: str | None) -> None:
        self._reporter.found("refused-by-epoch", why, key=key)


def _answers(answer: Any) -> Iterator[Row]:
    """Yield the partitions of an answer that may refuse a leader epoch."""
    match answer:
        case FetchResponse():
            for fetched in answer.responses:
                for data in fetched.partitions:
                    yield TopicPartition(fetched.topic, data.partition_index), data
        case ListOffsetsResponse():
            for listed in answer.topics:
                for row in listed.partitions:
                    yield TopicPartition(listed.name, row.partition_index), row
        case OffsetForLeaderEpochResponse():
            for ended in answer.topics:
                for end in ended.partitions:
                    yield TopicPartition(ended.topic, end.partition), end
        case _:
            pass
