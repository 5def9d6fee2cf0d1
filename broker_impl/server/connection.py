"""One connection: reads request frames and writes responses in the order of the requests.

A connection runs the handlers of the table in ``broker_impl.api``. A handler's plain answer is
written at once. A future (a parked request) keeps its place in the order of responses while later
requests are handled. A coroutine delays the requests after it, so that a controller's orders take
effect one after the other. Invalid bytes on a connection end that connection and nothing else.
"""

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from broker_impl.api import access
from broker_impl.api.authentication import AUTHENTICATION
from broker_impl.api.purgatory import Parked
from broker_impl.api.registry import Api, CloseConnection, RequestContext
from broker_impl.api.services import Services
from broker_impl.api.table import APIS
from broker_impl.api.versions import API_VERSIONS, advertise, for_clients
from broker_impl.config import BrokerConfig
from broker_impl.counts import FOLLOWER_FETCH
from broker_impl.errors import ErrorCode, StorageError, WireError
from broker_impl.security import principals
from broker_impl.security.acls import Authorizer
from broker_impl.security.sessions import OpenSession, Session
from broker_impl.server import line, raw_tokens
from broker_impl.server.frame_room import SMALL_BYTES, FrameRoom
from broker_impl.server.line import Request
from broker_impl.server.memory_limits import Bounds
from broker_impl.server.throttling import Throttle
from broker_impl.wire.framing import (
    FrameReader,
    RequestHeader,
    decode_request_header,
    encode_response,
)
from broker_impl.wire.messages import request_module, response_module

LOG = logging.getLogger(__name__)

_JOIN_BELOW = 64 * 1024
"""Responses smaller than this are joined into one write; larger parts are written separately."""
_WRITE_HIGH_WATER = 64 * 1024
"""The unread bytes of a slow reader above which its requests wait."""
_FETCH = 1
_KEY_BYTES = 2
"""The size of the API key, with which a request begins."""
_REQUESTS_PER_TURN = 64
"""Requests handled in one turn of the loop, before other connections get theirs."""
_LINGER_S = 5.0
"""How long the peer of a closed connection may take to read what was written."""


Witness = Callable[[int, Any], Callable[[Any], None] | None]
"""Called with the API key of each request and its message; returns a function that is called with
the answer at the moment it is ready, or None."""


class ConnectionOwner(Protocol):
    """What a connection asks of the server that accepted it."""

    services: Services
    config: BrokerConfig
    bounds: Bounds
    scratch: bytearray
    """The buffer that receives the bytes of frames that are not known yet."""
    inter_broker_listener: str
    witness: Witness | None
    """Sees every request and its answer, if a check of the broker's answers has set it."""
    authorizer: Authorizer | None
    """The rules about requests; None: every client may do everything."""
    fatal: Callable[[BaseException], None]
    """Called when the broker cannot continue: a storage failure or a broken invariant."""

    def admit(self, connection: "Connection") -> str | None:
        """Register a new connection, or return the reason for refusing it."""

    def dismiss(self, connection: "Connection") -> None:
        """Remove a registered connection that is closed."""

    def session(self, listener: str, transport: asyncio.Transport) -> Session:
        """Return the authentication of a new connection."""

    def serves(self, listener: str, api_key: int) -> bool:
        """Whether a request of this kind is served on this listener yet."""

    def is_private(self, listener: str) -> bool:
        """Whether only brokers use this listener."""

    def is_crowded(self) -> bool:
        """Whether frames wait for room on any listener."""

    def room_for(self, listener: str, api_key: int, size: int) -> FrameRoom:
        """The room for a frame of this size whose request has this API key."""


