"""The mesh over a real Toxiproxy: cuts have a direction, refusals do not, both are counted."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness.cluster import toxiproxy
from harness.cluster.node import Node
from harness.cluster.ports import HOST
from harness.cluster.registry import Registry
from harness.cluster.toxiproxy import Mesh, MeshError

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("toxiproxy_server")]

SILENCE_S = 0.05


class Echo:
    """A server that says back what it hears, and remembers it."""

    def __init__(self) -> None:
        self.heard = b""
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(100):
                self.heard += data
                writer.write(data)
        writer.close()

    def close(self) -> None:
        assert self._server is not None
        self._server.close()


class Talk:
    """One connection through a link."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def echoed(self, word: bytes) -> bytes | None:
        """What comes back: the word, nothing (``None``), or the end (empty)."""
        self._writer.write(word)
        try:
            return await asyncio.wait_for(self._reader.read(100), SILENCE_S)
        except TimeoutError:
            return None
        except ConnectionResetError:
            return b""

    def close(self) -> None:
        self._writer.close()


async def connected(port: int) -> Talk:
    return Talk(*await asyncio.open_connection(HOST, port))


@pytest.fixture
async def mesh(tmp_path: Path) -> AsyncIterator[Mesh]:
    registry = Registry("mesh", tmp_path / "state")
    server = Node(
        "toxiproxy",
        toxiproxy.command(),
        tmp_path / "toxiproxy",
        registry,
        on_exit=lambda _: None,
        environment=toxiproxy.ENVIRONMENT,
    )
    mesh = Mesh(server)
    await mesh.start()
    yield mesh
    await server.kill()


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    server = Echo()
    await server.start()
    yield server
    server.close()


async def test_whole_link_carries_both_ways(mesh: Mesh, echo: Echo) -> None:
    """What goes in comes out."""
    link = await mesh.add("a", "b", echo.port)
    talk = await connected(link.listens)
    assert await talk.echoed(b"x") == b"x"
    talk.close()


async def test_cut_towards_the_acceptor_stops_requests(mesh: Mesh, echo: Echo) -> None:
    """a → b: what a's connections send does not arrive; healed, new connections work."""
    link = await mesh.add("a", "b", echo.port)
    talk = await connected(link.listens)
    assert await talk.echoed(b"before") == b"before"
    await mesh.cut("a", "b")
    assert await talk.echoed(b"during") is None
    assert echo.heard == b"before"
    await mesh.heal("a", "b")
    assert await talk.echoed(b"after") == b"", "Toxiproxy closes what it had swallowed bytes of"
    again = await connected(link.listens)
    assert await again.echoed(b"after") == b"after"
    again.close()
    talk.close()


async def test_cut_towards_the_opener_stops_answers(mesh: Mesh, echo: Echo) -> None:
    """b → a: requests arrive, answers do not."""
    link = await mesh.add("a", "b", echo.port)
    await mesh.cut("b", "a")
    talk = await connected(link.listens)
    assert await talk.echoed(b"during") is None
    assert echo.heard == b"during"
    talk.close()


async def test_cut_acts_on_connections_of_either_side(mesh: Mesh, echo: Echo) -> None:
    """a → b with links both ways: a's requests and a's answers are lost, b's requests arrive."""
    there = await mesh.add("a", "b", echo.port)
    other = Echo()
    await other.start()
    back = await mesh.add("b", "a", other.port)
    await mesh.cut("a", "b")
    by_a, by_b = await connected(there.listens), await connected(back.listens)
    assert await by_a.echoed(b"of a") is None
    assert await by_b.echoed(b"of b") is None
    assert (echo.heard, other.heard) == (b"", b"of b")
    for talk in (by_a, by_b):
        talk.close()
    other.close()


async def test_overlapping_cuts_are_counted(mesh: Mesh, echo: Echo) -> None:
    """A link is whole only when every fault that cut it was healed."""
    link = await mesh.add("a", "b", echo.port)
    await mesh.cut("a", "b")
    await mesh.cut("a", "b")
    await mesh.heal("a", "b")
    talk = await connected(link.listens)
    assert await talk.echoed(b"x") is None
    await mesh.heal("a", "b")
    await mesh.heal("a", "b")  # once too often: nothing happens
    again = await connected(link.listens)
    assert await again.echoed(b"y") == b"y"
    for each in (talk, again):
        each.close()


