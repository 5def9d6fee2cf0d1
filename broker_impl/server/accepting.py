"""A listening socket that accepts few connections per turn, so that a burst cannot block the loop.

asyncio accepts as many connections in one turn of its loop as the socket's backlog allows: 500
connections blocked the loop for up to 210 ms on a busy machine, during which the broker answered no
request.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final

from broker_impl.security import tls

ACCEPTED_PER_TURN: Final = 16
QUEUED_MAX: Final = 4096
"""The backlog of connections, if the kernel allows it.

The kernel drops connections beyond it, and their clients try again a second later.
"""


async def listen(
    factory: Callable[[], asyncio.BaseProtocol],
    host: str,
    port: int,
    *,
    reuse_port: bool,
    context: ssl.SSLContext | None = None,
) -> asyncio.Server:
    """Listen on an address, with TLS if there is a context; an empty host means every interface."""
    encryption: dict[str, Any] = {}
    if context is not None:
        encryption = {
            "ssl": context,
            "ssl_handshake_timeout": tls.HANDSHAKE_S,
            "ssl_shutdown_timeout": tls.SHUTDOWN_S,
        }
    loop = asyncio.get_running_loop()
    accepts_in_bulk = isinstance(loop, asyncio.SelectorEventLoop)  # a simulated loop does not
    server = await loop.create_server(
        factory,
        host or None,
        port,
        reuse_port=reuse_port or None,
        backlog=ACCEPTED_PER_TURN if accepts_in_bulk else QUEUED_MAX,
        **encryption,
    )
    if accepts_in_bulk:
        for listening in server.sockets:
            with socket.socket(fileno=os.dup(listening.fileno())) as same:
                same.listen(QUEUED_MAX)  # asyncio keeps the backlog that it was given
    return server
