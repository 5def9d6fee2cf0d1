"""A leader's connection to one learner: packets both ways, and the state in slices.

Packets are written at the end of a turn of the event loop, many at once, or earlier by ``flush``.
While the state is being sent, what the leader sends waits behind it, so that a learner gets every
transaction that is committed meanwhile, and the leader goes on with its work between two slices.
"""

import asyncio
import logging
from typing import Protocol

from broker_impl.errors import WireError
from broker_impl.zookeeper.quorum import packets
from broker_impl.zookeeper.quorum.packets import Packet, PacketReader, Type
from broker_impl.zookeeper.state_stream import StateWriter
from broker_impl.zookeeper.tree import Database

log = logging.getLogger(__name__)

NODES_PER_SLICE = 500
"""The number of nodes that are visited at once, which takes about a millisecond."""


class Owner(Protocol):
    """The server that leads, as a connection sees it."""

    def connected(self, link: "LearnerLink") -> None:
        """Handle a learner that has connected."""

    def arrived(self, key: int, packet: Packet) -> None:
        """Handle a packet of a learner."""

    def state_sent(self, key: int) -> None:
        """Go on with a learner: the state and everything behind it are sent."""

    def left(self, key: int) -> None:
        """Handle the end of a connection."""


class LearnerLink(asyncio.Protocol):
    """The connection of one learner."""

    def __init__(self, owner: Owner, key: int) -> None:
        self.key = key
        self._owner = owner
        self._reader = PacketReader()
        self._transport: asyncio.Transport
        self._state: StateWriter | None = None
        self._out = bytearray()
        """What is written at the end of this turn."""
        self._is_scheduled = False
        self._waiting = bytearray()
        """What follows the state."""
        self._is_behind = False
        self._is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A learner has connected."""
        assert isinstance(transport, asyncio.Transport), "a stream"
        self._transport = transport
        self._is_open = True
        self._owner.connected(self)

    def data_received(self, data: bytes) -> None:
        """Handle packets of the learner; malformed ones end the connection."""
        self._reader.receive(data)
        try:
            while (packet := self._reader.next()) is not None:
                self._owner.arrived(self.key, self._reader.last_of(packet))
        except WireError as error:
            log.warning("a learner: %s", error)
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._is_open = False
        self._owner.left(self.key)

    def pause_writing(self) -> None:
        """Write no more of the state until the learner has read what was sent."""
        self._is_behind = True

    def resume_writing(self) -> None:
        """Go on with the state."""
        self._is_behind = False
        if self._state is not None:
            self._write_later()

    def send(self, data: bytes) -> None:
        """Send encoded packets, behind the state if that is not sent yet."""
        if self._state is not None:
            self._waiting += data
            return
        self._out += data
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._end_turn)

    def flush(self) -> None:
        """Write now what was sent in this turn."""
        if self._out and self._is_open:
            self._transport.write(bytes(self._out))
        self._out.clear()

    def send_state(self, database: Database) -> None:
        """Send SNAP with the state, as it is at this moment or later; see ``StateWriter``."""
        assert self._state is None, "one state at a time"
        self._state = StateWriter(database)
        self.flush()
        self._transport.write(packets.short(Type.SNAP, self._state.zxid))
        self._write_later()

    def abort(self) -> None:
        """Close the connection now."""
        self._is_open = False
        self._transport.abort()

    def _end_turn(self) -> None:
        self._is_scheduled = False
        self.flush()

    def _write_later(self) -> None:
        asyncio.get_running_loop().call_soon(self._write_slice)

    def _write_slice(self) -> None:
        state = self._state
        if state is None or not self._is_open or self._is_behind:
            return
        if data := state.slice(NODES_PER_SLICE):
            self._transport.write(data)
        if not state.is_complete:
            if not self._is_behind:
                self._write_later()
            return
        self._state = None
        waiting, self._waiting = self._waiting, bytearray()
        self._transport.write(packets.SNAPSHOT_END + bytes(waiting))
        self._owner.state_sent(self.key)
