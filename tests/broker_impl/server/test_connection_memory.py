"""The memory of requests and of unfinished frames is bounded, and shared fairly."""

import asyncio
import struct
from typing import Any

import psutil
import pytest

from broker_impl.server import listeners
from broker_impl.wire.messages.find_coordinator_response import FindCoordinatorResponse
from tests.broker_impl.server.requests import (
    UPDATE_METADATA,
    VERSIONS,
    Open,
    arrived,
    large_request,
    settle,
    until,
)


async def test_requests_in_memory_are_bounded(world: Open, parked: Any) -> None:
    """queued.max.request.bytes: beyond it no requests are read until others are handled."""
    async with world(queued_max_request_bytes=1) as w:
        first, second = await w.client(), await w.client()
        first.ask("slow1", 1)
        await settle()
        second.ask("now", 2)
        assert await second.answer() == 2  # it was read before the limit was noticed
        second.ask("now", 3)
        await settle()
        assert w.server.bounds.is_full
        assert not second.reader._buffer
        parked["slow1"].set_result(FindCoordinatorResponse())
        assert await second.answer() == 3
        assert await first.answer() == 1
        assert w.server.bounds.request_bytes == 0


async def test_what_is_parked_holds_no_memory(world: Open, parked: Any) -> None:
    """Parked requests do not count: a parked produce needs the followers' fetches."""
    async with world(queued_max_request_bytes=1) as w:
        first, second = await w.client(), await w.client()
        first.ask("park1", 1)
        await settle()
        for number in (2, 3):
            second.ask("now", number)
            assert await second.answer() == number
        parked["park1"].set_result(FindCoordinatorResponse())
        assert await first.answer() == 1


async def test_a_thousand_starved_connections_go_on_one_after_the_other(
    world: Open, parked: Any
) -> None:
    """Hundreds of waiting connections resume one after the other, without recursion."""
    async with world(queued_max_request_bytes=1) as w:
        first, others = await w.client(), [await w.client() for _ in range(400)]
        first.ask("slow1", 1)
        await settle()
        for client in others:
            client.ask("now", 2)
            assert await client.answer() == 2
            client.ask("now", 3)
        await settle()
        parked["slow1"].set_result(FindCoordinatorResponse())
        assert {await client.answer() for client in others} == {3}
        assert not w.fatal


async def test_brokers_are_not_crowded_out_by_clients(world: Open, parked: Any) -> None:
    """KIP-402: at max.connections a broker is admitted, and the idlest client is closed."""
    async with world(max_connections=2, queued_max_request_bytes=1) as w:
        busy, idle = await w.client(), await w.client()
        busy.ask("slow1", 1)
        await settle()
        broker = await w.client(1)
        assert await idle.is_closed()
        for number in (2, 3):  # nor do the bytes of clients delay it
            broker.ask("now", number)
            assert await broker.answer() == number
        second = await w.client(1)
        second.ask("now", 4)
        assert await second.answer() == 4
        assert await busy.is_closed()
        third = await w.client(1)
        assert await third.is_closed(), "no client is left to make room"


async def test_one_of_many_pipelined_requests_is_no_privilege(world: Open, parked: Any) -> None:
    """A client with thousands of pipelined requests does not starve other clients."""
    async with world() as w:
        greedy, modest = await w.client(), await w.client()
        for number in range(3000):
            greedy.ask("now", number)
        modest.ask("now", 1)
        assert await modest.answer() == 1
        assert len(greedy.reader._buffer) < 3000 * 30, "all of it was answered first"
        assert [await greedy.answer() for _ in range(3000)] == list(range(3000))


@pytest.mark.parametrize(
    ("count", "size", "most"),
    [(8, 4 << 20, 9 << 20), (60, 1 << 20, 34 << 20)],
    ids=["large", "ordinary"],
)
async def test_unfinished_frames_are_bounded_and_all_are_finished(
    world: Open, count: int, size: int, most: int
) -> None:
    """The memory of unfinished frames is bounded, and every frame is finished in the end.

    Meanwhile ordinary requests are answered.
    """
    async with world(socket_request_max_bytes=5 << 20) as w:
        frame = large_request(size)
        clients = [await w.client() for _ in range(count)]
        for client in clients:
            client.writer.write(frame[: size - 1000])
        assert await arrived(w) <= most
        other = await w.client()
        other.send(VERSIONS, 0)
        async with asyncio.timeout(5):
            await other.frame()
        for client in reversed(clients):
            client.writer.write(frame[size - 1000 :])
        async with asyncio.timeout(20):
            for client in clients:
                await client.frame()
        assert w.server.bounds.request_bytes == 0
        assert not w.server.is_crowded()


@pytest.mark.parametrize("shares", [True, False], ids=["shared listener", "own listener"])
async def test_frames_of_clients_do_not_keep_out_those_of_brokers(
    world: Open, shares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker's frame is read while clients' frames occupy their memory, large or ordinary."""
    monkeypatch.setattr(listeners, "ORDINARY_ROOM", 1 << 20)
    one = {"listeners": "CLIENT://127.0.0.1:0", "inter_broker_listener_name": "CLIENT"}
    settings = one if shares else {}
    async with world(socket_request_max_bytes=5 << 20, **settings) as w:
        for size in (4 << 20, 1 << 20):
            for _ in range(2):
                client = await w.client()
                client.writer.write(large_request(size)[:-1000])
        await arrived(w)
        assert w.server.is_crowded()
        for size in (4 << 20, 1 << 20):
            broker = await w.client(0 if shares else 1)
            broker.writer.write(large_request(size, UPDATE_METADATA))
            assert await broker.is_closed(), "it is read, and its version is not served"


async def test_a_frame_behind_a_slow_request_holds_no_room(world: Open, parked: Any) -> None:
    """A frame behind a slow request reserves no memory before its connection is read again."""
    async with world(socket_request_max_bytes=5 << 20) as w:
        slow, other = await w.client(), await w.client()
        slow.ask("slow1", 1)
        slow.ask("now", 2)
        slow.writer.write(large_request(4 << 20)[:-1000])
        await arrived(w)
        other.writer.write(large_request(4 << 20))
        async with asyncio.timeout(5):
            await other.frame()
        parked["slow1"].set_result(FindCoordinatorResponse())
        assert [await slow.answer(), await slow.answer()] == [1, 2]


async def test_a_lost_connection_gives_its_room_to_the_next(world: Open) -> None:
    """A closed connection frees its memory for the next frame, and its place in the queue."""
    async with world(socket_request_max_bytes=5 << 20) as w:
        first, second, third = [await w.client() for _ in range(3)]
        for client in (first, second, third):
            client.writer.write(large_request(4 << 20)[:-1000])
            await arrived(w)
        second.writer.transport.abort()
        first.writer.transport.abort()
        third.writer.write(bytes(1000))
        async with asyncio.timeout(5):
            await third.frame()
        await until(lambda: w.server.bounds.request_bytes == 0)


@pytest.mark.slow
async def test_many_connections_and_slow_ones_stay_small(world: Open) -> None:
    """1,000 idle connections, each with a 100 MB frame announced, cost less than 64 MB."""
    async with world() as w:
        rss = psutil.Process().memory_info().rss
        clients = [await w.client() for _ in range(1000)]
        for client in clients:
            client.writer.write(struct.pack(">i", 100 * 1024 * 1024) + b"x")
        await settle()
        grown = psutil.Process().memory_info().rss - rss
        # Both ends of each connection are in this process.
        assert grown < 64 * 1024 * 1024, f"{grown >> 20} MB"
