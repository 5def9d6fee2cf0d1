"""The connections on which servers exchange votes: one for each pair of servers.

The server with the higher id opens the connection of a pair. A server with a lower id that has
something to say connects as well, gives its id, and is called back. Only the latest notification to
a server matters, so at most one waits for a connection. This is ZooKeeper's ``QuorumCnxManager``.
"""

import asyncio
import logging
import struct
from collections.abc import Callable

from broker_impl.errors import WireError
from broker_impl.zookeeper.quorum import notifications
from broker_impl.zookeeper.quorum.ensemble import Ensemble, Member, ServerId
from broker_impl.zookeeper.quorum.notifications import Notification

log = logging.getLogger(__name__)

CONNECT_S_MAX = 5.0
"""How long a connection may take to be established (``zookeeper.cnxTimeout``)."""
GREETING_S_MAX = 5.0
"""How long an accepted connection may take to say who it comes from."""
_LENGTH = struct.Struct(">i")


class ElectionLinks:
    """Sends notifications to the other members, and hands over those that arrive."""

    def __init__(
        self, me: ServerId, ensemble: Ensemble, on_notification: Callable[[Notification], None]
    ) -> None:
        self.me = me
        self._ensemble = ensemble
        self._on_notification = on_notification
        self._loop = asyncio.get_running_loop()
        self._links: dict[ServerId, _Link] = {}
        self._latest: dict[ServerId, bytes] = {}
        """The latest notification to each server; it may have been lost with a connection."""
        self._connecting: dict[ServerId, asyncio.Task[None]] = {}
        self._unknown: set[_Link] = set()
        self._listener: asyncio.Server | None = None
        self._is_closed = False

    async def start(self, host: str, port: int, *, reuse_port: bool = False) -> None:
        """Listen at the election port."""
        self._listener = await self._loop.create_server(
            lambda: _Link(self), host, port, reuse_port=reuse_port or None
        )

    async def stop(self) -> None:
        """Close all connections."""
        self._is_closed = True
        for task in self._connecting.values():
            task.cancel()
        await asyncio.gather(*self._connecting.values(), return_exceptions=True)
        for link in [*self._links.values(), *self._unknown]:
            link.abort()
        if self._listener is not None:
            self._listener.close()
            await self._listener.wait_closed()

    def send(self, receiver: ServerId, notification: Notification) -> None:
        """Send a notification now, or once there is a connection to the server."""
        data = notifications.encode(notification, self._ensemble.configuration())
        self._latest[receiver] = data
        link = self._links.get(receiver)
        if link is not None:
            link.send(data)
        else:
            self._connect(receiver)

    def connect_all(self) -> None:
        """Connect to all members to which there is no connection."""
        for server in self._ensemble.members:
            if server != self.me and server not in self._links:
                self._connect(server)

    # For the connections

    def greeted(self, link: "_Link", sender: ServerId) -> None:
        """A connection was accepted, and has said who opened it."""
        self._unknown.discard(link)
        if sender not in self._ensemble.members or sender == self.me:
            log.warning("a server with the id %d, which is no other member, has connected", sender)
            link.abort()
        elif sender < self.me:
            # It has something to say, but this server opens the connections of this pair. An older
            # connection may be dead without notice (ZOOKEEPER-900).
            link.abort()
            if (old := self._links.pop(sender, None)) is not None:
                old.abort()
            self._connect(sender)
        else:
            self._adopt(link, sender)

    def waits_for_greeting(self, link: "_Link") -> None:
        """A connection was accepted."""
        self._unknown.add(link)

    def received(self, sender: ServerId, body: bytes) -> None:
        """A notification has arrived, without its length; raises WireError."""
        self._on_notification(notifications.decode(body, sender))

    def lost(self, link: "_Link") -> None:
        """A connection has ended."""
        self._unknown.discard(link)
        if self._links.get(link.peer) is link:
            del self._links[link.peer]

    def _adopt(self, link: "_Link", peer: ServerId) -> None:
        old = self._links.get(peer)
        link.peer = peer
        self._links[peer] = link
        if old is not None:
            old.abort()
        if (latest := self._latest.get(peer)) is not None:
            link.send(latest)

    def _connect(self, peer: ServerId) -> None:
        if peer in self._connecting or self._is_closed:
            return
        task = self._loop.create_task(self._open(self._ensemble.members[peer]))
        self._connecting[peer] = task
        task.add_done_callback(lambda _: self._connecting.pop(peer, None))

    async def _open(self, peer: Member) -> None:
        mine = self._ensemble.members[self.me]
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                _, link = await self._loop.create_connection(
                    lambda: _Link(self, peer.id), peer.host, peer.election_port
                )
        except (OSError, TimeoutError) as error:
            log.info("server %d cannot be reached: %s", peer.id, error)
            return
        link.send(notifications.encode_greeting(self.me, f"{mine.host}:{mine.election_port}"))
        if peer.id > self.me:
            link.close()  # the other server calls back
        else:
            self._adopt(link, peer.id)


class _Link(asyncio.Protocol):
    """One connection; ``peer`` is 0 until it is known."""

    def __init__(self, links: ElectionLinks, peer: ServerId = 0) -> None:
        self.peer = peer
        self._links = links
        self._is_greeted = peer != 0
        self._buffer = bytearray()
        self._behind = False
        self._waiting: bytes | None = None
        self._transport: asyncio.Transport
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "a stream"
        self._transport = transport
        if not self._is_greeted:
            self._links.waits_for_greeting(self)
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(GREETING_S_MAX, self.abort)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            if not self._is_greeted and not self._greeting():
                return
            while (body := self._body()) is not None:
                self._links.received(self.peer, body)
        except WireError as error:
            log.warning("the election port, server %d: %s", self.peer, error)
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._links.lost(self)

    def pause_writing(self) -> None:
        self._behind = True

    def resume_writing(self) -> None:
        self._behind = False
        if self._waiting is not None:
            data, self._waiting = self._waiting, None
            self.send(data)

    def send(self, data: bytes) -> None:
        """Send, or replace what waits until the other side has read earlier data."""
        if self._behind:
            self._waiting = data
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection once everything is sent."""
        self._transport.close()

    def abort(self) -> None:
        """Close the connection now."""
        self._stop_waiting()
        self._transport.abort()

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def _greeting(self) -> bool:
        """Read the greeting; False until it has arrived, or if the connection was not kept."""
        greeting = notifications.decode_greeting(bytes(self._buffer))
        if greeting is None:
            return False
        del self._buffer[: greeting.size]
        self._is_greeted = True
        self._stop_waiting()
        self._links.greeted(self, greeting.sender)
        return self.peer != 0

    def _body(self) -> bytes | None:
        """Remove and return the next notification; None until all of its bytes have arrived."""
        if len(self._buffer) < _LENGTH.size:
            return None
        (size,) = _LENGTH.unpack_from(self._buffer)
        if not 0 < size <= notifications.BYTES_MAX:
            raise WireError(f"a notification announces {size} bytes")
        end = _LENGTH.size + size
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_LENGTH.size : end])
        del self._buffer[:end]
        return body
