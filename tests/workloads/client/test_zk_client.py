"""What ZooKeeper's client makes of the answers of a session: ok, fail and info."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from model.op import Op
from workloads.client.zk_client import HANDLERS, ZooKeeperClient
from workloads.client.zk_session import (
    Event,
    NotSent,
    Part,
    Rejected,
    Stat,
    Unknown,
    Watch,
)

STAT = Stat(czxid=1, mzxid=5, pzxid=1, version=1, cversion=0, owner=0)


class Fake:
    """A session whose requests have these answers, in order: results or errors."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Any, ...]] = []
        self.watches: list[Watch] = []
        self.id, self.zxid, self.connections = 7, 5, 1
        self.has_ended = self.has_expired = False
        self.timeout_ms = 4000
        self.unasked: list[Event] = []
        self.on_request: Callable[[], None] = lambda: None

    async def _answer(self, *asked: Any) -> Any:
        self.asked.append(asked)
        self.on_request()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def open(self) -> None:
        """Start at once."""

    async def connected(self, timeout_s: float) -> None:
        """Be connected always."""

    async def close(self) -> bool:
        self.has_ended = True
        return bool(await self._answer("close"))

    async def abandon(self) -> None:
        self.has_ended = True

    async def create(self, path: str, data: str, *, ephemeral: bool, sequential: bool) -> str:
        return str(await self._answer("create", path, ephemeral, sequential))

    async def delete(self, path: str, version: int = -1) -> None:
        await self._answer("delete", path, version)

    async def set(self, path: str, data: str, version: int = -1) -> Stat:
        found: Stat = await self._answer("set", path, data, version)
        return found

    async def get(self, path: str, watch: Watch | None = None) -> tuple[str, Stat]:
        if watch is not None:
            self.watches.append(watch)
        found: tuple[str, Stat] = await self._answer("get", path)
        return found

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        if watch is not None:
            self.watches.append(watch)
        found: Stat | None = await self._answer("exists", path)
        return found

    async def children(self, path: str, watch: Watch | None = None) -> tuple[list[str], Stat]:
        found: tuple[list[str], Stat] = await self._answer("children", path)
        return found

    async def multi(self, parts: Sequence[Part]) -> list[Stat | str | None]:
        found: list[Stat | str | None] = await self._answer("multi", *parts)
        return found

    async def intrude(self, session: int) -> bool:
        return bool(await self._answer("intrude", session))

    async def sync(self, path: str) -> None:
        await self._answer("sync", path)


async def done(fake: Fake, f: str, **value: Any) -> Op:
    """Invoke an operation on a session, and return its completion."""
    client = ZooKeeperClient(fake, (), patience_s=1.0, wait_s=0.01)
    return await client.invoke(Op(index=0, time_ns=0, process=0, type="invoke", f=f, value=value))


@pytest.mark.parametrize(
    ("f", "value", "error", "kind"),
    [
        ("set", {"path": "/a", "data": "1"}, Rejected("bad-version"), "fail"),
        ("set", {"path": "/a", "data": "1"}, NotSent("suspended"), "fail"),
        ("set", {"path": "/a", "data": "1"}, Unknown("connection-loss"), "info"),
        ("create", {"path": "/a", "data": "1"}, Unknown("session-expired"), "info"),
        ("delete", {"path": "/a"}, Unknown("connection-loss"), "info"),
        ("multi", {"path": "/", "parts": [["delete", "/a"]]}, Unknown("connection-loss"), "info"),
        ("get", {"path": "/a"}, Unknown("connection-loss"), "fail"),
        ("children", {"path": "/a"}, Unknown("connection-loss"), "fail"),
        ("enqueue", {"path": "/a", "data": "1"}, Unknown("connection-loss"), "info"),
        ("elect", {"path": "/o", "epoch_path": "/e"}, Unknown("connection-loss"), "fail"),
    ],
)
async def test_outcomes_of_one_request(
    f: str, value: dict[str, Any], error: Exception, kind: str
) -> None:
    """Only an answer makes a write certain to have failed; a read has no effect anyway."""
    found = await done(Fake(error), f, **value)
    assert (found.type, found.error) == (kind, str(error))
    assert found.value["session"] == 7
    assert found.value["zxid"] == 5


