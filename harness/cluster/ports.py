"""Reserves ports for nodes, from before a node's first start until after its last.

The harness binds a socket with ``SO_REUSEPORT`` and never listens on it; a node that binds with the
same option can listen on the same port. No other process is given the port, it is kept over
restarts, and a connect to a dead node is refused, as it should be (the kernel asks only listening
sockets). See ``docs/adr/0011-ports.md``.
"""

import contextlib
import random
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


class Subnet:
    """Addresses ``127.R.*.*`` that belong to one cluster, for programs without ``SO_REUSEPORT``.

    Each node listens on an address of its own, and each ordered pair of nodes has another one,
    where a proxy listens at the acceptor's port. Nothing connects from these addresses, so the
    system never gives their ports to outgoing connections, and a port stays free while its node is
    down. A socket that stays bound keeps other clusters out of ``127.R``.
    """

    _LOCK = 65_535
    _RANGE = range(16, 255)

    def __init__(self, first_port: int = 9092) -> None:
        """Take a subnet; ``OSError`` if this machine has none. Ports are counted from here."""
        self._next_port = first_port
        self._number, self._lock = self._taken()

    def node(self, index: int) -> str:
        """Return the address of a node, whose index is from 1 to 254."""
        return f"127.{self._number}.0.{index}"

    def link(self, opener: int, acceptor: int) -> str:
        """Return the address of the proxy between two nodes."""
        return f"127.{self._number}.{opener}.{acceptor}"

    def port(self) -> int:
        """Return a port at which no program of this machine listens on all addresses.

        Raises ``OSError`` if there is none.
        """
        for port in range(self._next_port, self._LOCK):
            with contextlib.suppress(OSError), socket.socket() as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind((self.node(1), port))
                self._next_port = port + 1
                return port
        raise OSError("this machine has no free port")

    def close(self) -> None:
        """Give the subnet back."""
        self._lock.close()

    def _taken(self) -> tuple[int, socket.socket]:
        numbers = list(self._RANGE)
        random.SystemRandom().shuffle(numbers)
        for number in numbers:
            lock = socket.socket()
            try:
                lock.bind((f"127.{number}.255.254", self._LOCK))
            except OSError as error:
                lock.close()
                last = error
            else:
                return number, lock
        raise OSError(f"no address 127.*.255.254 can be bound: {last.strerror}")
