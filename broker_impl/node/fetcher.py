"""Replica fetchers: one task per leader, each with one request in flight.

The replicas supply the changes of the requests (``fetch_changes``) and receive the responses; this
module only transports them. Fetches are incremental (`fetch_session`). A leader that cannot be
reached is tried again after a pause, or as soon as something about its partitions changes.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from broker_impl.api.quotas.replication import ReplicationQuota
from broker_impl.config import BrokerConfig
from broker_impl.counts import Counts
from broker_impl.errors import DirectoryFailed, ErrorCode
from broker_impl.node.fetch_session import LOST, FetchSession
from broker_impl.node.peers import PeerError, Peers
from broker_impl.node.tasks import Tasks
from broker_impl.replica.fetch_targets import FetchChanges, FetchTarget
from broker_impl.replica.replica_state import Stage
from broker_impl.replica.replicas import Replicas
from broker_impl.replica.results import EARLIEST, LATEST
from broker_impl.wire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from broker_impl.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker_impl.wire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from broker_impl.wire.types import BrokerId, TopicPartition

LOG = logging.getLogger(__name__)

_FETCH_VERSION, _EPOCH_VERSION, _OFFSETS_VERSION = 12, 4, 6
_NO_RECORDS = b""
_LOOK_AGAIN_S = 0.1
"""How long a replica waits whose quota is used up; the quota may be lifted meanwhile."""
_CODES = {int(code): code for code in ErrorCode}


class _Requests:
    """The requests to one leader that are due, by their stage."""

    def __init__(self) -> None:
        self.epoch_ends: dict[TopicPartition, FetchTarget] = {}
        self.bounds: dict[TopicPartition, FetchTarget] = {}
        self.fetches = FetchSession()

    def apply(self, changes: FetchChanges) -> None:
        """Take over what has changed."""
        for tp in changes.gone:
            self._remove(tp)
        for target in changes.due:
            self._remove_other(target)
            match target.stage:
                case Stage.EPOCH_END:
                    self.epoch_ends[target.tp] = target
                case Stage.BOUNDS:
                    self.bounds[target.tp] = target
                case _:
                    self.fetches.want(target)

    def _remove(self, tp: TopicPartition) -> None:
        self.epoch_ends.pop(tp, None)
        self.bounds.pop(tp, None)
        self.fetches.leave(tp)

    def _remove_other(self, target: FetchTarget) -> None:
        self.epoch_ends.pop(target.tp, None)
        self.bounds.pop(target.tp, None)
        if target.stage is not Stage.FETCH:
            self.fetches.leave(target.tp)

    def __bool__(self) -> bool:
        return bool(self.epoch_ends or self.bounds or self.fetches)


class Fetchers:
    """The fetcher tasks of one broker, one for each leader that it follows."""

    def __init__(
        self,
        replicas: Replicas,
        peers: Peers,
        config: BrokerConfig,
        quota: ReplicationQuota,
        counts: Counts,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._replicas = replicas
        self._peers = peers
        self._config = config
        self._quota = quota
        self._lagging: dict[TopicPartition, None] = {}
        """The throttled replicas that were not in sync at their last fetch."""
        self._counts = counts
        self._on_failure = on_failure
        self._news: dict[BrokerId, asyncio.Event] = {}
        self._tasks = Tasks(on_failure)
        self._is_waking = False
        self._is_closed = False

    def wake(self) -> None:
        """Wake the fetchers after leaders, epochs or addresses have changed."""
        for leader in self._replicas.leaders_followed():
            if leader not in self._news:
                self._news[leader] = asyncio.Event()
                self._tasks.start(self._follow(leader))
        for news in self._news.values():
            news.set()

    def wake_soon(self) -> None:
        """Wake the fetchers once after the current event, however many partitions it concerns."""
        if not self._is_waking:
            self._is_waking = True
            asyncio.get_running_loop().call_soon(self._wake_now)

    def _wake_now(self) -> None:
        self._is_waking = False
        if not self._is_closed:
            self.wake()

    async def close(self) -> None:
        """Stop fetching."""
        self._is_closed = True
        self._tasks.cancel()
        await self._tasks.ended()

    async def _follow(self, leader: BrokerId) -> None:
        news = self._news[leader]
        pause_s = self._config.replica_fetch_backoff_ms / 1000
        was_reached = True
        requests = _Requests()
        while True:
            news.clear()
            requests.apply(self._allowed(self._replicas.fetch_changes(leader)))
            if not requests:
                await self._rest(news, self._until_retry(leader))
                continue
            try:
                await self._ask(leader, requests)
            except PeerError as error:
                if was_reached:
                    LOG.info("cannot fetch from broker %d: %s", leader, error)
                was_reached = False
                await self._rest(news, pause_s)
            else:
                was_reached = True

    def _allowed(self, changes: FetchChanges) -> FetchChanges:
        """Leave out throttled replicas while their quota is used up; they are asked about again."""
        held = [target for target in changes.due if self._is_held(target)]
        if not held:
            return changes
        due = [target for target in changes.due if target not in held]
        return FetchChanges(due, [*changes.gone, *(target.tp for target in held)])

    def _is_held(self, target: FetchTarget) -> bool:
        if target.tp not in self._lagging or target.stage is not Stage.FETCH:
            return False
        now = asyncio.get_running_loop().time()
        if not self._quota.throttles(target.tp) or not self._quota.is_used_up(now * 1000):
            return False
        self._replicas.pause_fetches(target, now + _LOOK_AGAIN_S)
        return True

    def _until_retry(self, leader: BrokerId) -> float | None:
        at = self._replicas.next_retry(leader)
        return None if at is None else max(0.0, at - asyncio.get_running_loop().time())

    async def _rest(self, news: asyncio.Event, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                await news.wait()
        except TimeoutError:
            pass

    async def _ask(self, leader: BrokerId, requests: _Requests) -> None:
        """One round of requests; epoch ends and bounds come before fetches."""
        epoch_ends, bounds = dict(requests.epoch_ends), dict(requests.bounds)
        if epoch_ends:
            await self._ask_epoch_ends(leader, epoch_ends)
        if bounds:
            await self._ask_bounds(leader, bounds)
        if requests.fetches:
            await self._fetch(leader, requests.fetches, may_wait=not epoch_ends and not bounds)

    async def _request(self, leader: BrokerId, message: Any, version: int) -> Any:
        timeout_s = self._config.replica_socket_timeout_ms / 1000
        return await self._peers.request(leader, message, version, timeout_s=timeout_s)

    async def _ask_epoch_ends(
        self, leader: BrokerId, targets: dict[TopicPartition, FetchTarget]
    ) -> None:
        topics: dict[str, list[OffsetForLeaderPartition]] = {}
        for tp, target in targets.items():
            topics.setdefault(tp.topic, []).append(
                OffsetForLeaderPartition(
                    partition=tp.partition,
                    current_leader_epoch=target.leader_epoch,
                    leader_epoch=target.last_epoch,
                )
            )
        request = OffsetForLeaderEpochRequest(
            replica_id=self._config.broker_id,
            topics=[
                OffsetForLeaderTopic(topic=name, partitions=rows) for name, rows in topics.items()
            ],
        )
        answer = await self._request(leader, request, _EPOCH_VERSION)
        for topic in answer.topics:
            for row in topic.partitions:
                found = targets.get(TopicPartition(topic.topic, row.partition))
                if found is not None:
                    with self._of_one_directory():
                        self._replicas.epoch_end_answered(
                            found, _code(row.error_code), row.leader_epoch, row.end_offset
                        )

    async def _ask_bounds(
        self, leader: BrokerId, targets: dict[TopicPartition, FetchTarget]
    ) -> None:
        starts = await self._list_offsets(leader, targets, EARLIEST)
        ends = await self._list_offsets(leader, targets, LATEST)
        for tp, target in targets.items():
            error, start = starts.get(tp, (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1))
            end = -1
            if error is ErrorCode.NONE:
                error, end = ends.get(tp, (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1))
            else:
                start = -1
            with self._of_one_directory():
                self._replicas.bounds_answered(target, error, start, end)

    async def _list_offsets(
        self, leader: BrokerId, targets: dict[TopicPartition, FetchTarget], timestamp: int
    ) -> dict[TopicPartition, tuple[ErrorCode, int]]:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for tp, target in targets.items():
            topics.setdefault(tp.topic, []).append(
                ListOffsetsPartition(
                    partition_index=tp.partition,
                    current_leader_epoch=target.leader_epoch,
                    timestamp=timestamp,
                )
            )
        request = ListOffsetsRequest(
            replica_id=self._config.broker_id,
            topics=[ListOffsetsTopic(name=name, partitions=rows) for name, rows in topics.items()],
        )
        answer = await self._request(leader, request, _OFFSETS_VERSION)
        return {
            TopicPartition(topic.name, row.partition_index): (_code(row.error_code), row.offset)
            for topic in answer.topics
            for row in topic.partitions
        }

    async def _fetch(self, leader: BrokerId, session: FetchSession, *, may_wait: bool) -> None:
        config = self._config
        outgoing = session.next()
        request = FetchRequest(
            replica_id=config.broker_id,
            max_wait_ms=config.replica_fetch_wait_max_ms if may_wait else 0,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            session_id=outgoing.session_id,
            session_epoch=outgoing.session_epoch,
            topics=_topics(outgoing.named, config.replica_fetch_max_bytes),
            forgotten_topics_data=_forgotten(outgoing.forgotten),
        )
        try:
            answer = await self._request(leader, request, _FETCH_VERSION)
        except PeerError:
            session.lost()
            raise
        if answer.error_code:
            session.lost()
            if answer.error_code in LOST and not outgoing.is_full:
                return
            raise PeerError(f"broker {leader} rejects the fetch: error {answer.error_code}")
        session.answered(answer.session_id)
        for topic in answer.responses:
            for row in topic.partitions:
                found = session.held(TopicPartition(topic.topic, row.partition_index))
                if found is not None:
                    self._take(found, row)

    def _take(self, found: FetchTarget, row: Any) -> None:
        end = row.diverging_epoch
        records = row.records if row.records is not None else _NO_RECORDS
        self._counts.replication_bytes_in += len(records)
        with self._of_one_directory():
            self._replicas.fetched(
                found,
                _code(row.error_code),
                records=records,
                high_watermark=row.high_watermark,
                log_start_offset=row.log_start_offset,
                diverging=(end.epoch, end.end_offset) if end.epoch >= 0 else None,
            )
        if row.records:
            self._count(found.tp, row)

    @contextmanager
    def _of_one_directory(self) -> Iterator[None]:
        """Report the failure of a data directory; replicas in others go on, if there are any."""
        try:
            yield
        except DirectoryFailed as error:
            self._on_failure(error)

    def _count(self, tp: TopicPartition, row: Any) -> None:
        """Record what a throttled replica has fetched that is not in sync."""
        self._lagging.pop(tp, None)
        if self._replicas.end_offset(tp) < row.high_watermark and self._quota.throttles(tp):
            self._lagging[tp] = None
            self._quota.record(len(row.records), asyncio.get_running_loop().time() * 1000)


def _topics(targets: list[FetchTarget], bytes_max: int) -> list[FetchTopic]:
    topics: dict[str, list[FetchPartition]] = {}
    for target in targets:
        topics.setdefault(target.tp.topic, []).append(
            FetchPartition(
                partition=target.tp.partition,
                current_leader_epoch=target.leader_epoch,
                fetch_offset=target.offset,
                last_fetched_epoch=target.last_epoch,
                log_start_offset=target.log_start,
                partition_max_bytes=bytes_max,
            )
        )
    return [FetchTopic(topic=name, partitions=rows) for name, rows in topics.items()]


def _forgotten(partitions: list[TopicPartition]) -> list[ForgottenTopic]:
    topics: dict[str, list[int]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    return [ForgottenTopic(topic=name, partitions=rows) for name, rows in topics.items()]


def _code(number: int) -> ErrorCode:
    """The error code for a number; a leader may use codes that this broker does not know."""
    return _CODES.get(number, ErrorCode.UNKNOWN_SERVER_ERROR)
