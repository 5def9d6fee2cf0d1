"""The server's sockets: bytes to the pipeline and back, timers, and limits on connections."""

import asyncio
import logging
from collections.abc import Callable, Mapping

import msgspec

from broker_impl.errors import StorageError, WireError
from broker_impl.zookeeper import four_letter_words
from broker_impl.zookeeper.digest_md5 import ServerExchange
from broker_impl.zookeeper.facts import ConnectionFacts, Facts
from broker_impl.zookeeper.figures import Latency, Sizes, Traffic
from broker_impl.zookeeper.jute import FRAME_BYTES_MAX, FrameReader, Reader, Record, frame
from broker_impl.zookeeper.pipeline import Pipeline
from broker_impl.zookeeper.records import (
    REQUESTS,
    ConnectRequest,
    ConnectResponse,
    Id,
    RequestHeader,
)

log = logging.getLogger(__name__)

SESSIONLESS_S_MAX = 10.0
"""A connection that has not requested a session by then is closed."""

REQUESTS_PER_TURN = 100
"""The most requests of one connection in a turn: it limits the memory that a client can use by
sending requests without reading the replies."""

HEADER_BYTES = 8
"""The size of a request's header."""

UNUSED_S = 60.0
"""How often unused containers, and nodes that outlived their time, are looked for
(``znode.container.checkIntervalMs``)."""

LINGER_S = 5.0
"""How long a closed connection may take to send its last bytes."""


