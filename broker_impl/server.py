"""Listeners and connections: frames in, answers out in the order of their requests.

A connection runs the handlers of the table in ``broker_impl.api``. A handler's plain answer is
written at once; a future (a parked Produce or Fetch) keeps its place in the line while later
requests are already handled; a coroutine holds up the requests behind it, so that the orders of a
controller take effect one after the other. Whatever is wrong with the bytes of one connection ends
that connection and nothing else.
"""

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from broker_impl.api.registry import Api, CloseConnection, RequestContext
from broker_impl.api.services import Services
from broker_impl.api.table import APIS
from broker_impl.api.versions import API_VERSIONS, advertise
from broker_impl.config import BrokerConfig, Endpoint
from broker_impl.errors import ErrorCode, StorageError, WireError
from broker_impl.wire.framing import (
    FrameReader,
    RequestHeader,
    decode_request_header,
    encode_response,
)
from broker_impl.wire.messages import request_module, response_module

LOG = logging.getLogger(__name__)

_JOIN_BELOW = 64 * 1024
"""Answers smaller than this are joined into one write; larger parts are written as they are."""
_SCRATCH_BYTES = 256 * 1024
_WRITE_HIGH_WATER = 1024 * 1024
"""Bytes that a slow reader may leave unread before its requests wait."""


@dataclass(eq=False, slots=True)
class _Request:
    """A request whose answer has its place in the line."""

    header: RequestHeader
    version: int
    size: int
    answer: Any = None
    is_answered: bool = False
    is_silent: bool = False
    """No answer is due (Produce with acks=0)."""


