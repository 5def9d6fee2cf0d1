"""The mesh: every link of the cluster runs through its own proxy of one real Toxiproxy.

A proxy stands for the connections that one party opens to another. A *cut* is directed: no byte
goes from source to target any more, whoever opened the connection, so it is an upstream toxic on
the proxy source → target and a downstream toxic on the proxy target → source. The toxic is
Toxiproxy's ``timeout`` 0: it swallows bytes, and closes the connection when it is taken away. A
*refused* link is a disabled proxy: what is open is closed, what is new is refused.

The client (toxiproxy-python) blocks, keeps the server's address in a class, knows no timeout and
takes no notice of failure: ``docs/adr/0010-toxiproxy-client.md`` says how each is handled here.
"""

import asyncio
import functools
import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import psutil
from toxiproxy import Proxy, Toxiproxy
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from harness.cluster.node import Node
from harness.cluster.ports import HOST
from model.roles import NodeId

Answer = TypeVar("Answer")

OURS = Path(__file__).parents[2] / ".tools" / "bin" / "toxiproxy-server"
"""Where set-up puts it when the machine has none."""
CALL_TIMEOUT_S = 5.0
_ONE_ADDRESS = threading.Lock()
"""The client holds one server's address per process; calls to several servers take turns."""


class MeshError(Exception):
    """Toxiproxy is missing, does not answer, or did not do what it was asked."""


def find_server() -> Path:
    """The toxiproxy-server: ``$FAULTLINE_TOXIPROXY``, the path's, or the project's own."""
    named = os.environ.get("FAULTLINE_TOXIPROXY")
    for candidate in (named, shutil.which("toxiproxy-server"), str(OURS)):
        if candidate and os.access(candidate, os.X_OK):
            return Path(candidate)
    raise MeshError(
        "no toxiproxy-server here: run `make setup`, or name one in FAULTLINE_TOXIPROXY"
    )


def command() -> list[str]:
    """How the server is started: on any free port, which :meth:`Mesh.start` then looks up."""
    return [str(find_server()), "-host", HOST, "-port", "0"]


ENVIRONMENT = {"LOG_LEVEL": "error"}
"""Of the server: at its default it tells of every connection that ends."""


@dataclass(frozen=True, slots=True)
class Link:
    """The connections that ``opener`` makes to ``acceptor``, as the mesh carries them."""

    opener: NodeId
    acceptor: NodeId
    listens: int
    """The proxy's port: where the opener connects to."""
    upstream: int
    """The acceptor's own port."""


class _Toxic(NamedTuple):
    """What is done to the bytes of one direction."""

    name: str
    source: NodeId
    target: NodeId