async def test_what_a_completion_says_of_its_session() -> None:
    """Events without a watch are recorded once, and that the session has expired, always."""
    fake = Fake(("1", STAT), Unknown("session-expired"))
    client = ZooKeeperClient(fake, (), patience_s=1.0, wait_s=0.01)
    op = Op(index=0, time_ns=0, process=0, type="invoke", f="get", value={"path": "/a"})
    fake.unasked.append(("changed", "/a"))
    first = await client.invoke(op)
    assert first.value["unasked"] == [["changed", "/a"]]
    assert "expired_ms" not in first.value
    fake.has_expired = True
    second = await client.invoke(op)
    assert "unasked" not in second.value
    assert second.value["expired_ms"] == 4000


@pytest.mark.parametrize("granted", [True, False])
async def test_an_intruder_changes_nothing(granted: bool) -> None:
    """The answer is recorded; without one nothing is known, and nothing was written."""
    fake = Fake(granted, NotSent("no server"))
    client = ZooKeeperClient(fake, (), patience_s=1.0, wait_s=0.01)
    value = {"place": "/s", "victim": 9}
    op = Op(index=0, time_ns=0, process=0, type="invoke", f="intrude", value=value)
    answered = await client.invoke(op)
    assert (answered.type, answered.value["granted"]) == ("ok", granted)
    assert fake.asked == [("intrude", 9)]
    assert (await client.invoke(op)).type == "fail"


async def test_a_znode_that_is_absent() -> None:
    """A read of an absent znode succeeds."""
    found = await done(Fake(Rejected("no-node")), "get", path="/a")
    assert (found.type, found.value["stat"]) == ("ok", None)


async def test_a_read_after_sync_on_another_connection() -> None:
    """``sync`` holds for its connection only."""
    fake = Fake(None, ("1", STAT))
    found = await done(fake, "get", path="/a", sync=True)
    assert found.value["sync"] is True
    fake = Fake(None, ("1", STAT))
    fake.on_request = lambda: setattr(fake, "connections", fake.connections + 1)
    found = await done(fake, "get", path="/a", sync=True)
    assert found.value["sync"] is False


async def test_an_addition_is_tried_again_only_after_an_answer() -> None:
    """A rejected write is certain; an unknown one ends the addition, with what was tried."""
    fake = Fake(("3", STAT), Rejected("bad-version"), ("5", STAT), STAT)
    found = await done(fake, "add", path="/c", delta=2)
    assert (found.type, found.value["total"]) == ("ok", 7)
    fake = Fake(("3", STAT), Unknown("connection-loss"))
    found = await done(fake, "add", path="/c", delta=2)
    assert (found.type, found.value["total"], found.value["version"]) == ("info", 5, 1)
    assert len(fake.asked) == 2


async def test_a_lock_waits_for_the_znode_before_its_own_only() -> None:
    """The watch is set on the nearest smaller number, by number and not by name."""
    names = ["n-0000000003", "a-0000000001", "n-0000000002"]
    fake = Fake("/l/n-0000000003", (names, STAT), None, (names[:1], STAT), STAT)
    found = await done(fake, "acquire", path="/l")
    assert (found.type, found.value["token"]) == ("ok", 1)
    assert ("exists", "/l/n-0000000002") in fake.asked


async def test_a_lock_that_is_not_free_in_time() -> None:
    """The client withdraws its znode, and then has certainly not got the lock."""
    names = ["n-0000000002", "n-0000000003"]
    node = "/l/n-0000000003"
    fake = Fake(node, (names, STAT), STAT, None)
    found = await done(fake, "acquire", path="/l")
    assert (found.type, found.error) == ("fail", "timeout")
    assert fake.asked[-1] == ("delete", node, -1)
    fake = Fake(node, (names, STAT), STAT, Unknown("connection-loss"))
    found = await done(fake, "acquire", path="/l")
    assert (found.type, found.value["node"]) == ("info", node)


