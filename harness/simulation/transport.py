"""asyncio's transport, over a simulated socket.

It does what asyncio's own transport over a real socket does, in the same order: a handle of the
loop reads at most once per turn, bytes that the kernel does not take are buffered and counted here,
and ``connection_lost`` always runs in its own handle.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Protocol

from harness.simulation.segment import Address
from harness.simulation.tcp import Socket

_READ_MAX = 256 * 1024


class TransportLoop(asyncio.AbstractEventLoop):
    """The event loop of a transport: what it has in addition to asyncio's interface."""

    is_over: bool
    """True once the process will never run again and none of its connections is open."""

    def enqueue(self, handle: asyncio.Handle) -> None:
        """Run ``handle`` after those that are ready."""
        raise NotImplementedError


class TransportServer(Protocol):
    """The server that accepted a transport's connection; it counts its connections."""

    def attach(self) -> None:
        """Count a connection."""

    def detach(self) -> None:
        """Remove a connection from the count."""


class SocketInfo:
    """Stands in for a socket where a caller asks for one; setting its options does nothing."""

    family = 2  # AF_INET
    type = 1  # SOCK_STREAM
    proto = 6  # IPPROTO_TCP

    def __init__(self, sockname: Address, peername: Address | None = None) -> None:
        self._sockname = sockname
        self._peername = peername

    def fileno(self) -> int:
        """Return -1: there is no descriptor."""
        return -1

    def getsockname(self) -> Address:
        """The local address."""
        return self._sockname

    def getpeername(self) -> Address | None:
        """The peer's address."""
        return self._peername

    def setsockopt(self, *options: Any) -> None:
        """Do nothing."""

    def getsockopt(self, *options: Any) -> int:
        """Return 0: no option is set."""
        return 0


