import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from broker_impl.zookeeper import client as client_module
from broker_impl.zookeeper.client import SessionState, WatchEvent, ZooKeeper
from broker_impl.zookeeper.connection import Connection
from broker_impl.zookeeper.errors import (
    BadArguments,
    BadVersion,
    ConnectionLoss,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    RuntimeInconsistency,
    SessionExpired,
    ZooKeeperError,
)
from broker_impl.zookeeper.jute import FrameReader, Reader, Record, frame
from broker_impl.zookeeper.multi import Check, Create, Delete, MultiFailed, SetData
from broker_impl.zookeeper.records import (
    ConnectRequest,
    ConnectResponse,
    EventType,
    Nothing,
    Op,
    PathResponse,
    ReplyHeader,
    RequestHeader,
    WatcherEvent,
)
from tests.broker_impl.zookeeper.conftest import Site

# Operations


async def test_a_node_from_beginning_to_end(site: Site) -> None:
    """create, get, set, exists and delete of a node return its present data, version and stat."""
    zk = await site.client()
    path, stat = await zk.create2("/a", b"one")
    assert path == "/a"
    assert await zk.get("/a") == (b"one", stat)
    assert (await zk.set("/a", b"two", version=0)).version == 1
    with pytest.raises(BadVersion):
        await zk.set("/a", b"three", version=0)
    assert (await zk.get("/a"))[0] == b"two"
    found = await zk.exists("/a")
    assert found is not None
    assert found.version == 1
    with pytest.raises(BadVersion):
        await zk.delete("/a", version=0)
    await zk.delete("/a", version=1)
    assert await zk.exists("/a") is None


async def test_four_kinds_of_node(site: Site) -> None:
    """A node is persistent or ephemeral, with a sequence number or without, or only a number."""
    zk = await site.client()
    await zk.create("/p")
    assert await zk.create("/p/s-", sequential=True) == "/p/s-0000000000"
    assert await zk.create("/p/", sequential=True) == "/p/0000000001"
    assert await zk.create("/p/es-", ephemeral=True, sequential=True) == "/p/es-0000000002"
    await zk.create("/p/e", ephemeral=True)
    assert await zk.children("/p") == ["0000000001", "e", "es-0000000002", "s-0000000000"]
    found = await zk.exists("/p/e")
    assert found is not None
    assert found.ephemeral_owner == zk.session_id
    await zk.close()
    other = await site.client()
    assert await other.children("/p") == ["0000000001", "s-0000000000"]


@pytest.mark.parametrize(
    ("error", "ask"),
    [
        (NoNode, lambda zk: zk.get("/no")),
        (NoNode, lambda zk: zk.children("/no")),
        (NoNode, lambda zk: zk.create("/no/child")),
        (NodeExists, lambda zk: zk.create("/a")),
        (NotEmpty, lambda zk: zk.delete("/a")),
        (NoChildrenForEphemerals, lambda zk: zk.create("/e/child")),
        (BadArguments, lambda zk: zk.get("relative")),
        (BadArguments, lambda zk: zk.create("/a/")),
        (BadArguments, lambda zk: zk.delete("/")),
    ],
)
async def test_what_the_server_refuses_is_raised(
    site: Site, error: type[ZooKeeperError], ask: Callable[[ZooKeeper], Awaitable[object]]
) -> None:
    """Each error of the server is raised as an exception class of its own."""
    zk = await site.client()
    await zk.ensure_path("/a/b")
    await zk.create("/e", ephemeral=True)
    with pytest.raises(error):
        await ask(zk)


async def test_multi_gives_a_result_for_each(site: Site) -> None:
    """A multi returns paths, stats and None, in the order of the operations."""
    zk = await site.client()
    await zk.create("/a")
    created, sequential, stat, checked, deleted = await zk.multi(
        [
            Create("/b", b"x", ephemeral=True),
            Create("/s-", sequential=True),
            SetData("/a", b"y", 0),
            Check("/a", 1),
            Delete("/b"),
        ]
    )
    assert (created, sequential, checked, deleted) == ("/b", "/s-0000000002", None, None)
    assert stat == await zk.exists("/a")
    assert await zk.multi([]) == []


