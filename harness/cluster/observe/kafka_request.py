"""Sends requests of Kafka's protocol to a broker, over a connection of their own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from broker_impl.errors import WireError
from broker_impl.wire.framing import RequestHeader, decode_response, encode_request
from broker_impl.wire.messages import request_module, response_module
from harness.cluster.address import Address

TIMEOUT_S = 5.0
RESPONSE_BYTES_MAX: Final = 2**27
"""A response that claims to be larger is damaged."""
FAILURES: Final = (OSError, TimeoutError, asyncio.IncompleteReadError, WireError)
"""What a connection raises if a request has no response that can be read."""


class Connection:
    """A connection to a broker, over which one request after the other is sent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._sent = 0

    async def ask(self, api: tuple[int, int], request: Any) -> Any:
        """Return the response. ``api``: its key and version. Raises one of ``FAILURES``."""
        key, version = api
        self._sent += 1
        header = RequestHeader(key, version, self._sent, "faultline")
        self._writer.writelines(
            encode_request(header, request_module(key).encode(request, version))
        )
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        if size > RESPONSE_BYTES_MAX:
            raise WireError(f"a response of {size} bytes")
        frame = memoryview(await self._reader.readexactly(size))
        answered, body = decode_response(frame, key, version)
        if answered != self._sent:
            raise WireError(f"request {self._sent} has the response of request {answered}")
        return response_module(key).decode(body, version)


@asynccontextmanager
async def connected(broker: Address) -> AsyncIterator[Connection]:
    """A connection to a broker, which is closed at the end; raises OSError."""
    reader, writer = await asyncio.open_connection(*broker)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()


async def ask(
    broker: Address, api: tuple[int, int], request: Any, timeout_s: float = TIMEOUT_S
) -> Any | None:
    """Return the response, or ``None`` if there is none. ``api``: its key and version."""
    try:
        async with asyncio.timeout(timeout_s), connected(broker) as connection:
            return await connection.ask(api, request)
    except FAILURES:
        return None
