"""Ends a ZooKeeper session behind its owner's back: whoever knows its id and password may close it.

ZooKeeper lets a session move to a new connection, and closes the old one. So a stranger takes it
over and closes it; its owner comes back and is told that it has expired.
"""

import asyncio

from broker_impl.zookeeper import sessions
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


async def end(zookeeper: Address, session_id: int, secret: bytes, timeout_ms: int) -> bool:
    """Close this session; False when it is over already, or the server does not answer.

    secret: what the server makes its passwords from. timeout_ms: the session's own.
    """
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_connection(*zookeeper)
            try:
                password = sessions.password(secret, session_id)
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
