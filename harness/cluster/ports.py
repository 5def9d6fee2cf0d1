"""Reserves ports for nodes, from before a node's first start until after its last.

The harness binds a socket with ``SO_REUSEPORT`` and never listens on it; a node that binds with the
same option can listen on the same port. No other process is given the port, it is kept over
restarts, and a connect to a dead node is refused, as it should be (the kernel asks only listening
sockets). See ``docs/adr/0011-ports.md``.
"""

import socket
from types import TracebackType
from typing import Self

HOST = "127.0.0.1"


class Ports:
    """Reservations that last as long as this object is open."""

    def __init__(self, host: str = HOST) -> None:
        self.host = host
        self._held: list[socket.socket] = []

    def reserve(self) -> int:
        """Reserve a port that the system selects; ``OSError`` if it has none."""
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            # Not SO_REUSEADDR: any other socket with that option could then bind the same port.
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.bind((self.host, 0))
        except OSError:
            holder.close()
            raise
        self._held.append(holder)
        port: int = holder.getsockname()[1]
        return port

    def close(self) -> None:
        """Release all reservations."""
        for holder in self._held:
            holder.close()
        self._held.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
