"""A connection whose client has a quota is muted for the throttle time."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from broker_impl.api.quotas.entities import Entity
from broker_impl.api.quotas.limits import ClientQuotas, Kind
from broker_impl.api.registry import APIS, Api
from broker_impl.server.throttling import Throttle
from broker_impl.wire.messages.fetch_request import FetchRequest
from broker_impl.wire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from broker_impl.wire.messages.metadata_response import MetadataResponse
from broker_impl.wire.messages.produce_response import ProduceResponse

APP = Entity(None, "app")


class Timer:
    """A timer of the fake loop."""

    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at, self.call, self.is_cancelled = at, call, False

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """A loop whose clock the test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[Timer] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        self.timers.append(Timer(self.now + delay, call))
        return self.timers[-1]

    def wait(self, seconds: float) -> None:
        self.now += seconds
        due = [timer for timer in self.timers if timer.at <= self.now + 1e-9]
        self.timers = [timer for timer in self.timers if timer not in due]
        for timer in due:
            if not timer.is_cancelled:
                timer.call()


class World:
    """One connection of the client ``app``, which has quotas."""

    def __init__(self, *, is_exempt: bool = False, **values: float) -> None:
        self.loop = Loop()
        self.limits = ClientQuotas(11, 1000)
        if values:
            self.limits.set(APP, values)
        self.resumed = 0
        self.throttle = Throttle(
            self.limits,
            cast(asyncio.AbstractEventLoop, self.loop),
            self.resume,
            is_exempt=is_exempt,
        )

    def resume(self) -> None:
        self.resumed += 1

    def request(
        self, key: int, version: int, answer: Any, *, size: int = 0, took: float = 0
    ) -> int:
        """Handle one request; return the throttle time in its response."""
        charge = self.throttle.charge(APIS[key], version, "app", size)
        if key == 1:
            charge = self.throttle.of_client(charge, FetchRequest())
        self.loop.now += took
        self.throttle.handled(charge)
        self.throttle.settle(charge, answer)
        return getattr(answer, "throttle_time_ms", -1)


def fetched(size: int) -> FetchResponse:
    rows = [PartitionData(records=[bytes(size)])]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=rows)])


def test_a_producer_is_muted() -> None:
    """A request that exceeds the quota is answered at once, and the next one waits."""
    world = World(producer_byte_rate=100)
    assert world.request(0, 9, ProduceResponse(), size=1000) == 0
    assert not world.throttle.is_muted
    assert world.request(0, 9, ProduceResponse(), size=50) == 500
    world.loop.wait(0.499)
    assert (world.throttle.is_muted, world.resumed) == (True, 0)
    world.loop.wait(0.001)
    assert (world.throttle.is_muted, world.resumed) == (False, 1)


def test_a_producer_without_responses_is_muted() -> None:
    """With acks=0 there is no response, and the connection is muted all the same."""
    world = World(producer_byte_rate=100)
    world.request(0, 9, None, size=2000)
    assert world.throttle.is_muted


def test_a_consumer_is_muted() -> None:
    """A fetch is charged with the size of its response, and returns no more than all windows."""
    world = World(consumer_byte_rate=100)
    asked = FetchRequest(max_bytes=5_000_000)
    charge = world.throttle.charge(APIS[1], 11, "app", 100)
    assert world.throttle.of_client(charge, asked) is charge
    assert asked.max_bytes == 1000
    assert world.request(1, 11, fetched(900)) == 0
    delay = world.request(1, 11, fetched(500))
    assert delay == pytest.approx(5000, rel=0.3)
    world.loop.wait(delay / 1000)
    assert not world.throttle.is_muted


def test_followers_are_not_charged() -> None:
    """Quotas of clients do not slow replication down."""
    world = World(consumer_byte_rate=100, request_percentage=1)
    charge = world.throttle.charge(APIS[1], 12, "app", 100)
    follower = FetchRequest(replica_id=2, max_bytes=5_000_000)
    assert world.throttle.of_client(charge, follower) is None
    assert follower.max_bytes == 5_000_000
    for key, version in ((4, 4), (6, 7), (27, 1), (24, 4)):
        assert world.throttle.charge(APIS[key], version, "app", 100) is None
    assert world.throttle.charge(APIS[24], 3, "app", 100) is not None
    private = World(is_exempt=True, consumer_byte_rate=100)
    assert private.throttle.charge(APIS[3], 9, "app", 100) is None


def test_time_is_charged() -> None:
    """Every request is charged with the time that its handler took, as a percentage."""
    world = World(request_percentage=50)
    assert world.request(3, 9, MetadataResponse(), took=5) == 0
    assert world.request(3, 9, MetadataResponse(), took=0.5) > 0
    assert world.throttle.is_muted


def test_the_longer_throttle_time_counts() -> None:
    """A request that exceeds two quotas is throttled for the longer time."""
    world = World(request_percentage=1, producer_byte_rate=1)
    assert world.request(0, 9, ProduceResponse(), size=15, took=1) == pytest.approx(4_500, abs=600)


def test_without_quotas_there_is_no_charge() -> None:
    """Without any quota, requests are not measured; other clients' quotas do not concern one."""
    world = World()
    assert world.throttle.charge(APIS[0], 9, "app", 10**9) is None
    world.limits.set(Entity(None, "other"), {Kind.PRODUCED: 1})
    assert world.request(0, 9, ProduceResponse(), size=10**9) == 0


def test_a_longer_time_replaces_a_shorter_one() -> None:
    """Requests that were being handled may be throttled while the connection is already muted."""
    world = World(producer_byte_rate=100)
    world.request(0, 9, ProduceResponse(), size=1100)
    world.request(0, 9, ProduceResponse(), size=400)
    world.request(0, 9, ProduceResponse(), size=0)
    world.loop.wait(4.9)
    assert world.throttle.is_muted
    world.loop.wait(0.2)
    assert (world.throttle.is_muted, world.resumed) == (False, 1)


def test_a_closed_connection_is_not_resumed() -> None:
    """The timer of a connection ends with it."""
    world = World(producer_byte_rate=100)
    world.request(0, 9, ProduceResponse(), size=2000)
    world.throttle.close()
    world.loop.wait(60)
    assert (world.throttle.is_muted, world.resumed) == (False, 0)


def test_every_response_can_be_throttled() -> None:
    """Each response that has a throttle time can be encoded with one in every served version."""
    from broker_impl.wire.messages import response_module

    for key, row in sorted(APIS.items()):
        module = response_module(key)
        empty = getattr(module, f"{module.NAME}Response")()
        if hasattr(empty, "throttle_time_ms"):
            empty.throttle_time_ms = 7
            for version in _of_clients(row):
                assert module.encode(empty, version), (key, version)


def _of_clients(row: Api) -> range:
    return range(row.served.start, row.private_from or row.served.stop)
