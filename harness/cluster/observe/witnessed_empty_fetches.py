"""Passes partitions of which a fetch returns no records to `checkers.invariants.empty_fetches`."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from broker_impl.api.fetch_sessions import rules
from broker_impl.api.fetch_sessions.session import forgotten_of
from broker_impl.node.broker import Broker
from broker_impl.node.snapshot import LogHeaders, Peek
from broker_impl.replica.watermark import CONSUMER
from broker_impl.wire.messages.fetch_request import FetchRequest
from broker_impl.wire.messages.fetch_response import FetchResponse, PartitionData
from broker_impl.wire.types import TopicPartition
from checkers.invariants import empty_fetches
from checkers.invariants.empty_fetches import Batch, Reader
from harness.cluster.observe.coordinator_logs import led
from harness.cluster.observe.reporter import Reporter

OnAnswer = Callable[[Any], None]


class _Asked(NamedTuple):
    offset: int
    bytes_max: int


class EmptyFetchWitness:
    """Sees the fetches of consumers from one life of a broker.

    Those that name their rack are not judged, because they may be sent to another replica.

    Args:
        reporter: reports violations in the broker's answers.
        broker: the broker.
        peek: reads its files.
    """

    def __init__(self, reporter: Reporter, broker: Broker, peek: Peek) -> None:
        self._reporter = reporter
        self._broker = broker
        self._peek = peek

    def __call__(self, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        if not isinstance(request, FetchRequest) or request.replica_id != CONSUMER:
            return None
        if request.rack_id:
            return None
        then = self._readable(request, self._asked(request))
        return lambda answer: self._fetched(request, then, answer)

    def _fetched(
        self, request: FetchRequest, then: dict[TopicPartition, range], answer: FetchResponse
    ) -> None:
        if answer.error_code:
            return
        rows = {
            TopicPartition(topic.topic, row.partition_index): row
            for topic in answer.responses
            for row in topic.partitions
        }
        size = sum(map(_bytes_of, rows.values()))
        room = min(request.max_bytes, self._broker.config.fetch_max_bytes) - size
        asked = self._asked(request)
        now = self._readable(request, asked)
        for tp, (offset, bytes_max) in asked.items():
            reader = Reader(offset, then.get(tp, range(0)), now.get(tp, range(0)))
            if reader.is_behind and not _is_answered(rows.get(tp)):
                left = min(room, bytes_max) if size else None
                why = empty_fetches.unread(reader, self._next(tp, offset), left)
                self._reporter.found("fetched-when-readable", why, about=str(tp), key=str(tp))

    def _next(self, tp: TopicPartition, offset: int) -> Batch | None:
        """Return the first batch that has records at the offset or later.

        Consumers are not sent the batches before it that compaction has emptied.
        """
        partition = led(self._broker, tp)
        headers = () if partition is None else LogHeaders(partition.log).read(self._peek)
        found = (Batch(each.next_offset, each.size) for each in headers if each.count)
        return next((batch for batch in found if batch.next_offset > offset), None)

    def _asked(self, request: FetchRequest) -> dict[TopicPartition, _Asked]:
        """Return the partitions of the request, and of its session."""
        session = None
        if not rules.is_full(request.session_epoch):
            session = self._broker.sessions.find(request.session_id)
        rows = {tp: each.asked for tp, each in session.partitions.items()} if session else {}
        for topic in request.topics:
            rows |= {TopicPartition(topic.topic, row.partition): row for row in topic.partitions}
        for tp in forgotten_of(request.forgotten_topics_data):
            rows.pop(tp, None)
        return {tp: _Asked(row.fetch_offset, row.partition_max_bytes) for tp, row in rows.items()}

    def _readable(
        self, request: FetchRequest, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, range]:
        """Return which offsets of partitions the reader may read now."""
        found = {}
        for tp in partitions:
            partition = led(self._broker, tp)
            if partition is not None:
                stable = partition.last_stable_offset
                end = stable if request.isolation_level else partition.high_watermark
                found[tp] = range(partition.log.start_offset, end)
        return found


def _bytes_of(row: PartitionData) -> int:
    pieces: Any = row.records or ()
    return sum(map(len, pieces))


def _is_answered(row: PartitionData | None) -> bool:
    """Return whether a row has records, or says why there are none."""
    return row is not None and bool(
        row.records or row.error_code or row.diverging_epoch.end_offset >= 0
    )
