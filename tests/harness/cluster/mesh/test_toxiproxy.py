"""The mesh over a real Toxiproxy: cuts have a direction, refusals do not, and both are counted."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from toxiproxy import Toxiproxy
from toxiproxy.api import APIConsumer

from harness.cluster.address import Address
from harness.cluster.mesh import toxiproxy
from harness.cluster.mesh.counters import swallowed
from harness.cluster.mesh.toxiproxy import Link, Mesh, MeshError
from harness.cluster.polling import until
from harness.cluster.ports import HOST, Ports
from harness.cluster.process import Process
from harness.cluster.registry import Registry
from model.link_faults import LinkFaults

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("toxiproxy_server")]

SILENCE_S = 0.05


class Echo:
    """A server that returns the data it receives, and remembers it."""

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
    """A connection through a link."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def echoed(self, word: bytes) -> bytes | None:
        """Send `word` and return the answer, ``None`` for silence, or empty for the end."""
        self._writer.write(word)
        try:
            return await asyncio.wait_for(self._reader.read(100), SILENCE_S)
        except TimeoutError:
            return None
        except ConnectionResetError:
            return b""

    def close(self) -> None:
        self._writer.close()


async def connected(link: Address) -> Talk:
    return Talk(*await asyncio.open_connection(*link))


@pytest.fixture
async def mesh(tmp_path: Path) -> AsyncIterator[Mesh]:
    registry = Registry("mesh", tmp_path / "state")
    server = Process(
        "toxiproxy",
        toxiproxy.command(),
        tmp_path / "toxiproxy",
        registry,
        on_exit=lambda _: None,
        environment=toxiproxy.ENVIRONMENT,
    )
    mesh = Mesh()
    mesh.connect(await toxiproxy.serve(server))
    yield mesh
    await server.kill()


async def added(mesh: Mesh, opener: str, acceptor: str, echo: Echo) -> Link:
    upstream = Address(HOST, echo.port)
    return await mesh.add(opener, acceptor, upstream, past=upstream, endpoint=None)


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    server = Echo()
    await server.start()
    yield server
    server.close()


async def test_whole_link_carries_both_ways(mesh: Mesh, echo: Echo) -> None:
    """A link without faults carries data both ways."""
    link = await added(mesh, "a", "b", echo)
    talk = await connected(link.reached)
    assert await talk.echoed(b"x") == b"x"
    talk.close()


async def test_cut_towards_the_acceptor_stops_requests(mesh: Mesh, echo: Echo) -> None:
    """A cut from a to b drops what a's connections send; after the heal new connections work."""
    link = await added(mesh, "a", "b", echo)
    talk = await connected(link.reached)
    assert await talk.echoed(b"before") == b"before"
    await mesh.cut("a", "b")
    assert await talk.echoed(b"during") is None
    assert echo.heard == b"before"
    await mesh.heal("a", "b")
    assert await talk.echoed(b"after") == b"", "Toxiproxy closes what it had swallowed bytes of"
    again = await connected(link.reached)
    assert await again.echoed(b"after") == b"after"
    again.close()
    talk.close()


async def test_cut_towards_the_opener_stops_answers(mesh: Mesh, echo: Echo) -> None:
    """A cut from b to a lets requests of a arrive and drops the answers."""
    link = await added(mesh, "a", "b", echo)
    await mesh.cut("b", "a")
    talk = await connected(link.reached)
    assert await talk.echoed(b"during") is None
    assert echo.heard == b"during"
    talk.close()


async def test_cut_acts_on_connections_of_either_side(mesh: Mesh, echo: Echo) -> None:
    """A cut from a to b drops a's requests and a's answers, on links of either side."""
    there = await added(mesh, "a", "b", echo)
    other = Echo()
    await other.start()
    back = await added(mesh, "b", "a", other)
    await mesh.cut("a", "b")
    by_a, by_b = await connected(there.reached), await connected(back.reached)
    assert await by_a.echoed(b"of a") is None
    assert await by_b.echoed(b"of b") is None
    assert (echo.heard, other.heard) == (b"", b"of b")
    for talk in (by_a, by_b):
        talk.close()
    other.close()


