"""Both libraries behave as one session: requests, outcomes, watches, and the session's end."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable

import pytest

from broker_impl.zookeeper.client import SessionState
from tests.broker_impl.zookeeper.conftest import TICK_MS, Site
from workloads.client.zk_asyncio import AsyncioSession
from workloads.client.zk_kazoo import KazooSession
from workloads.client.zk_session import (
    WATCH_LOST,
    Change,
    Check,
    Create,
    Delete,
    Event,
    NotSent,
    Rejected,
    Session,
    SetData,
    Stat,
    Unknown,
)

TIMEOUT_MS = 600
Open = Callable[[], Session]


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    await site.start()
    yield site
    await site.stop()


@pytest.fixture(params=["asyncio", "kazoo"])
async def make(request: pytest.FixtureRequest, site: Site) -> AsyncIterator[Open]:
    """Makes sessions, and closes them at the end."""
    made: list[Session] = []

    def session() -> Session:
        servers = f"127.0.0.1:{site.port}"
        if request.param == "kazoo":
            made.append(KazooSession(servers, timeout_ms=TIMEOUT_MS))
        else:
            made.append(AsyncioSession(servers, timeout_ms=TIMEOUT_MS, rng=random.Random(1)))
        return made[-1]

    yield session
    for each in made:
        if not each.has_ended:
            await each.close()


@pytest.fixture
async def zk(make: Open) -> Session:
    session = make()
    await session.open()
    return session


async def test_a_session_is_not_given_to_an_intruder(zk: Session, make: Open) -> None:
    """A client with a wrong password gets nothing, and the owner goes on."""
    other = make()
    await other.open()
    assert await other.intrude(zk.id) is False
    assert await create(zk, "/mine") == "/mine"
    assert zk.connections == 1


async def create(zk: Session, path: str, data: str = "", *, ephemeral: bool = False) -> str:
    return await zk.create(path, data, ephemeral=ephemeral, sequential=False)


async def test_requests(zk: Session) -> None:
    """Each request has its result, and the zxid of its reply."""
    assert await create(zk, "/a", "1") == "/a"
    assert await zk.create("/a/n-", "", ephemeral=True, sequential=True) == "/a/n-0000000000"
    after = await zk.set("/a", "2", 0)
    assert after.version == 1
    assert zk.zxid == after.mzxid > after.czxid
    data, stat = await zk.get("/a")
    assert (data, stat.mzxid, stat.owner) == ("2", after.mzxid, 0)
    assert (await zk.children("/a"))[0] == ["n-0000000000"]
    owned = await zk.exists("/a/n-0000000000")
    assert owned is not None
    assert owned.owner == zk.id
    await zk.sync("/a")
    await zk.delete("/a/n-0000000000")
    assert await zk.exists("/a/n-0000000000") is None
    assert zk.connections == 1


async def test_rejections(zk: Session) -> None:
    """The server's answer that a request was not executed has one name in both libraries."""
    await create(zk, "/a")
    for request, why in (
        (lambda: create(zk, "/a"), "node-exists"),
        (lambda: zk.set("/a", "1", 7), "bad-version"),
        (lambda: zk.delete("/b"), "no-node"),
        (lambda: zk.multi([SetData("/a", "1"), Check("/a", 7)]), "bad-version of part 1"),
    ):
        with pytest.raises(Rejected) as rejected:
            await request()
        assert str(rejected.value) == why
    assert (await zk.get("/a"))[0] == ""


async def test_multi(zk: Session) -> None:
    """All parts are executed, with the results of sets and creations."""
    await create(zk, "/a")
    results = await zk.multi(
        [Check("/a", 0), Create("/b", "1", True), SetData("/a", "2"), Delete("/b")]
    )
    assert [results[0], results[1], results[3]] == [None, "/b", None]
    assert isinstance(results[2], Stat)
    assert results[2].mzxid == zk.zxid


async def test_an_event_comes_before_the_read_that_shows_the_change(
    zk: Session, make: Open
) -> None:
    """A watch is called once, and before the reply to a later read."""
    await create(zk, "/a", "0")
    events: list[Event] = []
    await zk.get("/a", events.append)
    other = make()
    await other.open()
    await other.set("/a", "1")
    while (await zk.get("/a"))[0] == "0":
        assert events == []
    assert events == [("changed", "/a")]
    await other.set("/a", "2")
    await zk.sync("/a")
    await zk.get("/a")
    assert len(events) == 1


async def test_a_lost_connection_leaves_a_write_in_doubt(zk: Session, site: Site) -> None:
    """The server ends while a write is open; then nothing is sent until the session is back."""
    await create(zk, "/a")
    first = zk.id
    write = asyncio.ensure_future(zk.set("/a", "1"))
    await asyncio.sleep(0)
    await site.stop()
    with pytest.raises((Unknown, NotSent)):
        await write
    while True:
        try:
            await zk.connected(0.01)
        except NotSent:
            break
    await site.start()
    await zk.connected(5.0)
    assert (await zk.get("/a"))[0] in ("", "1")
    assert zk.connections == 2
    assert zk.id == first


