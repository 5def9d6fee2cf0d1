from collections.abc import Sequence

import pytest

from broker_impl.errors import StorageError
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.zookeeper import standalone
from broker_impl.zookeeper.digest_md5 import ServerExchange
from broker_impl.zookeeper.errors import Code
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.records import (
    EPHEMERAL,
    OPEN_ACL,
    XID_EVENT,
    XID_SET_WATCHES,
    Acl,
    AddWatch,
    AuthRequest,
    ConnectRequest,
    ConnectResponse,
    CreateRequest,
    EventType,
    GetAclResponse,
    GetChildren2Response,
    GetChildrenResponse,
    GetDataResponse,
    Id,
    Nothing,
    Number,
    Op,
    PathRequest,
    PathResponse,
    PathVersion,
    PathWatch,
    PathWatcherType,
    ReconfigRequest,
    ReplyHeader,
    RequestHeader,
    SetDataRequest,
    SetWatches,
    SetWatches2,
    WatcherEvent,
    WatcherType,
    WatchMode,
)
from broker_impl.zookeeper.store import Store
from broker_impl.zookeeper.tree import Database
from broker_impl.zookeeper.txn_records import Proposal


class Ledger(Store):
    """A log that records the number of transactions of each append, and fails on demand."""

    def __init__(self) -> None:
        super().__init__(MemoryDisk())
        self.batches: list[int] = []
        self.fails = False

    def recover(self) -> Database:
        return Database()

    def append(self, proposals: Sequence[Proposal]) -> None:
        if self.fails:
            raise StorageError("planned failure")
        self.batches.append(len(proposals))

    def applied(self, database: Database) -> None:
        assert database.last_zxid == sum(self.batches)


class Client:
    """A connection that keeps what it was sent."""

    def __init__(self, world: "World") -> None:
        self.session_id = 0
        self.ids: tuple[Id, ...] = (Id("ip", "127.0.0.1"),)
        self.login = ServerExchange({}, str)
        self.is_open = True
        self.answers = 0
        self.sent: list[tuple[Record, ...]] = []
        self._world = world
        self._xid = 0

    def send(self, *parts: Record) -> None:
        if self.is_open:
            self.sent.append(parts)

    def answered(self, op: int, xid: int, zxid: int, now: float, seconds: float) -> None:
        assert zxid == self._world.pipeline.last_zxid
        self.answers += 1

    def close(self) -> None:
        self.is_open = False
        self._world.pipeline.disconnected(self)

    def connect(self, session_id: int = 0, password: bytes = b"", **other: int) -> ConnectResponse:
        request = ConnectRequest(
            0, other.get("last_zxid_seen", 0), 4000, session_id, password, read_only=False
        )
        self._world.pipeline.connect(self, request)
        self._world.pipeline.turn()
        [response] = self.sent.pop()
        assert isinstance(response, ConnectResponse)
        return response

    def submit(self, op: int, body: Record | None, xid: int | None = None) -> None:
        self._xid += 1
        header = RequestHeader(self._xid if xid is None else xid, op)
        self._world.pipeline.submit(self, header, body)

    def ask(self, op: int, body: Record | None) -> tuple[int, Record]:
        """Send one request, and return the error code and body of its reply, the only packet."""
        self.submit(op, body)
        self._world.pipeline.turn()
        [(header, response)] = self.taken()
        assert isinstance(header, ReplyHeader)
        assert header.xid == self._xid
        return header.error, response

    def taken(self) -> list[tuple[Record, ...]]:
        sent, self.sent = self.sent, []
        return sent

    def events(self) -> list[tuple[int, str]]:
        """The watch events that were sent, which must be the only packets."""
        events = []
        for header, event in self.taken():
            assert isinstance(header, ReplyHeader)
            assert header.xid == XID_EVENT
            assert isinstance(event, WatcherEvent)
            events.append((event.type, event.path))
        return events


