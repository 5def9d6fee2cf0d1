"""Passes where simulated controllers place replicas to `checkers.invariants.placed`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from broker_impl.controller.context import BrokerInfo, Context
from broker_impl.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from broker_impl.wire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from broker_impl.wire.messages.create_partitions_request import CreatePartitionsRequest
from broker_impl.wire.messages.create_partitions_response import CreatePartitionsResponse
from broker_impl.wire.messages.create_topics_request import CreateTopicsRequest
from broker_impl.wire.messages.create_topics_response import CreateTopicsResponse
from broker_impl.wire.types import TopicPartition
from checkers.invariants import placed
from harness.cluster.observe.reporter import Reporter

OnAnswer = Callable[[Any], None]


class PlacementWitness:
    """Sees requests to create and to reassign partitions to one life of a broker, and the answers.

    Brokers may come and go while the controller creates partitions. An answer is judged only if the
    controller knew the same registrations when the request arrived. A reassignment is judged if no
    later one of the partition was asked for before the answer.

    Args:
        reporter: reports violations in the broker's answers.
        cluster: returns the broker's view of the cluster, if it is the controller.
    """

    def __init__(self, reporter: Reporter, cluster: Callable[[], Context | None]) -> None:
        self._reporter = reporter
        self._cluster = cluster
        self._reassigned: dict[TopicPartition, object] = {}
        """The last request to reassign each partition."""

    def __call__(self, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        context = self._cluster()
        if context is None:
            return None
        match request:
            case CreateTopicsRequest() if not request.validate_only:
                begin = {topic.name: 0 for topic in request.topics if not topic.assignments}
            case CreatePartitionsRequest() if not request.validate_only:
                begin = {
                    topic.name: len(context.topics[topic.name])
                    for topic in request.topics
                    if topic.assignments is None and topic.name in context.topics
                }
            case AlterPartitionReassignmentsRequest():
                wanted = {
                    TopicPartition(topic.name, row.partition_index): row.replicas
                    for topic in request.topics
                    for row in topic.partitions
                }
                self._reassigned |= dict.fromkeys(wanted, request)
                return lambda answer: self._altered(context, request, wanted, answer)
            case _:
                return None
        brokers = dict(context.brokers)
        return lambda answer: self._answered(context, brokers, begin, answer)

    def _answered(
        self,
        context: Context,
        brokers: Mapping[int, BrokerInfo],
        begin: Mapping[str, int],
        answer: CreateTopicsResponse | CreatePartitionsResponse,
    ) -> None:
        if self._cluster() is not context or context.brokers != brokers:
            return
        rows: Iterable[Any] = (
            answer.topics if isinstance(answer, CreateTopicsResponse) else answer.results
        )
        racks = {number: broker.rack for number, broker in brokers.items()}
        for row in rows:
            partitions = context.topics.get(row.name, {})
            if row.error_code or row.name not in begin:
                continue
            for number in range(begin[row.name], len(partitions)):
                self._placed(context, TopicPartition(row.name, number), racks)

    def _placed(
        self, context: Context, tp: TopicPartition, racks: Mapping[int, str | None]
    ) -> None:
        state = context.leadership.get(tp)
        if state is None or state.leader_epoch > 0 or tp in context.moves:
            return  # it may have been reassigned since
        why = placed.crowded(context.replicas(tp), racks)
        self._found("placed-over-racks", context, tp, why)

    def _altered(
        self,
        context: Context,
        request: AlterPartitionReassignmentsRequest,
        wanted: Mapping[TopicPartition, Sequence[int] | None],
        answer: AlterPartitionReassignmentsResponse,
    ) -> None:
        if self._cluster() is not context or answer.error_code:
            return
        for topic in answer.responses:
            for row in topic.partitions:
                tp = TopicPartition(topic.name, row.partition_index)
                replicas = wanted.get(tp)
                if row.error_code or replicas is None or self._reassigned.get(tp) is not request:
                    continue
                if tp.partition not in context.topics.get(tp.topic, {}):
                    continue
                move = context.moves.get(tp)
                removing = () if move is None else move.removing
                why = placed.reordered(replicas, context.replicas(tp), removing)
                self._found("placed-as-asked", context, tp, why)

    def _found(self, invariant: str, context: Context, tp: TopicPartition, why: str | None) -> None:
        self._reporter.found(invariant, why, key=str(tp), epochs=(context.controller_epoch,))
