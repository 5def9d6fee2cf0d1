"""kazoo's watches and the recipes that are made of them, also when their server ends."""

import queue
import threading

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.states import EventType, WatchedEvent
from kazoo.recipe.cache import TreeCache, TreeEvent
from kazoo.recipe.watchers import PatientChildrenWatch

from tests.broker_impl.zookeeper.kazoo.conftest import WAIT_S, Connect, Ensemble

pytestmark = [pytest.mark.slow, pytest.mark.prove]


def take(events: "queue.Queue[WatchedEvent]", number: int) -> list[tuple[str, str | None]]:
    """Return the types and paths of the next events."""
    taken = [events.get(timeout=WAIT_S) for _ in range(number)]
    return [(event.type, event.path) for event in taken]


def test_watches_fire_once_for_the_writes_of_other_servers(
    following: KazooClient, other: KazooClient
) -> None:
    """A watch fires once, with the type and path of the change, in the order of the changes."""
    events: queue.Queue[WatchedEvent] = queue.Queue()
    other.create("/a")
    following.sync("/")
    following.get("/a", watch=events.put)
    assert following.exists("/b", watch=events.put) is None
    following.get_children("/", watch=events.put)
    other.set("/a", b"new")
    other.set("/a", b"newer")
    other.create("/b")
    other.create("/c")
    assert take(events, 3) == [
        (EventType.CHANGED, "/a"),
        (EventType.CREATED, "/b"),
        (EventType.CHILD, "/"),
    ]
    following.sync("/")
    following.get("/a", watch=events.put)
    following.get_children("/a", watch=events.put)
    other.delete("/a")
    assert take(events, 2) == [(EventType.DELETED, "/a")] * 2
    following.sync("/")
    assert events.empty()


def test_a_watch_fires_before_the_change_can_be_read(
    following: KazooClient, other: KazooClient
) -> None:
    """A client that reads new data has received the event before, and the event means new data.

    kazoo removes a watch when the event arrives, and calls it in another thread.
    """
    other.create("/a")
    following.sync("/")
    for number in range(50):
        fired = threading.Event()
        data, _ = following.get("/a", watch=lambda event, fired=fired: fired.set())
        other.set_async("/a", b"%d" % number)
        while following.get("/a")[0] == data:
            assert not fired.wait(0) or following.get("/a")[0] != data
        assert not following._data_watchers.get(f"{following.chroot}/a")
        assert fired.wait(WAIT_S)


def test_the_event_of_an_own_write_comes_before_its_reply(following: KazooClient) -> None:
    """A client that changes what it watches has received the event when the write returns."""
    following.create("/a")
    for number in range(20):
        following.get("/a", watch=lambda event: None)
        following.set("/a", b"%d" % number)
        assert not following._data_watchers.get(f"{following.chroot}/a")


def test_watches_of_a_transaction(following: KazooClient, other: KazooClient) -> None:
    """The watches of all operations of a transaction fire in the order of the operations."""
    events: queue.Queue[WatchedEvent] = queue.Queue()
    other.create("/b")
    following.sync("/")
    for path in ("/c", "/b", "/a"):
        following.exists(path, watch=events.put)
    with other.transaction() as request:
        request.create("/a")
        request.set_data("/b", b"x")
        request.create("/c")
    assert take(events, 3) == [
        (EventType.CREATED, "/a"),
        (EventType.CHANGED, "/b"),
        (EventType.CREATED, "/c"),
    ]


def test_a_patient_watch_waits_for_rest(following: KazooClient, other: KazooClient) -> None:
    """The children are returned once they have not changed for a time, and the next change is."""
    other.ensure_path("/a")
    other.create("/a/b")
    following.sync("/")
    children, changed = PatientChildrenWatch(following, "/a", 0.1).start().get(timeout=WAIT_S)
    assert children == ["b"]
    assert not changed.ready()
    other.create("/a/c")
    assert changed.get(timeout=WAIT_S)


