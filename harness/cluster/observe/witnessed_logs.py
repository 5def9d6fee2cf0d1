"""Passes what a simulated broker answers about its logs to `checkers.invariants.stored`.

The headers of the logs are read from the disk directly, which is no event of the simulation.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from broker_impl.log.config import LogConfig
from broker_impl.node.snapshot import LogHeaders, Peek
from broker_impl.replica.events import Role
from broker_impl.replica.partition import Partition
from broker_impl.replica.replicas import Replicas
from broker_impl.replica.watermark import CONSUMER
from broker_impl.wire.batch import LOG_APPEND_TIME, BatchHeader
from broker_impl.wire.messages.fetch_request import FetchRequest
from broker_impl.wire.messages.fetch_response import FetchResponse, PartitionData
from broker_impl.wire.messages.list_offsets_request import ListOffsetsRequest
from broker_impl.wire.messages.list_offsets_response import ListOffsetsResponse
from broker_impl.wire.messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from broker_impl.wire.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from broker_impl.wire.messages.produce_request import ProduceRequest
from broker_impl.wire.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
)
from broker_impl.wire.types import TopicPartition
from checkers.invariants import stored
from checkers.invariants.stored import NONE, StoredBatch
from harness.cluster.observe.batch_headers import whole_headers
from harness.cluster.observe.reporter import Reporter

LOOKED_BACK: Final = 200
"""In how many batches before an acknowledged one the producer's batch before it is searched."""
_OUT_OF_RANGE: Final = 1
_ALL: Final = -1
"""``acks=all``."""
OnAnswer = Callable[[Any], None]


class _Sent(NamedTuple):
    """The first batch of a produce request for a partition, when it arrives."""

    partition: Partition
    header: BatchHeader
    config: LogConfig
    end: int
    """The end of the log: a batch below it is a repeated one, and was stored with other settings
    perhaps."""


class _Converted:
    """The headers of a log as the checks read them; the list of headers may grow."""

    def __init__(self, headers: Sequence[BatchHeader]) -> None:
        self.headers = headers
        self.batches: list[StoredBatch] = []
        self.is_dense = True
        """False if records are missing between others: compaction has removed them."""

    def go_on(self) -> None:
        """Convert the headers that are new."""
        for header in self.headers[len(self.batches) :]:
            batch = _stored(header)
            follows = not self.batches or self.batches[-1].next == batch.base
            self.is_dense &= follows and header.count == batch.next - batch.base
            self.batches.append(batch)