class Server:
    """All listeners of a broker, and the bounds they share."""

    def __init__(
        self, services: Services, config: BrokerConfig, on_fatal: Callable[[BaseException], None]
    ) -> None:
        self.services = services
        self.config = config
        self.bytes_under_way = 0
        self.scratch = bytearray(_SCRATCH_BYTES)
        """Where bytes of all connections land before it is known what they are."""
        self.inter_broker_listener = config.inter_broker_listener()
        self._on_fatal = on_fatal
        self._servers: list[asyncio.Server] = []
        self._connections: dict[Connection, None] = {}
        self._per_address: dict[str, int] = {}
        self._starved: dict[Connection, None] = {}
        self._gate = False
        self._reaper: asyncio.TimerHandle | None = None

    async def listen(self, endpoint: Endpoint, *, reuse_port: bool = False) -> Endpoint:
        """Listen; the answer names the port that was taken when 0 was asked for."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Connection(self, endpoint.name),
            endpoint.host or None,
            endpoint.port,
            reuse_port=reuse_port or None,
            backlog=512,
        )
        self._servers.append(server)
        if self._reaper is None:
            self._reap_idle()
        return endpoint._replace(port=server.sockets[0].getsockname()[1])

    def open_to_clients(self) -> None:
        """Serve the clients' listeners too: this broker has learnt what the cluster looks like.

        A client that asked before would be told of a cluster without brokers or topics.
        """
        if not self._gate:
            self._gate = True
            for connection in tuple(self._connections):
                connection.advance()

    def serves(self, listener: str) -> bool:
        """Are requests on this listener handled yet?"""
        return self._gate or listener == self.inter_broker_listener

    async def close(self) -> None:
        """Stop listening and end every connection."""
        if self._reaper is not None:
            self._reaper.cancel()
        for server in self._servers:
            server.close()
        for connection in tuple(self._connections):
            connection.close()
        await asyncio.sleep(0)  # the transports let go of their sockets in the next turn

    # What connections tell.

    def admit(self, connection: "Connection") -> str | None:
        """Take a new connection in, or say why not."""
        if len(self._connections) >= self.config.max_connections:
            return f"max.connections={self.config.max_connections} are open"
        here = self._per_address.get(connection.address, 0)
        if here >= self.config.max_connections_per_ip:
            return f"max.connections.per.ip={self.config.max_connections_per_ip} are open"
        self._per_address[connection.address] = here + 1
        self._connections[connection] = None
        return None

    def dismiss(self, connection: "Connection") -> None:
        """A connection that was admitted is gone."""
        del self._connections[connection]
        self._starved.pop(connection, None)
        self._per_address[connection.address] -= 1
        if not self._per_address[connection.address]:
            del self._per_address[connection.address]

    def has_room(self, connection: "Connection") -> bool:
        """May this connection start another request? If not it is told when it may."""
        bound = self.config.queued_max_request_bytes
        if bound < 0 or self.bytes_under_way < bound:
            return True
        self._starved[connection] = None
        return False

    def finished(self, size: int) -> None:
        """A request of this many bytes is answered."""
        self.bytes_under_way -= size
        bound = self.config.queued_max_request_bytes
        while self._starved and self.bytes_under_way < bound:
            connection = next(iter(self._starved))
            del self._starved[connection]
            connection.advance()

    def fatal(self, error: BaseException) -> None:
        """The broker cannot go on: a storage failure or a broken invariant."""
        self._on_fatal(error)

    def _reap_idle(self) -> None:
        loop = asyncio.get_running_loop()
        limit = self.config.connections_max_idle_ms / 1000
        for connection in tuple(self._connections):
            if connection.idle_since is not None and loop.time() - connection.idle_since >= limit:
                LOG.info("%s idle for %g s, closed", connection.name, limit)
                connection.close()
        self._reaper = loop.call_later(max(limit / 4, 0.01), self._reap_idle)


class Connection(asyncio.BufferedProtocol):
    """One client's connection."""

    def __init__(self, server: Server, listener: str) -> None:
        self.address = "?"
        self.name = "?"
        self.idle_since: float | None = None
        """When the last request was answered; None while one is under way."""
        self._server = server
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader(server.config.socket_request_max_bytes, server.scratch)
        self._transport: asyncio.Transport | None = None
        self._frames: deque[memoryview] = deque()
        self._line: deque[_Request] = deque()
        self._task: asyncio.Task[None] | None = None
        self._admitted = False
        self._write_blocked = False
        self._read_paused = False

    # The transport's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername") or ("?", 0)
        self.address, self.name = peer[0], f"{self._listener} {peer[0]}:{peer[1]}"
        refusal = self._server.admit(self)
        if refusal:
            LOG.warning("%s refused: %s", self.name, refusal)
            transport.abort()
            return
        self._admitted = True
        self.idle_since = self._loop.time()
        transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer()

    def buffer_updated(self, count: int) -> None:
        self._reader.buffer_updated(count)
        try:
            self._frames.extend(self._reader.frames())
        except WireError as error:
            self._fail(str(error))
            return
        if self._frames:
            self.advance()

    def pause_writing(self) -> None:
        self._write_blocked = True

    def resume_writing(self) -> None:
        self._write_blocked = False
        self.advance()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._frames.clear()
        if self._task is not None:
            self._task.cancel()
        line, self._line = self._line, deque()
        for request in line:
            if isinstance(request.answer, asyncio.Future):
                request.answer.cancel()
            self._server.finished(request.size)
        if self._admitted:
            self._server.dismiss(self)

    # Requests.

    def advance(self) -> None:
        """Handle what has come in, as far as the bounds allow."""
        while self._frames and self._may_handle():
            self._handle(self._frames.popleft())
        self._throttle()

    def _may_handle(self) -> bool:
        return (
            self._transport is not None
            and self._task is None
            and not self._write_blocked
            and len(self._line) < self._server.config.queued_max_requests
            and self._server.serves(self._listener)
            and self._server.has_room(self)
        )

    def _throttle(self) -> None:
        """Read on only while nothing waits to be handled."""
        if self._transport is None or self._transport.is_closing():
            return
        if bool(self._frames) != self._read_paused:
            self._read_paused = bool(self._frames)
            if self._read_paused:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _handle(self, frame: memoryview) -> None:
        request: _Request | None = None
        try:
            header, body = decode_request_header(frame)
            row = self._row(header)
            request = _Request(header, header.api_version, len(frame))
            self._line.append(request)
            self._server.bytes_under_way += request.size
            self.idle_since = None
            self._answer(request, self._call(row, request, body))
        except WireError as error:
            self._fail(str(error))
        except CloseConnection as error:
            self._fail(str(error))
        except (StorageError, AssertionError) as error:
            self._server.fatal(error)
        except Exception as error:  # the edge of a connection: others go on
            LOG.exception("%s: a handler failed", self.name, exc_info=error)
            self._fail("a handler failed")

    def _row(self, header: RequestHeader) -> Api:
        row = APIS.get(header.api_key)
        private = self._listener == self._server.inter_broker_listener
        if row is None or (row.between_brokers and not private):
            raise WireError(f"API {header.api_key} is not served here")
        if header.api_version not in row.served and row.key != API_VERSIONS:
            raise WireError(f"API {header.api_key} v{header.api_version} is not served")
        return row

    def _call(self, row: Api, request: _Request, body: memoryview) -> Any:
        context = RequestContext(
            self._server.services,
            self._listener,
            request.header.client_id,
            self.address,
            request.version,
        )
        if request.version not in row.served:  # ApiVersions only: KIP-511
            request.version = 0
            return advertise(context, ErrorCode.UNSUPPORTED_VERSION)
        return row.handle(context, request_module(row.key).decode(body, request.version))

    def _answer(self, request: _Request, answer: Any) -> None:
        if inspect.iscoroutine(answer):
            self._task = self._loop.create_task(self._finish(request, answer))
        elif isinstance(answer, asyncio.Future):
            request.answer = answer
            answer.add_done_callback(lambda done: self._parked_done(request, done))
        else:
            self._settle(request, answer)

    async def _finish(self, request: _Request, coroutine: Any) -> None:
        """Run a slow handler; the requests behind it wait."""
        try:
            answer = await coroutine
        except CloseConnection as error:
            self._fail(str(error))
            return
        except (StorageError, AssertionError) as error:
            self._server.fatal(error)
            return
        except Exception as error:  # the edge of a connection: others go on
            LOG.exception("%s: a handler failed", self.name, exc_info=error)
            self._fail("a handler failed")
            return
        finally:
            self._task = None
        self._settle(request, answer)
        self.advance()

    def _parked_done(self, request: _Request, done: "asyncio.Future[Any]") -> None:
        if not done.cancelled():
            self._settle(request, done.result())
            self.advance()

    def _settle(self, request: _Request, answer: Any) -> None:
        request.answer = answer
        request.is_silent = answer is None
        request.is_answered = True
        while self._line and self._line[0].is_answered:
            self._write(self._line.popleft())
        if not self._line:
            self.idle_since = self._loop.time()

    def _write(self, request: _Request) -> None:
        self._server.finished(request.size)
        if self._transport is None or request.is_silent:
            return
        header = request.header
        body = response_module(header.api_key).encode(request.answer, request.version)
        buffers = encode_response(header.api_key, request.version, header.correlation_id, body)
        if sum(map(len, buffers)) < _JOIN_BELOW:
            self._transport.write(b"".join(buffers))
        else:
            for buffer in buffers:
                self._transport.write(buffer)

    # The end.

    def _fail(self, reason: str) -> None:
        LOG.warning("%s closed: %s", self.name, reason)
        self.close()

    def close(self) -> None:
        """End this connection; what is written already still goes out."""
        if self._transport is not None:
            self._frames.clear()
            self._transport.close()
