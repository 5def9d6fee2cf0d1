"""When a Fetch is answered, and when it waits."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.api.fetch import fetch
from broker_impl.api.registry import RequestContext
from broker_impl.api.waiting import Waiting
from broker_impl.config import RACK_AWARE_SELECTOR
from broker_impl.replica.partition import FetchResult
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from broker_impl.wire.types import TopicPartition

TP = TopicPartition("t", 0)


class Leader:
    """Answers each read as it is told to."""

    def __init__(self, selector: str = "") -> None:
        self.result = FetchResult()
        self.read: list[tuple[int, bool]] = []
        """Partitions that were read, and whether again."""
        self.waiting = Waiting()
        config = SimpleNamespace(fetch_max_bytes=1000, replica_selector_class=selector)
        replicas = SimpleNamespace(fetch=self._fetch)
        services: Any = SimpleNamespace(config=config, replicas=replicas, waiting=self.waiting)
        self.context = RequestContext(services, "", None, "", 0, 12, lambda: 1000)

    def _fetch(self, tp: TopicPartition, *, again: bool, **_: Any) -> FetchResult:
        self.read.append((tp.partition, again))
        return self.result

    def ask(self, partitions: int = 1, *, wait_ms: int = 60_000, min_bytes: int = 1) -> Any:
        """As a follower."""
        asked = [FetchPartition(partition=number) for number in range(partitions)]
        topics = [FetchTopic(topic=TP.topic, partitions=asked)]
        request = FetchRequest(
            replica_id=2, max_wait_ms=wait_ms, min_bytes=min_bytes, topics=topics
        )
        return fetch(self.context, request)


@pytest.mark.parametrize("selector", ["", RACK_AWARE_SELECTOR])
async def test_a_watermark_alone_is_told_where_somebody_waits_for_it(selector: str) -> None:
    """Consumers of followers do; else followers learn of it with the next records (KAFKA-9731)."""
    leader = Leader(selector)
    parked = leader.ask()
    assert isinstance(parked, asyncio.Future)
    leader.result = FetchResult(high_watermark=7, news=True)
    leader.waiting.poke(TP)
    assert parked.done() is bool(selector)
    leader.result = FetchResult(high_watermark=7, records=[memoryview(b"x")])
    leader.waiting.poke(TP)
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
    """All of what has, at once; the answer has every partition, in the order of the request, and
    its bytes are counted once, however often they were read."""
    leader = Leader()
    parked = leader.ask(4, min_bytes=3)
    assert leader.read == [(number, False) for number in range(4)]
    leader.read.clear()
    leader.result = FetchResult(high_watermark=5, records=[memoryview(b"x")])
    leader.waiting.poke(TopicPartition("t", 2), TopicPartition("t", 0))
    assert leader.read == [(2, True), (0, True)]
    leader.waiting.poke(TopicPartition("t", 2))
    assert not parked.done()
    leader.waiting.poke(TopicPartition("t", 3))
    rows = (await parked).responses[0].partitions
    assert [(row.partition_index, row.high_watermark) for row in rows] == [
        (0, 5), (1, -1), (2, 5), (3, 5),
    ]  # fmt: skip
    assert [len(row.records) for row in rows] == [1, 0, 1, 1]


async def test_when_time_is_over_everything_is_read_again() -> None:
    """So that the answer is of one moment."""
    leader = Leader()
    parked = leader.ask(2, wait_ms=1)
    leader.read.clear()
    await parked
    assert leader.read == [(0, True), (1, True)]
