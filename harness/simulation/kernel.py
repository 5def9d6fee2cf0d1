"""What a socket asks of the kernel that it belongs to: of its host's TCP, and of a listener."""

import random
from typing import Protocol, TypeVar

from harness.simulation.segment import TcpOptions
from harness.simulation.timeline import Timeline

_Socket = TypeVar("_Socket", contravariant=True)


class SocketStack(Protocol[_Socket]):
    """The TCP of the socket's host."""

    options: TcpOptions
    timeline: Timeline
    rng: random.Random

    def forget(self, socket: _Socket) -> None:
        """Remove a socket that is gone."""


class SocketListener(Protocol[_Socket]):
    """The listener that holds the socket of a server until the process accepts it."""

    def established(self, socket: _Socket) -> None:
        """Queue a connection whose handshake is complete."""

    def lost(self, socket: _Socket) -> None:
        """Forget a connection that ended before it was accepted."""
