"""Passes what a simulated broker answers to clients to `checkers.invariants.answers`.

A broker calls the witness with each request and, once it is ready, with its answer. The witness
reads the state of the replica at that moment, and changes nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from broker_impl.replica.events import Role
from broker_impl.replica.partition import Partition
from broker_impl.replica.replicas import Replicas
from broker_impl.replica.results import LATEST
from broker_impl.replica.watermark import CONSUMER
from broker_impl.wire.messages.fetch_request import FetchRequest
from broker_impl.wire.messages.fetch_response import FetchResponse, PartitionData
from broker_impl.wire.messages.list_offsets_request import ListOffsetsRequest
from broker_impl.wire.messages.list_offsets_response import ListOffsetsResponse
from broker_impl.wire.messages.produce_request import ProduceRequest
from broker_impl.wire.messages.produce_response import ProduceResponse
from broker_impl.wire.types import TopicPartition
from broker_impl.wire.writing import Records
from checkers.invariants.answers import Acknowledged, Answers, Stated, Term
from harness.cluster.observe.batch_headers import whole_headers
from harness.cluster.observe.reporter import Reporter
from model.violation import Violation

_ALL: Final = -1
"""``acks=all``."""

OnAnswer = Callable[[Any], None]
See = Callable[[Any], OnAnswer | None]


class _Known(NamedTuple):
    """A leadership, and since when it is known."""

    partition: Partition
    term: Term
    since: int


class Witness:
    """Sees the requests and answers of one life of a broker.

    Args:
        reporter: reports violations in the broker's answers.
        life: the number of this life.
        replicas: returns the broker's replicas.
        answers: the checks.
        others: see each request, too, and return what sees its answer.
    """

    def __init__(
        self,
        reporter: Reporter,
        life: int,
        replicas: Callable[[], Replicas],
        answers: Answers,
        *,
        others: Sequence[See] = (),
    ) -> None:
        self._others = others
        self._reporter = reporter
        self._life = life
        self._replicas = replicas
        self._answers = answers
        self._known: dict[TopicPartition, _Known] = {}

    def __call__(self, api_key: int, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        seen = [self._see(request), *(see(request) for see in self._others)]
        wanted = [on_answer for on_answer in seen if on_answer is not None]
        if len(wanted) < 2:
            return wanted[0] if wanted else None

        def on_answer(answer: Any) -> None:
            for each in wanted:
                each(answer)

        return on_answer

    def _see(self, request: Any) -> OnAnswer | None:
        match request:
            case FetchRequest() if request.replica_id == CONSUMER:
                for topic in request.topics:
                    for asked in topic.partitions:
                        self._look(TopicPartition(topic.topic, asked.partition))
                since = self._answers.moment
                return lambda answer: self._fetched(request.isolation_level, since, answer)
            case ListOffsetsRequest() if (
                request.replica_id == CONSUMER and request.isolation_level == 0
            ):
                asked_for_end = {
                    TopicPartition(topic.name, asked.partition_index)
                    for topic in request.topics
                    for asked in topic.partitions
                    if asked.timestamp == LATEST
                }
                for tp in sorted(asked_for_end):
                    self._look(tp)
                since = self._answers.moment
                return lambda answer: self._listed(asked_for_end, since, answer)
            case ProduceRequest() if request.acks == _ALL:
                counts = {
                    TopicPartition(topic.name, data.index): _count(data.records)
                    for topic in request.topic_data
                    for data in topic.partition_data
                }
                for tp in counts:
                    self._look(tp)
                since = self._answers.moment
                return lambda answer: self._produced(counts, since, answer)
            case _:
                return None

    def _fetched(self, isolation: int, since: int, answer: FetchResponse) -> None:
        for topic in answer.responses:
            for data in topic.partitions:
                if data.error_code or data.preferred_read_replica >= 0 or data.high_watermark < 0:
                    continue
                tp = TopicPartition(topic.topic, data.partition_index)
                self._stated(tp, since, data.high_watermark, data, isolation)

    def _listed(self, asked: set[TopicPartition], since: int, answer: ListOffsetsResponse) -> None:
        for topic in answer.topics:
            for row in topic.partitions:
                tp = TopicPartition(topic.name, row.partition_index)
                if not row.error_code and tp in asked:
                    self._stated(tp, since, row.offset)

    def _produced(
        self, counts: dict[TopicPartition, int], since: int, answer: ProduceResponse
    ) -> None:
        for topic in answer.responses:
            for row in topic.partition_responses:
                tp = TopicPartition(topic.name, row.index)
                known = self._since(tp, since)
                if row.error_code or row.base_offset < 0 or known is None:
                    continue
                batch = Acknowledged(row.base_offset + counts[tp])
                own, now_ns = known.partition.high_watermark, self._reporter.now_ns()
                found = self._answers.acknowledged(now_ns, batch, known.term, own=own)
                self._all(found)

    def _stated(
        self,
        tp: TopicPartition,
        since: int,
        watermark: int,
        data: PartitionData | None = None,
        isolation: int = 0,
    ) -> None:
        known = self._since(tp, since)
        stated = Stated(
            self._reporter.broker,
            str(tp),
            watermark,
            None if data is None else _end(data.records),
            data.last_stable_offset if data is not None and isolation else None,
        )
        term, own = (None, 0) if known is None else (known.term, known.partition.high_watermark)
        now_ns = self._reporter.now_ns()
        self._all(self._answers.stated(now_ns, stated, term, own=own, since=since))

    def _all(self, violations: Iterator[Violation]) -> None:
        for violation in violations:
            self._reporter.report(violation)

    def _since(self, tp: TopicPartition, moment: int) -> _Known | None:
        """Return the leadership of this broker, if it lasts since this moment."""
        known = self._look(tp)
        return known if known is not None and known.since <= moment else None

    def _look(self, tp: TopicPartition) -> _Known | None:
        """Return the leadership that this broker has now."""
        partition = self._replicas().partitions.get(tp)
        if partition is None or partition.role is not Role.LEADER:
            return None
        known = self._known.get(tp)
        if known is not None and known.partition is partition:
            if known.term.epoch == partition.leader_epoch:
                return known
            log = known.term.log
        else:
            log = 0 if known is None else known.term.log + 1
        term = Term(self._reporter.broker, self._life, str(tp), log, partition.leader_epoch)
        self._known[tp] = known = _Known(partition, term, self._answers.next_moment())
        return known


def _count(records: Records | None) -> int:
    """The number of offsets that the batches of a produce request take."""
    return sum(header.last_offset_delta + 1 for header in whole_headers(records))


def _end(records: Records | None) -> int | None:
    """The offset after the last batch; None if there is none."""
    return max((header.next_offset for header in whole_headers(records)), default=None)