class World:
    """A pipeline with a clock of its own."""

    def __init__(self) -> None:
        self.now = 100.0
        self.ledger = Ledger()
        self.pipeline = standalone.pipeline(
            History(self.ledger),
            secret=b"secret",
            tick_ms=1000,
            wall_ms=lambda: 12345,
            clock=lambda: self.now,
        )

    def client(self) -> Client:
        client = Client(self)
        client.connect()
        return client


@pytest.fixture
def world() -> World:
    return World()


def create(path: str, flags: int = 0) -> CreateRequest:
    return CreateRequest(path, b"x", OPEN_ACL, flags)


def test_one_sync_for_all_that_came_together(world: World) -> None:
    """Group commit: the writes of one turn are appended at once, and answered in their order."""
    one, two = world.client(), world.client()
    one.submit(Op.CREATE, create("/a"))
    two.submit(Op.CREATE, create("/b"))
    one.submit(Op.CREATE, create("/a"))
    world.pipeline.turn()
    assert world.ledger.batches == [1, 1, 3]
    assert one.taken() == [
        (ReplyHeader(1, 3, 0), PathResponse("/a")),
        (ReplyHeader(2, 5, Code.NODE_EXISTS), Nothing()),
    ]
    assert two.taken() == [(ReplyHeader(1, 4, 0), PathResponse("/b"))]


def test_reads_stand_in_the_same_queue(world: World) -> None:
    """A read sees the writes before it in the queue, and none of those after it."""
    client = world.client()
    client.submit(Op.EXISTS, PathWatch("/a", False))
    client.submit(Op.CREATE, create("/a"))
    client.submit(Op.GET_DATA, PathWatch("/a", False))
    client.submit(Op.SET_DATA, SetDataRequest("/a", b"y", -1))
    world.pipeline.turn()
    before, _, after, _ = client.taken()
    assert before[0] == ReplyHeader(1, 1, Code.NO_NODE)
    assert isinstance(after[1], GetDataResponse)
    assert after[1].data == b"x"


def test_nobody_is_answered_when_the_ledger_fails(world: World) -> None:
    """If the append fails, its writes are neither acknowledged nor visible."""
    client = world.client()
    world.ledger.fails = True
    client.submit(Op.CREATE, create("/a"))
    with pytest.raises(StorageError):
        world.pipeline.turn()
    assert client.sent == []
    assert "/a" not in world.pipeline.database.nodes


def test_ones_own_event_comes_before_the_reply(world: World) -> None:
    """A client gets the event of its own change before the reply."""
    client = world.client()
    client.ask(Op.EXISTS, PathWatch("/a", True))
    client.submit(Op.CREATE, create("/a"))
    world.pipeline.turn()
    event, reply = client.taken()
    assert event == (ReplyHeader(XID_EVENT, 2, 0), WatcherEvent(EventType.CREATED, 3, "/a"))
    assert reply == (ReplyHeader(2, 2, 0), PathResponse("/a"))


@pytest.mark.parametrize(
    ("op", "path", "event"),
    [
        (Op.EXISTS, "/a", (EventType.DELETED, "/a")),
        (Op.EXISTS, "/new", (EventType.CREATED, "/new")),
        (Op.GET_DATA, "/a", (EventType.DELETED, "/a")),
        (Op.GET_DATA, "/new", None),
        (Op.GET_CHILDREN, "/a", (EventType.DELETED, "/a")),
        (Op.GET_CHILDREN2, "/", (EventType.CHILD, "/")),
        (Op.GET_CHILDREN2, "/new", None),
    ],
)
def test_which_read_sets_which_watch(
    world: World, op: Op, path: str, event: tuple[EventType, str] | None
) -> None:
    """exists also sets a watch on a missing node; other reads only on the node that they read."""
    writer, watcher = world.client(), world.client()
    writer.ask(Op.CREATE, create("/a"))
    watcher.ask(op, PathWatch(path, True))
    writer.ask(Op.CREATE, create("/new"))
    writer.ask(Op.DELETE, PathVersion("/a", -1))
    assert watcher.events() == ([event] if event else [])


