"""Clients that send frames to a server, and handlers that park their answers."""

import asyncio
import struct
from collections.abc import Callable
from typing import Any

from broker_impl.api import registry
from broker_impl.errors import StorageError
from broker_impl.server import Server
from broker_impl.wire.framing import RequestHeader, decode_response, encode_request
from broker_impl.wire.messages.find_coordinator_request import FindCoordinatorRequest
from broker_impl.wire.messages.find_coordinator_request import encode as encode_find_coordinator
from broker_impl.wire.messages.find_coordinator_response import FindCoordinatorResponse

METADATA, UPDATE_METADATA, FIND_COORDINATOR, VERSIONS = 3, 6, 10, 18


class Client:
    """A client that sends raw frames over a real connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def ask(self, key: str, number: int) -> None:
        """Send a FindCoordinator v1, whose key selects what the test's handler does."""
        header = RequestHeader(FIND_COORDINATOR, 1, number, "test")
        body = encode_find_coordinator(FindCoordinatorRequest(key=key), 1)
        self.writer.write(b"".join(encode_request(header, body)))

    def send(self, api_key: int, version: int, body: bytes = b"") -> None:
        frame = struct.pack(">hhih", api_key, version, 1, -1) + body
        self.writer.write(struct.pack(">i", len(frame)) + frame)

    async def frame(self) -> memoryview:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return memoryview(await self.reader.readexactly(size))

    async def answer(self) -> int:
        """The correlation id of the next response."""
        number, _ = decode_response(await self.frame(), FIND_COORDINATOR, 1)
        return number

    async def is_closed(self) -> bool:
        try:
            async with asyncio.timeout(5):
                return await self.reader.read(1) == b""
        except ConnectionResetError:
            return True


class World:
    """A server with one scripted handler, and its clients."""

    def __init__(self, server: Server, ports: list[int], fatal: list[BaseException]) -> None:
        self.server, self.ports, self.fatal = server, ports, fatal
        self._clients: list[Client] = []

    async def client(self, listener: int = 0) -> Client:
        """Connect to listener 0, for clients, or to listener 1, the brokers' own."""
        client = Client(*await asyncio.open_connection("127.0.0.1", self.ports[listener]))
        self._clients.append(client)
        return client

    async def close(self) -> None:
        await self.server.close()
        for client in self._clients:
            client.writer.close()


def answer(key: str) -> Any:
    """Do what the key of the FindCoordinator request selects."""
    if key == "hang up":
        raise registry.CloseConnection("as asked")
    if key == "storage":
        raise StorageError("no space left")
    if key == "bug":
        raise KeyError("bug")
    if key == "large":
        return FindCoordinatorResponse(error_message="x" * 32_000)
    return FindCoordinatorResponse()


Open = Callable[..., Any]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - any state of any object may be waited for
            await asyncio.sleep(0.005)


async def settle() -> None:
    """Let the event loop deliver everything that is in flight over loopback."""
    for _ in range(20):
        await asyncio.sleep(0.001)


def large_request(size: int, api_key: int = VERSIONS) -> bytes:
    """A frame of about this size: ApiVersions v3 with an unknown tagged field."""
    tag = b"\x02a\x02b\x01\x07" + encode_uvarint(size) + bytes(size)
    frame = struct.pack(">hhih", api_key, 3, 1, -1) + b"\0" + tag
    return struct.pack(">i", len(frame)) + frame


def encode_uvarint(number: int) -> bytes:
    """Encode an unsigned varint: seven bits per byte, lowest first."""
    coded = b""
    while number > 0x7F:
        coded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return coded + bytes([number])


async def arrived(w: World) -> int:
    """The bytes of requests in memory, once no more are being read."""
    before = -1
    while (now := w.server.bounds.request_bytes) != before:
        before = now
        for _ in range(20):
            await settle()
    return before
