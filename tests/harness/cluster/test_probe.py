"""Probes tell the living from the silent, the closed and the absent."""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from harness.cluster import probe
from harness.cluster.ports import HOST, Ports

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Handler], Awaitable[int]]]:
    servers: list[asyncio.Server] = []

    async def served(handler: Handler) -> int:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await handler(reader, writer)
            finally:
                writer.close()

        server = await asyncio.start_server(connected, HOST, 0)
        servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    yield served
    for server in servers:
        server.close()


Serve = Callable[[Handler], Awaitable[int]]


async def kafka(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    size, key, version, correlation, client = struct.unpack(">ihhih", await reader.readexactly(14))
    assert (size, key, version, client) == (10, 18, 0, -1)
    writer.write(struct.pack(">iihi", 10, correlation, 0, 0))


async def zookeeper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    fields = struct.unpack(">iiqiqi16x", await reader.readexactly(48))
    assert fields == (44, 0, 0, 4000, 1, 16)
    writer.write(struct.pack(">iiiqi16x", 36, 0, 0, 0, 16))


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readexactly(4)


async def babbling(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(struct.pack(">iihi", 10, 4711, 0, 0))
    await reader.read()


async def test_broker_answers(serve: Serve) -> None:
    """A server that answers ApiVersions with our number is alive."""
    assert await probe.answers(HOST, await serve(kafka), "kafka", 2)


async def test_zookeeper_answers(serve: Serve) -> None:
    """A server that answers a connect request is alive."""
    assert await probe.answers(HOST, await serve(zookeeper), "zookeeper", 2)


@pytest.mark.parametrize("handler", [silent, closing, babbling])
async def test_everything_else_is_no_answer(serve: Serve, handler: Handler) -> None:
    """Silence, a closed connection and an answer to somebody else's question mean no."""
    assert not await probe.answers(HOST, await serve(handler), "kafka", 0.05)


async def test_nobody_there() -> None:
    """A refused connection is no answer, and nobody accepts."""
    with Ports() as ports:
        port = ports.reserve()
        assert not await probe.answers(HOST, port, "kafka", 1)
        assert not await probe.accepts(HOST, port)


async def test_accepts(serve: Serve) -> None:
    """Somebody who listens accepts."""
    assert await probe.accepts(HOST, await serve(silent))