def test_a_session_goes_on_over_a_new_connection(world: World) -> None:
    """With its password a session moves to a new connection.

    The old connection is closed, and its watches are removed.
    """
    old = Client(world)
    session = old.connect()
    old.ask(Op.CREATE, create("/e", EPHEMERAL))
    old.ask(Op.GET_DATA, PathWatch("/e", True))
    new = Client(world)
    again = new.connect(session.session_id, session.password or b"")
    assert again == session
    assert not old.is_open
    new.ask(Op.SET_DATA, SetDataRequest("/e", b"y", -1))
    assert (old.sent, len(world.pipeline.watches)) == ([], 0)


def test_a_wrong_password_is_an_expired_session_and_harms_nobody(world: World) -> None:
    """A wrong password is answered as an expired session, and the session's own connection stays.

    ZooKeeper 3.8.0 closes it.
    """
    owner = Client(world)
    session = owner.connect()
    for thief_id, password in ((session.session_id, b"?" * 16), (12345, session.password or b"")):
        thief = Client(world)
        refused = thief.connect(thief_id, password)
        assert (refused.timeout_ms, refused.session_id) == (0, 0)
        assert not thief.is_open
    assert owner.is_open
    assert owner.ask(Op.CREATE, create("/a")) == (0, PathResponse("/a"))


def test_who_has_seen_more_than_us_is_sent_away(world: World) -> None:
    """A client with a later zxid than this server's is disconnected without a reply.

    It then tries another server, so that no client sees the state go back.
    """
    client = Client(world)
    request = ConnectRequest(0, 99, 4000, 0, b"", read_only=False)
    world.pipeline.connect(client, request)
    world.pipeline.turn()
    assert (client.is_open, client.sent) == (False, [])


def test_a_silent_session_expires_with_its_nodes(world: World) -> None:
    """A silent session expires with its nodes; watches fire, and its connection is closed."""
    silent, witness = world.client(), world.client()
    silent.ask(Op.CREATE, create("/e", EPHEMERAL))
    witness.ask(Op.GET_DATA, PathWatch("/e", True))
    for _ in range(6):
        world.now += 1
        witness.submit(Op.PING, Nothing())
        world.pipeline.expire()
        world.pipeline.turn()
    headers = witness.taken()
    assert (
        ReplyHeader(XID_EVENT, world.pipeline.database.last_zxid, 0),
        WatcherEvent(EventType.DELETED, 3, "/e"),
    ) in headers
    assert not silent.is_open
    assert witness.is_open
    assert list(world.pipeline.clients) == [witness.session_id]


def test_a_lost_connection_leaves_the_session(world: World) -> None:
    """After a lost connection the session keeps its nodes until it expires, but not its watches."""
    client = world.client()
    client.ask(Op.CREATE, create("/e", EPHEMERAL))
    client.ask(Op.GET_DATA, PathWatch("/e", True))
    client.close()
    assert len(world.pipeline.watches) == 0
    assert "/e" in world.pipeline.database.nodes
    assert list(world.pipeline.database.sessions) == [client.session_id]


def test_what_a_lost_connection_has_asked_happens_or_is_forgotten(world: World) -> None:
    """Of the requests of a lost connection, writes take effect, and reads set no watches."""
    client = world.client()
    client.submit(Op.CREATE, create("/a"))
    client.submit(Op.GET_DATA, PathWatch("/a", True))
    client.close()
    world.pipeline.turn()
    assert "/a" in world.pipeline.database.nodes
    assert len(world.pipeline.watches) == 0


def test_a_closed_session_is_answered_and_its_connection_closed(world: World) -> None:
    """The reply to closeSession is sent before the connection is closed; the session is gone."""
    client = Client(world)
    session = client.connect()
    client.submit(Op.CLOSE_SESSION, Nothing())
    client.submit(Op.CREATE, create("/late"))
    world.pipeline.turn()
    assert client.taken() == [(ReplyHeader(1, 2, 0), Nothing())]
    assert not client.is_open
    assert Client(world).connect(session.session_id, session.password or b"").timeout_ms == 0
    assert "/late" not in world.pipeline.database.nodes


