"""ZooKeeper's client with servers that misbehave."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from broker_impl.zookeeper.client import (
    ZooKeeper,
)
from broker_impl.zookeeper.connection import Connection
from broker_impl.zookeeper.digest_md5 import Login, ServerExchange
from broker_impl.zookeeper.errors import (
    Code,
    ConnectionLoss,
    SessionExpired,
)
from broker_impl.zookeeper.jute import FrameReader, Reader, Record, frame
from broker_impl.zookeeper.records import (
    ConnectRequest,
    ConnectResponse,
    Nothing,
    Op,
    PathResponse,
    ReplyHeader,
    RequestHeader,
    SaslToken,
    WatcherEvent,
)
from tests.broker_impl.zookeeper.conftest import suspended

LOGIN = Login("broker", "secret")


class Script:
    """A server that behaves as the test scripts it, one connection after the other."""

    def __init__(self, *behaviours: Callable[["Script"], Awaitable[None]]) -> None:
        self.behaviours = list(behaviours)
        self.connects: list[ConnectRequest] = []
        self.port = 0
        self._frames = FrameReader()
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        try:
            behaviour = self.behaviours.pop(0)
            self.connects.append(ConnectRequest.read(await self.packet()))
            await behaviour(self)
        except (IndexError, asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def packet(self) -> Reader:
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        return Reader(await self._reader.readexactly(size))

    def send(self, *parts: Record) -> None:
        self._writer.write(frame(*parts))

    def accept(self, timeout_ms: int = 600) -> None:
        self.send(ConnectResponse(0, timeout_ms, 5, b"p" * 16, False))

    @asynccontextmanager
    async def client(self, login: Login | None = None) -> AsyncIterator[ZooKeeper]:
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        zk = ZooKeeper(
            f"127.0.0.1:{port}", session_timeout_ms=600, rng=random.Random(1), login=login
        )
        try:
            yield zk
        finally:
            await zk.close()
            server.close()
            await server.wait_closed()


async def silent(script: Script) -> None:
    """Accept the connection and never send anything."""
    await script.packet()


async def deaf(script: Script) -> None:
    """Accept the session and never send anything else."""
    script.accept()
    while True:
        await script.packet()


async def closing(script: Script) -> None:
    """Close without a reply, as a server does whose state is older than the client's."""


async def answering(script: Script) -> None:
    """Accept the session, answer one create with zxid 41, and close."""
    script.accept()
    while True:
        header = RequestHeader.read(await script.packet())
        body = PathResponse("/a") if header.op == Op.CREATE else Nothing()
        script.send(ReplyHeader(header.xid, 41, 0), body)
        if header.op == Op.CREATE:
            return


async def fleeting(script: Script) -> None:
    """Accept the session and close at once."""
    script.accept()


async def authenticating(script: Script) -> None:
    """Accept the session and the login of LOGIN."""
    script.accept()
    exchange = ServerExchange(dict([LOGIN]), lambda: "nonce")
    while (header := RequestHeader.read(packet := await script.packet())).op == Op.SASL:
        token = exchange.step(SaslToken.read(packet).token or b"")
        script.send(ReplyHeader(header.xid, 0, 0), SaslToken(token))


def saying(*parts: Record) -> Callable[[Script], Awaitable[None]]:
    """Accept the session and then send something that no server should send."""

    async def behaviour(script: Script) -> None:
        script.accept()
        await script.packet()
        script.send(*parts)
        await script.packet()

    return behaviour


async def test_a_silent_server_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    """A client leaves a silent server and connects again.

    It waits for a third of the session timeout in the handshake, and for two thirds later.
    """
    script = Script(silent, deaf, answering)
    async with script.client() as zk:
        loop = asyncio.get_running_loop()
        started = loop.time()
        await zk.start()
        assert 0.15 < loop.time() - started < 0.5
        with pytest.raises(ConnectionLoss):
            await zk.create("/a")
        assert 0.5 < loop.time() - started < 1.0
        await zk.connected()
        assert await zk.create("/a") == "/a"
    assert [connect.session_id for connect in script.connects[:3]] == [0, 0, 5]


