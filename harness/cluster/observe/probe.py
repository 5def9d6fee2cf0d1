"""A probe asks a server for a sign of life, in its own protocol, over a separate connection.

A server of a ZooKeeper ensemble is probed by a four-letter word, which it answers even while there
is no leader. Its election port answers a greeting of an unknown kind by closing the connection.
"""

import asyncio
import functools
import ssl
import struct
from collections.abc import Callable, Mapping
from typing import Literal

from harness.cluster.address import Address
from model.layout import peer_port
from model.roles import ZOOKEEPER, NodeId

Protocol = Literal["kafka", "kafka-tls", "zookeeper", "ensemble", "election"]
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
_WORD = b"ruok"
_GREETING = struct.pack(">qqi", -3, 0, 0)
"""A version that no release knows, and the id of no server: every release closes the connection."""
_REQUESTS: Mapping[Protocol, bytes] = {
    "kafka": _API_VERSIONS,
    "kafka-tls": _API_VERSIONS,
    "zookeeper": _CONNECT,
    "ensemble": _WORD,
    "election": _GREETING,
}
ANSWER_BYTES_MIN = 8
_WORD_BYTES_MIN = 4
"""The size of ``imok``; a server that does not permit the word says so in more bytes."""


@functools.cache
def unverified() -> ssl.SSLContext:
    """Return the TLS context of probes, which accept any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def protocol_of(node: NodeId, *, has_tls: bool = False) -> Protocol:
    """The protocol in which a node, or an end of a link, is probed.

    ``has_tls``: whether the listener of a broker is encrypted.
    """
    if not node.startswith(ZOOKEEPER):
        return "kafka-tls" if has_tls else "kafka"
    server = node.partition(".")[0]
    if node == peer_port(server, "ELECTION"):
        return "election"
    return "zookeeper" if server == ZOOKEEPER else "ensemble"


def request_bytes(protocol: Protocol) -> int:
    """The number of bytes that a probe sends at least."""
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
            context = unverified() if protocol == "kafka-tls" else None
            reader, writer = await asyncio.open_connection(*address, ssl=context)
            try:
                on_connect()
                writer.write(_REQUESTS[protocol])
                if protocol == "election":
                    return "end" if await reader.read(1) else "answer"
                if protocol == "ensemble":
                    await reader.readexactly(_WORD_BYTES_MIN)
                    return "answer"
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
