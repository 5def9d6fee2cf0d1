"""The base of the targets behind a mesh of proxies, whatever their nodes are.

A target adds how its nodes are created, where they listen, and how everything is removed.
"""

import abc
import asyncio
import contextlib
import random
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from harness.cluster import security, settings
from harness.cluster.address import Address
from harness.cluster.base_cluster import BaseCluster
from harness.cluster.links import LinkSpec
from harness.cluster.mesh.link_proof import PROBE_TIMEOUT_S
from harness.cluster.mesh.mesh_faults import MeshFaults
from harness.cluster.mesh.toxiproxy import Link, Mesh, ProxyEndpoint
from harness.cluster.node import ClusterError, Node
from harness.cluster.observe import probe
from harness.cluster.observe.probe import protocol_of
from harness.cluster.polling import until
from harness.cluster.system import MakeView, Place, Ready, System
from model import roles
from model.cluster_facts import ClusterFacts
from model.plan import Plan
from model.roles import CLIENTS, NodeId

AFTER_SESSION_S = 4.0
"""How long after the end of a session ZooKeeper may take to notice it."""
LOOK_S = 0.1


class ProxiedCluster(MeshFaults, BaseCluster):
    """A cluster whose nodes and clients reach each other only through proxies."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        rng: random.Random,
        *,
        system: System,
        make_view: MakeView | None = None,
        ready: Ready | None = None,
    ) -> None:
        """As :class:`BaseCluster`, with the programs of a system.

        ``plan.options["client_listeners"]`` names clients that get their own listeners, and so
        links. ``make_view`` and ``ready`` are for tests, and replace those of the system.
        """
        super().__init__(
            plan,
            folder,
            rng,
            layout=system.layout(plan),
            make_view=make_view or (lambda addresses: system.view(addresses, rng)),
            ready=ready or system.ready,
        )
        self._system = system
        self.START_TIMEOUT_S = max(self.START_TIMEOUT_S, system.start_timeout_s)
        self.ANSWER_TIMEOUT_S = system.answer_timeout_s
        self.STOP_TIMEOUT_S = system.stop_timeout_s
        self._clients: tuple[str, ...] = tuple(plan.options.get("client_listeners", ()))
        self._ports: dict[NodeId, dict[str, int]] = {}
        self.client_ports: Mapping[NodeId, int] = {}
        """By broker: a fixed port of this machine at which clients reach it, if there is one.

        Takes effect at the start.
        """
        self.mesh = Mesh()

    # --- implemented by targets

    @abc.abstractmethod
    async def _begin(self) -> None:
        """Choose every node's ports, and start the mesh's server."""

    @abc.abstractmethod
    async def _end(self) -> None:
        """Stop and remove everything that has been created so far."""

    @abc.abstractmethod
    async def _make_node(self, place: Place) -> Node:
        """Create a node for this place, without starting it."""

    @abc.abstractmethod
    def _data_of(self, name: NodeId) -> PurePath:
        """The path at which a node finds its own data."""

    @abc.abstractmethod
    def _host_of(self, name: NodeId) -> str:
        """The host name or address at which the mesh reaches a node."""

    @abc.abstractmethod
    def _listens(self, name: NodeId, port: int) -> Address:
        """The address that a node binds for a listener with this port."""

    @abc.abstractmethod
    def _endpoint(self, wanted: LinkSpec) -> ProxyEndpoint | None:
        """The addresses of a link's proxy, if they must be known before it is created."""

    @abc.abstractmethod
    def _past(self, node: NodeId, listener: str) -> Address:
        """The address at which this machine reaches a node without any fault in between."""

    # --- Cluster

    def bootstrap(self, client: str | None = None) -> str:
        party = CLIENTS if client is None else roles.client(client)
        links = [self.mesh.between(party, node)[0] for node in self.layout.members]
        return ",".join(str(self._entrance(link)) for link in links)

    def direct(self, node: NodeId) -> Address:
        """The address of a broker's first listener, or of another node, past the mesh."""
        return self._past(node, self._system.listeners(node, self._plan)[0])

    # --- HasFacts

    async def facts(self, topics: Sequence[str]) -> ClusterFacts | None:
        return await self._system.facts({name: self.direct(name) for name in self.brokers}, topics)

    # --- CanProbe

    async def unresponsive(self, within_s: float) -> tuple[NodeId, ...]:
        """Return them without the nodes that the recovery has started, which may need longer."""
        asked = [name for name in self.nodes if name not in self.revived]
        silent = await asyncio.gather(*(self._is_silent(name, within_s) for name in asked))
        return tuple(name for name, is_silent in zip(asked, silent, strict=True) if is_silent)

    async def _is_silent(self, node: NodeId, within_s: float) -> bool:
        try:
            async with asyncio.timeout(within_s):
                await until(lambda: self._answers(node))
        except TimeoutError:
            with contextlib.suppress(ClusterError):  # a busy engine did not say
                return await self.is_running(node) and not await self.is_paused(node)
        return False

    # --- implementation

    async def _make_nodes(self) -> None:
        await self._begin()
        for wanted in self._system.links(self._plan):
            await self._add_link(wanted)
        for name in self.nodes:
            self._nodes[name] = await self._make_node(self._place_of(name))

    async def _may_start_again(self, node: NodeId) -> None:
        """Wait as the system requires, but not longer than a session may last."""
        session_s = self._system.session_timeout_s(self._plan)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(session_s + AFTER_SESSION_S):
                await until(lambda: self._system.may_start_again(node, self.view), LOOK_S)

    async def _answers(self, node: NodeId) -> bool:
        return await probe.answers(self.direct(node), protocol_of(node), PROBE_TIMEOUT_S)

    async def _add_link(self, wanted: LinkSpec) -> None:
        opener, acceptor, listener, _ = wanted
        node = self.layout.node_of(acceptor)
        upstream = Address(self._host_of(node), self._ports[node][listener])
        is_peer = acceptor not in (*self.nodes, *self.layout.controllers)
        first = self._system.listeners(node, self._plan)[0]
        past = self._past(node, first if is_peer else listener)
        has_tls = security.has_tls(listener, self._plan)
        endpoint = self._endpoint(wanted)
        await self.mesh.add(opener, acceptor, upstream, past, endpoint, has_tls=has_tls)

    def _entrance(self, link: Link) -> Address:
        """The address at which the opener of a link enters it."""
        return link.reached if link.opener.startswith(CLIENTS) else link.listens

    def _place_of(self, name: NodeId) -> Place:
        """Where a node runs: the addresses that its configuration must contain."""
        reached = {(link.opener, link.acceptor): link for link in self.mesh.links}
        ports = self._ports[name]
        advertised = {
            listener: Address(self._host_of(name), port) for listener, port in ports.items()
        }
        for client in (None, *self._clients) if name in self.brokers else ():
            party = CLIENTS if client is None else roles.client(client)
            advertised[settings.client_listener(client)] = self._entrance(reached[party, name])
        own = [link for link in self.mesh.links if link.opener == name]
        return Place(
            node=name,
            folder=self._folder_of(name),
            data=self._data_of(name),
            listens={listener: self._listens(name, port) for listener, port in ports.items()},
            advertised=advertised,
            links={link.acceptor: self._entrance(link) for link in own},
            names=self._names_of(name),
        )

    def _names_of(self, name: NodeId) -> Mapping[str, str]:
        """The IP addresses that host names have for this node only."""
        return {}