class Follower:
    """A client whose server ends, and another one that writes meanwhile."""

    def __init__(self, ensemble: Ensemble, connect: Connect) -> None:
        self._ensemble = ensemble
        self.server, elsewhere = ensemble.followers
        self.client = connect(self.server)
        self.writer = connect(elsewhere)

    def end(self) -> None:
        """End the client's server."""
        self._ensemble.kill(self.server)

    def start(self) -> None:
        """Start the server again."""
        self._ensemble.start(self.server)


@pytest.fixture
def follower(ensemble: Ensemble, connect: Connect) -> Follower:
    return Follower(ensemble, connect)


def test_data_and_children_watches_survive_their_server(follower: Follower) -> None:
    """DataWatch and ChildrenWatch see changes before, during and after a change of the server."""
    data: queue.Queue[bytes | None] = queue.Queue()
    children: queue.Queue[list[str]] = queue.Queue()
    zk, writer = follower.client, follower.writer
    zk.DataWatch("/a", lambda value, stat: data.put(value))
    assert data.get(timeout=WAIT_S) is None
    writer.create("/a", b"one")
    assert data.get(timeout=WAIT_S) == b"one"
    zk.ChildrenWatch("/a", children.put)
    assert children.get(timeout=WAIT_S) == []
    session = zk.client_id
    follower.end()
    writer.set("/a", b"two")
    writer.create("/a/b")
    assert data.get(timeout=WAIT_S) == b"two"
    assert children.get(timeout=WAIT_S) == ["b"]
    follower.start()
    writer.set("/a", b"three")
    writer.create("/a/c")
    assert data.get(timeout=WAIT_S) == b"three"
    assert sorted(children.get(timeout=WAIT_S)) == ["b", "c"]
    assert zk.client_id == session
    assert data.empty()
    assert children.empty()


def test_a_lost_watch_is_reported(follower: Follower) -> None:
    """kazoo does not set plain watches again on a new connection: it reports them as lost."""
    events: queue.Queue[WatchedEvent] = queue.Queue()
    follower.client.exists("/a", watch=events.put)
    follower.end()
    assert take(events, 1) == [(EventType.NONE, None)]
    follower.writer.create("/a")
    zk = follower.client
    zk.retry(zk.sync, "/")
    assert zk.exists("/a", watch=events.put)
    follower.writer.delete("/a")
    assert take(events, 1) == [(EventType.DELETED, "/a")]
    follower.start()


def test_a_tree_cache(follower: Follower) -> None:
    """A cache has the subtree and reports its changes, also those made while it had no server."""
    events: queue.Queue[tuple[int, str | None]] = queue.Queue()
    zk, writer = follower.client, follower.writer
    writer.create("/tree/a", b"one", makepath=True)
    zk.sync("/")
    cache = TreeCache(zk, "/tree")
    cache.listen(
        lambda event: events.put((event.event_type, event.event_data and event.event_data.path))
    )
    cache.start()

    def until(last: tuple[int, str | None]) -> list[tuple[int, str | None]]:
        seen = [events.get(timeout=WAIT_S)]
        while seen[-1] != last:
            seen.append(events.get(timeout=WAIT_S))
        return seen

    assert sorted(until((TreeEvent.INITIALIZED, None))[:-1]) == [
        (TreeEvent.NODE_ADDED, "/tree"),
        (TreeEvent.NODE_ADDED, "/tree/a"),
    ]
    writer.set("/tree/a", b"two")
    until((TreeEvent.NODE_UPDATED, "/tree/a"))
    assert cache.get_data("/tree/a").data == b"two"
    writer.create("/tree/a/b", b"deep")
    until((TreeEvent.NODE_ADDED, "/tree/a/b"))
    follower.end()
    writer.delete("/tree/a/b")
    writer.create("/tree/c")
    seen = {*until((TreeEvent.NODE_ADDED, "/tree/c"))}
    if (removed := (TreeEvent.NODE_REMOVED, "/tree/a/b")) not in seen:
        seen |= {*until(removed)}
    assert (TreeEvent.CONNECTION_SUSPENDED, None) in seen
    assert cache.get_children("/tree") == {"a", "c"}
    assert cache.get_children("/tree/a") == frozenset()
    assert cache.get_data("/tree/a/b") is None
    cache.close()
    follower.start()
