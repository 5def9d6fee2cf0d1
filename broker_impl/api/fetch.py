"""Fetch (API 1), v4-v12.

A fetch is answered at once if enough bytes are available, or if any partition has an error or a
diverging epoch. Otherwise it is parked until data arrive or max_wait_ms is over; meanwhile only
partitions that change are read again. As in Kafka, a response contains batches of one segment of
each partition, and min_bytes applies only to readers of the last segment: a reader of an older
segment is answered at once, and so is one whose response is full. A new high watermark alone is
sent at once if followers serve consumers, which wait for it (KIP-392); otherwise it is sent with
the next response (KAFKA-9731). At least one whole batch is returned, however small the limits are
(KIP-74). A connection waits for one Fetch at a time, so that a client cannot make the broker
prepare the same records many times over.

From v7 on, a fetch may be incremental (KIP-227, ``fetch_sessions``): it names only the partitions
that it fetches differently than before, and reads only those of its session that may have changed
since they were last read. While it waits, it fails if its session ends or another request continues
the session.

A read_committed consumer reads up to the last stable offset, and receives the aborted transactions
among the returned records by first offset, also if it was parked (KAFKA-5376). Followers also serve
consumers that name their rack (v11), up to the high watermark that they know; with
`replica.selector.class`, a leader directs such consumers to a replica in their rack (KIP-392).

As in Kafka, a consumer below v10 gets an error for a topic with `compression.type=zstd` (KIP-110).

A follower that is not in sync gets no records of a throttled partition while the quota of
replication is used up (KIP-73).

Left out: topic ids (v13).
"""

from collections.abc import Collection, Hashable, Iterable
from typing import Any

import msgspec

from broker_impl.api.fetch_sessions import rules
from broker_impl.api.fetch_sessions.session import Reading, Session, rows_of
from broker_impl.api.registry import RequestContext, api
from broker_impl.config import RACK_AWARE_SELECTOR
from broker_impl.errors import ErrorCode
from broker_impl.replica import watermark
from broker_impl.replica.results import FetchResult
from broker_impl.wire import batch
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest
from broker_impl.wire.messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from broker_impl.wire.types import BrokerId, TopicPartition

_FOLLOWERS_SINCE = 11
_STORAGE_ERROR_SINCE = 6
_ZSTD_SINCE = 10
"""The first version of clients that can read zstd (KIP-110)."""