async def test_overlapping_cuts_are_counted(mesh: Mesh, echo: Echo) -> None:
    """A link works only after every fault that cut it was healed."""
    link = await added(mesh, "a", "b", echo)
    await mesh.cut("a", "b")
    await mesh.cut("a", "b")
    await mesh.heal("a", "b")
    talk = await connected(link.reached)
    assert await talk.echoed(b"x") is None
    await mesh.heal("a", "b")
    await mesh.heal("a", "b")  # one heal too many has no effect
    again = await connected(link.reached)
    assert await again.echoed(b"y") == b"y"
    for each in (talk, again):
        each.close()


async def test_refused_link_closes_and_refuses(mesh: Mesh, echo: Echo) -> None:
    """A refused link resets open connections and refuses new ones, until it is accepted again."""
    link = await added(mesh, "a", "b", echo)
    talk = await connected(link.reached)
    assert await talk.echoed(b"x") == b"x"
    await mesh.refuse("b", "a")
    assert await talk.echoed(b"y") == b""
    with pytest.raises(ConnectionRefusedError):
        await connected(link.reached)
    await mesh.accept("a", "b")
    again = await connected(link.reached)
    assert await again.echoed(b"z") == b"z"
    for each in (talk, again):
        each.close()


async def test_port_that_was_taken_meanwhile_is_waited_for(mesh: Mesh, echo: Echo) -> None:
    """If another program takes a refused link's port, `accept` waits until it is free."""
    link = await added(mesh, "a", "b", echo)
    await mesh.refuse("a", "b")
    thief = await asyncio.start_server(lambda _r, w: w.close(), *link.reached)
    accepting = asyncio.create_task(mesh.accept("a", "b"))
    await asyncio.sleep(0.1)
    assert not accepting.done()
    thief.close()
    await thief.wait_closed()
    await accepting
    talk = await connected(link.reached)
    assert await talk.echoed(b"x") == b"x"
    talk.close()


async def test_slow_link_delivers_later(mesh: Mesh, echo: Echo) -> None:
    """A slow link delays the bytes of one direction; after the heal the same connection is fast."""
    link = await added(mesh, "a", "b", echo)
    talk = await connected(link.reached)
    await mesh.slow("b", "a", 3 * SILENCE_S)
    assert mesh.faults("a", "b").slowness_s == 3 * SILENCE_S
    assert await talk.echoed(b"late") is None
    assert echo.heard == b"late"
    await mesh.quicken("b", "a", 3 * SILENCE_S)
    assert mesh.faults("a", "b").slowness_s == 0
    assert await talk.echoed(b"") == b"late"
    assert await talk.echoed(b"quick") == b"quick"
    talk.close()


async def test_a_link_is_as_slow_as_its_slowest_fault(mesh: Mesh, echo: Echo) -> None:
    """A link has the largest latency of its faults; each heal removes only its own.

    The server's own state shows it, in any order of the heals.
    """
    await added(mesh, "a", "b", echo)

    def latencies_ms() -> list[int]:
        [proxy] = Toxiproxy().proxies().values()
        return [toxic.attributes["latency"] for toxic in proxy.toxics().values()]

    for first, second in ((0.1, 2.0), (2.0, 0.1)):
        await mesh.slow("b", "a", first)
        await mesh.slow("b", "a", second)
        assert (mesh.faults("b", "a").slowness_s, latencies_ms()) == (2.0, [2000])
        await mesh.quicken("b", "a", first)
        assert (mesh.faults("b", "a").slowness_s, latencies_ms()) == (second, [second * 1000])
        await mesh.quicken("b", "a", second)
        await mesh.quicken("b", "a", second)
        assert (mesh.faults("a", "b").slowness_s, latencies_ms()) == (0, [])


