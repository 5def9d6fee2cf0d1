"""Taps: interceptors that see what a connection carries, and may hold it back or kill it.

A tap is called once for each run of bytes when it arrives, in order. Held bytes are acknowledged to
the sender, as a proxy would do; later bytes of the same connection and direction wait behind them.
Taps are called outside every process: they must neither await nor ask for the running loop.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from harness.simulation.segment import Address


class Connection(NamedTuple):
    """A connection, identified by its two ends."""

    client: Address
    server: Address


class NamedHost(Protocol):
    """A host at one end of a link."""

    name: str


class NamedLink(Protocol):
    """The link to the peer's host."""

    @property
    def source(self) -> NamedHost:
        """The host of the end that a run has reached."""

    @property
    def target(self) -> NamedHost:
        """The host of the peer, which sent the run."""


class ReceivingEnd(Protocol):
    """The end of a connection that a run has reached."""

    local: Address
    remote: Address
    is_server: bool

    @property
    def link(self) -> NamedLink:
        """The link to the peer's host."""

    def release(self) -> None:
        """Deliver what is held, if anything."""


class Run:
    """Bytes about to be delivered; empty at the end of the stream, or of the connection.

    The boundaries of a run are unrelated to messages: it may hold several, or a part of one.
    """

    __slots__ = ("_socket", "data")

    def __init__(self, socket: ReceivingEnd, data: bytes) -> None:
        self._socket = socket
        self.data = data

    @property
    def connection(self) -> Connection:
        """The connection; equal for all its runs, in both directions."""
        ends = (self._socket.remote, self._socket.local)
        return Connection(*ends) if self.to_server else Connection(*reversed(ends))

    @property
    def source(self) -> str:
        """The name of the host that sent the run."""
        return self._socket.link.target.name

    @property
    def target(self) -> str:
        """The name of the host at which the run has arrived."""
        return self._socket.link.source.name

    @property
    def to_server(self) -> bool:
        """Return whether the run goes to the end that accepted the connection."""
        return self._socket.is_server

    def release(self) -> None:
        """Deliver what is held of this connection in this direction, if anything."""
        self._socket.release()


@dataclass(frozen=True, slots=True)
class Deliver:
    """Deliver the run, or other bytes in its place; later taps see the bytes that are delivered."""

    instead: bytes | None = None
    """The other bytes; if they are empty, the run is dropped."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold the run, except its first ``after`` bytes, and all that follows until it is released."""

    after: int = 0


@dataclass(frozen=True, slots=True)
class Kill:
    """Drop the run, and reset the connection at both ends."""


Verdict: TypeAlias = Deliver | Hold | Kill
Tap: TypeAlias = Callable[[Run], Verdict]
