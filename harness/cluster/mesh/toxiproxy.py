"""The mesh: every link of the cluster runs through its own proxy of one real Toxiproxy.

A proxy carries the connections that one party opens to another. A *cut* is directed: no byte goes
from source to target any more, whichever party opened the connection, so it is an upstream toxic on
the proxy source → target and a downstream toxic on the proxy target → source. The toxic is
Toxiproxy's ``timeout`` 0: it swallows bytes, and closes the connection when it is removed. A
*refused* link is a disabled proxy: open connections are closed, new ones are refused.

The client (toxiproxy-python) blocks, keeps the server's address in a class, has no timeouts and
ignores failures: ``docs/adr/0010-toxiproxy-client.md`` says how each is handled here.
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
from harness.cluster.mesh.counters import Counters, counted
from harness.cluster.node import ClusterError
from harness.cluster.ports import HOST
from harness.cluster.process import Process
from model.link_faults import LinkFaults
from model.roles import NodeId

Answer = TypeVar("Answer")
Fault = TypeVar("Fault")

OURS = Path(__file__).parents[3] / ".tools" / "bin" / "toxiproxy-server"
"""The server that set-up installs if the machine has none."""
CALL_TIMEOUT_S = 10.0
"""Long, because Toxiproxy closes no link while it connects for it (``MESH_KERNEL``)."""
_ONE_ADDRESS = threading.Lock()
"""The client holds one server's address per process; calls to several servers take turns."""


class MeshError(ClusterError):
    """Toxiproxy is missing, does not answer, or did not do what was asked of it."""


def find_server() -> Path:
    """The toxiproxy-server: ``$FAULTLINE_TOXIPROXY``, the one on the path, or the project's own."""
    named = os.environ.get("FAULTLINE_TOXIPROXY")
    for candidate in (named, shutil.which("toxiproxy-server"), str(OURS)):
        if candidate and os.access(candidate, os.X_OK):
            return Path(candidate)
    raise MeshError(
        "no toxiproxy-server was found: run `make setup`, or set FAULTLINE_TOXIPROXY to its path"
    )


def command() -> list[str]:
    """The command that starts the server on any free port, which :func:`serve` then looks up."""
    return [str(find_server()), "-host", HOST, "-port", "0", "-proxy-metrics"]


ENVIRONMENT = {"LOG_LEVEL": "error"}
"""The server's environment: at its default level it logs every connection that ends."""


async def serve(server: Process) -> Address:
    """Start a server of :func:`command` as a process, and find its port."""
    await server.start()
    async with asyncio.timeout(CALL_TIMEOUT_S):
        while (port := _listening_port(server.pid)) is None:
            if server.pid is None:
                raise MeshError(f"toxiproxy-server ended: {await server.last_line()}")
            await asyncio.sleep(0.005)
    return Address(HOST, port)


class ProxyEndpoint(NamedTuple):
    """The addresses of a proxy, if they are known before it is created."""

    binds: Address
    """The address that the proxy listens on, in its own network."""
    inside: Address
    """The same endpoint, as the nodes reach it."""
    outside: Address
    """The same endpoint, as this machine reaches it."""


@dataclass(frozen=True, slots=True)
class Link:
    """The connections that ``opener`` makes to ``acceptor``, as the mesh carries them."""

    opener: NodeId
    acceptor: NodeId
    listens: Address
    """The address that the opener connects to: the proxy, as the nodes reach it."""
    upstream: Address
    """The address that the proxy connects to: the acceptor, as the proxy reaches it."""
    reached: Address
    """The proxy, as this machine reaches it."""
    past: Address
    """The acceptor's node, as this machine reaches it without any fault in between."""
    has_tls: bool = False
    """Is the listener encrypted, whose address ``past`` then is?"""

    @property
    def name(self) -> str:
        """The name of the link's proxy."""
        return f"{self.opener}.{self.acceptor}"

    @property
    def node(self) -> NodeId:
        """The acceptor, or the node that has the accepting port."""
        return self.acceptor.partition(".")[0]


class _Toxic(NamedTuple):
    """A fault of the bytes of one direction."""

    name: str
    source: NodeId
    target: NodeId


