"""Taps: somebody in between who sees what a connection carries, and may hold it back or kill it.

A tap is asked about each run of bytes at the moment when it has arrived, in order, once. What it
holds is acknowledged to the sender, as a proxy would do; what comes behind on the same connection,
in the same direction, waits behind it. Taps are called outside every process: they must neither
await nor ask for the running loop.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from harness.simulation.segment import Address

if TYPE_CHECKING:
    from harness.simulation.tcp import Socket


class Connection(NamedTuple):
    """Which connection: its two ends."""

    client: Address
    server: Address


class Run:
    """Bytes that are about to be handed over; none at the end of the stream, or of the connection.

    Where a run ends says nothing about messages: it may hold several, or a part of one.
    """

    __slots__ = ("_socket", "data")

    def __init__(self, socket: "Socket", data: bytes) -> None:
        self._socket = socket
        self.data = data

    @property
    def connection(self) -> Connection:
        """Equal for all runs of a connection, in both directions."""
        ends = (self._socket.remote, self._socket.local)
        return Connection(*ends) if self.to_server else Connection(*reversed(ends))

    @property
    def source(self) -> str:
        """The name of the host that sent it."""
        return self._socket.link.target.name

    @property
    def target(self) -> str:
        """The name of the host at which it has arrived."""
        return self._socket.link.source.name

    @property
    def to_server(self) -> bool:
        """Does it go to the end that was connected to?"""
        return self._socket.is_server

    def release(self) -> None:
        """Let go what was held of this connection in this direction; harmless if nothing is."""
        self._socket.release()


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hand it over, or other bytes in its place; taps behind this one see what is handed over."""

    instead: bytes | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Keep it, and all that follows, until ``run.release()``; the first ``after`` bytes may go."""

    after: int = 0


@dataclass(frozen=True, slots=True)
class Kill:
    """Lose it, and reset the connection at both ends."""


Verdict: TypeAlias = Deliver | Hold | Kill
Tap: TypeAlias = Callable[[Run], Verdict]
