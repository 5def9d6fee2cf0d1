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
from toxiproxy.api import APIConsumer
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from harness.cluster.address import Address
from harness.cluster.counters import Counters, counted
from harness.cluster.node import ClusterError
from harness.cluster.ports import HOST
from harness.cluster.process import Process
from model.link_faults import LinkFaults
from model.roles import NodeId

Answer = TypeVar("Answer")

OURS = Path(__file__).parents[2] / ".tools" / "bin" / "toxiproxy-server"
"""Where set-up puts it when the machine has none."""
CALL_TIMEOUT_S = 10.0
"""A link is closed only when nobody is being connected through it: see the containers' mesh."""
_ONE_ADDRESS = threading.Lock()
"""The client holds one server's address per process; calls to several servers take turns."""


class MeshError(ClusterError):
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
    """How the server is started: on any free port, which :func:`serve` then looks up."""
    return [str(find_server()), "-host", HOST, "-port", "0", "-proxy-metrics"]


ENVIRONMENT = {"LOG_LEVEL": "error"}
"""Of the server: at its default it tells of every connection that ends."""


async def serve(server: Process) -> Address:
    """Start a server of :func:`command` as a process, and find the port that it was given."""
    await server.start()
    async with asyncio.timeout(CALL_TIMEOUT_S):
        while (port := _listening_port(server.pid)) is None:
            if server.pid is None:
                raise MeshError(f"toxiproxy-server ended: {await server.last_line()}")
            await asyncio.sleep(0.005)
    return Address(HOST, port)


class Door(NamedTuple):
    """Where a proxy is entered, when that is known before it is there."""

    binds: Address
    """What the proxy listens on, in its own network."""
    inside: Address
    """Where that is for the nodes."""
    outside: Address
    """Where that is for this machine."""


@dataclass(frozen=True, slots=True)
class Link:
    """The connections that ``opener`` makes to ``acceptor``, as the mesh carries them."""

    opener: NodeId
    acceptor: NodeId
    listens: Address
    """Where the opener connects to: the proxy, as the nodes reach it."""
    upstream: Address
    """Where the proxy connects to: the acceptor, as the proxy reaches it."""
    reached: Address
    """The proxy, as this machine reaches it."""
    past: Address
    """The acceptor, as this machine reaches it with no fault between."""

    @property
    def name(self) -> str:
        """That of its proxy."""
        return f"{self.opener}.{self.acceptor}"


class _Toxic(NamedTuple):
    """What is done to the bytes of one direction."""

    name: str
    source: NodeId
    target: NodeId