class Mesh:
    """The links of one cluster; faults of a link are counted, so that they may overlap.

    A heal that fails is not counted: the next one, or :meth:`heal_all`, heals in its place.
    """

    def __init__(self) -> None:
        self._client = Toxiproxy()
        self._api: Address | None = None
        self._one_call = asyncio.Lock()
        self._one_change = asyncio.Lock()
        """Held until both the calls of a fault or a heal and its count are done."""
        self._proxies: dict[tuple[NodeId, NodeId], Proxy] = {}
        self._links: dict[tuple[NodeId, NodeId], Link] = {}
        self._toxics: Counter[_Toxic] = Counter()
        self._latencies_s: dict[_Toxic, list[float]] = {}
        """The latency that each fault adds; the largest applies."""
        self._refusals: Counter[tuple[NodeId, NodeId]] = Counter()

    @property
    def links(self) -> tuple[Link, ...]:
        return tuple(self._links.values())

    @property
    def api(self) -> Address | None:
        """The address of the server's API; ``None`` before :meth:`connect`."""
        return self._api

    def between(self, one: NodeId, other: NodeId) -> list[Link]:
        """The links between two nodes, in either direction; ``MeshError`` if there is none."""
        pairs = ((one, other), (other, one))
        links = [self._links[pair] for pair in pairs if pair in self._links]
        if not links:
            raise MeshError(f"there is no link between {one} and {other}")
        return links

    def has_link(self, one: NodeId, other: NodeId) -> bool:
        """Return whether there is a link between two nodes, in either direction."""
        return (one, other) in self._links or (other, one) in self._links

    def connect(self, api: Address) -> None:
        """Use the server whose API has this address."""
        _bypass_http_proxies()
        self._api = api

    async def answers(self) -> bool:
        """Return whether the server answers."""
        try:
            await self._call(self._client.proxies)
        except MeshError:
            return False
        return True

    async def add(
        self,
        opener: NodeId,
        acceptor: NodeId,
        upstream: Address,
        past: Address,
        endpoint: ProxyEndpoint | None,
        *,
        has_tls: bool = False,
    ) -> Link:
        """Create a link, which has its own port: the port of ``endpoint``, or any free one of this
        machine."""
        listen = str(endpoint.binds) if endpoint is not None else None
        name = f"{opener}.{acceptor}"
        proxy = await self._call(lambda: self._client.create(str(upstream), name, listen))
        taken = Address(HOST, Address.of(proxy.listen).port)
        listens, reached = (
            (endpoint.inside, endpoint.outside) if endpoint is not None else (taken, taken)
        )
        link = Link(opener, acceptor, listens, upstream, reached, past, has_tls)
        self._proxies[opener, acceptor] = proxy
        self._links[opener, acceptor] = link
        return link

    async def attach(self, opener: NodeId, acceptor: NodeId, past: Address) -> bool:
        """Use the existing proxy ``opener.acceptor`` as a link; return whether there is one.

        This machine and the opener must reach the proxy at the address that it listens on.
        """
        proxy = await self._call(lambda: self._client.get_proxy(f"{opener}.{acceptor}"))
        if proxy is None:
            return False
        listens, upstream = Address.of(proxy.listen), Address.of(proxy.upstream)
        reached = Address(listens.host.strip("[]") or HOST, listens.port)
        if reached.host in ("::", "0.0.0.0"):
            assert self._api is not None, "toxiproxy-server answers"
            reached = Address(self._api.host, listens.port)
        self._proxies[opener, acceptor] = proxy
        self._links[opener, acceptor] = Link(opener, acceptor, reached, upstream, reached, past)
        return True

    async def counters(self) -> Counters:
        """The bytes that each link has received and sent, over connections that have ended."""
        api = self._api
        assert api is not None, "toxiproxy-server has been started"
        return await self._call(lambda: counted(api, CALL_TIMEOUT_S))

    async def is_closed(self, link: Link) -> bool:
        """Return whether the server reports the link's proxy as disabled."""
        proxy = await self._call(lambda: self._client.get_proxy(link.name))
        return proxy is not None and not proxy.enabled

    async def cut(self, source: NodeId, target: NodeId) -> None:
        """Swallow the bytes from source to target."""
        async with self._one_change:
            await self._poison(_Toxic("cut", source, target), "timeout", {"timeout": 0})

    async def heal(self, source: NodeId, target: NodeId) -> None:
        """End one cut; the bytes flow again when all cuts of the link have ended."""
        async with self._one_change:
            await self._cure(_Toxic("cut", source, target))

    async def slow(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        """Delay the bytes from source to target; the largest latency of a link's faults applies."""
        toxic = _Toxic("slow", source, target)
        async with self._one_change:
            before_s = max(self._latencies_s.get(toxic, ()), default=0.0)
            await self._poison(toxic, "latency", _latency(latency_s))
            self._latencies_s.setdefault(toxic, []).append(latency_s)
            if 0 < before_s < latency_s:
                await self._set(toxic, _latency(latency_s))

    async def quicken(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        """End one fault's latency; after the last one, bytes in flight arrive at once."""
        toxic = _Toxic("slow", source, target)
        async with self._one_change:
            others_s = list(self._latencies_s.get(toxic, ()))
            if latency_s not in others_s:
                return
            others_s.remove(latency_s)
            if others_s and max(others_s) < latency_s:
                await self._set(toxic, _latency(max(others_s)))
            await self._cure(toxic)
            self._latencies_s[toxic] = others_s
            if not others_s:
                del self._latencies_s[toxic]

    def faults(self, one: NodeId, other: NodeId) -> LinkFaults:
        """The combined effect of all faults on the links between the two nodes."""
        ways = ((one, other), (other, one))
        slow = (self._latencies_s.get(_Toxic("slow", *way), ()) for way in ways)
        return LinkFaults(
            cut=any(self._toxics[_Toxic("cut", *way)] > 0 for way in ways),
            refused=self._refusals[_unordered(one, other)] > 0,
            slowness_s=sum(max(latencies_s, default=0.0) for latencies_s in slow),
        )

    async def refuse(self, one: NodeId, other: NodeId) -> None:
        """Close the connections between the two nodes, and refuse new ones."""
        links = self.between(one, other)
        pair = _unordered(one, other)
        async with self._one_change:
            self._refusals[pair] += 1
            if self._refusals[pair] == 1:
                for link in links:
                    await self._call(self._proxies[link.opener, link.acceptor].disable)

    async def accept(self, one: NodeId, other: NodeId) -> None:
        """End one refusal."""
        async with self._one_change:
            await self._accept(one, other)

    async def heal_all(self) -> None:
        """End all faults of all links."""
        async with self._one_change:
            for toxic in list(self._toxics):
                self._toxics[toxic] = 1
                await self._cure(toxic)
                self._latencies_s.pop(toxic, None)
            for one, other in list(self._refusals):
                self._refusals[one, other] = 1
                await self._accept(one, other)

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
        if self._toxics[toxic] == 1:
            for proxy, stream in proxies:
                remove = functools.partial(_without, proxy, f"{toxic.name}-{stream}")
                await self._call(remove)
        _count_down(self._toxics, toxic)

    async def _accept(self, one: NodeId, other: NodeId) -> None:
        links = self.between(one, other)
        pair = _unordered(one, other)
        if self._refusals[pair] == 1:
            for link in links:
                await self._enable(self._proxies[link.opener, link.acceptor])
        _count_down(self._refusals, pair)

    async def _set(self, toxic: _Toxic, attributes: dict[str, int]) -> None:
        """Change an existing toxic, also for open connections; the client cannot do this."""
        for proxy, stream in self._sides(toxic):
            path = f"/proxies/{proxy.name}/toxics/{toxic.name}-{stream}"
            await self._call(
                functools.partial(APIConsumer.post, path, json={"attributes": attributes})
            )

    def _sides(self, toxic: _Toxic) -> list[tuple[Proxy, str]]:
        """The proxies that carry bytes from source to target, each with its stream."""
        self.between(toxic.source, toxic.target)
        there, back = (toxic.source, toxic.target), (toxic.target, toxic.source)
        sides = ((there, "upstream"), (back, "downstream"))
        return [(self._proxies[pair], stream) for pair, stream in sides if pair in self._proxies]

    async def _enable(self, proxy: Proxy) -> None:
        """Enable the proxy again on its old port, which another socket may hold for a moment.

        While the proxy was disabled, the system could give the port to an outgoing connection. The
        client does not report that enabling has failed, so the server is asked.
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
        assert self._api is not None, "toxiproxy-server has been started"
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
                raise MeshError(
                    f"toxiproxy-server did not respond within {CALL_TIMEOUT_S:g} s"
                ) from None
            except (OSError, NotFound, ProxyExists, InvalidToxic, KeyError) as error:
                raise MeshError(f"toxiproxy-server: {type(error).__name__}: {error}") from error


def _without(proxy: Proxy, toxic: str) -> None:
    """Remove a toxic that a call without an answer may have removed already."""
    try:
        proxy.destroy_toxic(toxic)
    except NotFound as error:
        if "toxic not found" not in str(error):  # the proxy itself is missing
            raise


def _count_down(faults: "Counter[Fault]", fault: Fault) -> None:
    """Remove one of the faults, if there is any."""
    faults[fault] -= 1
    if faults[fault] <= 0:
        del faults[fault]


def _latency(latency_s: float) -> dict[str, int]:
    """The attributes of Toxiproxy's ``latency``."""
    return {"latency": round(latency_s * 1000), "jitter": 0}


def _unordered(one: NodeId, other: NodeId) -> tuple[NodeId, NodeId]:
    return (one, other) if one < other else (other, one)


def _listening_port(pid: int | None) -> int | None:
    """The port that a process listens on, if it does so already."""
    if pid is None:
        return None
    try:
        connections: Iterable[psutil._common.pconn] = psutil.Process(pid).net_connections("tcp")
    except psutil.NoSuchProcess:
        return None
    listening = [c.laddr.port for c in connections if c.status == psutil.CONN_LISTEN]
    return listening[0] if listening else None


def _bypass_http_proxies() -> None:
    """Exclude the loopback from ``http_proxy``, which the client obeys: no proxy can reach it."""
    bypassed = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    if HOST not in bypassed.split(","):
        os.environ["no_proxy"] = f"{bypassed},{HOST}".lstrip(",")