async def test_what_faults_do_to_a_link(mesh: Mesh, echo: Echo) -> None:
    """The mesh records the cuts and refusals that are active, for both directions."""
    await added(mesh, "a", "b", echo)
    assert mesh.faults("a", "b") == LinkFaults()
    for _ in range(2):
        await mesh.cut("b", "a")
        await mesh.refuse("a", "b")
    for last in (False, True):
        assert mesh.faults("a", "b") == mesh.faults("b", "a") == LinkFaults(cut=True, refused=True)
        assert mesh.faults("a", "b").is_silent
        await mesh.heal("b", "a")
        await mesh.accept("a", "b")
        assert mesh.faults("a", "b").is_silent is not last
    assert mesh.faults("a", "b") == LinkFaults()


async def test_heal_all_heals_all(mesh: Mesh, echo: Echo) -> None:
    """`heal_all` removes all cuts, latencies and refusals, however often they were applied."""
    link = await added(mesh, "a", "b", echo)
    for _ in range(2):
        await mesh.cut("a", "b")
        await mesh.cut("b", "a")
        await mesh.slow("b", "a", 1.0)
        await mesh.refuse("a", "b")
    await mesh.heal_all()
    talk = await connected(link.reached)
    assert await talk.echoed(b"x") == b"x"
    talk.close()


def fails_once(monkeypatch: pytest.MonkeyPatch, of: object, method: str, *, after: bool) -> None:
    """Let the next call of a method raise an error, before or after it has its effect."""
    real = getattr(of, method)
    failed: list[bool] = []

    def called(*args: object, **options: object) -> object:
        answer = real(*args, **options) if failed or after else None
        if not failed:
            failed.append(True)
            raise OSError("connection reset")
        return answer

    monkeypatch.setattr(of, method, called)


