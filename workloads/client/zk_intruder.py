"""Asks a server for the session of another client, with a wrong password, which must be refused.

The handshake of ZooKeeper's protocol is written out here: no library resumes a session without its
password.
"""

import asyncio
import contextlib
import struct

from workloads.client.zk_session import NotSent

_LENGTH = struct.Struct(">i")
_REQUEST = struct.Struct(">iqiqi16s?")
"""Protocol version, last zxid seen, timeout, session, length of the password, password, and whether
a server without a quorum would do."""
_RESPONSE = struct.Struct(">iiq")
"""Protocol version, timeout, session; what follows is the password."""
_PASSWORD = b"not the password"
assert len(_PASSWORD) == 16, "servers expect as many bytes"
RESPONSE_BYTES_MAX = 1024


async def is_let_in(server: str, session: int, *, timeout_ms: int) -> bool:
    """Return whether a server gives away the session; then its owner loses its connection.

    Raises :class:`NotSent` if the server does not answer in time.
    """
    host, _, port = server.rpartition(":")
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return await _asked(host, int(port), session, timeout_ms)
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        raise NotSent("no server has answered the intruder") from None


async def _asked(host: str, port: int, session: int, timeout_ms: int) -> bool:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        request = _REQUEST.pack(0, 0, timeout_ms, session, len(_PASSWORD), _PASSWORD, False)
        writer.write(_LENGTH.pack(len(request)) + request)
        [length] = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if not _RESPONSE.size <= length <= RESPONSE_BYTES_MAX:
            raise ConnectionError(f"an answer of {length} bytes")
        _, granted_ms, given = _RESPONSE.unpack_from(await reader.readexactly(length))
        return bool(granted_ms > 0 and given == session)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