def test_a_connection_lost_in_the_handshake_leaves_a_session_to_expire(world: World) -> None:
    """A connection that is lost in the handshake leaves a session that expires."""
    client = Client(world)
    world.pipeline.connect(client, ConnectRequest(0, 0, 2000, 0, b"", read_only=False))
    client.close()
    world.pipeline.turn()
    assert len(world.pipeline.database.sessions) == 1
    world.now += 4
    world.pipeline.expire()
    world.pipeline.turn()
    assert world.pipeline.database.sessions == {}


def test_watches_set_again_tell_first_what_was_missed(world: World) -> None:
    """SetWatches sends events for missed changes, then the reply, and sets the other watches."""
    writer, watcher = world.client(), world.client()
    for path in ("/kept", "/set", "/gone", "/parent"):
        writer.ask(Op.CREATE, create(path))
    since = world.pipeline.database.last_zxid
    writer.ask(Op.SET_DATA, SetDataRequest("/set", b"y", -1))
    writer.ask(Op.DELETE, PathVersion("/gone", -1))
    writer.ask(Op.CREATE, create("/parent/child"))
    writer.ask(Op.CREATE, create("/new"))
    request = SetWatches(
        since,
        data=("/kept", "/set", "/gone"),
        exist=("/new", "/absent"),
        child=("/kept", "/parent", "/gone"),
    )
    watcher.submit(Op.SET_WATCHES, request, xid=XID_SET_WATCHES)
    world.pipeline.turn()
    *events, reply = watcher.taken()
    told = [(event.type, event.path) for _, event in events if isinstance(event, WatcherEvent)]
    assert told == [
        (EventType.CHANGED, "/set"),
        (EventType.DELETED, "/gone"),
        (EventType.CREATED, "/new"),
        (EventType.CHILD, "/parent"),
        (EventType.DELETED, "/gone"),
    ]
    assert {header for header, _ in events} == {ReplyHeader(XID_EVENT, -1, 0)}
    assert isinstance(reply[0], ReplyHeader)
    assert reply[0].xid == XID_SET_WATCHES
    assert len(world.pipeline.watches) == 3


def test_persistent_watches(world: World) -> None:
    """Persistent watches fire repeatedly, are restored by SetWatches2, and can be removed."""
    writer, watcher = world.client(), world.client()
    assert watcher.ask(Op.ADD_WATCH, AddWatch("/a", WatchMode.PERSISTENT)) == (0, Number(0))
    assert watcher.ask(Op.ADD_WATCH, AddWatch("/", WatchMode.PERSISTENT_RECURSIVE))[0] == 0
    assert watcher.ask(Op.ADD_WATCH, AddWatch("/", 7))[0] == Code.BAD_ARGUMENTS
    writer.ask(Op.CREATE, create("/a"))
    writer.ask(Op.CREATE, create("/a/b"))
    assert watcher.events() == [
        (EventType.CREATED, "/a"),
        (EventType.CREATED, "/a/b"),
        (EventType.CHILD, "/a"),
    ]
    again = world.client()
    request = SetWatches2(0, (), (), (), ("/a",), ("/",))
    again.submit(Op.SET_WATCHES2, request, xid=XID_SET_WATCHES)
    world.pipeline.turn()
    again.taken()
    assert len(world.pipeline.watches) == 4
    find = PathWatcherType("/a", WatcherType.ANY)
    assert again.ask(Op.CHECK_WATCHES, find)[0] == 0
    assert again.ask(Op.REMOVE_WATCHES, find)[0] == 0
    assert again.ask(Op.REMOVE_WATCHES, find)[0] == Code.NO_WATCHER


