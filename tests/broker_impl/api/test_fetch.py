"""When a Fetch is answered, and when it waits."""

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from broker_impl.api.fetch import fetch
from broker_impl.api.fetch_sessions.cache import FetchSessions
from broker_impl.api.purgatory import Waiting
from broker_impl.api.registry import RequestContext
from broker_impl.config import RACK_AWARE_SELECTOR
from broker_impl.counts import Counts
from broker_impl.errors import ErrorCode
from broker_impl.node.peers import PeerError
from broker_impl.replica.results import FetchResult
from broker_impl.wire import batch
from broker_impl.wire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.node.broker_calls import create, produce

TP = TopicPartition("t", 0)


class Leader:
    """A leader that answers each read with `result`."""

    def __init__(self, selector: str = "") -> None:
        self.result = FetchResult()
        self.end: int | None = None
        """Where the logs end; None: it is no longer the leader."""
        self.read: list[tuple[int, bool]] = []
        """The partitions that were read, and whether each read was a repeated one."""
        self.sessions = FetchSessions(
            3,
            random.Random(1),
            lambda tp, event: None,
            lambda number: self.waiting.retry(number),
        )
        self.waiting = Waiting(self.sessions.holders)
        config = SimpleNamespace(fetch_max_bytes=1000, replica_selector_class=selector)
        replicas = SimpleNamespace(
            fetch=self._fetch, led=self._led, clock=lambda: 0.0, leader_epoch=lambda tp: 0
        )
        services: Any = SimpleNamespace(
            counts=Counts(),
            config=config,
            replicas=replicas,
            waiting=self.waiting,
            sessions=self.sessions,
            quotas=SimpleNamespace(leading=SimpleNamespace(throttles=lambda tp: False)),
        )
        self.context = RequestContext(services, "", None, "", 0, 12, lambda: 1000)

    def _fetch(self, tp: TopicPartition, *, again: bool, **_: Any) -> FetchResult:
        self.read.append((tp.partition, again))
        return self.result

    def _led(self, tp: TopicPartition, leader_epoch: int) -> Any:
        return None if self.end is None else SimpleNamespace(end_offset=self.end)

    def ask(self, partitions: int = 1, *, wait_ms: int = 60_000, min_bytes: int = 1) -> Any:
        """Send a Fetch of a follower."""
        asked = [FetchPartition(partition=number) for number in range(partitions)]
        topics = [FetchTopic(topic=TP.topic, partitions=asked)]
        request = FetchRequest(
            replica_id=2, max_wait_ms=wait_ms, min_bytes=min_bytes, topics=topics
        )
        return fetch(self.context, request)

    def go_on(self, session: int, epoch: int, *, wait_ms: int = 60_000, min_bytes: int = 1) -> Any:
        """Send an incremental Fetch that changes nothing, or a full one for four partitions."""
        asked = [] if epoch else [FetchPartition(partition=number) for number in range(4)]
        request = FetchRequest(
            replica_id=2,
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            session_id=session,
            session_epoch=epoch,
            topics=[FetchTopic(topic=TP.topic, partitions=asked)],
        )
        return fetch(self.context, request)

    def change(self, *numbers: int) -> None:
        """Report changes of partitions, as effects of replicas do."""
        changed = [TopicPartition("t", number) for number in numbers]
        for tp in changed:
            self.sessions.changed(tp)
        self.waiting.notify(*changed)

    def settled(self) -> int:
        """Return the number of a session of four partitions of which all are settled."""
        self.result = FetchResult(high_watermark=5, settled=True)
        number: int = self.go_on(0, 0, wait_ms=0).session_id
        self.go_on(number, 1, wait_ms=0)
        self.read.clear()
        return number


@pytest.mark.parametrize("selector", ["", RACK_AWARE_SELECTOR])
async def test_a_watermark_alone_is_told_where_somebody_waits_for_it(selector: str) -> None:
    """A new high watermark alone completes a Fetch if consumers read from followers.

    Otherwise followers learn the watermark with the next records (KAFKA-9731).
    """
    leader = Leader(selector)
    parked = leader.ask()
    assert isinstance(parked, asyncio.Future)
    leader.result = FetchResult(high_watermark=7, news=True)
    leader.waiting.notify(TP)
    assert parked.done() is bool(selector)
    leader.result = FetchResult(high_watermark=7, records=[memoryview(b"x")])
    leader.waiting.notify(TP)
    [row] = (await parked).responses[0].partitions
    assert row.high_watermark == 7
    assert bool(row.records) is not bool(selector)
    leader.result = FetchResult(high_watermark=8, news=True)
    again = leader.ask()
    assert isinstance(again, asyncio.Future) is not bool(selector)
    for answer in (parked, again):
        if isinstance(answer, asyncio.Future):
            answer.cancel()


