"""One TCP connection of a client: xids, replies in order, pings, and a deadline for silence.

A connection carries the session from its handshake to its end; requests that are unanswered at its
end raise ``ConnectionLoss``, because the server may have executed them.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from broker_impl.errors import WireError
from broker_impl.zookeeper.digest_md5 import ClientExchange, Login
from broker_impl.zookeeper.errors import (
    Code,
    ConnectionLoss,
    error_for,
)
from broker_impl.zookeeper.jute import FrameReader, Reader, Record, frame
from broker_impl.zookeeper.records import (
    XID_EVENT,
    XID_PING,
    XID_SET_WATCHES,
    ConnectRequest,
    ConnectResponse,
    Op,
    ReplyHeader,
    RequestHeader,
    SaslToken,
    SetWatches,
    SetWatches2,
    WatcherEvent,
)

log = logging.getLogger(__name__)

REPLY_BYTES_MAX = 64 * 1024 * 1024
"""More than any server sends: a list of children is not limited by ``jute.maxbuffer``."""
XID_MAX = 2**31 - 1
_OF_NO_SESSION = (Code.SESSION_EXPIRED, Code.SESSION_MOVED, Code.AUTH_FAILED)
"""Errors that show that a request has not prolonged the session."""


class Owner(Protocol):
    """The client of a session, as its connections see it."""

    session_id: int
    last_zxid: int
    """The latest zxid that the client has seen; its connection advances it with each reply."""
    reply_zxid: int
    """The zxid of the latest reply."""
    watched_zxid: int
    """The zxid up to which all events of its watches have arrived."""

    def answered(self, sent: float) -> None:
        """Handle the answer to a request or a ping that was sent at this time."""
        ...

    def lose(self, connection: "Connection") -> None:
        """Handle the end of the connection."""
        ...

    def notified(self, event: WatcherEvent, zxid: int) -> None:
        """Handle a watch event of a transaction."""
        ...


class _Pending(NamedTuple):
    xid: int
    sent: float
    reply: asyncio.Future[Reader]
    on_reply: Callable[[int], None] | None


class Connection(asyncio.Protocol):
    """One TCP connection: xids, replies in order, pings, and the deadline for a silent server."""

    def __init__(self, client: Owner) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[None] = self._loop.create_future()
        """Done when the connection has ended, on either side."""
        self._transport: asyncio.Transport | None = None
        self._frames = FrameReader(REPLY_BYTES_MAX)
        self._handshake: asyncio.Future[ConnectResponse] = self._loop.create_future()
        self._pending: deque[_Pending] = deque()
        self._pings: deque[float] = deque()
        """When the pings were sent that are not yet answered."""
        self._xid = 0
        self._is_begun = False
        self._read_timeout_s = 0.0
        self._heard = 0.0
        self._spoke = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def shake_hands(self, request: ConnectRequest) -> ConnectResponse:
        """Request the session.

        Raises:
            ConnectionLoss: the server closed the connection instead of answering.
        """
        self._send(request)
        return await self._handshake

    def begin(self, session_timeout_s: float, watches: Iterator[SetWatches | SetWatches2]) -> None:
        """Start the session's traffic on this connection: set its watches again, and send pings."""
        self._is_begun = True
        self._read_timeout_s = session_timeout_s * 2 / 3
        for request in watches:
            op = Op.SET_WATCHES2 if isinstance(request, SetWatches2) else Op.SET_WATCHES
            self._send(RequestHeader(XID_SET_WATCHES, op), request)
        self._heard = self._loop.time()
        self._keep_alive()

    async def request(
        self, op: Op, request: Record, on_reply: Callable[[int], None] | None
    ) -> Reader:
        """Send a request and wait for its reply's body; ``on_reply`` gets the code at once."""
        assert not self.lost.done(), "the client must not use a lost connection"
        self._xid = self._xid % XID_MAX + 1
        reply: asyncio.Future[Reader] = self._loop.create_future()
        self._pending.append(_Pending(self._xid, self._loop.time(), reply, on_reply))
        self._send(RequestHeader(self._xid, op), request)
        return await reply

    async def log_in(self, login: Login, cnonce: str) -> None:
        """Authenticate by SASL; both sides prove that they know the password.

        Raises:
            AuthFailed: the server has refused the login, or has not proved that it knows it.
        """
        exchange = ClientExchange(login, cnonce)
        challenge = await self._token(b"")
        exchange.check(await self._token(exchange.response(challenge)))

    async def _token(self, token: bytes) -> bytes:
        reply = await self.request(Op.SASL, SaslToken(token), None)
        return SaslToken.read(reply).token or b""

    def drop(self) -> None:
        """Close the connection now; the outcome of unanswered requests is unknown."""
        if self._transport is not None:
            self._transport.abort()
        self._end()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The TCP connection is established."""
        assert isinstance(transport, asyncio.Transport), "a stream"
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Handle bytes from the server."""
        self._heard = self._loop.time()
        self._frames.receive(data)
        try:
            for packet in self._frames.frames():
                self._take(Reader(packet))
        except WireError as error:
            log.warning("session %#x: %s", self._client.session_id, error)
            self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """The TCP connection has ended."""
        self._end()

    def _end(self) -> None:
        if self.lost.done():
            return
        self.lost.set_result(None)
        self._client.lose(self)
        if self._timer is not None:
            self._timer.cancel()
        if not self._handshake.done():
            self._handshake.set_exception(ConnectionLoss("the server closed the connection"))
            self._handshake.exception()  # marked as retrieved: no task may wait for it any more
        pending, self._pending = self._pending, deque()
        for each in pending:
            if not each.reply.done():
                each.reply.set_exception(ConnectionLoss("the connection was lost"))

    def _send(self, *parts: Record) -> None:
        self._spoke = self._loop.time()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame(*parts))

    def _take(self, packet: Reader) -> None:
        if not self._handshake.done():
            self._handshake.set_result(ConnectResponse.read(packet))
            return
        if self._handshake.cancelled():
            return  # the handshake was given up: this packet is its answer, not a reply
        header = ReplyHeader.read(packet)
        client = self._client
        client.last_zxid = max(client.last_zxid, header.zxid)
        if header.xid == XID_EVENT:
            client.notified(WatcherEvent.read(packet), header.zxid)
        elif header.xid == XID_PING:
            if self._pings:
                client.answered(self._pings.popleft())
        elif header.xid != XID_SET_WATCHES:
            self._reply(header, packet)

    def _reply(self, header: ReplyHeader, body: Reader) -> None:
        if not self._pending or self._pending[0].xid != header.xid:
            raise WireError(f"the reply {header.xid} is out of order")
        _, sent, reply, on_reply = self._pending.popleft()
        client = self._client
        client.reply_zxid = header.zxid
        if self._is_begun:
            # The server has sent all events up to this zxid before, as a reply follows those of
            # SetWatches. A reply to a login does not, and an event may be one of several.
            client.watched_zxid = max(client.watched_zxid, header.zxid)
        if header.error not in _OF_NO_SESSION:
            client.answered(sent)
        if on_reply is not None:
            on_reply(header.error)
        if reply.done():
            return  # the caller was cancelled
        if header.error:
            reply.set_exception(error_for(header.error))
        else:
            reply.set_result(body)

    def _keep_alive(self) -> None:
        """Ping if half a read timeout has passed since the last send; drop a silent connection.

        The server counts as silent if nothing was received for a read timeout.
        """
        now = self._loop.time()
        if now >= self._heard + self._read_timeout_s:
            log.info("session %#x: the server does not respond", self._client.session_id)
            self.drop()
            return
        if now >= self._spoke + self._read_timeout_s / 2:
            self._pings.append(now)
            self._send(RequestHeader(XID_PING, Op.PING))
        due = min(self._heard + self._read_timeout_s, self._spoke + self._read_timeout_s / 2)
        self._timer = self._loop.call_at(due, self._keep_alive)
