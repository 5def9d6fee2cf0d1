"""Ends a ZooKeeper session from another client, without its owner taking part.

Any client that knows a session's id and password may move it to a new connection; ZooKeeper then
closes the old one. This module takes a session over and closes it, so that its owner reconnects and
learns that the session has expired.
"""

import asyncio

from broker_impl.zookeeper.jute import Reader, frame
from broker_impl.zookeeper.records import (
    ConnectRequest,
    ConnectResponse,
    Nothing,
    Op,
    RequestHeader,
)
from harness.cluster.address import Address

TIMEOUT_S = 2.0
_SIZE_BYTES = 4


async def end(zookeeper: Address, session_id: int, password: bytes, timeout_ms: int) -> bool:
    """Close a session; return False if it has already ended or the server does not answer.

    password: the session's password.
    timeout_ms: the session's own timeout.
    """
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_connection(*zookeeper)
            try:
                writer.write(frame(ConnectRequest(0, 0, timeout_ms, session_id, password, False)))
                answer = ConnectResponse.read(Reader(await _packet(reader)))
                if answer.timeout_ms <= 0:
                    return False
                writer.write(frame(RequestHeader(1, Op.CLOSE_SESSION), Nothing()))
                await _packet(reader)
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return False
    return True


async def _packet(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(_SIZE_BYTES), "big")
    return await reader.readexactly(size)