class Mesh:
    """The links of one cluster; what is done to one is counted, so that faults may overlap."""

    def __init__(self, server: Node) -> None:
        """``server`` is the process of :func:`command`, not yet started."""
        self._server = server
        self._client = Toxiproxy()
        self._api_port = 0
        self._one_call = asyncio.Lock()
        self._proxies: dict[tuple[NodeId, NodeId], Proxy] = {}
        self._links: dict[tuple[NodeId, NodeId], Link] = {}
        self._toxics: Counter[_Toxic] = Counter()
        self._latency_s: dict[_Toxic, float] = {}
        self._refusals: Counter[tuple[NodeId, NodeId]] = Counter()

    @property
    def links(self) -> tuple[Link, ...]:
        return tuple(self._links.values())

    def between(self, one: NodeId, other: NodeId) -> list[Link]:
        """The links that carry bytes between the two, whoever opens; ``MeshError`` when none."""
        pairs = ((one, other), (other, one))
        links = [self._links[pair] for pair in pairs if pair in self._links]
        if not links:
            raise MeshError(f"no link between {one} and {other}")
        return links

    async def start(self) -> None:
        """Start the server and find the port that the system gave it."""
        _bypass_http_proxies()
        await self._server.start()
        async with asyncio.timeout(CALL_TIMEOUT_S):
            while (port := _listening_port(self._server.pid)) is None:
                if self._server.pid is None:
                    raise MeshError(f"toxiproxy-server ended: {self._server.last_line()}")
                await asyncio.sleep(0.005)
        self._api_port = port

    async def add(self, opener: NodeId, acceptor: NodeId, upstream: int) -> Link:
        """A new link, through a port of its own."""
        proxy = await self._call(
            lambda: self._client.create(f"{HOST}:{upstream}", f"{opener}.{acceptor}")
        )
        link = Link(opener, acceptor, int(proxy.listen.rpartition(":")[2]), upstream)
        self._proxies[opener, acceptor] = proxy
        self._links[opener, acceptor] = link
        return link

    async def cut(self, source: NodeId, target: NodeId) -> None:
        """Swallow what goes from source to target."""
        await self._poison(_Toxic("cut", source, target), "timeout", {"timeout": 0})

    async def heal(self, source: NodeId, target: NodeId) -> None:
        """Take one cut back; the link is whole when all of its cuts are."""
        await self._cure(_Toxic("cut", source, target))

    async def slow(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        """Let what goes from source to target arrive later; a slow link gets no slower."""
        toxic = _Toxic("slow", source, target)
        latency = {"latency": round(latency_s * 1000), "jitter": 0}
        await self._poison(toxic, "latency", latency)
        self._latency_s.setdefault(toxic, latency_s)

    async def quicken(self, source: NodeId, target: NodeId) -> None:
        """Take one slowness back; what is under way arrives at once."""
        await self._cure(_Toxic("slow", source, target))

    def slowness_s(self, one: NodeId, other: NodeId) -> float:
        """How much longer a round trip between the two takes than it would by itself."""
        ways = (_Toxic("slow", one, other), _Toxic("slow", other, one))
        return sum(self._latency_s.get(way, 0.0) for way in ways)

    async def refuse(self, one: NodeId, other: NodeId) -> None:
        """Close what is open between the two, refuse what is new."""
        links = self.between(one, other)
        pair = _unordered(one, other)
        self._refusals[pair] += 1
        if self._refusals[pair] == 1:
            for link in links:
                await self._call(self._proxies[link.opener, link.acceptor].disable)

    async def accept(self, one: NodeId, other: NodeId) -> None:
        """Take one refusal back."""
        links = self.between(one, other)
        pair = _unordered(one, other)
        if self._refusals[pair] > 1:
            self._refusals[pair] -= 1
        elif self._refusals.pop(pair, 0):
            for link in links:
                await self._enable(self._proxies[link.opener, link.acceptor])

    async def heal_all(self) -> None:
        """Every link whole, whatever was done to it."""
        for toxic in list(self._toxics):
            self._toxics[toxic] = 1
            await self._cure(toxic)
        for one, other in list(self._refusals):
            self._refusals[one, other] = 1
            await self.accept(one, other)

    async def _poison(self, toxic: _Toxic, kind: str, attributes: dict[str, int]) -> None:
        proxies = self._sides(toxic)
        self._toxics[toxic] += 1
        if self._toxics[toxic] == 1:
            for proxy, stream in proxies:
                add = functools.partial(proxy.add_toxic, type=kind, attributes=attributes)
                await self._call(
                    functools.partial(add, name=f"{toxic.name}-{stream}", stream=stream)
                )

    async def _cure(self, toxic: _Toxic) -> None:
        proxies = self._sides(toxic)
        if self._toxics[toxic] > 1:
            self._toxics[toxic] -= 1
        elif self._toxics.pop(toxic, 0):
            self._latency_s.pop(toxic, None)
            for proxy, stream in proxies:
                await self._call(functools.partial(proxy.destroy_toxic, f"{toxic.name}-{stream}"))

    def _sides(self, toxic: _Toxic) -> list[tuple[Proxy, str]]:
        """The proxies that carry bytes from source to target, and in which stream."""
        self.between(toxic.source, toxic.target)
        there, back = (toxic.source, toxic.target), (toxic.target, toxic.source)
        sides = ((there, "upstream"), (back, "downstream"))
        return [(self._proxies[pair], stream) for pair, stream in sides if pair in self._proxies]

    async def _enable(self, proxy: Proxy) -> None:
        """Open the proxy again on its old port, which somebody may hold for a moment.

        While it was closed the port was anybody's: an outgoing connection can have been given it.
        The client does not say that enabling has failed, so the server is asked.
        """

        def is_enabled() -> bool:
            proxy.enable()
            found = self._client.get_proxy(proxy.name)
            return found is not None and bool(found.enabled)

        for _ in range(100):
            if await self._call(is_enabled):
                return
            await asyncio.sleep(0.05)
        raise MeshError(f"{proxy.name} cannot listen on {proxy.listen} again: the port is taken")

    async def _call(self, call: Callable[[], Answer]) -> Answer:
        def called() -> Answer:
            with _ONE_ADDRESS:
                self._client.update_api_consumer(HOST, self._api_port)
                return call()

        async with self._one_call:
            try:
                return await asyncio.wait_for(asyncio.to_thread(called), CALL_TIMEOUT_S)
            except TimeoutError:
                raise MeshError(f"toxiproxy-server was silent for {CALL_TIMEOUT_S:g} s") from None
            except (OSError, NotFound, ProxyExists, InvalidToxic, KeyError) as error:
                raise MeshError(f"toxiproxy-server: {type(error).__name__}: {error}") from error


def _unordered(one: NodeId, other: NodeId) -> tuple[NodeId, NodeId]:
    return (one, other) if one < other else (other, one)


def _listening_port(pid: int | None) -> int | None:
    """The one port that a process listens on so far."""
    if pid is None:
        return None
    try:
        connections: Iterable[psutil._common.pconn] = psutil.Process(pid).net_connections("tcp")
    except psutil.NoSuchProcess:
        return None
    listening = [c.laddr.port for c in connections if c.status == psutil.CONN_LISTEN]
    return listening[0] if listening else None


def _bypass_http_proxies() -> None:
    """The client obeys ``http_proxy``; no company proxy can reach our loopback."""
    bypassed = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    if HOST not in bypassed.split(","):
        os.environ["no_proxy"] = f"{bypassed},{HOST}".lstrip(",")
