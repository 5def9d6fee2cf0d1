"""A transport without a socket: it keeps what a connection writes."""

import asyncio
from typing import Any


class MemoryTransport(asyncio.Transport):
    """The transport of one connection; bytes are given to the connection directly."""

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__({"peername": address})
        self.written = bytearray()
        self.is_paused = False
        self.is_lost = False
        self._protocol: asyncio.BaseProtocol | None = None
        self._is_closing = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None, "a protocol was set"
        return self._protocol

    def write(self, data: Any) -> None:
        self.written += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Ignore the limits: whatever is written counts as sent."""

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            asyncio.get_running_loop().call_soon(self._lose)

    def abort(self) -> None:
        self.close()

    def _lose(self) -> None:
        self.is_lost = True
        self.get_protocol().connection_lost(None)