class SimTransport(asyncio.Transport):
    """One connection of a process."""

    def __init__(
        self,
        loop: TransportLoop,
        socket: Socket,
        protocol: asyncio.BaseProtocol,
        *,
        waiter: "asyncio.Future[None] | None" = None,
        server: TransportServer | None = None,
    ) -> None:
        """``waiter`` gets its result once the protocol knows its transport."""
        info = SocketInfo(socket.local, socket.remote)
        super().__init__({"socket": info, "sockname": socket.local, "peername": socket.remote})
        self._loop = loop
        self._socket = socket
        self._server = server
        self._buffer = bytearray()
        self._high = 64 * 1024
        self._low = 16 * 1024
        self._is_started = False
        self._is_closing = False
        self._is_lost = False
        """``connection_lost`` has been called, or is about to be."""
        self._read_paused = False
        self._read_eof = False
        self._wrote_eof = False
        self._write_paused = False
        self._reading = asyncio.Handle(self._read_ready, (), loop)
        self._reading_is_queued = False
        self._writing_is_queued = False
        self.set_protocol(protocol)
        if server is not None:
            server.attach()
        loop.call_soon(protocol.connection_made, self)
        loop.call_soon(self._start)
        if waiter is not None:
            loop.call_soon(_wake, waiter)

    def _start(self) -> None:
        self._is_started = True
        self._socket.on_readable = self._readable
        self._socket.on_writable = self._writable
        self._readable()

    def __repr__(self) -> str:
        return f"<SimTransport {self._socket.local} to {self._socket.remote}>"

    # Protocol and state.

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol
        self._is_buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def is_closing(self) -> bool:
        return self._is_closing or self._loop.is_over

    # Reading.

    def is_reading(self) -> bool:
        return not self._is_closing and not self._read_paused

    def pause_reading(self) -> None:
        if self.is_reading():
            self._read_paused = True

    def resume_reading(self) -> None:
        if self._read_paused and not self._is_closing:
            self._read_paused = False
            self._readable()

    def _readable(self) -> None:
        """Read in a separate turn of the loop, since the socket has become readable."""
        if not self._reading_is_queued and self._wants_to_read() and self._socket.is_readable:
            self._reading_is_queued = True
            self._loop.enqueue(self._reading)

    def _wants_to_read(self) -> bool:
        return (
            self._is_started
            and not self._read_paused
            and not self._read_eof
            and not self._is_closing
        )

    def _read_ready(self) -> None:
        self._reading_is_queued = False
        if not self._wants_to_read():
            return
        try:
            end = self._read_into_buffer() if self._is_buffered else self._read_bytes()
        except OSError as error:
            self._break(error)
            return
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - a protocol's failure ends its connection
            self._fail(error)
            return
        if end:
            self._end_of_stream()
        else:
            self._readable()

    def _read_bytes(self) -> bool:
        data = self._socket.receive(_READ_MAX)
        if data:
            self._protocol.data_received(data)  # type: ignore[attr-defined]
        return data == b""

    def _read_into_buffer(self) -> bool:
        protocol: Any = self._protocol
        buffer = protocol.get_buffer(-1)
        if not len(buffer):
            raise RuntimeError("get_buffer() returned an empty buffer")
        data = self._socket.receive(len(buffer))
        if data:
            buffer[: len(data)] = data
            protocol.buffer_updated(len(data))
        return data == b""

    def _end_of_stream(self) -> None:
        self._read_eof = True
        try:
            stays_open = self._protocol.eof_received()  # type: ignore[attr-defined]
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - a protocol's failure ends its connection
            self._fail(error)
            return
        if not stays_open:
            self.close()

    # Writing.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"data argument must be bytes-like, not {type(data).__name__!r}")
        if self._wrote_eof:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not data or self._is_lost:
            return
        if not self._buffer:
            try:
                taken = self._socket.send(data)
            except OSError as error:
                self._break(error)
                return
            if taken == len(data):
                return
            data = data[taken:]
        self._buffer += data
        self._maybe_pause()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def _writable(self) -> None:
        if self._buffer and not self._writing_is_queued:
            self._writing_is_queued = True
            self._loop.call_soon(self._write_ready)

    def _write_ready(self) -> None:
        self._writing_is_queued = False
        if self._is_lost or not self._buffer:
            return
        try:
            taken = self._socket.send(self._buffer)
        except OSError as error:
            self._break(error)
            return
        del self._buffer[:taken]
        self._maybe_resume()  # the protocol may write more
        if not self._buffer:
            if self._is_closing:
                self._lose(None)
            elif self._wrote_eof:
                self._socket.shutdown_write()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if self._is_closing or self._wrote_eof:
            return
        self._wrote_eof = True
        if not self._buffer:
            self._socket.shutdown_write()

    # Flow control towards the protocol.

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = 64 * 1024 if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self._high, self._low = high, low
        self._maybe_pause()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return len(self._buffer)

    def _maybe_pause(self) -> None:
        if len(self._buffer) > self._high and not self._write_paused:
            self._write_paused = True
            self._notify(self._protocol.pause_writing)

    def _maybe_resume(self) -> None:
        if self._write_paused and len(self._buffer) <= self._low:
            self._write_paused = False
            self._notify(self._protocol.resume_writing)

    def _notify(self, callback: Any) -> None:
        try:
            callback()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - as asyncio: it is reported, and the connection goes on
            self._report(error, f"protocol.{callback.__name__}() failed")

    # The end.

    def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        if not self._buffer:
            self._lose_soon(None)

    def abort(self) -> None:
        self._break(None)

    def _break(self, error: BaseException | None) -> None:
        """Drop unsent bytes and lose the connection, because of ``error`` or on request."""
        self._buffer.clear()
        self._is_closing = True
        self._lose_soon(error)

    def _fail(self, error: BaseException) -> None:
        self._report(error, "Fatal error: a protocol's callback failed")
        self._break(error)

    def _report(self, error: BaseException, message: str) -> None:
        self._loop.call_exception_handler(
            {"message": message, "exception": error, "transport": self, "protocol": self._protocol}
        )

    def _lose_soon(self, error: BaseException | None) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._loop.call_soon(self._lose, error)

    def _lose(self, error: BaseException | None) -> None:
        self._is_lost = True
        try:
            self._protocol.connection_lost(error)  # type: ignore[arg-type]
        finally:
            self._socket.close()
            server, self._server = self._server, None
            if server is not None:
                server.detach()


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
