"""Connections and sessions of ZooKeeper's client."""

import asyncio
import random

import pytest

from broker_impl.zookeeper.client import SessionState, ZooKeeper
from broker_impl.zookeeper.client_watches import WatchEvent
from broker_impl.zookeeper.errors import (
    ConnectionLoss,
    NoNode,
    SessionExpired,
)
from broker_impl.zookeeper.records import (
    EventType,
)
from tests.broker_impl.zookeeper.conftest import Site, suspend


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
    assert site.server.serving.clients.keys() == {zk.session_id}


async def test_a_closed_client_is_done(site: Site) -> None:
    """A second close does nothing, and requests after the close are refused."""
    zk = await site.client()
    await zk.close()
    await zk.close()
    assert site.server.serving.database.sessions == {}
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
    assert await zk.children("/") == ["a", "b", "zookeeper"]


async def test_what_was_answered_is_a_sign_of_life(site: Site) -> None:
    """The owner learns when each handshake, request and ping was sent that was answered."""
    loop = asyncio.get_running_loop()
    contacts: list[tuple[float, bool]] = []
    before = loop.time()
    zk = await site.client(
        session_timeout_ms=150, on_contact=lambda sent, first: contacts.append((sent, first))
    )
    assert [first for _, first in contacts] == [True]
    sent = loop.time()
    with pytest.raises(NoNode):
        await zk.get("/a")
    assert [first for _, first in contacts] == [True, False]
    assert before < contacts[0][0] <= sent <= contacts[1][0] <= loop.time()
    async with asyncio.timeout(5.0):
        while len(contacts) < 4:  # noqa: ASYNC110 - pings are answered without any other sign
            await asyncio.sleep(0.01)
    assert contacts[2][0] - contacts[1][0] >= 0.04
    await suspend(site, zk)
    await zk.connected()
    assert [first for _, first in contacts].count(True) == 2
