"""The unmodified kazoo client, an independent implementation, against this server."""

import asyncio
import itertools
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    InvalidACLError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.protocol.states import EventType, KazooState, WatchedEvent
from kazoo.recipe.watchers import ChildrenWatch, DataWatch
from kazoo.security import CREATOR_ALL_ACL, make_acl, make_digest_acl

from broker_impl.zookeeper.jute import frame
from broker_impl.zookeeper.records import (
    EPHEMERAL,
    OPEN_ACL,
    ConnectRequest,
    CreateRequest,
    Op,
    RequestHeader,
)
from tests.broker_impl.zookeeper.conftest import Site

WAIT_S = 10.0


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A server in a thread with an event loop of its own, because kazoo's clients block."""
    site = Site()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(site.start(), loop).result(WAIT_S)
    yield site.port
    asyncio.run_coroutine_threadsafe(site.stop(), loop).result(WAIT_S)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


Connect = Callable[..., KazooClient]
numbers = itertools.count()


@pytest.fixture
def connect(port: int) -> Iterator[Connect]:
    """Makes clients below a root of the test's own, and closes them at the end."""
    clients: list[KazooClient] = []
    root = f"/test-{next(numbers)}"

    def make(chroot: str = root, **options: Any) -> KazooClient:
        client = KazooClient(f"127.0.0.1:{port}{chroot}", timeout=1.0, **options)
        clients.append(client)
        client.start(WAIT_S)
        return client

    make("").ensure_path(root)
    yield make
    for client in clients:
        client.stop()
        client.close()


@pytest.fixture
def zk(connect: Connect) -> KazooClient:
    return connect()


def test_four_kinds_of_node(zk: KazooClient, connect: Connect) -> None:
    """A node is persistent or ephemeral, with a sequence number or without.

    Ephemeral nodes end with their session.
    """
    owner = connect()
    assert owner.create("/p", b"data") == "/p"
    assert owner.create("/s-", sequence=True) == "/s-0000000001"
    assert owner.create("/e", ephemeral=True) == "/e"
    assert owner.create("/es-", ephemeral=True, sequence=True) == "/es-0000000003"
    assert sorted(zk.get_children("/")) == ["e", "es-0000000003", "p", "s-0000000001"]
    assert zk.exists("/e").ephemeralOwner == owner.client_id[0]
    assert zk.exists("/p").ephemeralOwner == 0
    owner.stop()
    assert sorted(zk.get_children("/")) == ["p", "s-0000000001"]


def test_get_and_set_with_version(zk: KazooClient) -> None:
    """The version counts the sets, and a set with another version is refused."""
    path, stat = zk.create("/a", b"one", include_data=True)
    assert (path, stat.version, stat.dataLength) == ("/a", 0, 3)
    assert zk.get("/a") == (b"one", stat)
    assert zk.set("/a", b"two", version=0).version == 1
    with pytest.raises(BadVersionError):
        zk.set("/a", b"three", version=0)
    data, stat = zk.get("/a")
    assert (data, stat.version) == (b"two", 1)
    assert stat.mzxid > stat.czxid


def test_delete_exists_and_children(zk: KazooClient) -> None:
    """Existing nodes are found and listed, and deleted nodes are not."""
    zk.ensure_path("/a/b/c")
    children, stat = zk.get_children("/a", include_data=True)
    assert (children, stat.numChildren, stat.cversion) == (["b"], 1, 1)
    zk.delete("/a/b/c", version=0)
    assert zk.exists("/a/b/c") is None
    zk.delete("/a", recursive=True)
    assert zk.get_children("/") == []


def test_refusals(zk: KazooClient) -> None:
    """Each error of the server is raised as kazoo's exception for it."""
    zk.create("/a")
    zk.create("/a/b")
    zk.create("/e", ephemeral=True)
    refused: list[tuple[type[Exception], Callable[[], object]]] = [
        (NoNodeError, lambda: zk.get("/no")),
        (NoNodeError, lambda: zk.create("/no/child")),
        (NodeExistsError, lambda: zk.create("/a")),
        (NotEmptyError, lambda: zk.delete("/a")),
        (NoChildrenForEphemeralsError, lambda: zk.create("/e/child")),
        (BadVersionError, lambda: zk.delete("/a/b", version=7)),
    ]
    for error, ask in refused:
        with pytest.raises(error):
            ask()


