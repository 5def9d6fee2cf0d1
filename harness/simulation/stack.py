"""The TCP part of a host's kernel: its listeners and its connections."""

import errno
import os
import random
from collections import deque
from collections.abc import Callable

from harness.simulation.network import LOOPBACK, Network, rst
from harness.simulation.segment import RST, SYN, Address, Segment, TcpOptions
from harness.simulation.tcp import Socket

_PORTS = range(32768, 61000)
"""The ports for outgoing connections, and for servers that ask for port 0."""


class Listener:
    """A listening socket: the kernel completes handshakes and queues, the process accepts."""

    def __init__(
        self,
        stack: "Stack",
        address: Address,
        backlog: int,
        on_ready: Callable[[], None],
        owner: object,
    ) -> None:
        self.address = address
        self.owner = owner
        self._stack = stack
        self._backlog = backlog
        self._on_ready = on_ready
        self._embryos: dict[Socket, None] = {}
        self._ready: deque[Socket] = deque()

    def syn(self, segment: Segment) -> None:
        """Answer a client's SYN; ignore it if the backlog is full, since the client tries again."""
        if len(self._embryos) + len(self._ready) > self._backlog:
            return
        socket = self._stack.socket(segment.target, segment.source, self.owner, self)
        self._embryos[socket] = None
        socket.open(segment)

    def established(self, socket: Socket) -> None:
        """Queue a connection whose handshake is complete."""
        del self._embryos[socket]
        self._ready.append(socket)
        self._on_ready()

    def lost(self, socket: Socket) -> None:
        """Forget a connection that ended before it was accepted."""
        self._embryos.pop(socket, None)
        if socket in self._ready:
            self._ready.remove(socket)

    def accept(self) -> Socket | None:
        """Return the connection that has waited longest, or ``None``."""
        if not self._ready:
            return None
        socket = self._ready.popleft()
        socket.listener = None
        return socket

    def close(self) -> None:
        """Stop listening, and reset the connections that were not accepted."""
        self._stack.stop_listening(self)
        for socket in [*self._embryos, *self._ready]:
            socket.listener = None
            socket.abort()
        self._embryos.clear()
        self._ready.clear()


class Stack:
    """TCP on one host. Connections may outlive the processes that made them, as on Linux."""

    def __init__(
        self, name: str, ip: str, network: Network, options: TcpOptions, rng: random.Random
    ) -> None:
        self.name = name
        self.ip = ip
        self.is_on = True
        self.options = options
        self.rng = rng
        self.network = network
        self.timeline = network.timeline
        self._sockets: dict[tuple[Address, Address], Socket] = {}
        self._listeners: dict[Address, Listener] = {}
        self._next_port = 0
        network.add(self)

    # For processes.

    def listen(
        self, host: str | None, port: int, backlog: int, on_ready: Callable[[], None], owner: object
    ) -> Listener:
        """Listen; ``port`` 0 selects a free one.

        Raises:
            OSError: the port is taken, or the address belongs to another host.
        """
        ip = self.local_ip(host)
        if not port:
            port = self._free_port(lambda port: not self._is_taken(ip, port))
        elif self._is_taken(ip, port):
            raise OSError(errno.EADDRINUSE, f"{os.strerror(errno.EADDRINUSE)}: {ip}:{port}")
        address = Address(ip, port)
        listener = self._listeners[address] = Listener(self, address, backlog, on_ready, owner)
        return listener

    def local_ip(self, host: str | None) -> str:
        """The address to listen on; "" stands for all.

        Raises:
            OSError: it belongs to another host.
        """
        if host is None or host in ("", "0.0.0.0", "::"):
            return ""
        ip = self.network.resolve(host)
        if ip not in (self.ip, LOOPBACK):
            raise OSError(errno.EADDRNOTAVAIL, f"{os.strerror(errno.EADDRNOTAVAIL)}: {host}")
        return ip

    def connect(self, remote: Address, owner: object) -> Socket:
        """Begin to connect; the socket's ``on_connected`` reports the outcome."""
        ip = LOOPBACK if remote.ip == LOOPBACK else self.ip
        port = self._free_port(lambda port: (Address(ip, port), remote) not in self._sockets)
        socket = self.socket(Address(ip, port), remote, owner)
        socket.open()
        return socket

    def close_all(self, owner: object) -> None:
        """Close the listeners and connections of a process that has ended."""
        for listener in [each for each in self._listeners.values() if each.owner is owner]:
            listener.close()
        for socket in [each for each in self._sockets.values() if each.owner is owner]:
            socket.close()

    def power_off(self) -> None:
        """Discard everything without notifying any peer."""
        self.is_on = False
        self._listeners.clear()
        for socket in list(self._sockets.values()):
            socket.vanish()

    def towards(self, ip: str) -> list[Socket]:
        """The local ends of open connections with an address."""
        return [each for each in self._sockets.values() if each.remote.ip == ip and each.is_open]

    # For the network.

    def arrive(self, segment: Segment) -> None:
        """Process a segment that has arrived at this host."""
        socket = self._sockets.get((segment.target, segment.source))
        if socket is not None:
            socket.arrive(segment)
            return
        if segment.flags & SYN and segment.ack < 0:
            target = segment.target
            listener = self._listeners.get(target) or self._listeners.get(Address("", target.port))
            if listener is not None:
                listener.syn(segment)
                return
        if not segment.flags & RST:
            self.refuse(segment)

    def refuse(self, segment: Segment) -> None:
        """Answer a segment of an unknown connection with a RST."""
        self.network.route(self, segment.source.ip).carry(rst(segment), 0.0)

    # For sockets and listeners.

    def socket(
        self, local: Address, remote: Address, owner: object, listener: Listener | None = None
    ) -> Socket:
        """Create one end of a connection."""
        link = self.network.route(self, remote.ip)
        socket = Socket(self, link, local, remote, owner=owner, listener=listener)
        self._sockets[local, remote] = socket
        return socket

    def forget(self, socket: Socket) -> None:
        """Remove a socket that is gone."""
        self._sockets.pop((socket.local, socket.remote), None)

    def stop_listening(self, listener: Listener) -> None:
        """Remove a listener and free its port.

        The listener of a process that lost power is closed with its coroutines, possibly much
        later: another process may listen on that port by then.
        """
        if self._listeners.get(listener.address) is listener:
            del self._listeners[listener.address]

    def _is_taken(self, ip: str, port: int) -> bool:
        return any(
            other.port == port and (not ip or not other.ip or ip == other.ip)
            for other in self._listeners
        )

    def _free_port(self, is_free: Callable[[int], bool]) -> int:
        for _ in _PORTS:
            port = _PORTS[self._next_port % len(_PORTS)]
            self._next_port += 1
            if is_free(port):
                return port
        raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
