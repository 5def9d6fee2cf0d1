"""A TCP proxy for one link that intercepts single messages; it runs in the harness's event loop.

It is in front of the link's Toxiproxy proxy, so that both kinds of faults act on the same
connection. A connection ends as it would without this proxy: what the server sends last reaches
the client, a connection that is refused or reset is reset at the client, and what the client has
sent reaches the server before the end of the stream does. So a held request is delivered even if
its client has closed the connection. The connection to the server stays open until then.

No more is buffered than one message and what asyncio's streams hold: while one direction waits, it
is not read.
"""

import asyncio
import contextlib
import socket
from struct import pack

from harness.cluster.address import Address
from harness.cluster.mesh import message_frames
from harness.cluster.mesh.message_frames import Splitter
from harness.cluster.mesh.message_interception import (
    Conversation,
    Hold,
    Interceptors,
    Pass,
    Reset,
    Verdict,
    Way,
)
from harness.cluster.ports import HOST

_CHUNK_BYTES = 1 << 16
_AT_ONCE = pack("ii", 1, 0)
"""``SO_LINGER`` with no time: closing the socket resets its connection."""


class _End:
    """One of the two TCP connections that a proxied connection consists of."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._is_gone = False

    async def read(self) -> bytes:
        """The next bytes; empty at the end. ``OSError`` if the connection was reset."""
        return await self._reader.read(_CHUNK_BYTES)

    async def send(self, data: bytes) -> None:
        """Send bytes and wait while too many are on their way; without effect if it has ended."""
        if self._is_gone or not data:
            return
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError:
            self._is_gone = True

    def end(self) -> None:
        """Send the end of the stream after all bytes; the other direction stays open."""
        with contextlib.suppress(OSError):
            if not self._is_gone and self._writer.can_write_eof():
                self._writer.write_eof()

    def reset(self) -> None:
        """Reset the connection: bytes that were not delivered yet are lost."""
        self._is_gone = True
        with contextlib.suppress(OSError):
            own = self._writer.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self._writer.transport.abort()

    def close(self) -> None:
        """Close the connection after all bytes have been sent."""
        self._writer.close()


class _Connection:
    """A connection through the proxy, one task for each direction."""

    def __init__(self, client: _End, server: _End, conversation: Conversation) -> None:
        self._client = client
        self._server = server
        self._conversation = conversation

    async def carry(self) -> None:
        """Carry both directions until the server's end of the connection has ended."""
        requests = asyncio.create_task(self._requests())
        try:
            await self._responses()
        except OSError:
            self._client.reset()
        finally:
            requests.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await requests
            self._client.close()
            self._server.close()

    async def _requests(self) -> None:
        splitter = Splitter(message_frames.REQUEST)
        with contextlib.suppress(OSError):  # a client that resets its connection ends it, too
            while data := await self._client.read():
                for piece in splitter.pieces(data):
                    if not await self._obeyed(self._conversation.request(piece), self._server):
                        self._server.end()
                        return
        await self._server.send(splitter.rest())
        self._server.end()

    async def _responses(self) -> None:
        splitter = Splitter(message_frames.RESPONSE)
        while data := await self._server.read():
            for piece in splitter.pieces(data):
                if not await self._obeyed(self._conversation.response(piece), self._client):
                    return
        await self._client.send(splitter.rest())

    async def _obeyed(self, verdict: Verdict, receiver: _End) -> bool:
        """Do what the verdict says; return False if it ends the connection."""
        match verdict:
            case Pass(data):
                await receiver.send(data)
            case Hold(data, interceptor):
                await interceptor.hold()
                await receiver.send(data)
            case Reset():
                self._client.reset()
                return False
        return True


class MessageProxy:
    """The proxy of one link."""

    def __init__(self, way: Way, upstream: Address, interceptors: Interceptors) -> None:
        """``upstream`` is the address of the link's Toxiproxy proxy."""
        self._way = way
        self._upstream = upstream
        self._interceptors = interceptors
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], None] = {}

    async def start(self, at: Address | None = None) -> Address:
        """Listen at an address, or on any free port of this machine; return the address."""
        host, wanted = at or Address(HOST, 0)
        self._server = await asyncio.start_server(self._connected, host, wanted)
        port: int = self._server.sockets[0].getsockname()[1]
        return Address(host, port)

    async def close(self) -> None:
        """Stop listening, and end all connections."""
        if self._server is not None:
            self._server.close()
        ending = list(self._connections)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a server calls this in a task"
        self._connections[task] = None
        try:
            await self._carry(_End(reader, writer))
        except asyncio.CancelledError:
            pass  # `close` cancels this task, and asyncio logs a cancelled handler as an error
        finally:
            writer.close()
            del self._connections[task]

    async def _carry(self, client: _End) -> None:
        try:
            server = _End(*await asyncio.open_connection(*self._upstream))
        except OSError:
            client.reset()
        else:
            await _Connection(client, server, Conversation(self._way, self._interceptors)).carry()