class Mesh:
    """The links of one cluster; what is done to one is counted, so that faults may overlap."""

    def __init__(self) -> None:
        self._client = Toxiproxy()
        self._api: Address | None = None
        self._one_call = asyncio.Lock()
        self._proxies: dict[tuple[NodeId, NodeId], Proxy] = {}
        self._links: dict[tuple[NodeId, NodeId], Link] = {}
        self._toxics: Counter[_Toxic] = Counter()
        self._latencies_s: dict[_Toxic, list[float]] = {}
        """The latency that each fault adds; the largest counts."""
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

    def connect(self, api: Address) -> None:
        """Use the server whose API is there."""
        _bypass_http_proxies()
        self._api = api

    async def answers(self) -> bool:
        """Does the server answer?"""
        try:
            await self._call(self._client.proxies)
        except MeshError:
            return False
        return True

    async def add(
        self, opener: NodeId, acceptor: NodeId, upstream: Address, past: Address, door: Door | None
    ) -> Link:
        """A new link, through a port of its own; without a door any port of this machine."""
        listen = str(door.binds) if door is not None else None
        name = f"{opener}.{acceptor}"
        proxy = await self._call(lambda: self._client.create(str(upstream), name, listen))
        taken = Address(HOST, Address.of(proxy.listen).port)
        listens, reached = (door.inside, door.outside) if door is not None else (taken, taken)
        link = Link(opener, acceptor, listens, upstream, reached, past)
        self._proxies[opener, acceptor] = proxy
        self._links[opener, acceptor] = link
        return link

    async def counters(self) -> Counters:
        """How many bytes each link has taken in and passed on, over connections that have ended."""
        api = self._api
        assert api is not None, "the server was started"
        return await self._call(lambda: counted(api, CALL_TIMEOUT_S))

    async def is_closed(self, link: Link) -> bool:
        """Does the server itself say that the link is refused?"""
        proxy = await self._call(lambda: self._client.get_proxy(link.name))
        return proxy is not None and not proxy.enabled

    async def cut(self, source: NodeId, target: NodeId) -> None:
        """Swallow what goes from source to target."""
        await self._poison(_Toxic("cut", source, target), "timeout", {"timeout": 0})

    async def heal(self, source: NodeId, target: NodeId) -> None:
        """Take one cut back; the link is whole when all of its cuts are."""
        await self._cure(_Toxic("cut", source, target))

    async def slow(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        """Let what goes from source to target arrive later; a link is as slow as its slowest fault
        makes it."""
        toxic = _Toxic("slow", source, target)
        before_s = max(self._latencies_s.get(toxic, ()), default=0.0)
        await self._poison(toxic, "latency", _latency(latency_s))
        self._latencies_s.setdefault(toxic, []).append(latency_s)
        if 0 < before_s < latency_s:
            await self._set(toxic, _latency(latency_s))

    async def quicken(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        """Take one fault's latency back; after the last, what is under way arrives at once."""
        toxic = _Toxic("slow", source, target)
        latencies_s = self._latencies_s.get(toxic, [])
        if latency_s not in latencies_s:
            return
        await self._cure(toxic)
        latencies_s.remove(latency_s)
        if not latencies_s:
            self._latencies_s.pop(toxic, None)
        elif max(latencies_s) < latency_s:
            await self._set(toxic, _latency(max(latencies_s)))

    def faults(self, one: NodeId, other: NodeId) -> LinkFaults:
        """What all faults together do to the links between the two."""
        ways = ((one, other), (other, one))
        slow = (self._latencies_s.get(_Toxic("slow", *way), ()) for way in ways)
        return LinkFaults(
            cut=any(self._toxics[_Toxic("cut", *way)] > 0 for way in ways),
            refused=self._refusals[_unordered(one, other)] > 0,
            slowness_s=sum(max(latencies_s, default=0.0) for latencies_s in slow),
        )

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
            self._latencies_s.pop(toxic, None)
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
            for proxy, stream in proxies:
                await self._call(functools.partial(proxy.destroy_toxic, f"{toxic.name}-{stream}"))

    async def _set(self, toxic: _Toxic, attributes: dict[str, int]) -> None:
        """Change a toxic that is there, for connections that are open, too; the client lacks it."""
        for proxy, stream in self._sides(toxic):
            path = f"/proxies/{proxy.name}/toxics/{toxic.name}-{stream}"
            await self._call(
                functools.partial(APIConsumer.post, path, json={"attributes": attributes})
            )

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
        assert self._api is not None, "the server was started"
        host, port = self._api

        def called() -> Answer:
            with _ONE_ADDRESS:
                self._client.update_api_consumer(host, port)
                return call()

        async with self._one_call:
            try:
                async with asyncio.timeout(CALL_TIMEOUT_S):  # wait_for may lose a cancellation
                    return await asyncio.to_thread(called)
            except TimeoutError:
                raise MeshError(f"toxiproxy-server was silent for {CALL_TIMEOUT_S:g} s") from None
            except (OSError, NotFound, ProxyExists, InvalidToxic, KeyError) as error:
                raise MeshError(f"toxiproxy-server: {type(error).__name__}: {error}") from error


def _latency(latency_s: float) -> dict[str, int]:
    """The attributes of Toxiproxy's ``latency``."""
    return {"latency": round(latency_s * 1000), "jitter": 0}


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