class _Reading:
    """The partitions of a request and the result of each.

    In a session, these are the partitions that may have changed since they were last read.
    """

    def __init__(
        self, context: RequestContext, request: FetchRequest, session: Session | None
    ) -> None:
        self._context = context
        self._request = request
        self._session = session
        is_consumer = request.replica_id == watermark.CONSUMER
        self._from_follower = is_consumer and may_ask_followers(context.version, request.rack_id)
        self._returns_news_at_once = _followers_have_readers(context)
        self._lacks_zstd = context.version < _ZSTD_SINCE and request.replica_id < 0
        self._names_rack = is_consumer and bool(request.rack_id)
        self._room = min(request.max_bytes, context.services.config.fetch_max_bytes)
        self._asked = {} if session is not None else rows_of(request.topics)
        self._moved: dict[TopicPartition, None] = {}
        self._throttled: dict[TopicPartition, None] = {}
        """The partitions whose records count towards the quota of replication."""
        self._read_at: dict[TopicPartition, int] = {}
        """In a session: the number of each partition's last change before it was read."""
        self.results: dict[TopicPartition, FetchResult] = {}
        self.bytes_read = 0
        self._bytes_counted = 0
        """The bytes that count towards min_bytes."""
        self.must_answer = False

    @property
    def is_enough(self) -> bool:
        """Whether the request can be answered now: it cannot wait for more bytes than have room."""
        wanted = min(self._request.min_bytes, self._room)
        return self.must_answer or self._bytes_counted >= wanted

    @property
    def places(self) -> Collection[Hashable]:
        """Where to park the request: at its session, or at its partitions."""
        return self._asked if self._session is None else (self._session.id,)

    def session_error(self) -> ErrorCode:
        """The error if the session has ended or gone on while the request waited, or NONE."""
        if self._session is None:
            return ErrorCode.NONE
        sessions = self._context.services.sessions
        return sessions.error_of(self._session, self._request.session_epoch)

    def moved(self, partitions: Iterable[TopicPartition]) -> None:
        """Mark partitions to be read again."""
        self._moved |= dict.fromkeys(partitions)

    def read_all(self, *, again: bool) -> None:
        """Read every partition, in the order of the request or of the session."""
        session = self._session
        partitions = self._asked if session is None else [each.tp for each in session.in_order()]
        self._read(partitions, again=again)

    def read_moved(self) -> None:
        """Read the partitions that have changed since the last read; others keep their results."""
        self._read(self._moved, again=True)

    @property
    def waits_for_records(self) -> bool:
        """Whether nothing that has changed can complete the request of a follower.

        A follower that has read a log to its end waits for the next record: a new watermark or ISR
        alone does not complete its request, and is read when something else does.
        """
        if self._request.replica_id < 0 or self._returns_news_at_once:
            return False
        session, replicas = self._session, self._context.services.replicas
        for tp in self._moved:
            asked = self._asked[tp] if session is None else session.partitions[tp].asked
            log = replicas.led(tp, asked.current_leader_epoch)
            if log is None or log.end_offset != asked.fetch_offset:
                return False
        return True

    def _read(self, partitions: Collection[TopicPartition], *, again: bool) -> None:
        racks = _racks(self._context) if self._names_rack else None
        for tp in partitions:
            if tp in self.results:
                former = self.results[tp]
                self.bytes_read -= _bytes_of(former)
                self._bytes_counted -= counted(_bytes_of(former), former.cut_at)
        room = min(self._room, self._context.answer_room())
        for tp in partitions:
            asked = self._row(tp)
            result = self._read_one(tp, asked, room - self.bytes_read, again=again)
            if racks is not None and not result.error:
                result = _redirected(self._context, tp, asked, self._request.rack_id, racks, result)
            self.results[tp] = result
            size = _bytes_of(result)
            self.bytes_read += size
            self._bytes_counted += counted(size, result.cut_at)
            self.must_answer |= (
                bool(result.error)
                or result.diverging is not None
                or (result.news and self._returns_news_at_once)
                or result.cannot_grow
                or result.preferred_read_replica >= 0
            )
        self._moved = {}

    def _row(self, tp: TopicPartition) -> FetchPartition:
        """The request for a partition."""
        if self._session is None:
            return self._asked[tp]
        cached = self._session.partitions[tp]
        self._read_at[tp] = cached.changed_at
        return cached.asked

    def _read_one(
        self, tp: TopicPartition, asked: FetchPartition, room: int, *, again: bool
    ) -> FetchResult:
        context, request = self._context, self._request
        replicas = context.services.replicas
        epoch = asked.current_leader_epoch
        if self._session is not None:
            epoch = rules.fencing_epoch(epoch, replicas.leader_epoch(tp))
        throttled, held_back = self._throttle(tp)
        if held_back:
            room = 0
        result = replicas.fetch(
            tp,
            replica_id=request.replica_id,
            offset=asked.fetch_offset,
            bytes_max=bytes_for(asked.partition_max_bytes, room),
            current_leader_epoch=epoch,
            last_fetched_epoch=asked.last_fetched_epoch,
            log_start_offset=asked.log_start_offset,
            isolation=isolation_of(request.isolation_level, again),
            at_least_one=owes_a_batch(self.bytes_read) and not held_back,
            again=again,
            from_follower=self._from_follower,
        )
        if result.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            result = FetchResult(error=context.services.view.not_here(tp))
        if self._lacks_zstd and not result.error and _stores_zstd(context, tp):
            return FetchResult(error=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if throttled:
            grows = result.cannot_grow and not held_back
            result = msgspec.structs.replace(result, settled=False, cannot_grow=grows)
        return result

    def _throttle(self, tp: TopicPartition) -> tuple[bool, bool]:
        """Return whether the reader is a throttled follower, and whether it gets no records now."""
        follower = self._request.replica_id
        if follower < 0:
            return False, False
        quota, replicas = self._context.services.quotas.leading, self._context.services.replicas
        self._throttled.pop(tp, None)
        if not quota.throttles(tp) or replicas.has_in_sync(tp, follower):
            return False, False
        self._throttled[tp] = None
        return True, quota.is_used_up(replicas.clock() * 1000)

    def response(self) -> FetchResponse:
        """Return the results: all of a full fetch, or the changes of a session."""
        context, results, session = self._context, self.results, self._session
        if session is not None:
            read = {tp: Reading(result, self._read_at[tp]) for tp, result in results.items()}
            shown: Iterable[TopicPartition] = session.answered(read)
            number = session.id
        else:
            shown = self._asked
            now = context.services.replicas.clock()
            number = context.services.sessions.create(
                self._request, context.version, self._asked, results, now
            )
        topics: dict[str, list[PartitionData]] = {}
        for tp in shown:
            self._count(tp.topic, results[tp])
            topics.setdefault(tp.topic, []).append(_row_of(tp, results[tp], context.version))
            if tp in self._throttled and results[tp].records:
                now_ms = context.services.replicas.clock() * 1000
                context.services.quotas.leading.record(_bytes_of(results[tp]), now_ms)
        return FetchResponse(
            session_id=number,
            responses=[
                FetchableTopicResponse(topic=name, partitions=rows) for name, rows in topics.items()
            ],
        )

    def _count(self, topic: str, result: FetchResult) -> None:
        counts = self._context.services.counts
        if result.error:
            counts.failed_fetches += 1
        else:
            is_follower = self._request.replica_id >= 0
            counts.fetched(topic, _bytes_of(result), by_follower=is_follower)


def known_error(error: ErrorCode, version: int) -> ErrorCode:
    """Return an error that clients of this version know, so that they ask again (KIP-112)."""
    if error is ErrorCode.KAFKA_STORAGE_ERROR and version < _STORAGE_ERROR_SINCE:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return error


def _row_of(tp: TopicPartition, result: FetchResult, version: int) -> PartitionData:
    data = PartitionData(
        partition_index=tp.partition,
        error_code=known_error(result.error, version),
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        aborted_transactions=_aborted(result),
        preferred_read_replica=result.preferred_read_replica,
        records=result.records,
    )
    if result.diverging is not None:
        epoch, end = result.diverging
        data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end)
    return data


