"""A probe asks a server for a sign of life, in its own protocol, over a separate connection."""

import asyncio
import struct
from collections.abc import Callable
from typing import Literal

from harness.cluster.address import Address
from model.roles import ZOOKEEPER, NodeId

Protocol = Literal["kafka", "zookeeper"]
Sign = Literal["answer", "end", "silence"]
"""``end``: the connection was refused, reset or closed without an answer.

A proxy may accept a connection and find only then that no server is behind it: that is ``end``,
too.
"""

_CORRELATION = 0x50524F42
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, _CORRELATION, -1)
"""ApiVersions v0 without a client id; every Kafka broker answers it, ready or not."""
_CONNECT = struct.pack(">iiqiqi16x", 44, 0, 0, 4000, 1, 16)
"""A ZooKeeper connect request for a session that does not exist: answered, but none is created."""
_REQUESTS = {"kafka": _API_VERSIONS, "zookeeper": _CONNECT}
ANSWER_BYTES_MIN = 8


def protocol_of(node: NodeId) -> Protocol:
    """The protocol in which a node is probed."""
    return "zookeeper" if node.startswith(ZOOKEEPER) else "kafka"


def request_bytes(protocol: Protocol) -> int:
    """The number of bytes that a probe sends."""
    return len(_REQUESTS[protocol])


async def sign(
    address: Address,
    protocol: Protocol,
    timeout_s: float,
    on_connect: Callable[[], object] = lambda: None,
) -> Sign:
    """The outcome of a probe within this time; ``on_connect`` is called before the request."""
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(*address)
            try:
                on_connect()
                writer.write(_REQUESTS[protocol])
                size, correlation = struct.unpack(">ii", await reader.readexactly(ANSWER_BYTES_MIN))
            finally:
                writer.close()
    except TimeoutError:
        return "silence"
    except (OSError, asyncio.IncompleteReadError):
        return "end"
    is_ours = size >= 4 and (protocol == "zookeeper" or correlation == _CORRELATION)
    return "answer" if is_ours else "end"


async def answers(address: Address, protocol: Protocol, timeout_s: float) -> bool:
    """Return whether the server answers a probe within this time."""
    return await sign(address, protocol, timeout_s) == "answer"


async def accepts(address: Address, timeout_s: float = 1.0) -> bool:
    """Return whether a server accepts connections at the address."""
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(*address)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