def test_watches(zk: KazooClient, connect: Connect) -> None:
    """Watches of data, existence and children fire once, with the type of the change."""
    events: queue.Queue[WatchedEvent] = queue.Queue()
    writer = connect()
    writer.create("/a")
    zk.get("/a", watch=events.put)
    zk.exists("/b", watch=events.put)
    zk.get_children("/", watch=events.put)
    writer.set("/a", b"new")
    writer.set("/a", b"newer")
    writer.create("/b")
    writer.create("/c")
    seen = [(event.type, event.path) for event in (events.get(timeout=WAIT_S) for _ in range(3))]
    assert seen == [
        (EventType.CHANGED, "/a"),
        (EventType.CREATED, "/b"),
        (EventType.CHILD, "/"),
    ]
    zk.get("/a", watch=events.put)
    writer.delete("/a")
    assert events.get(timeout=WAIT_S).type == EventType.DELETED
    assert events.empty()


def test_transactions(zk: KazooClient) -> None:
    """A transaction takes effect as a whole, or fails with the error of the failed operation."""
    zk.create("/a", b"old")
    good = zk.transaction()
    good.create("/b", b"x", ephemeral=True)
    good.create("/s-", sequence=True)
    good.set_data("/a", b"new", version=0)
    good.check("/a", version=1)
    good.delete("/b")
    created, sequential, stat, checked, deleted = good.commit()
    assert (created, sequential, stat.version) == ("/b", "/s-0000000002", 1)
    assert (checked, deleted) == (True, True)
    bad = zk.transaction()
    bad.create("/c")
    bad.check("/a", version=0)
    bad.delete("/a")
    before, failed, after = bad.commit()
    assert isinstance(before, RolledBackError)
    assert isinstance(failed, BadVersionError)
    assert isinstance(after, RuntimeInconsistency)
    assert zk.exists("/c") is None


def test_a_chroot(zk: KazooClient, connect: Connect) -> None:
    """A client with a chroot sees that path as its root."""
    zk.ensure_path("/kafka")
    below = connect(f"{zk.chroot}/kafka")
    assert below.create("/brokers") == "/brokers"
    assert below.get_children("/") == ["brokers"]
    assert zk.get_children("/kafka") == ["brokers"]


def test_an_expired_session(zk: KazooClient, connect: Connect) -> None:
    """A client whose session expires is notified, loses its ephemeral nodes, gets a new session."""
    states: queue.Queue[KazooState] = queue.Queue()
    owner = connect()
    owner.create("/e", ephemeral=True)
    owner.add_listener(states.put)
    gone = threading.Event()
    assert zk.exists("/e", watch=lambda event: gone.set())
    before = owner.client_id
    connect(client_id=before).stop()  # this client takes over the session and ends it
    assert gone.wait(WAIT_S)
    seen: list[KazooState] = []
    while KazooState.LOST not in seen or seen[-1] != KazooState.CONNECTED:
        seen.append(states.get(timeout=WAIT_S))
    assert owner.client_id[0] != before[0]
    assert owner.exists("/e") is None


def test_a_silent_session_expires(zk: KazooClient, port: int) -> None:
    """A session without pings expires after its timeout, and watches of its nodes fire."""
    gone = threading.Event()
    path = f"{zk.chroot}/silent"
    with socket.create_connection(("127.0.0.1", port)) as silent:
        silent.sendall(frame(ConnectRequest(0, 0, 200, 0, bytes(16), False)))
        request = CreateRequest(path, b"", OPEN_ACL, EPHEMERAL)
        assert silent.recv(100)
        silent.sendall(frame(RequestHeader(1, Op.CREATE), request))
        assert silent.recv(100)
        began = time.monotonic()
        assert zk.exists("/silent", watch=lambda event: gone.set())
        assert gone.wait(WAIT_S)
        assert time.monotonic() - began > 0.15
        assert silent.recv(100) == b""


