"""Watches of ZooKeeper's client, also over lost connections."""

import asyncio

import pytest

from broker_impl.zookeeper import client as client_module
from broker_impl.zookeeper import watches
from broker_impl.zookeeper.client_watches import WatchEvent
from broker_impl.zookeeper.errors import NoNode, NoWatcher
from broker_impl.zookeeper.records import EventType
from tests.broker_impl.zookeeper.conftest import Site, suspend


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


async def test_a_persistent_watch_fires_for_every_change(site: Site) -> None:
    """It reports changes of the node and of the list of its children, with their transactions."""
    zk, writer = await site.client(), await site.client()
    await zk.create("/a")
    events: list[WatchEvent] = []
    await zk.add_watch("/a", events.append)
    zxids = [(await writer.set("/a", b"")).mzxid for _ in range(2)]
    await writer.create("/a/b")
    await writer.set("/a/b", b"")
    await writer.delete("/a/b")
    await zk.exists("/")
    assert events == [
        WatchEvent(EventType.CHANGED, "/a"),
        WatchEvent(EventType.CHANGED, "/a"),
        WatchEvent(EventType.CHILD, "/a"),
        WatchEvent(EventType.CHILD, "/a"),
    ]
    assert [event.zxid for event in events[:2]] == zxids


async def test_a_recursive_watch_reports_the_nodes_below(site: Site) -> None:
    """It reports changes of all nodes below, of which other watches are called as well."""
    zk, writer = await site.client("/chroot"), await site.client("/chroot")
    await zk.ensure_path("/a")
    events: list[WatchEvent] = []
    once: list[WatchEvent] = []
    await zk.add_watch("/a", events.append, recursive=True)
    await zk.exists("/a/b", once.append)
    await writer.create("/a/b")
    await writer.set("/a/b", b"")
    await writer.delete("/a/b")
    await writer.create("/b")
    await zk.exists("/")
    kinds = (EventType.CREATED, EventType.CHANGED, EventType.DELETED)
    assert events == [WatchEvent(kind, "/a/b") for kind in kinds]
    assert once == [WatchEvent(EventType.CREATED, "/a/b")]


async def test_a_persistent_watch_is_removed_on_request_only(site: Site) -> None:
    """After the removal there are no events, and nothing to remove."""
    zk, writer = await site.client(), await site.client()
    await zk.create("/a")
    events: list[WatchEvent] = []
    await zk.add_watch("/a", events.append)
    await writer.set("/a", b"")
    await zk.remove_watches("/a")
    await writer.set("/a", b"")
    await zk.exists("/")
    assert len(events) == 1
    with pytest.raises(NoWatcher):
        await zk.remove_watches("/a")


async def test_persistent_watches_outlive_their_connection(site: Site) -> None:
    """They are set again, and miss what happened meanwhile; removed ones are not set again."""
    zk, writer = await site.client(), await site.client()
    for path in ("/a", "/b", "/c"):
        await writer.create(path)
    events: list[WatchEvent] = []
    await zk.add_watch("/a", events.append)
    await zk.add_watch("/b", events.append, recursive=True)
    await zk.add_watch("/c", events.append)
    await zk.remove_watches("/c")
    await zk.get("/c", events.append)
    await suspend(site, zk)
    for path in ("/a", "/b", "/c"):
        await writer.set(path, b"")
    await zk.connected()
    await zk.exists("/")
    assert events == [WatchEvent(EventType.CHANGED, "/c")]
    await writer.set("/a", b"")
    await writer.create("/b/c")
    await writer.set("/c", b"")
    await zk.exists("/")
    assert events[1:] == [
        WatchEvent(EventType.CHANGED, "/a"),
        WatchEvent(EventType.CREATED, "/b/c"),
    ]


async def test_an_event_without_a_watch_is_a_stray(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner of the client gets events for which no watch is set, and no others."""
    strays: list[WatchEvent] = []
    zk, writer = await site.client(on_stray=strays.append), await site.client()
    await writer.create("/a")
    events: list[WatchEvent] = []
    await zk.get("/a", events.append)
    await writer.set("/a", b"")
    await zk.exists("/")
    assert (len(events), strays) == (1, [])
    monkeypatch.setattr(watches, "is_one_shot", lambda kind: False)
    await zk.get("/a", events.append)
    await writer.set("/a", b"")
    await writer.set("/a", b"")
    await zk.exists("/")
    assert (len(events), strays) == (2, [WatchEvent(EventType.CHANGED, "/a")])
