"""The stories about bugs of ZooKeeper, on this project's servers, which do not have them."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from bench.zookeeper_bugs import session, stories
from bench.zookeeper_bugs.session import NoAnswer, Session
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.zookeeper.program import Program, Settings
from broker_impl.zookeeper.records import OPEN_ACL, AddWatch, CreateRequest, Op, PathWatch
from harness.cluster.address import Address
from model.capabilities.control_plane import EnsembleRole


class Alone:
    """A cluster of one server."""

    nodes = ("zookeeper",)

    def __init__(self, port: int) -> None:
        self._port = port

    def direct(self, node: str) -> Address:
        return Address("127.0.0.1", self._port)

    async def zookeepers(self) -> dict[str, EnsembleRole]:
        return {"zookeeper": "leader"}

    async def is_whole(self) -> bool:
        return True


@pytest.fixture
async def cluster() -> AsyncIterator[Alone]:
    program = Program(
        Settings(host="127.0.0.1", port=0),
        MemoryDisk(),
        wall_ms=lambda: time.time_ns() // 1_000_000,
        entropy=bytes,
    )
    port = await program.start()
    running = asyncio.create_task(program.run())
    yield Alone(port)
    program.stop()
    await running


async def test_a_persistent_watch_stays_next_to_a_one_shot_watch(cluster: Alone) -> None:
    """The story shows nothing on a right server, and reports one that forgets the watch."""
    assert await stories.watch_in_place_of_a_persistent_one(cluster) is None


async def test_a_server_that_forgets_the_watch_is_reported(
    cluster: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one notification for three changes the story reports the bug."""
    asked = Session.ask

    async def forgets(self: Session, op: int, *parts: object) -> int:
        if op == Op.ADD_WATCH:  # only the one-shot watch of the next request is left
            return 0
        return await asked(self, op, *parts)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "ask", forgets)
    found = await stories.watch_in_place_of_a_persistent_one(cluster)
    assert found == "three changes, and 1 notifications of them"


async def test_requests_and_notifications_are_kept_apart(cluster: Alone) -> None:
    """Answers come in the order of the requests; notifications do not count as answers."""
    one = await Session.open(cluster.direct("zookeeper"))
    create = CreateRequest("/a", b"", OPEN_ACL, 0)
    assert await one.ask_all([(Op.CREATE, [create]), (Op.CREATE, [create])]) == [0, -110]
    assert await one.ask(Op.ADD_WATCH, AddWatch("/a", 0)) == 0
    assert await one.ask(Op.CREATE, CreateRequest("/a/b", b"", OPEN_ACL, 0)) == 0
    assert await one.ask(Op.GET_DATA, PathWatch("/a", False)) == 0
    assert [event.path for event in one.events] == ["/a"]
    one.drop()


async def test_a_silent_server_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that answers nothing is not waited for without end."""
    monkeypatch.setattr(session, "ANSWER_S", 0.05)
    ended = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1024):
            pass
        writer.close()
        await writer.wait_closed()
        ended.set()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(NoAnswer):
            await Session.open(Address("127.0.0.1", port))
        await ended.wait()
