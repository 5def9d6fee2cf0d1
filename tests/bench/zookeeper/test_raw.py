"""The raw client counts replies, keeps requests in flight, and ends with the first error."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bench.zookeeper import raw
from broker_impl.zookeeper.jute import FrameReader, Reader, frame
from broker_impl.zookeeper.records import (
    XID_PING,
    ConnectResponse,
    CreateRequest,
    Op,
    PathWatch,
    ReplyHeader,
    RequestHeader,
)

LIMIT_S = 10.0


class _Server(asyncio.Protocol):
    """Accepts a session, and answers each request with the error that is planned for its xid."""

    def __init__(self, errors: dict[int, int], counts: list[int]) -> None:
        self._errors = errors
        self._counts = counts
        self._frames = FrameReader()
        self._is_open = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._frames.receive(data)
        packets = list(self._frames.frames())
        if not self._is_open:
            packets.pop(0)
            self._is_open = True
            self._transport.write(frame(ConnectResponse(0, 10_000, 1, bytes(16), False)))
        out = b""
        for packet in packets:
            header = RequestHeader.read(Reader(packet))
            out += frame(ReplyHeader(header.xid, 1, self._errors.get(header.xid, 0)))
        self._counts.append(len(packets))
        # In two parts: a reply may be cut anywhere.
        self._transport.write(out[:7])
        self._transport.write(out[7:])


@asynccontextmanager
async def _session(errors: dict[int, int], counts: list[int]) -> AsyncIterator[raw.Session]:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Server(errors, counts), "127.0.0.1", 0)
    session = await raw.Session.open(server.sockets[0].getsockname()[1], LIMIT_S)
    try:
        yield session
    finally:
        session.abort()
        server.close()


def test_every_request_is_answered_and_few_are_in_flight() -> None:
    """A run ends after the last reply, and never has more requests in flight than allowed."""
    counts: list[int] = []

    async def main() -> None:
        async with _session({}, counts) as session:
            session.ping()  # its reply belongs to no request
            await session.run((raw.get_data(n, "/a") for n in range(1, 101)), 7)
            await session.run([], 7)
            await session.call(raw.set_data(101, "/a", b""))

    asyncio.run(main())
    assert sum(counts) == 1 + 101
    assert max(counts) <= 7 + 1


def test_an_error_ends_the_run() -> None:
    """A rejected request is no success that a rate may count."""

    async def main() -> None:
        async with _session({2: -110}, []) as session:
            with pytest.raises(raw.Failed, match="error -110"):
                await session.run((raw.create(n, "/a", b"") for n in (1, 2, 3)), 3)

    asyncio.run(main())


def test_requests_are_what_they_say() -> None:
    """The encoded requests are those of the protocol."""
    data = raw.create(5, "/a", b"x")
    reader = Reader(data, 4)
    assert struct.unpack_from(">i", data) == (len(data) - 4,)
    assert RequestHeader.read(reader) == RequestHeader(5, Op.CREATE)
    assert CreateRequest.read(reader).data == b"x"
    reader = Reader(raw.get_data(6, "/b"), 4)
    assert RequestHeader.read(reader) == RequestHeader(6, Op.GET_DATA)
    assert PathWatch.read(reader) == PathWatch("/b", False)
    assert XID_PING < 0, "the client takes positive xids for those of its requests"