async def test_a_multi_that_fails_says_which_and_why(site: Site) -> None:
    """A failed multi reports which operation failed and why, and changes nothing."""
    zk = await site.client()
    await zk.create("/a")
    with pytest.raises(MultiFailed) as failed:
        await zk.multi([Create("/b"), Create("/a"), Delete("/a")])
    assert failed.value.index == 1
    assert isinstance(failed.value.error, NodeExists)
    before, refused, after = failed.value.errors
    assert before is None
    assert refused is failed.value.error
    assert isinstance(after, RuntimeInconsistency)
    assert await zk.exists("/b") is None


async def test_a_chroot_is_invisible_from_below(site: Site) -> None:
    """A client with a chroot uses paths below it in requests, replies and events."""
    zk = await site.client("/kafka/one")
    with pytest.raises(NoNode):
        await zk.create("/a")
    await zk.ensure_path("/")
    events: list[WatchEvent] = []
    await zk.children("/", events.append)
    assert await zk.create("/a", sequential=True) == "/a0000000000"
    [path] = await zk.multi([Create("/b")])
    assert path == "/b"
    assert await zk.exists("/nothing", events.append) is None
    await zk.create("/nothing")
    assert events == [
        WatchEvent(EventType.CHILD, "/"),
        WatchEvent(EventType.CREATED, "/nothing"),
    ]
    other = await site.client()
    assert await other.children("/kafka/one") == ["a0000000000", "b", "nothing"]


async def test_ensure_path_creates_what_is_missing(site: Site) -> None:
    """ensure_path creates the missing nodes of a path, and accepts existing ones."""
    zk = await site.client()
    await zk.ensure_path("/a/b/c")
    await zk.ensure_path("/a/b/c")
    await zk.ensure_path("/")
    assert await zk.children("/a/b") == ["c"]


async def test_requests_are_answered_in_order_without_waiting(site: Site) -> None:
    """Many concurrent requests are answered in their order."""
    zk = await site.client()
    paths = await asyncio.gather(*[zk.create("/s-", sequential=True) for _ in range(300)])
    assert paths == sorted(paths)


# Watches


async def test_watches_fire_once_and_say_what_they_saw(site: Site) -> None:
    """Watches of data, existence and children fire once per change, however often they were set."""
    zk, writer = await site.client(), await site.client()
    await writer.create("/a")
    events: list[WatchEvent] = []
    await zk.get("/a", events.append)
    await zk.get("/a", events.append)
    await zk.exists("/a", events.append)
    await zk.children("/a", events.append)
    await zk.exists("/b", events.append)
    await writer.set("/a", b"")
    await writer.set("/a", b"")
    await writer.create("/b")
    await writer.delete("/a")
    await zk.exists("/")
    assert events == [
        WatchEvent(EventType.CHANGED, "/a"),
        WatchEvent(EventType.CREATED, "/b"),
        WatchEvent(EventType.DELETED, "/a"),
    ]


async def test_a_failed_get_watches_nothing(site: Site) -> None:
    """A get of a missing node sets no watch; only exists does."""
    zk = await site.client()
    events: list[WatchEvent] = []
    with pytest.raises(NoNode):
        await zk.get("/a", events.append)
    await zk.create("/a")
    await zk.exists("/")
    assert events == []


async def test_an_event_comes_before_the_data_it_tells_of(site: Site) -> None:
    """A client gets the event of a change before it reads the new data."""
    zk, writer = await site.client(), await site.client()
    await writer.create("/a", b"old")
    order: list[object] = []
    assert (await zk.get("/a", order.append))[0] == b"old"
    setting = asyncio.ensure_future(writer.set("/a", b"new"))
    while b"new" not in order:
        order.append((await zk.get("/a"))[0])
    await setting
    assert order.index(WatchEvent(EventType.CHANGED, "/a")) < order.index(b"new")


