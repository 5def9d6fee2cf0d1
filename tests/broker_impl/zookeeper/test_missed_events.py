"""Events that a client has missed, and gets when its watches are set again."""

import asyncio
import random

import pytest

from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.client_watches import WatchEvent
from broker_impl.zookeeper.digest_md5 import Login, ServerExchange
from broker_impl.zookeeper.records import (
    XID_EVENT,
    EventType,
    Op,
    ReplyHeader,
    RequestHeader,
    SetWatches,
    Stat,
    StatResponse,
    WatcherEvent,
)
from tests.broker_impl.zookeeper.conftest import Site, suspend
from tests.broker_impl.zookeeper.test_client_servers import Script

LOGIN = Login("broker", "secret")
STAT = Stat(1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1)


@pytest.mark.parametrize("login", [None, LOGIN])
async def test_a_login_hides_no_change(site: Site, login: Login | None) -> None:
    """A client that authenticates on its new connection gets the events that it has missed.

    The replies to the login show the server's present zxid, before the watches are set again.
    """
    site.server.logins = lambda: ServerExchange(dict([LOGIN]), lambda: "nonce")
    writer = await site.client()
    zk = ZooKeeper(
        f"127.0.0.1:{site.port}", session_timeout_ms=1000, rng=random.Random(1), login=login
    )
    site.clients.append(zk)
    await zk.start()
    await writer.create("/a")
    events: list[WatchEvent] = []
    await zk.get("/a", events.append)
    await zk.children("/a", events.append)
    await suspend(site, zk)
    await writer.set("/a", b"x")
    await writer.create("/a/b")
    await zk.connected()
    await zk.exists("/")
    assert sorted(events) == [
        WatchEvent(EventType.CHANGED, "/a"),
        WatchEvent(EventType.CHILD, "/a"),
    ]


async def test_one_of_two_events_of_a_transaction() -> None:
    """A client that has got the first event only sets its other watch from before both events."""
    found: list[SetWatches] = []

    async def first(script: Script) -> None:
        script.accept()
        for _ in ("/a", "/b"):
            header = RequestHeader.read(await script.packet())
            script.send(ReplyHeader(header.xid, 5, 0), StatResponse(STAT))
        script.send(ReplyHeader(XID_EVENT, 6, 0), WatcherEvent(EventType.CHANGED, 3, "/a"))

    async def second(script: Script) -> None:
        script.accept()
        packet = await script.packet()
        assert RequestHeader.read(packet).op == Op.SET_WATCHES
        found.append(SetWatches.read(packet))
        await script.packet()

    script = Script(first, second)
    async with script.client() as zk:
        await zk.start()
        events: list[WatchEvent] = []
        for path in ("/a", "/b"):
            await zk.exists(path, events.append)
        async with asyncio.timeout(10):
            while not found:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)
    assert events == [WatchEvent(EventType.CHANGED, "/a")]
    assert found == [SetWatches(5, ("/b",), (), ())]
    assert [connect.last_zxid_seen for connect in script.connects[:2]] == [0, 6]