class Server:
    """Listens, and runs a turn of the pipeline whenever requests have arrived.

    Without a pipeline it closes each connection: a server serves only while it has a leader.

    Args:
        pipeline: the server's logic; None if it does not serve yet.
        tick_ms: how often sessions are looked at.
        connections_max: connections from one address (``maxClientCnxns``); 0 is no limit.
        frame_bytes_max: ``jute.maxbuffer``.
    """

    def __init__(
        self,
        pipeline: Pipeline | None = None,
        *,
        tick_ms: int | None = None,
        connections_max: int = 60,
        frame_bytes_max: int = FRAME_BYTES_MAX,
    ) -> None:
        if tick_ms is None:
            assert pipeline is not None, "the tick is that of the pipeline, or given"
            tick_ms = pipeline.tracker.tick_ms
        self.pipeline = pipeline
        self.connections: dict[Connection, None] = {}
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the server should stop; holds the StorageError when it must."""
        self.received = 0
        self.sent = 0
        self.rejected = 0
        """How many connections were refused because there were too many from one address."""
        self.sessionless = 0
        """How many connections were closed because they have opened no session."""
        self.bytes_received = 0
        self.responses = Sizes()
        self.wall_ms: Callable[[], int] = lambda: 0
        """The wall clock in milliseconds, for what operators see."""
        self.places: list[tuple[str, str]] = []
        """The settings that operators see before those of this module: ports and folders."""
        self.memberships: list[tuple[str, str]] = []
        """The settings that operators see after those of this module: the ensemble's."""
        self.process_figures: Callable[[], Mapping[str, object]] = dict
        """Returns figures of the process, by their names in ``mntr``."""
        self.server_id = 0
        """The server's number in its ensemble."""
        self.logins: Callable[[], ServerExchange] = lambda: ServerExchange({}, str)
        """Begins the authentication of a connection by SASL; without users all are refused."""
        self.frame_bytes_max = frame_bytes_max
        self._connections_max = connections_max
        self._loop = asyncio.get_running_loop()
        self._listener: asyncio.Server | None = None
        self._tick: asyncio.TimerHandle | None = None
        self.tick_ms = tick_ms
        self._tick_due = 0.0
        self._started = self._loop.time()
        self._unused_due = self._loop.time() + UNUSED_S
        self._scheduled = False
        self._broken = False
        self._unflushed: dict[Connection, None] = {}
        self._throttled: dict[Connection, None] = {}
        """The connections that wait until fewer requests are in the order."""

    @property
    def serving(self) -> Pipeline:
        """The logic of a server that serves clients."""
        assert self.pipeline is not None, "the server does not serve"
        return self.pipeline

    async def start(self, host: str, port: int, *, reuse_port: bool = False) -> int:
        """Listen; return the port."""
        self._listener = await self._loop.create_server(
            lambda: Connection(self), host, port, reuse_port=reuse_port or None
        )
        self._schedule_tick()
        return int(self._listener.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening and close every connection; sessions stay for the next start."""
        if self._tick is not None:
            self._tick.cancel()
        if self._listener is not None:
            self._listener.close()
        for connection in list(self.connections):
            connection.close()
        self._flush()
        if self._listener is not None:
            await self._listener.wait_closed()

    def end(self) -> None:
        """Request a clean stop."""
        if not self.ended.done():
            self.ended.set_result(None)

    def fail(self, error: StorageError) -> None:
        """Stop at once: it is unknown what is stored, so nothing may be answered any more."""
        self._broken = True
        if not self.ended.done():
            self.ended.set_exception(error)
        for connection in list(self.connections):
            connection.abort()

    def serve(self, pipeline: Pipeline) -> None:
        """Serve clients from now on."""
        self.pipeline = pipeline

    def suspend(self) -> None:
        """Close every connection, and serve no client until `serve` is called again."""
        for connection in list(self.connections):
            connection.close()
        self._flush()
        self.pipeline = None

    def admits(self, host: str) -> bool:
        """Is one more connection from this address within the limit?"""
        if not self._connections_max:
            return True
        others = sum(connection.host == host for connection in self.connections)
        return others < self._connections_max

    def schedule(self) -> None:
        """Run a turn of the pipeline once all readable sockets have been read."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def unflushed(self, connection: "Connection") -> None:
        """Note that a connection has data to write, or must be closed."""
        self._unflushed[connection] = None
        self.schedule()

    @property
    def is_full(self) -> bool:
        """Must connections wait until fewer requests are in the order?"""
        return self.pipeline is not None and self.pipeline.is_full

    def throttle(self, connection: "Connection") -> None:
        """Let a connection go on once fewer requests are in the order."""
        self._throttled[connection] = None
        self.schedule()

    def facts(self) -> Facts:
        """What operators can see."""
        settings = [
            *self.places,
            ("tickTime", str(self.tick_ms)),
            ("maxClientCnxns", str(self._connections_max)),
            ("minSessionTimeout", str(2 * self.tick_ms)),
            ("maxSessionTimeout", str(20 * self.tick_ms)),
            ("serverId", str(self.server_id)),
            *self.memberships,
        ]
        counters = {
            "uptime": int((self._loop.time() - self._started) * 1000),
            "connection_rejected": self.rejected,
            "sessionless_connections_expired": self.sessionless,
            "bytes_received_count": self.bytes_received,
            **self.process_figures(),
        }
        return Facts(
            self.pipeline,
            [connection.facts() for connection in self.connections],
            settings,
            self.received,
            self.sent,
            self.responses,
            counters,
            self._reset,
            self._reset_connections,
        )

    def _reset(self) -> None:
        self.received = self.sent = 0
        self.responses = Sizes()
        if self.pipeline is not None:
            self.pipeline.latency = Latency()

    def _reset_connections(self) -> None:
        for connection in self.connections:
            connection.traffic = Traffic()

    def _turn(self) -> None:
        self._scheduled = False
        if self._broken:
            return
        try:
            if self.pipeline is not None and self.pipeline.turn():
                self.schedule()
        except StorageError as error:
            self.fail(error)
            return
        self._flush()

    def _flush(self) -> None:
        connections, self._unflushed = self._unflushed, {}
        for connection in connections:
            connection.flush()
        if self._throttled and not self.is_full:
            throttled, self._throttled = self._throttled, {}
            for connection in throttled:
                connection.go_on()

    def _schedule_tick(self) -> None:
        self._tick_due = self._loop.time() + self.tick_ms / 1000
        self._tick = self._loop.call_at(self._tick_due, self._on_tick)

    def _on_tick(self) -> None:
        if (pipeline := self.pipeline) is not None:
            if self._loop.time() - self._tick_due > self.tick_ms / 1000:
                # The server was paused (a stopped process, a slow disk). Signs of life may be
                # unread, so no session counts as silent: each gets a full timeout, as from a new
                # leader.
                pipeline.tracker.touch_all(self._loop.time())
            pipeline.expire()
            if self._loop.time() >= self._unused_due:
                self._unused_due = self._loop.time() + UNUSED_S
                pipeline.delete_unused()
            self.schedule()
        self._schedule_tick()


class Connection(asyncio.Protocol):
    """One client's connection: framing, handshake and back-pressure."""

    def __init__(self, server: Server) -> None:
        self.session_id = 0
        self.ids: tuple[Id, ...] = ()
        self.login = server.logins()
        self.is_open = False
        self.host = ""
        self._server = server
        self._frames = FrameReader(server.frame_bytes_max)
        self._out = bytearray()
        self._take: Callable[[bytes], None] = self._connect
        self._knows_read_only = False
        self._is_behind = False
        self._is_held = False
        """Does it wait for its session? Its requests are read when it has one."""
        self._has_more = False
        self._is_throttled = False
        self._peer = ""
        self._timeout_ms = 0
        self._established_ms = server.wall_ms()
        self.traffic = Traffic()
        self._transport: asyncio.Transport
        self._deadline: asyncio.TimerHandle

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        assert isinstance(transport, asyncio.Transport), "a stream"
        self._transport = transport
        peer = transport.get_extra_info("peername")
        if peer is None:
            transport.abort()  # gone before its address could be read
            return
        self.host, port = peer[:2]
        self._peer = f"{self.host}:{port}"
        self.ids = (Id("ip", self.host),)
        if not self._server.admits(self.host):
            log.warning("%s: too many connections from this address", self._peer)
            self._server.rejected += 1
            transport.abort()
            return
        self.is_open = True
        self._server.connections[self] = None
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(SESSIONLESS_S_MAX, self._sessionless)

    def data_received(self, data: bytes) -> None:
        """Handle bytes from the client; malformed ones close only this connection."""
        if not self.is_open:
            return
        self._server.bytes_received += len(data)
        self._frames.receive(data)
        if self._take == self._connect and self._word():
            return
        if self._server.pipeline is None:
            self.close()
        elif not (self._is_held or self._is_throttled):
            self._take_some()
        elif self._frames.waiting > self._server.frame_bytes_max:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is lost; its session continues."""
        if self not in self._server.connections:
            return
        del self._server.connections[self]
        self._deadline.cancel()
        self._leave()

    def pause_writing(self) -> None:
        """Stop reading from a client that reads too slowly, until it has caught up."""
        self._is_behind = True
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Read again from a client that has caught up."""
        self._is_behind = False
        if self.is_open and not self._is_throttled:
            self._take_some()

    # pipeline.Client

    def send(self, *parts: Record) -> None:
        """Queue one packet; it is written at the end of this turn."""
        if not self.is_open:
            return
        if isinstance(parts[0], ConnectResponse):
            self._is_held = False
            self._has_more = True
            self._timeout_ms = parts[0].timeout_ms
            if not self._knows_read_only:
                parts = (msgspec.structs.replace(parts[0], read_only=None),)
        packet = frame(*parts)
        self._out += packet
        self.traffic.sent += 1
        self._server.sent += 1
        self._server.responses.add(len(packet))
        self._server.unflushed(self)

    def answered(self, op: int, xid: int, zxid: int, now: float, seconds: float) -> None:
        """Count an answer, for operators."""
        self.traffic.answered(op, xid, zxid, now, seconds)

    def close(self) -> None:
        """Close the connection after the queued packets."""
        if self.is_open:
            self._leave()
            self._server.unflushed(self)

    def _leave(self) -> None:
        self.is_open = False
        if self._server.pipeline is not None:
            self._server.pipeline.disconnected(self)

    # Server

    def flush(self) -> None:
        """Write the queued packets, and close the connection if that is due."""
        if self._out:
            self._transport.write(bytes(self._out))
            self._out.clear()
        if not self.is_open and not self._transport.is_closing():
            self._transport.close()
            asyncio.get_running_loop().call_later(LINGER_S, self._transport.abort)
        if self._has_more and self.is_open and not (self._is_behind or self._is_throttled):
            self._take_some()

    def go_on(self) -> None:
        """Read again: few enough requests are in the order."""
        self._is_throttled = False
        if self.is_open and not self._is_behind:
            self._take_some()

    def abort(self) -> None:
        """Close the connection at once."""
        self._out.clear()
        self._transport.abort()

    def facts(self) -> ConnectionFacts:
        """What operators can see of this connection."""
        pipeline = self._server.pipeline
        return ConnectionFacts(
            self._peer,
            self.session_id,
            self._timeout_ms,
            self._transport.is_reading(),
            0 if pipeline is None else pipeline.unanswered(self),
            self._established_ms,
            self.traffic,
        )

    def _take_some(self) -> None:
        """Handle the packets that have arrived, but not more than one turn allows."""
        taken = 0
        try:
            for packet in self._frames.frames():
                self._take(packet)
                taken += 1
                if not self.is_open or self._is_held or taken == REQUESTS_PER_TURN:
                    break
                if self._server.is_full:
                    self._is_throttled = True
                    break
        except WireError as error:
            log.warning("%s: %s", self._peer, error)
            self.close()
        self._has_more = taken == REQUESTS_PER_TURN
        if self._is_throttled:
            self._transport.pause_reading()
            self._server.throttle(self)
        elif self._has_more:
            self._transport.pause_reading()
            self._server.unflushed(self)
        elif not self._is_behind:
            self._transport.resume_reading()
        self._server.schedule()

    def _word(self) -> bool:
        """Answer a four-letter word, if the first bytes are one."""
        word = self._frames.peek().decode("latin-1")
        if word not in four_letter_words.WORDS:
            return False
        self._count()
        self._out += four_letter_words.reply(word, self._server.facts()).encode()
        self.close()
        return True

    def _connect(self, packet: bytes) -> None:
        request = ConnectRequest.read(Reader(packet))
        self._count()
        self._knows_read_only = request.read_only is not None
        self._take = self._request
        self._is_held = True
        self._deadline.cancel()
        if self._server.pipeline is not None:
            self._server.pipeline.connect(self, request)

    def _request(self, packet: bytes) -> None:
        reader = Reader(packet)
        header = RequestHeader.read(reader)
        self._count()
        known = REQUESTS.get(header.op)
        body = known.read(reader) if known is not None else None
        if self._server.pipeline is not None:
            self._server.pipeline.submit(self, header, body, packet[HEADER_BYTES:])

    def _count(self) -> None:
        self.traffic.received += 1
        self._server.received += 1

    def _sessionless(self) -> None:
        self._server.sessionless += 1
        log.warning("%s: the client opened no session within %g s", self._peer, SESSIONLESS_S_MAX)
        self.close()