def _bytes_of(result: FetchResult) -> int:
    return sum(map(len, result.records)) if result.records else 0


def counted(size: int, cut_at: int) -> int:
    """Return how many bytes of a partition count towards min_bytes.

    cut_at: the limit because of which batches were left out, or 0. That many bytes count then, as
    in Kafka, which returns them with an incomplete batch at the end. Here only whole batches are
    returned, which may have fewer bytes for ever.
    """
    return cut_at if cut_at > size else size


@api(1, range(4, 13), holds_line=True)
def fetch(context: RequestContext, request: FetchRequest) -> Any:
    """Read the requested partitions, or park the request until there is something to read."""
    services = context.services
    session = services.sessions.begin(request, context.version, services.replicas.clock())
    if isinstance(session, ErrorCode):
        return FetchResponse(error_code=session)
    reading = _Reading(context, request, session)
    reading.read_all(again=False)
    if reading.is_enough or request.max_wait_ms <= 0 or not reading.places:
        return reading.response()

    def attempt(expired: bool) -> FetchResponse | None:
        error = reading.session_error()
        if error is not ErrorCode.NONE:
            return FetchResponse(error_code=error)
        if expired:
            reading.read_all(again=True)
        elif not reading.waits_for_records:
            reading.read_moved()
        return reading.response() if expired or reading.is_enough else None

    return services.waiting.park(reading.places, attempt, request.max_wait_ms / 1000, reading.moved)


def may_ask_followers(version: int, rack: str) -> bool:
    """Return whether this consumer may read from a follower: it must have named its rack.

    No leader directs a consumer without a rack to a follower. Such a consumer takes this broker for
    the leader, and would take an offset that is missing here (as yet) for one that does not exist.
    """
    return version >= _FOLLOWERS_SINCE and bool(rack)


def _followers_have_readers(context: RequestContext) -> bool:
    """Whether leaders direct consumers to other replicas."""
    return context.services.config.replica_selector_class == RACK_AWARE_SELECTOR


def _stores_zstd(context: RequestContext, tp: TopicPartition) -> bool:
    """Whether the partition's topic has zstd as its `compression.type`."""
    return context.services.replicas.logs.logs[tp].config.compression == batch.ZSTD


def _racks(context: RequestContext) -> dict[BrokerId, str | None] | None:
    """The racks of the live brokers; None if consumers are not directed to other replicas."""
    if not _followers_have_readers(context):
        return None
    return {broker.id: broker.rack for broker in context.services.view.brokers.values()}


def _redirected(
    context: RequestContext,
    tp: TopicPartition,
    asked: FetchPartition,
    rack: str,
    racks: dict[BrokerId, str | None],
    result: FetchResult,
) -> FetchResult:
    """Return the result, or an empty one that names the preferred read replica.

    The result is not settled, because the preferred replica may change at any time.
    """
    better = context.services.replicas.preferred_read_replica(tp, asked.fetch_offset, rack, racks)
    if better is None:
        return msgspec.structs.replace(result, settled=False)
    return msgspec.structs.replace(
        result, records=[], aborted=None, preferred_read_replica=better, settled=False
    )


def isolation_of(asked: int, again: bool) -> int:
    """The isolation level of a read: the requested one, also when a parked request is tried again.

    See KAFKA-5376.
    """
    return asked


def bytes_for(partition_max: int, left: int) -> int:
    """Return how many bytes a partition may return, its first batch excepted (KIP-74).

    ``left``: what the limit of the response leaves; negative after a larger batch.
    """
    return max(0, min(partition_max, left))


def owes_a_batch(bytes_read: int) -> bool:
    """Return whether the next partition must give a batch, however large it is (KIP-74).

    It must as long as no bytes were read: a reader whose limit is smaller than the batch would
    otherwise repeat its request for ever.
    """
    return bytes_read == 0


def _aborted(result: FetchResult) -> list[AbortedTransaction] | None:
    if result.aborted is None:
        return None
    return [
        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in result.aborted
    ]
