"""The server that ``create_server`` returns: it accepts the connections that the kernel queued."""

import asyncio
from collections.abc import Callable

from harness.simulation.segment import Address
from harness.simulation.stack import Listener
from harness.simulation.transport import SimTransport, SocketInfo, TransportLoop


class SimServer(asyncio.AbstractServer):
    """A server of a process, with the guarantees of Python 3.12.

    ``wait_closed`` waits for the end of every connection.
    """

    def __init__(
        self,
        loop: TransportLoop,
        factory: Callable[[], asyncio.BaseProtocol],
        listen: Callable[[Callable[[], None]], Listener],
    ) -> None:
        """``listen`` creates the listening socket; its argument is called when a client waits."""
        self._loop = loop
        self._factory = factory
        self._is_queued = False
        self._is_serving = False
        self._connections = 0
        self._closed: asyncio.Future[None] = loop.create_future()
        self._listener: Listener | None = listen(self._on_ready)
        ip, port = self._listener.address
        self._info = SocketInfo(Address(ip or "0.0.0.0", port))

    @property
    def sockets(self) -> tuple[SocketInfo, ...]:
        """The listening socket, from which callers read its address."""
        return () if self._listener is None else (self._info,)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def is_serving(self) -> bool:
        return self._is_serving

    async def start_serving(self) -> None:
        self._is_serving = self._listener is not None
        self._on_ready()

    async def serve_forever(self) -> None:
        await self.start_serving()
        try:
            await self._loop.create_future()
        finally:
            self.close()

    def close(self) -> None:
        listener, self._listener = self._listener, None
        self._is_serving = False
        if listener is not None:
            listener.close()
            self._maybe_closed()

    async def wait_closed(self) -> None:
        await asyncio.shield(self._closed)

    # For transports.

    def attach(self) -> None:
        """Count a connection."""
        self._connections += 1

    def detach(self) -> None:
        """Remove a connection from the count."""
        self._connections -= 1
        self._maybe_closed()

    def _maybe_closed(self) -> None:
        if self._listener is None and not self._connections and not self._closed.done():
            self._closed.set_result(None)

    def _on_ready(self) -> None:
        if self._is_serving and not self._is_queued:
            self._is_queued = True
            self._loop.call_soon(self._accept)

    def _accept(self) -> None:
        self._is_queued = False
        while self._listener is not None and self._is_serving:
            socket = self._listener.accept()
            if socket is None:
                return
            SimTransport(self._loop, socket, self._factory(), server=self)
