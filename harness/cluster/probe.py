"""A probe asks a server for a sign of life, in its own protocol, over a connection of its own."""

import asyncio
import struct
from collections.abc import Callable
from typing import Literal

from harness.cluster.address import Address
from model.roles import ZOOKEEPER, NodeId

Protocol = Literal["kafka", "zookeeper"]
Sign = Literal["answer", "end", "silence"]
"""``end``: refused, reset or closed without an answer. A proxy before a server may accept a
connection and find only then that nobody is behind it: that is ``end``, too."""

_CORRELATION = 0x50524F42
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, _CORRELATION, -1)
"""ApiVersions v0 without a client id; every Kafka broker answers it, ready or not."""
_CONNECT = struct.pack(">iiqiqi16x", 44, 0, 0, 4000, 1, 16)
"""ZooKeeper's connect request for a session that does not exist: answered, and none is made."""
_REQUESTS = {"kafka": _API_VERSIONS, "zookeeper": _CONNECT}
ANSWER_BYTES_MIN = 8


def protocol_of(node: NodeId) -> Protocol:
    """In which a node is asked for a sign of life."""
    return "zookeeper" if node == ZOOKEEPER else "kafka"


def request_bytes(protocol: Protocol) -> int:
    """How much a probe sends."""
    return len(_REQUESTS[protocol])


async def sign(
    address: Address,
    protocol: Protocol,
    timeout_s: float,
    on_connect: Callable[[], object] = lambda: None,
) -> Sign:
    """What comes of a probe within so many seconds; ``on_connect`` is called before it asks."""
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
    """Did the server there answer within so many seconds?"""
    return await sign(address, protocol, timeout_s) == "answer"


async def accepts(address: Address, timeout_s: float = 1.0) -> bool:
    """Does anybody listen there?"""
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(*address)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