async def test_refused_link_closes_and_refuses(mesh: Mesh, echo: Echo) -> None:
    """What is open ends at once, what is new is refused, until accepted again."""
    link = await mesh.add("a", "b", echo.port)
    talk = await connected(link.listens)
    assert await talk.echoed(b"x") == b"x"
    await mesh.refuse("b", "a")
    assert await talk.echoed(b"y") == b""
    with pytest.raises(ConnectionRefusedError):
        await connected(link.listens)
    await mesh.accept("a", "b")
    again = await connected(link.listens)
    assert await again.echoed(b"z") == b"z"
    for each in (talk, again):
        each.close()


async def test_port_that_was_taken_meanwhile_is_waited_for(mesh: Mesh, echo: Echo) -> None:
    """A refused link's port may be somebody else's for a moment; accepting waits for it."""
    link = await mesh.add("a", "b", echo.port)
    await mesh.refuse("a", "b")
    thief = await asyncio.start_server(lambda _r, w: w.close(), HOST, link.listens)
    accepting = asyncio.create_task(mesh.accept("a", "b"))
    await asyncio.sleep(0.1)
    assert not accepting.done()
    thief.close()
    await thief.wait_closed()
    await accepting
    talk = await connected(link.listens)
    assert await talk.echoed(b"x") == b"x"
    talk.close()


async def test_slow_link_delivers_later(mesh: Mesh, echo: Echo) -> None:
    """Bytes one way take the latency, then both are quick again on the same connection."""
    link = await mesh.add("a", "b", echo.port)
    talk = await connected(link.listens)
    await mesh.slow("b", "a", 3 * SILENCE_S)
    assert mesh.slowness_s("a", "b") == 3 * SILENCE_S
    assert await talk.echoed(b"late") is None
    assert echo.heard == b"late"
    await mesh.quicken("b", "a")
    assert mesh.slowness_s("a", "b") == 0
    assert await talk.echoed(b"") == b"late"
    assert await talk.echoed(b"quick") == b"quick"
    talk.close()


async def test_heal_all_heals_all(mesh: Mesh, echo: Echo) -> None:
    """Cuts, slowness and refusals, however often, are gone at once."""
    link = await mesh.add("a", "b", echo.port)
    for _ in range(2):
        await mesh.cut("a", "b")
        await mesh.cut("b", "a")
        await mesh.slow("b", "a", 1.0)
        await mesh.refuse("a", "b")
    await mesh.heal_all()
    talk = await connected(link.listens)
    assert await talk.echoed(b"x") == b"x"
    talk.close()


async def test_busy_link_can_be_cut_and_healed(mesh: Mesh, echo: Echo) -> None:
    """Toxiproxy does not hang when a link is cut and healed while it is full of bytes."""
    link = await mesh.add("a", "b", echo.port)

    async def flood() -> None:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(HOST, link.listens)
            drain = asyncio.create_task(reader.read(-1))
            try:
                while not writer.is_closing():
                    writer.write(b"x" * 65536)
                    await writer.drain()
                    await asyncio.sleep(0.002)  # drain alone lets nobody else run
            finally:
                drain.cancel()
                writer.close()

    floods = [asyncio.create_task(flood()) for _ in range(4)]
    for _ in range(5):
        await asyncio.sleep(0.02)
        await mesh.cut("b", "a")
        await mesh.cut("a", "b")
        await mesh.heal_all()
    for task in floods:
        task.cancel()
    await asyncio.gather(*floods, return_exceptions=True)
    talk = await connected(link.listens)
    assert await talk.echoed(b"x") == b"x"
    talk.close()


async def test_unknown_link_is_refused(mesh: Mesh) -> None:
    """A cut between parties that never talk is an error, not a fault without effect."""
    with pytest.raises(MeshError, match="no link between a and c"):
        await mesh.cut("a", "c")


async def test_company_proxy_is_bypassed(
    mesh: Mesh, echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``http_proxy`` of the environment does not stand between us and our own Toxiproxy."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert HOST in os.environ["no_proxy"].split(",")
    await mesh.add("a", "b", echo.port)


async def test_dead_server_is_an_error(tmp_path: Path) -> None:
    """A server that ends at its start says so, and one that is gone cannot be asked."""
    node = Node("toxiproxy", ["false"], tmp_path, Registry("x", tmp_path), lambda _: None)
    with pytest.raises(MeshError, match="ended"):
        await Mesh(node).start()


def test_missing_server_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a toxiproxy-server the message tells how to have one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("FAULTLINE_TOXIPROXY", str(tmp_path / "absent"))
    monkeypatch.setattr(toxiproxy, "OURS", tmp_path / "absent")
    with pytest.raises(MeshError, match="make setup"):
        toxiproxy.find_server()
