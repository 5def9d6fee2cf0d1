import asyncio
import struct
from collections.abc import Callable

import pytest

from broker_impl.errors import StorageError
from broker_impl.zookeeper import server as server_module
from broker_impl.zookeeper.jute import Reader, frame
from broker_impl.zookeeper.records import (
    OPEN_ACL,
    ConnectRequest,
    ConnectResponse,
    CreateRequest,
    Nothing,
    Op,
    PathWatch,
    ReplyHeader,
    RequestHeader,
)
from broker_impl.zookeeper.server import REQUESTS_PER_TURN, Connection
from tests.broker_impl.zookeeper.conftest import TICK_MS, Site

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def dial(site: Site) -> Streams:
    return await asyncio.open_connection("127.0.0.1", site.port)


async def packet(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


async def handshake(site: Site, *, read_only: bool | None = False) -> Streams:
    reader, writer = await dial(site)
    writer.write(frame(ConnectRequest(0, 0, 1000, 0, bytes(16), read_only)))
    response = ConnectResponse.read(Reader(await packet(reader)))
    assert response.timeout_ms == 1000
    assert response.read_only is read_only
    return reader, writer


async def closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


async def hang_up(*connections: Streams) -> None:
    for _, writer in connections:
        writer.close()
        try:
            await writer.wait_closed()
        except ConnectionError:
            continue


async def word(site: Site, text: bytes) -> str:
    reader, writer = await dial(site)
    writer.write(text)
    answer = (await reader.read()).decode()
    await hang_up((reader, writer))
    return answer


@pytest.mark.parametrize("read_only", [None, False])
async def test_old_clients_leave_the_read_only_flag_out(site: Site, read_only: bool | None) -> None:
    """A client that omits the read-only flag gets a response without it, of 36 bytes."""
    connection = await handshake(site, read_only=read_only)
    await hang_up(connection)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"ruok", ["imok"]),
        (b"isro", ["rw"]),
        (b"srvr", ["Zookeeper version: 3.9.3-faultline", "Zxid: 0x2", "Mode: standalone"]),
        (b"stat", ["Clients:", "Node count: 4"]),
        (b"mntr", ["zk_server_state\tstandalone", "zk_znode_count\t4", "zk_ephemerals_count\t0"]),
        (b"envi", ["zookeeper.version=3.9.3-faultline"]),
        (b"conf", ["tickTime=50", "minSessionTimeout=100", "maxSessionTimeout=1000"]),
        (b"dump", ["Session Sets (1)/(1):", "Sessions with Ephemerals (0):"]),
        (b"wchs", ["1 connections watching 1 paths", "Total watches:1"]),
    ],
)
async def test_four_letter_words(site: Site, text: bytes, lines: list[str]) -> None:
    """A four-letter word on a fresh connection is answered in text, and the connection closed."""
    reader, writer = await handshake(site)
    writer.write(frame(RequestHeader(1, Op.GET_DATA), PathWatch("/", True)))
    writer.write(frame(RequestHeader(2, Op.CREATE), CreateRequest("/", b"", OPEN_ACL, 0)))
    await packet(reader)
    await packet(reader)
    answer = (await word(site, text)).splitlines()
    assert [line for line in lines if line not in answer] == []
    await hang_up((reader, writer))


async def test_cons_lists_connections_with_their_sessions(site: Site) -> None:
    """cons lists one line per connection, with its session."""
    connection = await handshake(site)
    [session_id] = site.server.serving.clients
    lines = (await word(site, b"cons")).splitlines()
    assert len(lines) == 3
    assert sum(f",sid={session_id:#x},lop=SESS,est=0,to=" in line for line in lines) == 1
    assert lines[-1] == "", "as Apache's ends"
    await hang_up(connection)


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        struct.pack(">i", -1),
        struct.pack(">i", 10_001),
        struct.pack(">i", 3) + b"abc",
        struct.pack(">i", 0),
    ],
)
async def test_garbage_closes_its_connection_alone(site: Site, garbage: bytes) -> None:
    """Invalid bytes, before or after the handshake, close their connection only."""
    reader, writer = await dial(site)
    writer.write(garbage)
    assert await closed(reader)
    other = await handshake(site)
    other[1].write(garbage)
    assert await closed(other[0])
    neighbour = await site.client()
    assert await neighbour.create("/a") == "/a"
    await hang_up((reader, writer), other)