async def test_a_queue_gives_the_first_element_that_is_left() -> None:
    """An element that another client has taken is passed over; the one in doubt is named."""
    names = ["n-0000000001", "n-0000000002"]
    taken, free = Rejected("no-node"), ("2", STAT)
    found = await done(Fake((names, STAT), taken, free, None), "dequeue", path="/q")
    assert (found.type, found.value["deleted"]) == ("ok", "/q/n-0000000002")
    lost = Unknown("connection-loss")
    found = await done(Fake((names, STAT), taken, free, lost), "dequeue", path="/q")
    assert (found.type, found.value["deleted"]) == ("info", "/q/n-0000000002")
    found = await done(Fake(([], STAT)), "dequeue", path="/q")
    assert (found.type, found.value["deleted"]) == ("ok", None)


async def test_a_session_has_one_watch_on_a_znode() -> None:
    """A second read sets no other watch until the event; events come with the next answer."""
    fake = Fake(*[("1", STAT)] * 3)
    client = ZooKeeperClient(fake, (), patience_s=1.0, wait_s=0.01)
    completions = []
    for number in (1, 2, 3):
        op = Op(index=0, time_ns=0, process=0, type="invoke", f="get",
                value={"path": "/a", "watch": number})  # fmt: skip
        completions.append((await client.invoke(op)).value)
        if number == 2:
            fake.watches[0](("changed", "/a"))
    assert [each.get("registered") for each in completions] == [1, None, 3]
    assert [each.get("events") for each in completions] == [None, None, [[1, "changed"]]]


async def test_the_end_of_a_session() -> None:
    """A close is certain if the server has confirmed it; an abandoned session may live on."""
    assert (await done(Fake(True), "close")).type == "ok"
    assert (await done(Fake(False), "close")).type == "info"
    fake = Fake()
    client = ZooKeeperClient(fake, (), patience_s=1.0, wait_s=0.01)
    assert client.alive
    op = Op(index=0, time_ns=0, process=0, type="invoke", f="abandon", value={})
    assert (await client.invoke(op)).type == "info"
    assert not client.alive
    await client.close()


async def test_parents_are_created_once() -> None:
    """Only what is missing is created, and it may have been created by another client."""
    fake = Fake(STAT, None, Rejected("node-exists"), None, "/c")
    client = ZooKeeperClient(fake, ("/a", "/b", "/c"), patience_s=1.0, wait_s=0.01)
    await client.open()
    assert [asked[:2] for asked in fake.asked] == [
        ("exists", "/a"), ("exists", "/b"), ("create", "/b"), ("exists", "/c"), ("create", "/c"),
    ]  # fmt: skip


async def test_a_barrier_opens_when_enough_are_there() -> None:
    """The last client that enters opens the barrier for all."""
    fake = Fake("/b", "/b/m1", None, (["m0", "m1"], STAT), "/b-ready")
    found = await done(fake, "enter", path="/b", member="m1", size=2)
    assert found.type == "ok"
    assert fake.asked[-1][:2] == ("create", "/b-ready")
    fake = Fake(Rejected("node-exists"), "/b/m1", None, (["m1"], STAT), None)
    found = await done(fake, "enter", path="/b", member="m1", size=2)
    assert (found.type, fake.asked[-1]) == ("fail", ("delete", "/b/m1", -1))


async def test_a_leader_writes_on_condition_of_its_epoch() -> None:
    """The epoch is the version of a znode, which the election increments."""
    fake = Fake(("", STAT), ["/o", STAT])
    found = await done(fake, "elect", path="/o", epoch_path="/e")
    assert (found.type, found.value["epoch"]) == ("ok", 1)
    held = {"path": "/o", "epoch_path": "/e", "resource": "/r", "epoch": 1, "node": "/o"}
    fake = Fake([None, STAT])
    assert (await done(fake, "lead", **held)).value["stat"]["mzxid"] == 5
    assert fake.asked[0][1][:2] == ("/e", 1)
    refused = await done(Fake(Rejected("bad-version of part 0")), "resign", **held)
    assert refused.type == "fail"


def test_every_operation_has_a_handler() -> None:
    """The names of operations are distinct from those of Kafka's histories."""
    from checkers import vocabulary

    assert not HANDLERS.keys() & vocabulary.OPERATIONS
    assert asyncio.iscoroutinefunction(HANDLERS["add"])