async def test_only_what_has_moved_is_read_again() -> None:
    """A parked Fetch reads again only the partitions that moved, and all of these at once.

    The response has every partition in the order of the request. Bytes count once towards the
    minimum, however often they were read.
    """
    leader = Leader()
    parked = leader.ask(4, min_bytes=3)
    assert leader.read == [(number, False) for number in range(4)]
    leader.read.clear()
    leader.result = FetchResult(high_watermark=5, records=[memoryview(b"x")])
    leader.waiting.notify(TopicPartition("t", 2), TopicPartition("t", 0))
    assert leader.read == [(2, True), (0, True)]
    leader.waiting.notify(TopicPartition("t", 2))
    assert not parked.done()
    leader.waiting.notify(TopicPartition("t", 3))
    rows = (await parked).responses[0].partitions
    assert [(row.partition_index, row.high_watermark) for row in rows] == [
        (0, 5), (1, -1), (2, 5), (3, 5),
    ]  # fmt: skip
    assert [len(row.records) for row in rows] == [1, 0, 1, 1]


async def test_a_follower_with_all_records_waits_for_the_next() -> None:
    """A new watermark alone is not read for a follower at the ends of the logs, only with records.

    The answer has the watermarks of all partitions that moved. A leader that is replaced reads.
    """
    leader = Leader()
    leader.end = 0
    parked = leader.ask(3)
    leader.read.clear()
    leader.result = FetchResult(high_watermark=7)
    leader.waiting.notify(TP)
    assert leader.read == []
    leader.end = 1
    leader.result = FetchResult(high_watermark=7, records=[memoryview(b"x")])
    leader.waiting.notify(TopicPartition("t", 2))
    assert leader.read == [(0, True), (2, True)]
    assert [row.high_watermark for row in (await parked).responses[0].partitions] == [7, -1, 7]
    leader.end, leader.result = 0, FetchResult()
    replaced = leader.ask()
    leader.end, leader.result = None, FetchResult(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    leader.waiting.notify(TP)
    assert replaced.done()


async def test_when_time_is_over_everything_is_read_again() -> None:
    """At the timeout a Fetch reads all partitions again, so that the response shows one moment."""
    leader = Leader()
    parked = leader.ask(2, wait_ms=1)
    leader.read.clear()
    await parked
    assert leader.read == [(0, True), (1, True)]


async def test_what_cannot_grow_is_answered_at_once() -> None:
    """A Fetch is answered at once if its read ends with a closed segment: it can return no more."""
    leader = Leader()
    leader.result = FetchResult(records=[memoryview(b"x")], cannot_grow=True)
    answer = leader.ask(min_bytes=200)
    assert not isinstance(answer, asyncio.Future)
    assert answer.responses[0].partitions[0].records == [b"x"]


async def test_what_can_no_longer_grow_is_answered() -> None:
    """A parked request is answered when its segment is closed while it waits."""
    leader = Leader()
    leader.result = FetchResult(records=[memoryview(b"x")])
    parked = leader.ask(min_bytes=200)
    leader.waiting.notify(TP)
    assert not parked.done()
    leader.result = FetchResult(records=[memoryview(b"x")], cannot_grow=True)
    leader.waiting.notify(TP)
    [row] = (await parked).responses[0].partitions
    assert row.records == [b"x"]


async def test_a_session_reads_what_has_changed() -> None:
    """KIP-227: a fetch in a session reads only partitions that have changed, and shows only news.

    It is parked although it reads nothing, and a change of a partition wakes it.
    """
    leader = Leader()
    number = leader.settled()
    parked = leader.go_on(number, 2)
    assert isinstance(parked, asyncio.Future)
    assert leader.read == []
    assert len(leader.waiting) == 1
    leader.waiting.notify(TopicPartition("u", 0))
    leader.change(3)
    assert leader.read == [(3, True)]
    assert not parked.done(), "it has no news"
    leader.result = FetchResult(high_watermark=5, records=[memoryview(b"x")])
    leader.change(1, 2)
    answer = await parked
    assert leader.read == [(3, True), (1, True), (2, True)]
    assert answer.session_id == number
    assert [row.partition_index for row in answer.responses[0].partitions] == [1, 2]
    leader.read.clear()
    leader.result = FetchResult(high_watermark=5, settled=True)
    assert leader.go_on(number, 3, wait_ms=0).responses == []
    assert leader.read == [(1, False), (2, False)], "which returned records"


async def test_a_session_without_news_answers_in_time() -> None:
    """At the timeout a fetch in a session answers without partitions, and reads the active ones."""
    leader = Leader()
    number = leader.settled()
    parked = leader.go_on(number, 2, wait_ms=1)
    leader.result = FetchResult(high_watermark=6)
    leader.sessions.changed(TP)
    answer = await parked
    assert leader.read == [(0, True)]
    [row] = answer.responses[0].partitions
    assert (row.partition_index, row.high_watermark) == (0, 6)


async def test_a_fetch_that_waits_fails_once_its_session_goes_on() -> None:
    """KIP-227: a parked fetch shows nothing if a later request of its session has arrived.

    That request may have removed the partition that changes. It is not disturbed.
    """
    leader = Leader()
    number = leader.settled()
    parked = leader.go_on(number, 2)
    later = FetchRequest(
        replica_id=2,
        max_wait_ms=60_000,
        min_bytes=1,
        session_id=number,
        session_epoch=3,
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=[1])],
    )
    waiting: Any = fetch(leader.context, later)
    leader.result = FetchResult(high_watermark=5, records=[memoryview(b"x")])
    leader.change(1)
    assert not parked.done()
    leader.change(0)
    answer = await parked
    assert (answer.error_code, answer.responses) == (71, [])
    assert (await waiting).responses[0].partitions[0].records == [b"x"]