async def test_what_came_before_garbage_is_done(site: Site) -> None:
    """Requests before an invalid frame take effect."""
    reader, writer = await handshake(site)
    good = frame(RequestHeader(1, Op.CREATE), CreateRequest("/a", b"", OPEN_ACL, 0))
    writer.write(good + struct.pack(">i", -1))
    assert await closed(reader)
    assert "/a" in site.server.serving.database.nodes
    await hang_up((reader, writer))


async def test_a_client_has_its_share_of_connections(site: Site) -> None:
    """maxClientCnxns: a further connection from an address is closed, until another one closes."""
    await site.stop()
    await site.start(connections_max=2)
    first, second = await handshake(site), await handshake(site)
    third = await dial(site)
    assert await closed(third[0])
    await hang_up(second, third)
    while len(site.server.connections) > 1:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0)
    await hang_up(first, await handshake(site))


async def test_who_is_gone_before_being_greeted_is_forgotten(site: Site) -> None:
    """A connection that was reset before it was accepted has no address, and is dropped."""

    class Gone(asyncio.Transport):
        aborted = False

        def abort(self) -> None:
            self.aborted = True

    transport = Gone()
    connection = Connection(site.server)
    connection.connection_made(transport)
    connection.connection_lost(None)
    assert transport.aborted
    assert not site.server.connections


async def test_who_never_asks_for_a_session_is_closed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that does not ask for a session in time is closed, even if it sends bytes."""
    monkeypatch.setattr(server_module, "SESSIONLESS_S_MAX", 0.02)
    reader, writer = await dial(site)
    writer.write(b"\0")
    assert await closed(reader)
    await hang_up((reader, writer))


async def test_a_slow_reader_is_asked_for_no_more(site: Site) -> None:
    """While a client does not read its replies, no further requests are read, and none are lost."""
    await site.stop()
    await site.start(frame_bytes_max=200_000)
    client = await site.client()
    await client.create("/big", bytes(100_000))
    reader, writer = await handshake(site)
    for xid in range(1000):
        writer.write(frame(RequestHeader(xid + 1, Op.GET_DATA), PathWatch("/big", False)))
    queued = 0
    while not queued:
        await asyncio.sleep(0)
        queued = sum(each._transport.get_write_buffer_size() for each in site.server.connections)
    assert await client.exists("/big")
    assert queued <= REQUESTS_PER_TURN * 101_000
    assert sum(c.traffic.received for c in site.server.connections) < 500
    for xid in range(1000):
        assert ReplyHeader.read(Reader(await packet(reader))).xid == xid + 1
    await hang_up((reader, writer))


async def test_a_storage_error_ends_the_server(site: Site) -> None:
    """A storage error ends the server with that error, and requests are not answered any more."""
    client = await site.client()
    site.disk.fails = lambda operation, path: operation == "fsync"
    failing = asyncio.ensure_future(client.create("/a"))
    with pytest.raises(StorageError):
        await site.server.ended
    with pytest.raises(Exception, match="lost"):
        await failing
    site.disk.fails = lambda operation, path: False


async def test_end_asks_for_a_clean_stop(site: Site) -> None:
    """`end` stops the server cleanly, and may be called twice."""
    site.server.end()
    site.server.end()
    await site.server.ended


async def test_a_server_that_stood_still_expires_nobody(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a standstill of the server no session expires, because pings may wait unread.

    Every session has its full timeout from then on.
    """
    connection = await handshake(site)
    await hang_up(connection)
    loop = asyncio.get_running_loop()
    real: Callable[[], float] = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + 60)
    await asyncio.sleep(2.5 * TICK_MS / 1000)
    assert len(site.server.serving.database.sessions) == 1


async def test_requests_are_taken_however_they_are_cut(site: Site) -> None:
    """Requests are read byte by byte, or several in one packet."""
    reader, writer = await handshake(site)
    two = b"".join(frame(RequestHeader(xid, Op.PING), Nothing()) for xid in (1, 2))
    for at in range(len(two)):
        writer.write(two[at : at + 1])
        await asyncio.sleep(0)
    assert [ReplyHeader.read(Reader(await packet(reader))).xid for _ in range(2)] == [1, 2]
    await hang_up((reader, writer))