async def test_watches_outlive_their_connection(site: Site) -> None:
    """Watches survive a lost connection.

    Changes in the meantime are reported at the reconnection, later changes when they happen.
    """
    zk, writer = await site.client(), await site.client()
    for path in ("/changed", "/gone", "/parent", "/quiet"):
        await writer.create(path)
    events: list[WatchEvent] = []
    for path in ("/changed", "/gone", "/quiet"):
        await zk.get(path, events.append)
    await zk.children("/parent", events.append)
    await zk.exists("/new", events.append)
    await zk.exists("/later", events.append)
    await suspend(site, zk)
    await writer.set("/changed", b"")
    await writer.delete("/gone")
    await writer.create("/parent/child")
    await writer.create("/new")
    await zk.connected()
    await zk.exists("/")
    assert sorted(events) == [
        WatchEvent(EventType.CREATED, "/new"),
        WatchEvent(EventType.DELETED, "/gone"),
        WatchEvent(EventType.CHANGED, "/changed"),
        WatchEvent(EventType.CHILD, "/parent"),
    ]
    await writer.set("/quiet", b"")
    await writer.create("/later")
    await zk.exists("/")
    assert events[4:] == [
        WatchEvent(EventType.CHANGED, "/quiet"),
        WatchEvent(EventType.CREATED, "/later"),
    ]


