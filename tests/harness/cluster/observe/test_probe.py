"""Probes distinguish a live server from one that is silent, closed or absent."""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from harness.cluster.address import Address
from harness.cluster.observe import probe
from harness.cluster.observe.probe import Sign
from harness.cluster.ports import HOST, Ports

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Handler], Awaitable[Address]]]:
    servers: list[asyncio.Server] = []

    async def served(handler: Handler) -> Address:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await handler(reader, writer)
            finally:
                writer.close()

        server = await asyncio.start_server(connected, HOST, 0)
        servers.append(server)
        return Address(HOST, server.sockets[0].getsockname()[1])

    yield served
    for server in servers:
        server.close()


Serve = Callable[[Handler], Awaitable[Address]]


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
    """A server that answers ApiVersions with the request's correlation id is alive."""
    assert await probe.answers(await serve(kafka), "kafka", 2)


async def test_zookeeper_answers(serve: Serve) -> None:
    """A server that answers a connect request is alive."""
    assert await probe.answers(await serve(zookeeper), "zookeeper", 2)


@pytest.mark.parametrize(
    ("handler", "sign", "timeout_s"),
    [(silent, "silence", 0.05), (closing, "end", 10), (babbling, "end", 10)],
)
async def test_everything_else_is_no_answer(
    serve: Serve, handler: Handler, sign: Sign, timeout_s: float
) -> None:
    """Silence, a closed connection and a wrong correlation id do not count as an answer."""
    address = await serve(handler)
    assert not await probe.answers(address, "kafka", timeout_s)
    assert await probe.sign(address, "kafka", timeout_s) == sign


async def test_nobody_there() -> None:
    """A refused connection is neither an answer nor an accepted connection."""
    with Ports() as ports:
        nowhere = Address(HOST, ports.reserve())
        assert not await probe.answers(nowhere, "kafka", 1)
        assert not await probe.accepts(nowhere)
        assert await probe.sign(nowhere, "kafka", 1) == "end"


async def test_accepts(serve: Serve) -> None:
    """A server that listens without answering accepts."""
    assert await probe.accepts(await serve(silent))