async def test_a_server_that_is_behind_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client sends its last zxid at each attempt, and tries until a server is up to date."""
    script = Script(answering, closing, closing, answering)
    async with script.client() as zk:
        await zk.start()
        assert await zk.create("/a") == "/a"
        await suspended(zk)
        await zk.connected()
        assert zk.last_zxid == 41
    assert [connect.last_zxid_seen for connect in script.connects[:4]] == [0, 41, 41, 41]
    assert script.connects[3].password == b"p" * 16


@pytest.mark.parametrize(
    "parts",
    [
        (ReplyHeader(99, 1, 0), PathResponse("/a")),
        (ReplyHeader(-1, 1, 0), WatcherEvent(17, 3, "/a")),
        (ReplyHeader(-1, 1, 0),),
        (Nothing(),),
    ],
)
async def test_a_server_that_talks_nonsense_is_left(
    parts: tuple[Record, ...],
) -> None:
    """Replies out of order, unknown events and torn packets end the connection in doubt."""
    script = Script(saying(*parts), answering)
    async with script.client() as zk:
        await zk.start()
        with pytest.raises(ConnectionLoss):
            await zk.create("/a")
        await zk.connected()
        assert await zk.create("/a") == "/a"


async def test_a_connection_that_is_lost_with_its_handshake() -> None:
    """A connection that is lost right after its handshake is not reported, or its loss is too."""
    script = Script(fleeting, fleeting, answering)
    async with script.client() as zk:
        await zk.start()
        while True:
            try:
                assert await zk.create("/a") == "/a"
                break
            except ConnectionLoss:
                await zk.connected()


async def test_an_answer_to_a_handshake_that_was_given_up() -> None:
    """A handshake response after the client gave up is not read as a reply (docs/findings/0012).

    As a reply it would contain a zxid that no server has ever assigned, and no server would
    accept the session again.
    """
    zk = ZooKeeper("h:1", session_timeout_ms=600, rng=random.Random(1))
    connection = Connection(zk)
    shaking = asyncio.create_task(connection.shake_hands(ConnectRequest(0, 0, 600, 0, b"", False)))
    await asyncio.sleep(0)
    shaking.cancel()  # the deadline passes, and in the same turn of the event loop …
    connection.data_received(frame(ConnectResponse(0, 600, 5, b"p" * 16, False)))
    with pytest.raises(asyncio.CancelledError):
        await shaking
    assert zk.last_zxid == 0
    assert not connection.lost.done()


async def test_pauses_between_attempts_grow_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses between attempts double from 50 ms to 1 s; a draw shortens each by up to half."""
    pauses: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 8:
            await real(3600)

    zk = ZooKeeper("127.0.0.1:1", session_timeout_ms=1000, rng=random.Random(1))
    monkeypatch.setattr(asyncio, "sleep", sleep)
    starting = asyncio.ensure_future(zk.start())
    while len(pauses) < 8:
        await real(0)
    await zk.close()
    with pytest.raises(SessionExpired):
        await starting
    for pause, longest in zip(pauses, [0.05, 0.1, 0.2, 0.4, 0.8, 1, 1, 1], strict=True):
        assert longest / 2 <= pause <= longest


@pytest.mark.parametrize(
    "parts",
    [
        (ReplyHeader(1, 0, 0),),
        (ReplyHeader(1, 0, Code.UNIMPLEMENTED), Nothing()),
        (ReplyHeader(1, 0, Code.AUTH_FAILED), Nothing()),
    ],
)
async def test_a_login_that_a_server_cannot_answer_is_repeated(parts: tuple[Record, ...]) -> None:
    """A malformed token or an error ends the attempt, not the client."""
    script = Script(saying(*parts), authenticating)
    async with script.client(LOGIN) as zk:
        await zk.start()
        assert zk.connections == 1
    assert len(script.connects) == 2
