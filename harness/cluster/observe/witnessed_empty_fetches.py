"""Passes fetches without records to `checkers.invariants.empty_fetches`."""

from collections.abc import Callable, Iterable
from typing import Any

from broker_impl.node.broker import Broker
from broker_impl.replica.watermark import CONSUMER
from broker_impl.wire.messages.fetch_request import FetchRequest
from broker_impl.wire.messages.fetch_response import FetchResponse
from broker_impl.wire.types import TopicPartition
from checkers.invariants import empty_fetches
from harness.cluster.observe.coordinator_logs import led
from harness.cluster.observe.reporter import Reporter

OnAnswer = Callable[[Any], None]


class EmptyFetchWitness:
    """Sees the fetches of consumers from one life of a broker.

    Those that name their rack are not judged, because they may be sent to another replica.

    Args:
        reporter: reports violations in the broker's answers.
        broker: the broker.
    """

    def __init__(self, reporter: Reporter, broker: Broker) -> None:
        self._reporter = reporter
        self._broker = broker

    def __call__(self, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        if not isinstance(request, FetchRequest) or request.replica_id != CONSUMER:
            return None
        if request.rack_id:
            return None
        then = self._readable(request, self._offsets(request))
        return lambda answer: self._fetched(request, then, answer)

    def _fetched(
        self, request: FetchRequest, then: dict[str, range], answer: FetchResponse
    ) -> None:
        rows = [row for topic in answer.responses for row in topic.partitions]
        if answer.error_code or any(row.error_code or row.records for row in rows):
            return
        offsets = self._offsets(request)
        found = empty_fetches.unread(
            {str(tp): offset for tp, offset in offsets.items()},
            then,
            self._readable(request, offsets),
        )
        if found is not None:
            key, why = found
            self._reporter.found("fetched-when-readable", why, about=key, key=key)

    def _offsets(self, request: FetchRequest) -> dict[TopicPartition, int]:
        """Return the partitions of the request, and of its session, each with its offset."""
        session = self._broker.sessions.find(request.session_id)
        kept = {} if session is None else session.partitions
        return {
            **{tp: cached.asked.fetch_offset for tp, cached in kept.items()},
            **{
                TopicPartition(topic.topic, row.partition): row.fetch_offset
                for topic in request.topics
                for row in topic.partitions
            },
        }

    def _readable(
        self, request: FetchRequest, partitions: Iterable[TopicPartition]
    ) -> dict[str, range]:
        """Return which offsets of partitions the reader may read now.

        Compaction may have removed all records of a part of the log that it has gone through.
        """
        found = {}
        for tp in partitions:
            partition = led(self._broker, tp)
            if partition is not None:
                stable = partition.last_stable_offset
                end = stable if request.isolation_level else partition.high_watermark
                start = max(partition.log.start_offset, partition.log.first_dirty)
                found[str(tp)] = range(start, end)
        return found