def test_a_lock_has_one_owner(zk: KazooClient, connect: Connect) -> None:
    """The clients that want a lock get it one after the other."""
    inside: list[str] = []
    most: list[int] = []

    def contend(client: KazooClient, name: str) -> None:
        for _ in range(5):
            with client.Lock("/lock", name):
                inside.append(name)
                most.append(len(inside))
                inside.remove(name)

    threads = [
        threading.Thread(target=contend, args=(connect(), f"contender-{number}"))
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert most == [1] * 20
    assert zk.get_children("/lock") == []


def test_recipes_that_watch(zk: KazooClient, connect: Connect) -> None:
    """DataWatch and ChildrenWatch see every change that is made one at a time."""
    writer = connect()
    data: queue.Queue[bytes | None] = queue.Queue()
    children: queue.Queue[list[str]] = queue.Queue()
    DataWatch(zk, "/a", lambda value, stat: data.put(value))
    assert data.get(timeout=WAIT_S) is None
    writer.create("/a", b"one")
    assert data.get(timeout=WAIT_S) == b"one"
    ChildrenWatch(zk, "/a", children.put)
    assert children.get(timeout=WAIT_S) == []
    writer.set("/a", b"two")
    assert data.get(timeout=WAIT_S) == b"two"
    writer.create("/a/b")
    assert children.get(timeout=WAIT_S) == ["b"]


def test_other_recipes(zk: KazooClient, connect: Connect) -> None:
    """Counter, party, queue, election and semaphore work on this server."""
    other = connect()
    counter = zk.Counter("/counter")
    counter += 3
    assert other.Counter("/counter").value == 3
    party = zk.Party("/party", "me")
    party.join()
    assert list(other.Party("/party", "you")) == ["me"]
    zk.Queue("/queue").put(b"item")
    assert other.Queue("/queue").get() == b"item"
    elected = threading.Event()
    zk.Election("/election", "me").run(elected.set)
    assert elected.is_set()
    with zk.Semaphore("/semaphore", max_leases=1):
        assert not other.Semaphore("/semaphore", max_leases=1).acquire(blocking=False)


def test_acls(zk: KazooClient, connect: Connect) -> None:
    """A node with a digest ACL is accessible only with the right credentials."""
    owner = connect(auth_data=[("digest", "alice:secret")])
    owner.create("/mine", b"x", acl=CREATOR_ALL_ACL)
    owner.create("/also", b"x", acl=[make_digest_acl("alice", "secret", all=True)])
    for path in ("/mine", "/also"):
        with pytest.raises(NoAuthError):
            zk.get(path)
        assert owner.get(path)[0] == b"x"
    zk.add_auth("digest", "alice:secret")
    assert zk.get("/mine")[0] == b"x"
    acl, stat = zk.get_acls("/mine")
    assert acl == [make_digest_acl("alice", "secret", all=True)]
    assert stat.aversion == 0
    readable = [make_acl("world", "anyone", read=True)]
    assert zk.set_acls("/mine", readable, version=0).aversion == 1
    with pytest.raises(NoAuthError):
        zk.set("/mine", b"y")
    with pytest.raises(InvalidACLError):
        zk.create("/bad", acl=[make_acl("nonsense", "x", read=True)])


def test_ip_acls_are_ranges(zk: KazooClient) -> None:
    """An ACL of the scheme ip may name a range of addresses.

    A client keeps access to a node that is open to its network, and loses it if the range
    excludes its address; create and setACL refuse an invalid address.
    """
    zk.create("/near", b"x", acl=[make_acl("ip", "127.0.0.0/8", all=True)])
    assert zk.get("/near")[0] == b"x"
    zk.set("/near", b"y")
    for bad in ("300.1.1.1", "127.0.0.1/33"):
        with pytest.raises(InvalidACLError):
            zk.create("/bad", acl=[make_acl("ip", bad, all=True)])
        with pytest.raises(InvalidACLError):
            zk.set_acls("/near", [make_acl("ip", bad, all=True)])
    zk.set_acls("/near", [make_acl("ip", "10.0.0.0/8", all=True)])
    with pytest.raises(NoAuthError):
        zk.get("/near")


def test_commands_and_version(zk: KazooClient) -> None:
    """kazoo can send four-letter words, and reads the server's version from one."""
    assert zk.server_version() == (3, 9, 3)
    assert zk.command(b"ruok") == "imok"
    assert "Mode: standalone" in zk.command(b"srvr")
    assert zk.sync("/") == "/"


def test_a_session_moves_to_a_new_connection(zk: KazooClient, connect: Connect) -> None:
    """A client that lost its connection reconnects to its session and its nodes."""
    suspended = threading.Event()
    owner = connect()
    owner.create("/e", ephemeral=True)
    session = owner.client_id
    owner.add_listener(lambda state: suspended.set())
    owner._connection._socket.shutdown(socket.SHUT_RDWR)
    assert suspended.wait(WAIT_S)
    assert owner.retry(owner.exists, "/e").ephemeralOwner == session[0]
    assert owner.client_id == session