class Connection(asyncio.BufferedProtocol):
    """A connection of a client or of another broker."""

    def __init__(self, server: ConnectionOwner, listener: str) -> None:
        self.listener = listener
        self.address = "?"
        self.name = "?"
        self.number = 0
        """Later connections have higher numbers."""
        self.idle_since: float | None = None
        """When the last request was answered; None while a request is in progress."""
        self._session: Session = OpenSession()
        self._server = server
        self._bounds = server.bounds
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader(server.config.socket_request_max_bytes, server.scratch)
        self._transport: asyncio.Transport | None = None
        self._frames: deque[memoryview] = deque()
        self._line: deque[Request] = deque()
        self._task: asyncio.Task[None] | None = None
        self._holder: Request | None = None
        """The parked request for which later requests wait."""
        self._admitted = False
        self._write_blocked = False
        self._read_paused = False
        self._goes_on_soon = False
        self._queued_bytes = 0
        """The bytes of complete frames that are queued or being handled."""
        self._bytes_held = 0
        self._room: FrameRoom | None = None
        """The room that the arriving frame has, or waits for."""
        self.progress_at = 0.0
        """When the last bytes arrived."""
        self._end: asyncio.TimerHandle | None = None
        limits, is_exempt = server.services.quotas.limits, server.is_private(listener)
        self._throttle = Throttle(limits, self._loop, self.advance, is_exempt=is_exempt)

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername") or ("?", 0)
        self.address, self.name = peer[0], f"{self.listener} {peer[0]}:{peer[1]}"
        refusal = self._server.admit(self)
        if refusal:
            LOG.warning("connection %s was rejected: %s", self.name, refusal)
            transport.abort()
            return
        self._admitted = True
        self._session = self._server.session(self.listener, transport)
        self._limit_frames()
        self.idle_since = self._loop.time()
        transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER)

    def _limit_frames(self) -> None:
        """Limit the size of requests to what the state of the authentication allows."""
        most = self._server.config.socket_request_max_bytes
        own = self._session.bytes_max
        self._reader.limit(most if own is None else min(own, most))

    def get_buffer(self, sizehint: int) -> memoryview:
        buffer = self._reader.get_buffer()
        if self._room is None and self._server.is_crowded():
            return buffer[:SMALL_BYTES]  # received bytes may have to wait in memory
        return buffer

    def buffer_updated(self, count: int) -> None:
        self._reader.buffer_updated(count)
        self.progress_at = self._loop.time()
        try:
            for frame in self._reader.frames():
                self._frames.append(frame)
                self._queued_bytes += len(frame)
        except WireError as error:
            self._fail(str(error))
            return
        if not self._reader.bytes_announced:
            self._give_room_back()
        self.advance()

    def pause_writing(self) -> None:
        self._write_blocked = True
        self._bounds.blocked(self._unread)

    def resume_writing(self) -> None:
        self._write_blocked = False
        self._bounds.unblocked(self._unread)
        self.advance()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._frames.clear()
        if self._task is not None:
            self._task.cancel()
        if self._end is not None:
            self._end.cancel()
        self._throttle.close()
        waiting, self._line = self._line, deque()
        for request in waiting:
            if isinstance(request.answer, asyncio.Future):
                request.answer.cancel()
        self._bounds.unblocked(self._unread)
        self._bounds.forget(self.advance)
        self._bounds.hold(-self._bytes_held)
        self._give_room_back()
        if self._admitted:
            self._server.dismiss(self)

    def _unread(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    # Requests.

    def advance(self) -> None:
        """Handle the received frames, as far as the limits allow."""
        for _ in range(_REQUESTS_PER_TURN):
            if not self._frames or not self._may_handle():
                break
            self._handle(self._frames.popleft())
        else:
            self._go_on_soon()
        self._hold_and_throttle()

    def _go_on_soon(self) -> None:
        if self._frames and not self._goes_on_soon:
            self._goes_on_soon = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._goes_on_soon = False
        self.advance()

    def _may_handle(self) -> bool:
        return (
            self._transport is not None
            and not self._transport.is_closing()
            and self._task is None
            and self._holder is None
            and not self._throttle.is_muted
            and not self._write_blocked
            and len(self._line) < self._server.config.queued_max_requests
            and self._server.serves(self.listener, int.from_bytes(self._frames[0][:2], "big"))
        )

    def _hold_and_throttle(self) -> None:
        """Account for the memory in use; read on only if no frame waits and memory is free."""
        if self._transport is None:
            return
        under_way = self._reader.bytes_held
        held = under_way + self._queued_bytes
        if held != self._bytes_held:
            self._bounds.hold(held - self._bytes_held)
            self._bytes_held = held
        is_closing = self._transport.is_closing()
        waits = not (self._frames or is_closing or self._has_room())
        crowded = not under_way and self._bounds.is_full
        if crowded and not self._server.is_private(self.listener):
            self._bounds.wait(self.advance)
        else:
            crowded = False
        pause = crowded or waits or bool(self._frames)
        if pause != self._read_paused and not is_closing:
            self._read_paused = pause
            if pause:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _has_room(self) -> bool:
        """Return whether the arriving frame may be read on; if not, it waits for room.

        This is called only when nothing else stops this connection from reading, because a frame
        that has room must make progress.
        """
        size = self._reader.bytes_announced
        if self._room is None:
            head = self._reader.head(_KEY_BYTES)
            if size <= SMALL_BYTES or len(head) < _KEY_BYTES:
                return True
            self._room = self._server.room_for(self.listener, int.from_bytes(head, "big"), size)
        return self._room.admit(self, size)

    def _give_room_back(self) -> None:
        if self._room is not None:
            self._room.release(self)
            self._room = None

    def stalled(self) -> None:
        """Close this connection: its frame has stalled, and other frames wait for the room."""
        LOG.warning(
            "connection %s was closed: its unfinished request blocked the requests of others",
            self.name,
        )
        self.abort()

    def _handle(self, frame: memoryview) -> None:
        try:
            is_raw = self._session.is_raw
            header, body = raw_tokens.request(frame) if is_raw else decode_request_header(frame)
            now = self._loop.time()
            self._session.check(header.api_key, now)
            row = self._row(header)
            request = Request(header, header.api_version, len(frame), row.key, now, is_raw=is_raw)
            self._line.append(request)
            self.idle_since = None
            request.charge = self._throttle.charge(
                row, header.api_version, header.client_id, len(frame)
            )
            if request.charge is not None:
                self._throttle.user = principals.name_of(self._session.principal)
            answer = self._call(row, request, body)
            self._throttle.handled(request.charge)
            if inspect.iscoroutine(answer):
                self._task = self._loop.create_task(self._finish(row, request, answer))
            elif isinstance(answer, asyncio.Future):
                self._park(row, request, answer)
            else:
                self._settle(request, answer)
        except Exception as error:  # noqa: BLE001 - the edge of a connection
            self._broke(error)

    def _row(self, header: RequestHeader) -> Api:
        row = APIS.get(header.api_key)
        private = self.listener == self._server.inter_broker_listener
        if row is None or (row.between_brokers and not private):
            raise WireError(f"API {header.api_key} is not supported")
        if row.private_from is not None and header.api_version >= row.private_from and not private:
            raise WireError(
                f"API {header.api_key} v{header.api_version} is only available to brokers"
            )
        served = row.served
        if not private:
            served = range(served.start, for_clients(row, self._server.config).stop)
        if header.api_version not in served and row.key != API_VERSIONS:
            raise WireError(f"API {header.api_key} v{header.api_version} is not supported")
        return row

    def _call(self, row: Api, request: Request, body: memoryview) -> Any:
        context = RequestContext(
            self._server.services,
            self.listener,
            request.header.client_id,
            self.address,
            self.number,
            request.version,
            self._bounds.answer_room,
            self._session,
        )
        if request.version not in row.served:  # ApiVersions only: KIP-511
            request.version = 0
            self._session.versions_refused()
            return advertise(context, ErrorCode.UNSUPPORTED_VERSION)
        message = request_module(row.key).decode(body, request.version)
        if row.key == _FETCH and message.replica_id >= 0:
            request.kind = FOLLOWER_FETCH
        if self._server.witness is not None:
            request.on_answer = self._server.witness(row.key, message)
        request.charge = self._throttle.of_client(request.charge, message)
        if self._server.authorizer is None:
            return row.handle(context, message)
        return access.handle(self._server.authorizer, row, context, message)

    def _park(self, row: Api, request: Request, answer: "asyncio.Future[Any]") -> None:
        """Park a request whose answer comes later, and release the memory of its frame."""
        request.answer = answer
        self._release(request)
        if row.holds_line:
            self._holder = request
        call = answer.on_answer if isinstance(answer, Parked) else answer.add_done_callback
        call(lambda done: self._parked_done(request, done))

    def _parked_done(self, request: Request, done: "asyncio.Future[Any]") -> None:
        if done.cancelled():
            return
        if self._holder is request:
            self._holder = None
        try:
            self._settle(request, done.result())
        except Exception as error:  # noqa: BLE001 - the edge of a connection
            self._broke(error)
        self._go_on_soon()
        self._hold_and_throttle()

    async def _finish(self, row: Api, request: Request, coroutine: Any) -> None:
        """Run a handler's coroutine; later requests wait until it returns or parks its request."""
        try:
            answer = await coroutine
            if isinstance(answer, asyncio.Future):
                self._park(row, request, answer)
            else:
                self._settle(request, answer)
        except Exception as error:  # noqa: BLE001 - the edge of a connection
            self._broke(error)
        finally:
            self._task = None
        self.advance()

    def _release(self, request: Request) -> None:
        self._queued_bytes -= request.size
        request.size = 0

    def _settle(self, request: Request, answer: Any) -> None:
        self._release(request)
        self._throttle.settle(request.charge, answer)
        request.answer = answer
        request.is_silent = answer is None
        request.is_answered = True
        if request.on_answer is not None and answer is not None:
            request.on_answer(answer)
        while (ready := line.next_answered(self._line)) is not None:
            self._line.remove(ready)
            self._write(ready)
        now = self._loop.time()
        self._server.services.counts.answered(request.kind, now - request.arrived_at)
        if not self._line:
            self.idle_since = now
        if request.header.api_key in AUTHENTICATION:
            self._limit_frames()
            if self._session.is_failed:
                self.close()

    def _write(self, request: Request) -> None:
        if self._transport is None or self._transport.is_closing() or request.is_silent:
            return
        header = request.header
        if request.is_raw:
            buffers = raw_tokens.response(request.answer)
        else:
            body = response_module(header.api_key).encode(request.answer, request.version)
            buffers = encode_response(header.api_key, request.version, header.correlation_id, body)
        if sum(map(len, buffers)) < _JOIN_BELOW:
            self._transport.write(b"".join(buffers))
        else:
            for buffer in buffers:
                self._transport.write(buffer)

    # Errors and closing.

    def _broke(self, error: Exception) -> None:
        """Handle a request's error, which ends the broker or this connection, by its type."""
        if isinstance(error, StorageError | AssertionError):
            self._server.fatal(error)
            self._fail(str(error))  # if it was one data directory of several, the broker goes on
        elif isinstance(error, WireError | CloseConnection):
            self._fail(str(error))
        else:
            LOG.exception(
                "connection %s: a request failed with an unexpected error",
                self.name,
                exc_info=error,
            )
            self._fail("the request failed with an unexpected error")

    def _fail(self, reason: str) -> None:
        LOG.warning("connection %s was closed: %s", self.name, reason)
        self.close()

    def close(self) -> None:
        """Close this connection; pending output is still sent if the peer reads it soon."""
        if self._transport is not None:
            self._frames.clear()
            if not self._transport.is_closing():  # asyncio's with TLS must not be closed twice
                self._transport.close()
            if self._end is None and self._transport.get_write_buffer_size():
                self._end = self._loop.call_later(_LINGER_S, self.abort)

    def abort(self) -> None:
        """Close this connection at once."""
        if self._transport is not None:
            self._frames.clear()
            self._transport.abort()
