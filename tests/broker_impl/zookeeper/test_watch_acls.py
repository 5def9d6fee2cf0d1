"""Watches of clients that may not read the node that changes."""

from broker_impl.zookeeper.records import (
    Acl,
    AddWatch,
    AuthRequest,
    CreateRequest,
    EventType,
    Id,
    Op,
    PathVersion,
    PathWatch,
    SetDataRequest,
    WatchMode,
)
from tests.broker_impl.zookeeper.test_pipeline import Client, World, create

OWN = (Acl(31, Id("auth", "")),)


def identified(world: World) -> Client:
    """A client with an identity."""
    client = world.client()
    client.submit(Op.AUTH, AuthRequest(0, "digest", b"alice:secret"), xid=-4)
    client.taken()
    return client


def test_events_are_for_clients_that_may_read_the_node() -> None:
    """A watch on a path above shows no node that its client may not read (CVE-2024-23944)."""
    world = World()
    owner, friend, stranger = identified(world), identified(world), world.client()
    owner.ask(Op.CREATE, create("/open"))
    owner.ask(Op.CREATE, CreateRequest("/hidden", b"", OWN, 0))
    for client in (friend, stranger):
        client.ask(Op.ADD_WATCH, AddWatch("/", WatchMode.PERSISTENT_RECURSIVE))
        client.ask(Op.ADD_WATCH, AddWatch("/hidden", WatchMode.PERSISTENT))
        client.ask(Op.EXISTS, PathWatch("/hidden/a", True))
    owner.ask(Op.CREATE, CreateRequest("/hidden/a", b"", OWN, 0))
    owner.ask(Op.SET_DATA, SetDataRequest("/hidden/a", b"x", -1))
    owner.ask(Op.DELETE, PathVersion("/hidden/a", -1))
    owner.ask(Op.SET_DATA, SetDataRequest("/open", b"x", -1))
    assert friend.events() == [
        (EventType.CREATED, "/hidden/a"),
        (EventType.CHILD, "/hidden"),
        (EventType.CHANGED, "/hidden/a"),
        (EventType.DELETED, "/hidden/a"),
        (EventType.CHILD, "/hidden"),
        (EventType.CHANGED, "/open"),
    ]
    assert stranger.events() == [(EventType.CHANGED, "/open")]
