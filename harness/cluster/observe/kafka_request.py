"""Sends one request of Kafka's protocol to a broker over a separate connection."""

import asyncio
from typing import Any

from broker_impl.errors import WireError
from broker_impl.wire.framing import RequestHeader, decode_response, encode_request
from broker_impl.wire.messages import request_module, response_module
from harness.cluster.address import Address

TIMEOUT_S = 5.0
_CORRELATION_ID = 1


async def ask(
    broker: Address, api: tuple[int, int], request: Any, timeout_s: float = TIMEOUT_S
) -> Any | None:
    """Return the response, or ``None`` if there is none. ``api``: its key and version."""
    key, version = api
    header = RequestHeader(key, version, _CORRELATION_ID, "faultline")
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(*broker)
            try:
                writer.writelines(
                    encode_request(header, request_module(key).encode(request, version))
                )
                size = int.from_bytes(await reader.readexactly(4), "big", signed=True)
                frame = memoryview(await reader.readexactly(size))
            finally:
                writer.close()
        _, body = decode_response(frame, key, version)
        return response_module(key).decode(body, version)
    except (OSError, TimeoutError, asyncio.IncompleteReadError, WireError):
        return None