async def test_many_watches_are_set_again_in_several_packets(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many watches are set again in several packets, each below the server's limit."""
    monkeypatch.setattr(client_module, "SET_WATCHES_BYTES_MAX", 200)
    zk = await site.client()
    events: list[WatchEvent] = []
    paths = [f"/node-{number:03d}" for number in range(50)]
    for path in paths:
        await zk.exists(path, events.append)
    await suspend(site, zk)
    await zk.connected()
    for path in paths:
        await zk.create(path)
    assert [event.path for event in events] == paths


# Connection and session


async def suspend(site: Site, zk: ZooKeeper) -> None:
    """Cut the client's connection at the server, and wait until the client knows."""
    connection = site.server.pipeline.clients[zk.session_id]
    [same] = [one for one in site.server.connections if one is connection]
    same.abort()
    await suspended(zk)


async def suspended(zk: ZooKeeper) -> None:
    while zk.state is SessionState.CONNECTED:  # noqa: ASYNC110 - a callback would only set a flag
        await asyncio.sleep(0)


async def test_states_are_told_in_order(site: Site) -> None:
    """The states of a connection are reported in order, from connecting to closed."""
    states: list[SessionState] = []
    zk = await site.client(on_state=states.append)
    session_id = zk.session_id
    for _ in range(2):
        await suspend(site, zk)
        await zk.connected()
    assert zk.session_id == session_id
    await zk.close()
    await asyncio.sleep(0)
    assert states == [
        SessionState.CONNECTED,
        SessionState.SUSPENDED,
        SessionState.CONNECTED,
        SessionState.SUSPENDED,
        SessionState.CONNECTED,
        SessionState.CLOSED,
    ]


async def test_what_a_lost_connection_has_cut_off_is_in_doubt(site: Site) -> None:
    """Requests without a reply raise ConnectionLoss, as do new ones until the reconnection."""
    zk = await site.client()
    cut_off = [asyncio.ensure_future(zk.create(f"/{number}")) for number in range(3)]
    await suspend(site, zk)
    for request in cut_off:
        with pytest.raises(ConnectionLoss):
            await request
    with pytest.raises(ConnectionLoss):
        await zk.get("/")
    await zk.connected()
    assert await zk.create("/again") == "/again"


async def test_a_session_survives_a_restart_of_the_server(site: Site) -> None:
    """A session survives a restart of the server, with its ephemeral nodes and watches."""
    zk = await site.client()
    await zk.create("/e", ephemeral=True)
    events: list[WatchEvent] = []
    await zk.get("/e", events.append)
    session_id = zk.session_id
    await site.stop()
    with pytest.raises(ConnectionLoss):
        await zk.get("/")
    await site.start()
    await zk.connected()
    assert (await zk.get("/e"))[1].ephemeral_owner == zk.session_id == session_id
    await zk.set("/e", b"")
    assert events == [WatchEvent(EventType.CHANGED, "/e")]


async def test_an_expired_session_is_final(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client learns from the server, on reconnecting, that its session has expired.

    The session then stays expired.
    """
    states: list[SessionState] = []
    zk = await site.client(session_timeout_ms=200, on_state=states.append)
    witness = await site.client()
    await zk.create("/e", ephemeral=True)
    gone = asyncio.get_running_loop().create_future()
    await witness.get("/e", gone.set_result)
    admits = site.server.admits
    monkeypatch.setattr(site.server, "admits", lambda host: False)
    await suspend(site, zk)
    assert await gone == WatchEvent(EventType.DELETED, "/e")
    assert zk.state is SessionState.SUSPENDED
    monkeypatch.setattr(site.server, "admits", admits)
    with pytest.raises(SessionExpired):
        await zk.connected()
    with pytest.raises(SessionExpired):
        await zk.get("/")
    await zk.close()
    assert states == [SessionState.CONNECTED, SessionState.SUSPENDED, SessionState.EXPIRED]


async def test_pings_keep_a_quiet_session(site: Site) -> None:
    """Pings keep the session of a client without requests alive, over one connection."""
    states: list[SessionState] = []
    zk = await site.client(session_timeout_ms=100, on_state=states.append)
    await asyncio.sleep(0.4)
    assert states == [SessionState.CONNECTED]
    assert site.server.pipeline.clients.keys() == {zk.session_id}


async def test_a_closed_client_is_done(site: Site) -> None:
    """A second close does nothing, and requests after the close are refused."""
    zk = await site.client()
    await zk.close()
    await zk.close()
    assert site.server.pipeline.database.sessions == {}
    with pytest.raises(SessionExpired):
        await zk.get("/")


async def test_a_client_can_give_up_before_it_ever_connected() -> None:
    """Closing a client that never connected ends its attempts; `start` raises SessionExpired."""
    zk = ZooKeeper("127.0.0.1:1", session_timeout_ms=1000, rng=random.Random(1))
    starting = asyncio.ensure_future(zk.start())
    await asyncio.sleep(0)
    await zk.close()
    with pytest.raises(SessionExpired):
        await starting
    assert zk.state is SessionState.CLOSED


async def test_a_cancelled_request_disturbs_nobody(site: Site) -> None:
    """The reply to a cancelled request is dropped, and later requests get their own replies."""
    zk = await site.client()
    cancelled = asyncio.ensure_future(zk.create("/a"))
    await asyncio.sleep(0)
    cancelled.cancel()
    assert await zk.create("/b") == "/b"
    assert await zk.children("/") == ["a", "b"]


@pytest.mark.parametrize(
    ("connect", "servers"),
    [
        ("h:1", [("h", 1)]),
        ("h", [("h", 2181)]),
        ("h:1,[::1]:2,i:3/x/y", [("::1", 2), ("h", 1), ("i", 3)]),
    ],
)
def test_connect_strings(connect: str, servers: list[tuple[str, int]]) -> None:
    """A connect string has hosts, with or without ports, IPv6 in brackets, and a chroot."""
    zk = ZooKeeper(connect, session_timeout_ms=1000, rng=random.Random(1))
    assert sorted(zk.servers) == servers
    with pytest.raises(BadArguments):
        ZooKeeper("h:1/a//b", session_timeout_ms=1000, rng=random.Random(1))


def test_the_order_of_servers_comes_from_the_seed() -> None:
    """The order of servers is drawn from the random generator."""
    orders = [
        ZooKeeper(
            ",".join(f"h{number}:1" for number in range(9)),
            session_timeout_ms=1000,
            rng=random.Random(seed),
        ).servers
        for seed in (1, 1, 2)
    ]
    assert orders[0] == orders[1] != orders[2]


# Servers that misbehave


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
    async def client(self) -> AsyncIterator[ZooKeeper]:
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        zk = ZooKeeper(f"127.0.0.1:{port}", session_timeout_ms=600, rng=random.Random(1))
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