def test_reads(world: World) -> None:
    """Each read returns what it asks for, also of the root, whose path may be empty."""
    client = world.client()
    client.ask(Op.CREATE, create("/a"))
    client.ask(Op.CREATE, create("/a/e", EPHEMERAL))
    stat = world.pipeline.database.nodes["/a"].stat()
    root = world.pipeline.database.nodes["/"].stat()
    for op, body, answer in [
        (Op.GET_DATA, PathWatch("/a", False), GetDataResponse(b"x", stat)),
        (Op.GET_DATA, PathWatch("", False), GetDataResponse(b"", root)),
        (Op.GET_CHILDREN, PathWatch("/a", False), GetChildrenResponse(("e",))),
        (Op.GET_CHILDREN2, PathWatch("/a", False), GetChildren2Response(("e",), stat)),
        (Op.GET_ACL, PathRequest("/a"), GetAclResponse(OPEN_ACL, stat)),
        (Op.SYNC, PathRequest("/a"), PathResponse("/a")),
        (Op.GET_EPHEMERALS, PathRequest("/a"), GetChildrenResponse(("/a/e",))),
        (Op.GET_EPHEMERALS, PathRequest("/b"), GetChildrenResponse(())),
        (Op.GET_ALL_CHILDREN_NUMBER, PathRequest("/"), Number(5)),
        (Op.PING, Nothing(), Nothing()),
    ]:
        assert client.ask(op, body) == (0, answer)
    assert client.ask(Op.RECONFIG, ReconfigRequest("", "", "", -1))[0] == Code.RECONFIG_DISABLED
    assert client.ask(Op.GET_DATA, PathWatch("/no", False))[0] == Code.NO_NODE


def test_acls_keep_readers_out(world: World) -> None:
    """Without READ permission all reads are refused; without ADMIN, a reader sees no digests."""
    client, owner = world.client(), world.client()
    owner.submit(Op.AUTH, AuthRequest(0, "digest", b"alice:secret"), xid=-4)
    assert owner.taken() == [(ReplyHeader(-4, 2, 0),)]
    acl = (Acl(31, Id("auth", "")),)
    assert owner.ask(Op.CREATE, CreateRequest("/a", b"x", acl, 0))[0] == 0
    for op, body in [
        (Op.EXISTS, PathWatch("/a", False)),
        (Op.GET_DATA, PathWatch("/a", True)),
        (Op.GET_CHILDREN, PathWatch("/a", True)),
        (Op.GET_ACL, PathRequest("/a")),
        (Op.GET_ALL_CHILDREN_NUMBER, PathRequest("/a")),
    ]:
        assert client.ask(op, body)[0] == Code.NO_AUTH
        assert owner.ask(op, body)[0] == 0
    reader = (Acl(1, Id("world", "anyone")), *world.pipeline.database.nodes["/a"].acl)
    assert owner.ask(Op.CREATE, CreateRequest("/b", b"x", reader, 0))[0] == 0
    error, response = client.ask(Op.GET_ACL, PathRequest("/b"))
    assert error == 0
    assert isinstance(response, GetAclResponse)
    assert response.acl[1].id == Id("digest", "alice:x")


def test_an_ip_is_no_secret_and_no_claim(world: World) -> None:
    """Credentials of the scheme `ip` change nothing: the server uses the connection's address."""
    client = world.client()
    client.submit(Op.AUTH, AuthRequest(0, "ip", b"10.0.0.1"), xid=-4)
    assert client.taken() == [(ReplyHeader(-4, 1, 0),)]
    assert client.ids == (Id("ip", "127.0.0.1"),)


def test_credentials_that_prove_nothing_end_the_connection(world: World) -> None:
    """Credentials of an unknown scheme are answered AUTH_FAILED, and the connection is closed."""
    client = world.client()
    client.submit(Op.AUTH, AuthRequest(0, "kerberos", b"x"), xid=-4)
    assert client.taken() == [(ReplyHeader(-4, 1, Code.AUTH_FAILED),)]
    assert not client.is_open


def test_an_unknown_operation_ends_the_connection(world: World) -> None:
    """An unknown operation, or a check outside a multi (ZOOKEEPER-2623), ends the connection.

    It is answered UNIMPLEMENTED first.
    """
    for op in (Op.CHECK, 77):
        client = world.client()
        assert client.ask(op, None)[0] == Code.UNIMPLEMENTED
        assert not client.is_open