async def test_close_deletes_ephemeral_znodes(zk: Session, make: Open) -> None:
    """A confirmed end of the session deletes its ephemeral znodes at once."""
    await create(zk, "/a", ephemeral=True)
    other = make()
    await other.open()
    before = zk.zxid
    assert await zk.close() is True
    assert zk.zxid > before  # that of the end
    assert zk.has_ended
    assert zk.life.silent_s is None  # it has not expired
    await other.sync("/")
    assert await other.exists("/a") is None
    with pytest.raises(NotSent):
        await zk.get("/a")


@pytest.mark.slow
async def test_an_abandoned_session_expires(zk: Session, make: Open) -> None:
    """Ephemeral znodes stay until the session has expired."""
    await create(zk, "/a", ephemeral=True)
    other = make()
    await other.open()
    gone = asyncio.Event()
    await zk.abandon()
    assert zk.has_ended
    assert await other.exists("/a", lambda event: gone.set()) is not None
    async with asyncio.timeout(5.0):
        await gone.wait()


@pytest.mark.slow
async def test_an_expired_session_has_ended(
    zk: Session, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library may begin another session; the client does not use it."""
    await create(zk, "/a", ephemeral=True)
    due = [zk.id]
    tracker = site.server.serving.tracker
    monkeypatch.setattr(tracker, "expired", lambda now: [due.pop()] if due else [])
    async with asyncio.timeout(5.0):
        while not zk.has_ended:  # noqa: ASYNC110 - the client reports it in no other way
            await asyncio.sleep(0.01)
    assert zk.life.silent_s is not None
    assert 0 < zk.life.silent_s < 5.0
    with pytest.raises(NotSent):
        await zk.get("/a")


async def test_the_silence_is_known_when_the_session_has_ended(site: Site) -> None:
    """A session ends for its user together with how long it was silent, and not before."""
    zk = AsyncioSession(f"127.0.0.1:{site.port}", timeout_ms=TIMEOUT_MS, rng=random.Random(1))
    await zk.open()
    zk._zk._enter(SessionState.EXPIRED)
    assert (zk.has_ended, zk.life.silent_s) == (False, None)
    with pytest.raises(NotSent):
        await zk.get("/a")
    await asyncio.sleep(0)
    assert zk.has_ended
    assert zk.life.silent_s is not None
    await zk.abandon()


async def test_a_watch_is_not_forgotten_silently(zk: Session, site: Site, make: Open) -> None:
    """After a reconnection the watch is set still, or its owner was notified that it is lost."""
    await create(zk, "/a")
    events: list[Event] = []
    await zk.get("/a", events.append)
    await site.stop()
    await site.start()
    async with asyncio.timeout(5.0):
        while zk.connections < 2:  # noqa: ASYNC110 - it may not know yet that the first one is lost
            await asyncio.sleep(0.01)
    other = make()
    await other.open()
    await other.set("/a", "1")
    await zk.sync("/a")
    assert [kind for kind, _ in events] in (["changed"], [WATCH_LOST])


async def test_signs_of_life(zk: Session) -> None:
    """The granted timeout is known, and each answer is a sign of life at the time of its send."""
    loop = asyncio.get_running_loop()
    assert zk.life.timeout_s == TIMEOUT_MS / 1000
    assert zk.life.last_s is not None
    assert zk.life.last_s < loop.time()
    before = loop.time()
    with pytest.raises(Rejected):
        await zk.get("/a")
    assert before <= zk.life.last_s <= loop.time()
    assert zk.life.silent_s is None


async def test_a_timeout_that_no_server_grants(site: Site) -> None:
    """What counts is what the server has granted: at most 20 of its ticks."""
    for session in (
        KazooSession(f"127.0.0.1:{site.port}", timeout_ms=60_000),
        AsyncioSession(f"127.0.0.1:{site.port}", timeout_ms=60_000, rng=random.Random(1)),
    ):
        await session.open()
        assert session.life.timeout_s == 20 * TICK_MS / 1000
        await session.close()


async def test_persistent_watches(site: Site) -> None:
    """The asyncio client reports each change until the watch is removed; kazoo has none."""
    zk = AsyncioSession(f"127.0.0.1:{site.port}", timeout_ms=TIMEOUT_MS, rng=random.Random(1))
    await zk.open()
    await create(zk, "/a")
    seen: list[Change] = []
    await zk.observe("/a", seen.append, recursive=True)
    stats = [await zk.set("/a", "1"), await zk.set("/a", "2")]
    assert seen == [Change("changed", "/a", stat.mzxid) for stat in stats]
    await zk.unobserve("/a")
    await zk.set("/a", "3")
    assert (len(seen), zk.strays()) == (2, [])
    with pytest.raises(Rejected, match="no-watcher"):
        await zk.unobserve("/a")
    await zk.close()
    kazoo = KazooSession(f"127.0.0.1:{site.port}", timeout_ms=TIMEOUT_MS)
    with pytest.raises(NotSent, match="no persistent watches"):
        await kazoo.observe("/a", seen.append, recursive=False)
    with pytest.raises(NotSent, match="no persistent watches"):
        await kazoo.unobserve("/a")
    assert kazoo.strays() == []
    await kazoo.close()
