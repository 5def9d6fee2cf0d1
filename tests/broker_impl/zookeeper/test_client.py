"""Operations of ZooKeeper's client, and the servers that it chooses."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.client_watches import WatchEvent
from broker_impl.zookeeper.errors import (
    BadArguments,
    BadVersion,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    RuntimeInconsistency,
    ZooKeeperError,
)
from broker_impl.zookeeper.multi import Check, Create, Delete, MultiFailed, SetData
from broker_impl.zookeeper.records import (
    EventType,
)
from tests.broker_impl.zookeeper.conftest import Site


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
