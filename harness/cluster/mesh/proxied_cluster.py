"""The base of the targets behind a mesh of proxies, whatever their nodes are.

A target adds how its nodes are created, where they listen, and how everything is removed.
"""

import abc
import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path, PurePath
from typing import ClassVar

from harness.cluster import links, settings
from harness.cluster.address import Address
from harness.cluster.base_cluster import BaseCluster
from harness.cluster.links import LinkSpec
from harness.cluster.mesh import link_proof
from harness.cluster.mesh.link_proof import PROBE_TIMEOUT_S
from harness.cluster.mesh.toxiproxy import Mesh, ProxyEndpoint
from harness.cluster.node import Node
from harness.cluster.observe import probe
from harness.cluster.observe.metadata_view import MetadataView
from harness.cluster.observe.probe import protocol_of
from harness.cluster.observe.readiness import until_writable
from harness.cluster.settings import PEER_LISTENER, Addresses
from model import roles
from model.link_faults import LinkFaults
from model.plan import Plan
from model.roles import CLIENTS, ZOOKEEPER, NodeId


class ProxiedCluster(BaseCluster):
    """A cluster whose nodes and clients reach each other only through proxies."""

    BINDS: ClassVar[str]
    """The host that nodes listen on, in their own network."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        rng: random.Random,
        *,
        make_view: Callable[[str], MetadataView] | None = None,
        ready: Callable[[MetadataView, Mapping[NodeId, Address]], Awaitable[None]] = until_writable,
    ) -> None:
        """As :class:`BaseCluster`.

        ``plan.options["client_listeners"]`` names clients that get their own listeners, and so
        links.
        """
        super().__init__(plan, folder, rng, make_view=make_view, ready=ready)
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
        """Choose every node's ports, start ZooKeeper and the mesh's server."""

    @abc.abstractmethod
    async def _end(self) -> None:
        """Stop and remove everything that has been created so far."""

    @abc.abstractmethod
    async def _make_broker(self, name: NodeId, broker_settings: Mapping[str, str]) -> Node:
        """Create a broker with these settings, without starting it."""

    @abc.abstractmethod
    def _data_of(self, name: NodeId) -> PurePath:
        """The path at which a node finds its own data."""

    @abc.abstractmethod
    def _host_of(self, name: NodeId) -> str:
        """The host name or address at which the mesh reaches a node."""

    @abc.abstractmethod
    def _endpoint(self, wanted: LinkSpec) -> ProxyEndpoint | None:
        """The addresses of a link's proxy, if they must be known before it is created."""

    @abc.abstractmethod
    def _past(self, node: NodeId, listener: str) -> Address:
        """The address at which this machine reaches a node without any fault in between."""

    # --- Cluster

    def bootstrap(self, client: str | None = None) -> str:
        party = CLIENTS if client is None else roles.client(client)
        reached = [self.mesh.between(party, broker)[0].reached for broker in self.brokers]
        return ",".join(map(str, reached))

    def direct(self, node: NodeId) -> Address:
        """The address of a broker's client listener, or of ZooKeeper, past the mesh."""
        listener = ZOOKEEPER if node == ZOOKEEPER else settings.CLIENT_LISTENER
        return self._past(node, listener)

    # --- CanCut, CanRefuse

    async def cut(self, source: NodeId, target: NodeId) -> None:
        await self.mesh.cut(source, target)

    async def heal(self, source: NodeId, target: NodeId) -> None:
        await self.mesh.heal(source, target)

    async def heal_all(self) -> None:
        await self.mesh.heal_all()

    def link_faults(self, one: NodeId, other: NodeId) -> LinkFaults:
        return self.mesh.faults(one, other)

    async def is_cut(self, source: NodeId, target: NodeId) -> bool | None:
        verdicts = await asyncio.gather(
            *(link_proof.is_cut(self.mesh, link) for link in self.mesh.between(source, target))
        )
        known = [verdict for verdict in verdicts if verdict is not None]
        return all(known) if known else None

    async def refuse(self, one: NodeId, other: NodeId) -> None:
        await self.mesh.refuse(one, other)

    async def accept(self, one: NodeId, other: NodeId) -> None:
        await self.mesh.accept(one, other)

    async def is_refused(self, one: NodeId, other: NodeId) -> bool:
        refused = await asyncio.gather(
            *(link_proof.is_refused(self.mesh, link) for link in self.mesh.between(one, other))
        )
        return all(refused)

    # --- CanSlow

    async def slow(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        await self.mesh.slow(source, target, latency_s)

    async def quicken(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        await self.mesh.quicken(source, target, latency_s)

    async def round_trip_s(self, source: NodeId, target: NodeId) -> float | None:
        slowness_s = self.mesh.faults(source, target).slowness_s
        return await link_proof.round_trip_s(self.mesh.between(source, target), slowness_s)

    # --- implementation

    async def _make_nodes(self) -> None:
        await self._begin()
        for wanted in links.between(self.brokers, self._clients):
            await self._add_link(wanted)
        for number in self._numbers:
            name = roles.broker(number)
            self._nodes[name] = await self._make_broker(name, self._settings_of(number))

    async def _answers(self, node: NodeId) -> bool:
        return await probe.answers(self.direct(node), protocol_of(node), PROBE_TIMEOUT_S)

    async def _add_link(self, wanted: LinkSpec) -> None:
        opener, acceptor, listener = wanted
        upstream = Address(self._host_of(acceptor), self._ports[acceptor][listener])
        past = self._past(acceptor, listener)
        await self.mesh.add(opener, acceptor, upstream, past, self._endpoint(wanted))

    def _settings_of(self, number: int) -> dict[str, str]:
        """The settings of the broker with this number."""
        name = roles.broker(number)
        towards = {(link.opener, link.acceptor): link for link in self.mesh.links}
        ports = self._ports[name]
        advertised = {PEER_LISTENER: Address(self._host_of(name), ports[PEER_LISTENER])}
        for client in (None, *self._clients):
            party = CLIENTS if client is None else roles.client(client)
            advertised[settings.client_listener(client)] = towards[party, name].reached
        addresses = Addresses(
            listeners={listener: Address(self.BINDS, port) for listener, port in ports.items()},
            advertised=advertised,
            zookeeper=towards[name, ZOOKEEPER].listens,
            peers={
                peer: towards[name, roles.broker(peer)].listens
                for peer in self._numbers
                if peer != number
            },
        )
        plan = self._plan
        return settings.of_broker(number, plan.brokers, addresses, self._data_of(name), plan.broker)
