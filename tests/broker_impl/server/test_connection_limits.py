"""Connections are bounded, counted, accepted gradually, and closed when idle."""

import asyncio
import errno
import socket
import struct
from contextlib import ExitStack
from typing import Any, cast

import pytest

from broker_impl.api import registry
from broker_impl.server.memory_limits import UNREAD_BYTES_MAX
from broker_impl.wire.messages.find_coordinator_request import FindCoordinatorRequest
from broker_impl.wire.messages.find_coordinator_response import FindCoordinatorResponse
from tests.broker_impl.server.requests import FIND_COORDINATOR, METADATA, Open, settle, until


async def test_clients_wait_behind_the_gate(world: Open, parked: Any) -> None:
    """Clients are not served until the cluster is known; before, it would look empty."""
    async with world(gate=False) as w:
        client = await w.client()
        client.ask("park", 1)
        await settle()
        assert not parked
        w.server.open_to_clients()
        await settle()
        parked["park"].set_result(FindCoordinatorResponse())
        assert await client.answer() == 1


async def test_connections_are_bounded(world: Open, parked: Any) -> None:
    """max.connections: a further connection is refused, until another one closes."""
    async with world(max_connections=2) as w:
        first, second, third = [await w.client() for _ in range(3)]
        assert await third.is_closed()
        first.writer.close()
        await settle()
        fourth = await w.client()
        fourth.ask("now", 4)
        assert await fourth.answer() == 4
        second.ask("now", 5)
        assert await second.answer() == 5


async def test_a_burst_of_connections_is_accepted_little_by_little(
    world: Open, parked: Any
) -> None:
    """A client is answered while hundreds of connections wait to be accepted."""
    count = 300
    async with world() as w:
        client = await w.client()
        client.ask("now", 1)
        assert await client.answer() == 1
        with ExitStack() as sockets:
            for _ in range(count):
                burst = sockets.enter_context(socket.socket())
                burst.setblocking(False)
                assert burst.connect_ex(("127.0.0.1", w.ports[0])) in (0, errno.EINPROGRESS)
            client.ask("now", 2)
            assert await client.answer() == 2
            assert len(w.server._connections) < count // 2
            await until(lambda: len(w.server._connections) == count + 1)


async def test_a_reader_that_never_reads_is_let_go(world: Open, parked: Any) -> None:
    """connections.max.idle.ms closes a connection whose client does not read its responses."""
    async with world(connections_max_idle_ms=300) as w:
        client = await w.client()
        cast(asyncio.Transport, client.writer.transport).pause_reading()
        for number in range(1000):
            client.ask("large", number)
        await until(lambda: w.server.bounds.answer_room() < UNREAD_BYTES_MAX)
        await until(lambda: not w.server._connections)
        assert w.server.bounds.answer_room() == UNREAD_BYTES_MAX


async def test_nobody_is_served_before_the_broker_is_ready(world: Open, parked: Any) -> None:
    """Brokers are served once this broker has registered, clients once it knows the cluster."""
    async with world(gate=False) as w:
        broker, client = await w.client(1), await w.client()
        broker.ask("now", 1)
        client.ask("now", 2)
        await settle()
        w.server.open_to_brokers()
        assert await broker.answer() == 1
        broker.send(METADATA, 1, struct.pack(">i", 0))
        await settle()
        assert not client.reader._buffer
        assert not broker.reader._buffer
        w.server.open_to_clients()
        assert await client.answer() == 2


async def test_idle_connections_are_closed(world: Open, parked: Any) -> None:
    """connections.max.idle.ms: an idle connection is closed, not one that awaits a response."""
    async with world(connections_max_idle_ms=40) as w:
        idle, busy = await w.client(), await w.client()
        busy.ask("park", 1)
        assert await idle.is_closed()
        parked["park"].set_result(FindCoordinatorResponse())
        assert await busy.answer() == 1


async def test_connections_are_counted_as_they_come(
    world: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections are numbered as they arrive, so that a handler knows which of two is later."""
    seen: list[int] = []

    def handle(context: registry.RequestContext, request: FindCoordinatorRequest) -> Any:
        seen.append(context.connection)
        return FindCoordinatorResponse()

    row = registry.Api(FIND_COORDINATOR, range(3), range(3), False, handle)
    monkeypatch.setitem(registry.APIS, FIND_COORDINATOR, row)
    async with world() as w:
        first = await w.client()
        first.ask("now", 1)
        await first.answer()
        second = await w.client()
        for client in (second, first):
            client.ask("now", 2)
            await client.answer()
    before, later, again = seen
    assert before == again < later
