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
        self.waiting = Waiting()
        config = SimpleNamespace(fetch_max_bytes=1000, replica_selector_class=selector)
        replicas = SimpleNamespace(fetch=lambda tp, **_: self.result)
        services: Any = SimpleNamespace(config=config, replicas=replicas, waiting=self.waiting)
        self.context = RequestContext(services, "", None, "", 0, 12, lambda: 1000)

    def ask(self) -> Any:
        """As a follower."""
        topics = [FetchTopic(topic=TP.topic, partitions=[FetchPartition(partition=0)])]
        request = FetchRequest(replica_id=2, max_wait_ms=60_000, min_bytes=1, topics=topics)
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
