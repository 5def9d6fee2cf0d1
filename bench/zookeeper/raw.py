"""A session with almost no cost: encoded requests go out, and of the replies the errors are read.

Many requests may be in flight; for each reply that arrives, the next request is sent.
"""

import asyncio
import struct
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Self

from broker_impl.zookeeper.jute import Record, frame
from broker_impl.zookeeper.records import (
    OPEN_ACL,
    XID_PING,
    ConnectRequest,
    CreateRequest,
    Op,
    PathWatch,
    RequestHeader,
    SetDataRequest,
)

TIMEOUT_MS = 10_000
"""The session timeout that is requested: the longest that a tick of 500 ms allows."""
REPLY_TIMEOUT_S = 60.0
_INT = struct.Struct(">i")
_REPLY = struct.Struct(">iqi")
_PING = frame(RequestHeader(XID_PING, Op.PING))


class Failed(Exception):
    """A request was rejected, or a connection has ended."""


def create(xid: int, path: str, data: bytes) -> bytes:
    """Encode the creation of a persistent node."""
    return _request(xid, Op.CREATE, CreateRequest(path, data, OPEN_ACL, 0))


def set_data(xid: int, path: str, data: bytes) -> bytes:
    """Encode a write to a node, whatever its version is."""
    return _request(xid, Op.SET_DATA, SetDataRequest(path, data, -1))


def get_data(xid: int, path: str) -> bytes:
    """Encode a read of a node without a watch."""
    return _request(xid, Op.GET_DATA, PathWatch(path, False))


def _request(xid: int, op: int, body: Record) -> bytes:
    return frame(RequestHeader(xid, op), body)


class Session(asyncio.Protocol):
    """A connection with a session of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._buffer = b""
        self._is_open = False
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._done: asyncio.Future[None] | None = None
        self._requests: Iterator[bytes] = iter(())
        self._in_flight = 0

    @classmethod
    async def open(cls, port: int, limit_s: float = REPLY_TIMEOUT_S) -> Self:
        """Open a session at a port of this host; raises Failed, OSError and TimeoutError."""
        async with asyncio.timeout(limit_s):
            _, session = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
            try:
                await session._opened
            except BaseException:
                session.abort()
                raise
        return session

    async def run(self, requests: Iterable[bytes], in_flight: int) -> None:
        """Send these requests, and return when all are answered without an error."""
        assert self._done is None, "one run at a time"
        self._done = self._loop.create_future()
        self._requests = iter(requests)
        try:
            self._send(in_flight)
            if self._in_flight:
                await self._done
        finally:
            self._done = None

    async def call(self, request: bytes) -> None:
        """Send one request, and wait for its reply."""
        await self.run([request], 1)

    def ping(self) -> None:
        """Keep the session alive."""
        self._transport.write(_PING)

    def abort(self) -> None:
        """End the connection; the session expires."""
        self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for a session."""
        assert isinstance(transport, asyncio.Transport), "a stream"
        self._transport = transport
        transport.write(frame(ConnectRequest(0, 0, TIMEOUT_MS, 0, bytes(16), False)))

    def data_received(self, data: bytes) -> None:
        """Count the replies, and send as many requests."""
        buffer = self._buffer + data if self._buffer else data
        at, end, answered = 0, len(buffer), 0
        while end - at >= 4:
            (size,) = _INT.unpack_from(buffer, at)
            if end - at - 4 < size:
                break
            if not self._is_open:
                self._is_open = True
                if not self._opened.done():
                    self._opened.set_result(None)
            else:
                xid, _, error = _REPLY.unpack_from(buffer, at + 4)
                if error:
                    self._fail(f"a request was rejected with error {error}")
                answered += xid > 0
            at += 4 + size
        self._buffer = buffer[at:]
        self._in_flight -= answered
        if answered and self._done is not None:
            self._send(answered)
            if not self._in_flight and not self._done.done():
                self._done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The server has closed the connection."""
        self._fail("the connection has ended")

    def _send(self, count: int) -> None:
        requests = list(islice(self._requests, count))
        if requests:
            self._in_flight += len(requests)
            self._transport.write(b"".join(requests))

    def _fail(self, reason: str) -> None:
        for waiting in (self._opened, self._done):
            if waiting is not None and not waiting.done():
                waiting.set_exception(Failed(reason))
