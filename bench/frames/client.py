"""A client of a connection without a socket."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from bench.frames.transport import MemoryTransport
from broker_impl.server import Server
from broker_impl.server.connection import Connection
from broker_impl.wire.framing import RequestHeader, decode_response, encode_request
from broker_impl.wire.messages import request_module, response_module

TURN_S: Final = 0.0002
"""The virtual time between two looks at a connection."""
TURNS_MAX: Final = 150
"""Looks until a request counts as parked, or a connection as blocked."""


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a state of the broker."""
    while not condition():  # noqa: ASYNC110 - any state of any object may be waited for
        await asyncio.sleep(TURN_S)


class Client:
    """One connection: bytes in, responses out."""

    def __init__(self, server: Server, listener: str, port: int) -> None:
        self.transport = MemoryTransport(("10.9.9.9", port))
        self.connection = Connection(server, listener)
        self.transport.set_protocol(self.connection)
        self.connection.connection_made(self.transport)
        self._number = 0

    async def feed(self, data: bytes, piece_bytes: int) -> None:
        """Give bytes to the connection in pieces, while it reads."""
        view, turns = memoryview(data), 0
        while view and not self.transport.is_closing() and turns < TURNS_MAX:
            if self.transport.is_paused:
                turns += 1
                await asyncio.sleep(TURN_S)
                continue
            buffer = self.connection.get_buffer(-1)
            count = min(len(buffer), len(view), piece_bytes)
            buffer[:count] = view[:count]
            self.connection.buffer_updated(count)
            view = view[count:]

    async def settle(self) -> None:
        """Wait until every request is answered, the connection is closed, or too much time."""
        for _ in range(TURNS_MAX):
            if self.transport.is_closing() or self.connection.idle_since is not None:
                return
            await asyncio.sleep(TURN_S)

    async def leave(self) -> None:
        """End the connection, as a client that goes away."""
        self.transport.abort()
        await until(lambda: self.transport.is_lost)

    async def ask(self, message: Any, key: int, version: int) -> Any:
        """Send a valid request, and return its response; the connection must have no other."""
        self._number += 1
        header = RequestHeader(key, version, self._number, "fuzz")
        at = len(self.transport.written)
        body = request_module(key).encode(message, version)
        await self.feed(b"".join(encode_request(header, body)), 1 << 20)
        await until(lambda: len(self.transport.written) > at or self.transport.is_closing())
        assert not self.transport.is_closing(), f"API {key} v{version} closed the connection"
        frame = memoryview(bytes(self.transport.written[at + 4 :]))
        _, rest = decode_response(frame, key, version)
        return response_module(key).decode(rest, version)
