"""Passes where simulated controllers place replicas to `checkers.invariants.placed`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from broker_impl.controller.context import BrokerInfo, Context
from broker_impl.wire.messages.create_partitions_request import CreatePartitionsRequest
from broker_impl.wire.messages.create_partitions_response import CreatePartitionsResponse
from broker_impl.wire.messages.create_topics_request import CreateTopicsRequest
from broker_impl.wire.messages.create_topics_response import CreateTopicsResponse
from broker_impl.wire.types import TopicPartition
from checkers.invariants import placed
from model.violation import Violation

OnAnswer = Callable[[Any], None]


class PlacementWitness:
    """Sees requests to create topics and partitions to one life of a broker, and their answers.

    Brokers may come and go while the controller handles a request. An answer is judged only if the
    controller knew the same registrations when the request arrived.

    Args:
        number: the broker's id.
        cluster: returns its view of the cluster, if it is the controller.
        now_ns: returns the history's time.
        report: is called with each violation.
    """

    def __init__(
        self,
        number: int,
        cluster: Callable[[], Context | None],
        *,
        now_ns: Callable[[], int],
        report: Callable[[Violation], None],
    ) -> None:
        self._number = number
        self._cluster = cluster
        self._now_ns = now_ns
        self._report = report

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
        if state is None or state.leader_epoch > 0:
            return  # it may have been reassigned since
        why = placed.crowded(context.replicas(tp), racks)
        if why is not None:
            self._report(
                Violation(
                    invariant="placed-over-racks",
                    time_ns=self._now_ns(),
                    key=str(tp),
                    brokers=(self._number,),
                    epochs=(context.controller_epoch,),
                    why=f"controller {self._number}: {why}",
                )
            )