class LogWitness:
    """Sees the requests about logs of one life of a broker, and their answers.

    Args:
        reporter: reports violations in the broker's answers.
        replicas: returns the broker's replicas.
        peek: reads its files.
        racks: the rack of each broker, as the plan has it.
        in_sequence: whether brokers remember each producer for the whole run.
        keeps: whether what was committed stays committed: no leader is elected uncleanly.
    """

    def __init__(
        self,
        reporter: Reporter,
        replicas: Callable[[], Replicas],
        peek: Peek,
        racks: Mapping[int, str],
        *,
        in_sequence: bool,
        keeps: bool,
    ) -> None:
        self._keeps = keeps
        self._in_sequence = in_sequence
        self._reporter = reporter
        self._replicas = replicas
        self._peek = peek
        self._racks = racks
        self._headers: dict[TopicPartition, LogHeaders] = {}
        self._batches: dict[TopicPartition, _Converted] = {}

    def __call__(self, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        match request:
            case FetchRequest() if request.replica_id == CONSUMER:
                asked = {
                    TopicPartition(topic.topic, row.partition): (
                        row.fetch_offset,
                        row.current_leader_epoch,
                        self._partition(TopicPartition(topic.topic, row.partition)),
                    )
                    for topic in request.topics
                    for row in topic.partitions
                }
                before = {
                    tp: (partition, self._state(partition))
                    for tp, (_, _, partition) in asked.items()
                    if partition is not None
                }
                offsets = {tp: (offset, epoch) for tp, (offset, epoch, _) in asked.items()}
                return lambda answer: self._fetched(request, offsets, before, answer)
            case FetchRequest():
                return lambda answer: self._copied(request, answer)
            case ListOffsetsRequest() if request.replica_id == CONSUMER:
                return lambda answer: self._listed(request, answer)
            case OffsetForLeaderEpochRequest():
                return lambda answer: self._ended(request, answer)
            case ProduceRequest() if request.acks:
                sent = {
                    tp: _Sent(partition, found[0], partition.log.config, partition.log.end_offset)
                    for topic in request.topic_data
                    for row in topic.partition_data
                    if (found := list(whole_headers(row.records)))
                    and (partition := self._partition(tp := TopicPartition(topic.name, row.index)))
                }
                keeps = self._keeps and request.acks == _ALL
                return lambda answer: self._produced(sent, keeps, answer)
            case _:
                return None

    def _produced(
        self,
        sent: Mapping[TopicPartition, _Sent],
        keeps: bool,
        answer: ProduceResponse,
    ) -> None:
        for topic in answer.responses:
            for row in topic.partition_responses:
                tp = TopicPartition(topic.name, row.index)
                if row.error_code or row.base_offset < 0 or tp not in sent:
                    continue
                partition = sent[tp].partition
                if sent[tp].header.producer_id < 0 or self._partition(tp) is not partition:
                    continue
                if keeps or partition.role is Role.LEADER:
                    self._stored_batch(tp, sent[tp], row, keeps)

    def _stored_batch(
        self,
        tp: TopicPartition,
        sent: _Sent,
        answer: PartitionProduceResponse,
        keeps: bool,
    ) -> None:
        """Compare an acknowledged batch with the log.

        keeps: a broker that was replaced as the leader has it, too, because it was committed. If
        not, the leadership may have ended and begun again, and the batch may have been truncated.
        """
        offset, producer = answer.base_offset, sent.header.producer_id
        state = self._with_log(tp, sent.partition)
        if not state.is_whole or offset < state.start or (offset >= state.end and not keeps):
            return
        headers = self._headers[tp].read(self._peek)
        at = bisect_left(headers, offset, key=lambda each: each.base_offset)
        found = headers[at] if at < len(headers) and headers[at].base_offset == offset else None
        earlier = islice(reversed(headers), len(headers) - at, len(headers) - at + LOOKED_BACK)
        of_producer = (
            each for each in earlier if each.producer_id == producer and not each.is_control
        )
        before = next(of_producer, None)  # a marker has no sequence number
        why = stored.acknowledged(
            _producer_batch(sent.header),
            None if found is None else _producer_batch(found),
            None if before is None else _producer_batch(before),
            in_sequence=self._in_sequence,
        )
        if why is None and found is not None:
            why = stored.stamped(
                answer.log_append_time_ms,
                is_stamped=found.timestamp_type == LOG_APPEND_TIME,
                stored_ms=found.max_timestamp,
            )
            is_same = sent.config is sent.partition.log.config
            if why is None and is_same and offset >= sent.end:
                wanted = _configured(sent.config)
                why = stored.formatted(_format(found), _format(sent.header), wanted)
        self._found("acknowledged-as-stored", tp, why, state)

    def _listed(self, request: ListOffsetsRequest, answer: ListOffsetsResponse) -> None:
        asked = {
            TopicPartition(topic.name, row.partition_index): row
            for topic in request.topics
            for row in topic.partitions
        }
        for topic in answer.topics:
            for row in topic.partitions:
                tp = TopicPartition(topic.name, row.partition_index)
                partition = self._partition(tp)
                if row.error_code or partition is None or tp not in asked:
                    continue
                epoch = asked[tp].current_leader_epoch
                given = stored.Listed(
                    asked[tp].timestamp,
                    request.isolation_level,
                    epoch,
                    row.offset,
                    row.timestamp,
                    row.leader_epoch,
                )
                state = self._with_log(tp, partition)
                self._found("answered-as-leader", tp, stored.as_leader(state, epoch), state)
                if state.is_leader:
                    why = stored.listed(state, given) or self._first(tp, state, given)
                    self._found("listed-as-stored", tp, why, state)

    def _first(self, tp: TopicPartition, state: stored.Replica, given: stored.Listed) -> str | None:
        """Compare an answer by time with the records of its batch, unless some are deleted."""
        if given.timestamp in (stored.LATEST, stored.EARLIEST) or not state.is_read:
            return None
        for number, each in enumerate(state.batches):
            if each.base <= given.offset < each.next and each.base >= state.start:
                records = self._headers[tp].records(number, self._peek)
                found = [
                    stored.StoredRecord(record.offset, record.timestamp_ms) for record in records
                ]
                return stored.first_in_batch(found, given)
        return None

    def _ended(
        self, request: OffsetForLeaderEpochRequest, answer: OffsetForLeaderEpochResponse
    ) -> None:
        asked = {
            TopicPartition(topic.topic, row.partition): row
            for topic in request.topics
            for row in topic.partitions
        }
        for topic in answer.topics:
            for row in topic.partitions:
                tp = TopicPartition(topic.topic, row.partition)
                partition = self._partition(tp)
                if row.error_code or partition is None or tp not in asked:
                    continue
                epoch = asked[tp].current_leader_epoch
                given = stored.EpochEnd(
                    asked[tp].leader_epoch, epoch, row.leader_epoch, row.end_offset
                )
                state = self._with_log(tp, partition)
                self._found("answered-as-leader", tp, stored.as_leader(state, epoch), state)
                if state.is_leader:
                    self._found("epoch-end-as-stored", tp, stored.epoch_end(state, given), state)

    def _copied(self, request: FetchRequest, answer: FetchResponse) -> None:
        """Judge where, by the leader's answers, the logs of followers diverge (KIP-595)."""
        for topic in answer.responses:
            for data in topic.partitions:
                diverging = data.diverging_epoch
                if data.error_code or diverging.end_offset < 0:
                    continue
                tp = TopicPartition(topic.topic, data.partition_index)
                asked = next(
                    (
                        row
                        for named in request.topics
                        for row in named.partitions
                        if (named.topic, row.partition) == (tp.topic, tp.partition)
                    ),
                    None,
                )
                partition = self._partition(tp)
                if asked is None or partition is None or partition.role is not Role.LEADER:
                    continue
                given = stored.EpochEnd(
                    asked.last_fetched_epoch, NONE, diverging.epoch, diverging.end_offset
                )
                state = self._with_log(tp, partition)
                self._found("epoch-end-as-stored", tp, stored.epoch_end(state, given), state)

    def _fetched(
        self,
        request: FetchRequest,
        asked: Mapping[TopicPartition, tuple[int, int]],
        before: Mapping[TopicPartition, tuple[Partition, stored.Replica]],
        answer: FetchResponse,
    ) -> None:
        shown = {
            TopicPartition(topic.topic, data.partition_index): data
            for topic in answer.responses
            for data in topic.partitions
        }
        is_whole = not answer.error_code and not answer.throttle_time_ms and len(asked) == 1
        for tp, (partition, was) in before.items():
            if partition is not self._partition(tp):
                continue
            now = self._state(partition)
            if (now.is_leader, now.epoch) != (was.is_leader, was.epoch):
                continue  # it may have answered in either role
            if tp in shown:
                self._read(request, tp, asked[tp], was, shown[tp], partition)
            elif is_whole:
                end = was.stable if request.isolation_level else was.high
                why = stored.left_out(was, end, *asked[tp])
                self._found("read-as-stored", tp, why, now)

    def _read(
        self,
        request: FetchRequest,
        tp: TopicPartition,
        asked: tuple[int, int],
        was: stored.Replica,
        data: PartitionData,
        partition: Partition,
    ) -> None:
        if data.error_code not in (0, _OUT_OF_RANGE):
            return
        offset, epoch = asked
        given = stored.Read(
            offset,
            bool(request.rack_id),
            epoch,
            data.error_code == _OUT_OF_RANGE,
            data.high_watermark,
            data.log_start_offset,
            [
                (each.base_offset, each.next_offset, each.crc)
                for each in whole_headers(data.records)
            ],
            data.last_stable_offset if request.isolation_level else NONE,
        )
        now = self._with_log(tp, partition) if given.batches else self._state(partition)
        if not (request.rack_id and not now.is_leader and epoch in (-1, now.epoch)):
            self._found("answered-as-leader", tp, stored.as_leader(now, epoch), now)
        if data.preferred_read_replica >= 0:
            isr = sorted(partition.isr | partition.maximal_isr)
            chosen = data.preferred_read_replica
            why = stored.preferred(self._reporter.broker, isr, self._racks, request.rack_id, chosen)
            remote = partition.remotes.get(chosen)
            if why is None and remote is not None:
                why = stored.held(chosen, remote.log_start, remote.log_end, offset)
            self._found("preferred-in-sync", tp, why, now)
        else:
            self._found("read-as-stored", tp, stored.read(was, now, given), now)

    def _partition(self, tp: TopicPartition) -> Partition | None:
        """Return the replica of a partition, unless its disk has failed."""
        partition = self._replicas().partitions.get(tp)
        return None if partition is None or partition.log.offline is not None else partition

    def _state(self, partition: Partition) -> stored.Replica:
        log = partition.log
        return stored.Replica(
            partition.role is Role.LEADER,
            partition.leader_epoch,
            partition.epoch_start,
            log.start_offset,
            _stable(partition),
            partition.high_watermark,
            log.end_offset,
        )

    def _with_log(self, tp: TopicPartition, partition: Partition) -> stored.Replica:
        log = partition.log
        known = self._headers.get(tp)
        if known is None or known.log is not log:
            known = self._headers[tp] = LogHeaders(log)
        headers = known.read(self._peek)
        if tp not in self._batches or self._batches[tp].headers is not headers:
            self._batches[tp] = _Converted(headers)
        converted = self._batches[tp]
        converted.go_on()
        found = converted.batches
        is_whole = converted.is_dense and (not found or found[-1].next == log.end_offset)
        state = self._state(partition)
        return state._replace(batches=found, is_whole=is_whole, is_read=not known.is_damaged)

    def _found(
        self, invariant: str, tp: TopicPartition, why: str | None, at: stored.Replica
    ) -> None:
        self._reporter.found(invariant, why, key=str(tp), epochs=(at.epoch,))


def _stable(partition: Partition) -> int:
    """The last stable offset: none that is above the begin of an open transaction is right."""
    log = partition.log
    starts = [
        entry.transaction_start
        for entry in log.producers.entries.values()
        if entry.transaction_start is not None
    ]
    open_from = max(log.start_offset, min(starts, default=log.end_offset))
    return min(partition.last_stable_offset, open_from)


def _format(header: BatchHeader) -> stored.Format:
    return stored.Format(header.compression, header.timestamp_type == LOG_APPEND_TIME)


def _configured(config: LogConfig) -> stored.Format:
    codec = stored.PRODUCERS_CODEC if config.compression is None else config.compression
    return stored.Format(codec, config.timestamp_type == LOG_APPEND_TIME)


def _stored(header: BatchHeader) -> StoredBatch:
    return StoredBatch(
        header.base_offset,
        header.next_offset,
        header.partition_leader_epoch,
        header.max_timestamp,
        header.crc,
        not header.count,
    )


def _producer_batch(header: BatchHeader) -> stored.ProducerBatch:
    return stored.ProducerBatch(
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.last_offset_delta + 1,
    )