@pytest.mark.parametrize("after", [False, True])
async def test_cut_whose_heal_failed_is_healed_by_the_next(
    mesh: Mesh, echo: Echo, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    """A cut counts until both of its sides are healed, also if one of them was before."""
    link = await added(mesh, "a", "b", echo)
    await added(mesh, "b", "a", echo)
    await mesh.cut("a", "b")
    fails_once(monkeypatch, mesh._proxies["a", "b"], "destroy_toxic", after=after)
    with pytest.raises(MeshError, match="connection reset"):
        await mesh.heal("a", "b")
    assert mesh.faults("a", "b").cut
    await mesh.heal("a", "b")
    assert not mesh.faults("a", "b").cut
    assert not any(proxy.toxics() for proxy in mesh._proxies.values())
    talk = await connected(link.reached)
    assert await talk.echoed(b"x") == b"x"
    talk.close()


async def test_refusal_whose_heal_failed_is_healed_by_heal_all(
    mesh: Mesh, echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal counts until all proxies are enabled."""
    link = await added(mesh, "a", "b", echo)
    await mesh.refuse("a", "b")
    fails_once(monkeypatch, mesh._proxies["a", "b"], "enable", after=False)
    with pytest.raises(MeshError, match="connection reset"):
        await mesh.accept("a", "b")
    assert mesh.faults("a", "b").refused
    await mesh.heal_all()
    assert not mesh.faults("a", "b").refused
    assert not await mesh.is_closed(link)


async def test_latency_whose_heal_failed_is_ended_by_the_next(
    mesh: Mesh, echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The smaller latency of a link applies after a repeated heal of the larger one."""
    await added(mesh, "a", "b", echo)
    await mesh.slow("a", "b", 0.02)
    await mesh.slow("a", "b", 0.2)
    fails_once(monkeypatch, APIConsumer, "post", after=False)
    with pytest.raises(MeshError, match="connection reset"):
        await mesh.quicken("a", "b", 0.2)
    assert mesh.faults("a", "b").slowness_s == 0.2
    await mesh.quicken("a", "b", 0.2)
    assert mesh.faults("a", "b").slowness_s == 0.02
    toxic = mesh._proxies["a", "b"].get_toxic("slow-upstream")
    assert toxic.attributes["latency"] == 20


async def test_heal_of_a_link_whose_proxy_is_gone_is_an_error(mesh: Mesh, echo: Echo) -> None:
    """A missing toxic is healed; a missing proxy is not, because the link carries nothing."""
    await added(mesh, "a", "b", echo)
    await mesh.cut("a", "b")
    mesh._proxies["a", "b"].destroy()
    with pytest.raises(MeshError, match="proxy not found"):
        await mesh.heal("a", "b")


async def test_busy_link_can_be_cut_and_healed(mesh: Mesh, echo: Echo) -> None:
    """Toxiproxy does not hang when a link is cut and healed while it is full of bytes."""
    link = await added(mesh, "a", "b", echo)

    async def flood() -> None:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(*link.reached)
            drain = asyncio.create_task(reader.read(-1))
            try:
                while not writer.is_closing():
                    writer.write(b"x" * 65536)
                    await writer.drain()
                    await asyncio.sleep(0.002)  # drain alone does not yield to other tasks
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
    talk = await connected(link.reached)
    assert await talk.echoed(b"x") == b"x"
    talk.close()


async def test_unknown_link_is_refused(mesh: Mesh) -> None:
    """A cut between nodes without a link is an error, not a fault without effect."""
    with pytest.raises(MeshError, match="no link between a and c"):
        await mesh.cut("a", "c")


async def test_company_proxy_is_bypassed(
    mesh: Mesh, echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment's ``http_proxy`` is not used for requests to the local Toxiproxy."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert HOST in os.environ["no_proxy"].split(",")
    await added(mesh, "a", "b", echo)


async def test_dead_server_is_an_error(tmp_path: Path) -> None:
    """A server that ends during its start is an error."""
    server = Process("toxiproxy", ["false"], tmp_path, Registry("x", tmp_path), lambda _: None)
    with pytest.raises(MeshError, match="ended"):
        await toxiproxy.serve(server)


def test_missing_server_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a toxiproxy-server the message says how to get one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("FAULTLINE_TOXIPROXY", str(tmp_path / "absent"))
    monkeypatch.setattr(toxiproxy, "OURS", tmp_path / "absent")
    with pytest.raises(MeshError, match="make setup"):
        toxiproxy.find_server()


async def test_silent_server_is_an_error() -> None:
    """A request to a server that does not answer is an error."""
    mesh = Mesh()
    with Ports() as ports:
        mesh.connect(Address(HOST, ports.reserve()))
        assert not await mesh.answers()
        with pytest.raises(MeshError, match="refused"):
            await mesh.counters()


@pytest.mark.parametrize("turns", range(6))
async def test_a_call_that_is_given_up_is_given_up(mesh: Mesh, turns: int) -> None:
    """A call to the server can be cancelled even at the moment when its answer arrives.

    The test tries each turn of the loop. Otherwise a task that repeats calls until a time-out would
    never end.
    """
    call = asyncio.create_task(mesh.counters())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    time.sleep(0.05)  # noqa: ASYNC251 - the answer has come, unknown to the loop
    for _ in range(turns):
        await asyncio.sleep(0)
    if call.cancel():
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_counters_tell_what_was_swallowed(mesh: Mesh, echo: Echo) -> None:
    """Bytes that were received and not passed on are counted when the connection ends."""
    link = await added(mesh, "a", "b", echo)
    await mesh.cut("a", "b")
    before = await mesh.counters()
    talk = await connected(link.reached)
    assert await talk.echoed(b"lost") is None
    talk.close()

    async def counted() -> bool:
        return swallowed(before, await mesh.counters(), link.name, "upstream") == 4

    async with asyncio.timeout(5):
        await until(counted, 0.01)


async def test_the_server_says_which_link_is_closed(mesh: Mesh, echo: Echo) -> None:
    """The server reports a refused link as closed until it is accepted again."""
    link = await added(mesh, "a", "b", echo)
    assert not await mesh.is_closed(link)
    await mesh.refuse("a", "b")
    assert await mesh.is_closed(link)
    await mesh.accept("a", "b")
    assert not await mesh.is_closed(link)