async def test_a_fetch_that_waits_fails_at_once_when_its_session_ends() -> None:
    """A session that loses its place in the cache reports no more changes to its parked fetch."""
    leader = Leader()
    number = leader.settled()
    parked = leader.go_on(number, 2)
    other = leader.go_on(0, 0, wait_ms=0).session_id
    assert other not in (0, number)
    answer = await parked
    assert (answer.error_code, answer.responses) == (70, [])
    assert len(leader.waiting) == 0


async def test_refused_sessions() -> None:
    """A session that does not exist, and an epoch that is not the next one, have their errors."""
    leader = Leader()
    number = leader.settled()
    assert leader.go_on(number, 5).error_code == 71
    assert leader.go_on(number % 7 + 1, 2).error_code == 70
    assert leader.go_on(number, -1, wait_ms=0).session_id == 0
    assert leader.go_on(number, 2).error_code == 70


@pytest.mark.parametrize(
    ("size", "cut_at", "waits"),
    [(1000, 0, False), (999, 0, True), (999, 1000, False), (1, 1000, False), (999, 999, True)],
)
@pytest.mark.parametrize("in_session", [False, True])
async def test_a_fetch_does_not_wait_for_more_than_fits(
    size: int, cut_at: int, waits: bool, in_session: bool
) -> None:
    """min_bytes counts at most up to the maximum of the response, which is 1,000 bytes here.

    A batch that does not fit into the rest fills the response.
    """
    leader = Leader()
    if in_session:
        number = leader.settled()
        leader.change(0)
    leader.result = FetchResult(records=[memoryview(bytes(size))], cut_at=cut_at)
    parked = leader.go_on(number, 2, min_bytes=5000) if in_session else leader.ask(min_bytes=5000)
    assert isinstance(parked, asyncio.Future) is waits
    if waits:
        leader.result = FetchResult(records=[memoryview(bytes(size))], cut_at=1000)
        leader.change(0)
        [row] = (await parked).responses[0].partitions
        assert sum(map(len, row.records)) == size


