import pytest

from broker_impl.zookeeper.records import EventType, WatcherType
from broker_impl.zookeeper.tree import Change
from broker_impl.zookeeper.watches import Kind, WatchTable

CREATED, DELETED, CHANGED, CHILD = (
    EventType.CREATED,
    EventType.DELETED,
    EventType.CHANGED,
    EventType.CHILD,
)


@pytest.mark.parametrize(
    ("kind", "fired_by"),
    [
        (Kind.DATA, {CREATED, CHANGED, DELETED}),
        (Kind.CHILD, {CHILD, DELETED}),
        (Kind.PERSISTENT, {CREATED, CHANGED, DELETED, CHILD}),
        (Kind.RECURSIVE, {CREATED, CHANGED, DELETED}),
    ],
)
def test_what_fires_a_watch(kind: Kind, fired_by: set[EventType]) -> None:
    """Each kind of watch fires at its own types of changes of its node only."""
    for type_ in EventType:
        table: WatchTable[str] = WatchTable()
        table.add(kind, "/a", "me")
        assert table.trigger(Change(type_, "/a")) == (["me"] if type_ in fired_by else [])
        assert table.trigger(Change(type_, "/b")) == []


@pytest.mark.parametrize("kind", [Kind.DATA, Kind.CHILD])
def test_a_one_shot_watch_fires_once(kind: Kind) -> None:
    """A one-shot watch fires once, however often it was set."""
    table: WatchTable[str] = WatchTable()
    table.add(kind, "/a", "me")
    table.add(kind, "/a", "me")
    assert table.trigger(Change(DELETED, "/a")) == ["me"]
    assert table.trigger(Change(DELETED, "/a")) == []
    assert (len(table), table.watchers, table.paths) == (0, 0, 0)


@pytest.mark.parametrize("kind", [Kind.PERSISTENT, Kind.RECURSIVE])
def test_a_persistent_watch_stays(kind: Kind) -> None:
    """A persistent watch fires repeatedly."""
    table: WatchTable[str] = WatchTable()
    table.add(kind, "/a", "me")
    assert [table.trigger(Change(CHANGED, "/a")) for _ in range(2)] == [["me"], ["me"]]


def test_a_recursive_watch_sees_what_happens_below() -> None:
    """A recursive watch fires for descendants at any depth, except for changes of children.

    It does not fire for other nodes with the same prefix.
    """
    table: WatchTable[str] = WatchTable()
    table.add(Kind.RECURSIVE, "/a", "me")
    assert table.trigger(Change(CREATED, "/a/b/c")) == ["me"]
    assert table.trigger(Change(CHILD, "/a/b")) == []
    assert table.trigger(Change(CREATED, "/ab")) == []


def test_one_event_per_connection() -> None:
    """A connection with several watches that one change fires gets one event, as do others."""
    table: WatchTable[str] = WatchTable()
    for kind in Kind:
        table.add(kind, "/a", "me")
    table.add(Kind.CHILD, "/a", "you")
    assert table.trigger(Change(DELETED, "/a")) == ["me", "you"]


def test_watches_go_with_their_connection() -> None:
    """Closing a connection removes all its watches, and no others."""
    table: WatchTable[str] = WatchTable()
    for kind in Kind:
        table.add(kind, "/a", "me")
        table.add(kind, "/a", "you")
    table.forget("me")
    table.forget("nobody")
    assert table.trigger(Change(CHANGED, "/a")) == ["you"]
    table.forget("you")
    assert len(table) == 0


@pytest.mark.parametrize(
    ("type_", "found"),
    [
        (WatcherType.DATA, [Kind.DATA]),
        (WatcherType.CHILDREN, [Kind.CHILD]),
        (WatcherType.ANY, [Kind.DATA, Kind.CHILD, Kind.PERSISTENT]),
        (9, []),
    ],
)
def test_watches_can_be_removed_by_type(type_: int, found: list[Kind]) -> None:
    """A removal by type removes the kinds of watches that the type stands for."""
    table: WatchTable[str] = WatchTable()
    for kind in (Kind.DATA, Kind.CHILD, Kind.PERSISTENT):
        table.add(kind, "/a", "me")
    assert table.find("/a", type_, "me") == found
    assert table.find("/a", type_, "you") == []
    table.remove(found, "/a", "me")
    assert table.find("/a", type_, "me") == []
