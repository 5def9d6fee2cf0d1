"""A client that asks for another client's session, with a wrong password."""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from workloads.client.zk_intruder import is_let_in
from workloads.client.zk_session import NotSent

SESSION = 0x1_0000_0007
Serve = Callable[[bytes], Awaitable[str]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Start a server that answers each request with these bytes; return its address."""
    servers: list[asyncio.Server] = []

    async def start(answer: bytes) -> str:
        async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            [length] = struct.unpack(">i", await reader.readexactly(4))
            request = await reader.readexactly(length)
            assert struct.unpack_from(">iqiqi", request)[3:] == (SESSION, 16)
            writer.write(answer)
            writer.close()

        servers.append(await asyncio.start_server(serve_one, "127.0.0.1", 0))
        host, port = servers[-1].sockets[0].getsockname()
        return f"{host}:{port}"

    yield start
    for server in servers:
        server.close()
        await server.wait_closed()


def answer(timeout_ms: int, session: int) -> bytes:
    """A server's response to a handshake."""
    body = struct.pack(">iiqi16s?", 0, timeout_ms, session, 16, b"0" * 16, False)
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize(
    ("timeout_ms", "session", "expected"),
    [(4000, SESSION, True), (0, 0, False), (0, SESSION, False), (4000, 9, False)],
)
async def test_what_the_server_answers(
    serve: Serve, timeout_ms: int, session: int, expected: bool
) -> None:
    """A session was given away if the answer grants this session a timeout."""
    address = await serve(answer(timeout_ms, session))
    assert await is_let_in(address, SESSION, timeout_ms=1000) is expected


@pytest.mark.parametrize("sent", [b"", b"\0\0\0\x08ABCDEFGH", b"\x7f\0\0\0ABCD"])
async def test_no_answer(serve: Serve, sent: bytes) -> None:
    """A server that closes the connection, or answers something else, decides nothing."""
    address = await serve(sent)
    with pytest.raises(NotSent, match="intruder"):
        await is_let_in(address, SESSION, timeout_ms=1000)


async def test_no_server() -> None:
    """Nothing listens at the address."""
    with pytest.raises(NotSent):
        await is_let_in("127.0.0.1:1", SESSION, timeout_ms=1000)
