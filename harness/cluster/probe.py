"""A probe asks a server for a sign of life, in its own protocol, over a connection of its own."""

import asyncio
import struct
from typing import Literal

Protocol = Literal["kafka", "zookeeper"]

_CORRELATION = 0x50524F42
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, _CORRELATION, -1)
"""ApiVersions v0 without a client id; every Kafka broker answers it, ready or not."""
_CONNECT = struct.pack(">iiqiqi16x", 44, 0, 0, 4000, 1, 16)
"""ZooKeeper's connect request for a session that does not exist: answered, and none is made."""


async def answers(host: str, port: int, protocol: Protocol, timeout_s: float) -> bool:
    """Did the server behind this port answer within so many seconds?

    Refused, reset, closed and silent all mean no.
    """
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(_API_VERSIONS if protocol == "kafka" else _CONNECT)
                size, correlation = struct.unpack(">ii", await reader.readexactly(8))
                return size >= 4 and (protocol == "zookeeper" or correlation == _CORRELATION)
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return False


async def accepts(host: str, port: int, timeout_s: float = 1.0) -> bool:
    """Does anybody listen there?"""
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