@pytest.mark.parametrize(
    ("version", "replica_id", "codec", "is_refused"),
    [
        (9, -1, batch.ZSTD, True),
        (10, -1, batch.ZSTD, False),
        (9, -1, None, False),
        (9, -1, batch.LZ4, False),
        (9, 2, batch.ZSTD, False),
    ],
)
async def test_old_consumers_of_topics_with_zstd(
    version: int, replica_id: int, codec: int | None, is_refused: bool
) -> None:
    """KIP-110: a consumer below v10 gets an error for a topic with `compression.type=zstd`."""
    leader = Leader()
    log = SimpleNamespace(config=SimpleNamespace(compression=codec))
    replicas: Any = leader.context.services.replicas
    replicas.logs = SimpleNamespace(logs={TP: log})
    leader.context = msgspec.structs.replace(leader.context, version=version)
    leader.result = FetchResult(high_watermark=5, records=[memoryview(b"x")])
    topics = [FetchTopic(topic=TP.topic, partitions=[FetchPartition()])]
    request = FetchRequest(replica_id=replica_id, topics=topics)
    answer: Any = fetch(leader.context, request)
    [row] = answer.responses[0].partitions
    error = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if is_refused else ErrorCode.NONE
    assert (row.error_code, bool(row.records)) == (error, not is_refused)
    leader.result = FetchResult(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    del replicas.logs
    answer = fetch(leader.context, request)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("version", "error", "shown"),
    [
        (5, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (6, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR),
        (5, ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
async def test_an_error_that_old_clients_do_not_know(
    version: int, error: ErrorCode, shown: ErrorCode
) -> None:
    """KIP-112: a failed data directory is no error that a client below v6 would retry."""
    leader = Leader()
    leader.context = msgspec.structs.replace(leader.context, version=version)
    leader.result = FetchResult(error=error)
    assert leader.ask().responses[0].partitions[0].error_code == shown


async def test_a_reader_of_old_segments_does_not_wait_for_more(cluster: Any) -> None:
    """fetch.min.bytes counts only where the reader is on the last segment, as in Kafka."""
    await cluster.add(1, log_segment_bytes="200")
    await cluster.ready()
    await create(cluster, "t", replicas=1)
    await produced(cluster, 12)
    log = cluster.brokers[1].broker._logs.logs[TP]
    *_, active = log.segment_offsets
    offset = reads = 0
    while offset < active:
        answer = await cluster.ask(1, asking(offset, min_bytes=1_000), 11, timeout_s=5)
        [row] = answer.responses[0].partitions
        *_, (_, last) = batch.batches(row.records)
        offset, reads = last.next_offset, reads + 1
    assert (offset, reads) == (active, len(log.segment_offsets) - 1)
    with pytest.raises(PeerError, match="did not answer"):
        await cluster.ask(1, asking(active, min_bytes=1_000), 11, timeout_s=0.1)


@pytest.mark.parametrize("partition_bytes_max", [1000, 1_000_000])
async def test_a_reader_of_large_batches_does_not_wait_for_more(
    cluster: Any, partition_bytes_max: int
) -> None:
    """A fetch that leaves out a batch for its limit has as many bytes as this limit, as in Kafka.

    The limit of one partition is not that of the response: the fetch waits for other partitions.
    """
    await cluster.add(1)
    await cluster.ready()
    await create(cluster, "t", replicas=1)
    await produced(cluster, 4, bytes(400))
    request = asking(0, min_bytes=2000)
    request.max_bytes = 1500
    request.topics[0].partitions[0].partition_max_bytes = partition_bytes_max
    if partition_bytes_max < request.max_bytes:
        with pytest.raises(PeerError, match="did not answer"):
            await cluster.ask(1, request, 11, timeout_s=0.1)
        request.max_bytes = 1000
    answer = await cluster.ask(1, request, 11, timeout_s=5)
    [row] = answer.responses[0].partitions
    assert len([*batch.batches(row.records)]) == request.max_bytes // 475


def asking(offset: int, *, min_bytes: int) -> FetchRequest:
    partition = FetchPartition(fetch_offset=offset, partition_max_bytes=1_000_000)
    return FetchRequest(
        max_wait_ms=60_000,
        min_bytes=min_bytes,
        topics=[FetchTopic(topic=TP.topic, partitions=[partition])],
    )


async def produced(cluster: Any, batches: int, padding: bytes = b"") -> None:
    for number in range(batches):
        answer = await produce(cluster, 1, b"%d" % number + padding)
        assert answer.error_code == 0
