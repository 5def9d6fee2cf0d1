"""The faults of links that proxies carry, for every cluster that has a mesh."""

import asyncio
import itertools

from harness.cluster.mesh import link_proof
from harness.cluster.mesh.toxiproxy import Link, Mesh, MeshError
from harness.cluster.observed_cluster import ObservedCluster
from model.layout import peer_port
from model.link_faults import LinkFaults
from model.roles import NodeId


class MeshFaults(ObservedCluster):
    """Cuts, closes and slows the links of a cluster."""

    mesh: Mesh

    # --- CanCut, CanRefuse

    async def cut(self, source: NodeId, target: NodeId) -> None:
        for pair in self._pairs(source, target):
            await self.mesh.cut(*pair)

    async def heal(self, source: NodeId, target: NodeId) -> None:
        for pair in self._pairs(source, target):
            await self.mesh.heal(*pair)

    async def heal_all(self) -> None:
        await self.mesh.heal_all()

    def link_faults(self, one: NodeId, other: NodeId) -> LinkFaults:
        found = [self.mesh.faults(*pair) for pair in self._pairs(one, other)]
        return LinkFaults(
            cut=any(faults.cut for faults in found),
            refused=any(faults.refused for faults in found),
            slowness_s=max(faults.slowness_s for faults in found),
        )

    def has_link(self, one: NodeId, other: NodeId) -> bool:
        ends = itertools.product(self.layout.ends_of(one), self.layout.ends_of(other))
        return any(self.mesh.has_link(*pair) for pair in ends)

    async def is_cut(self, source: NodeId, target: NodeId) -> bool | None:
        verdicts = await asyncio.gather(
            *(link_proof.is_cut(self.mesh, link) for link in self._probed(source, target))
        )
        known = [verdict for verdict in verdicts if verdict is not None]
        return all(known) if known else None

    async def refuse(self, one: NodeId, other: NodeId) -> None:
        for pair in self._pairs(one, other):
            await self.mesh.refuse(*pair)

    async def accept(self, one: NodeId, other: NodeId) -> None:
        for pair in self._pairs(one, other):
            await self.mesh.accept(*pair)

    async def is_refused(self, one: NodeId, other: NodeId) -> bool:
        refused = await asyncio.gather(
            *(link_proof.is_refused(self.mesh, link) for link in self._between(one, other))
        )
        return all(refused)

    # --- CanSlow

    async def slow(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        for pair in self._pairs(source, target):
            await self.mesh.slow(*pair, latency_s)

    async def quicken(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        for pair in self._pairs(source, target):
            await self.mesh.quicken(*pair, latency_s)

    async def round_trip_s(self, source: NodeId, target: NodeId) -> float | None:
        slowness_s = self.link_faults(source, target).slowness_s
        return await link_proof.round_trip_s(self._probed(source, target), slowness_s)

    # --- implementation

    def _pairs(self, one: NodeId, other: NodeId) -> list[tuple[NodeId, NodeId]]:
        """The pairs of ends between which links lead from one node to the other, or back."""
        ends = itertools.product(self.layout.ends_of(one), self.layout.ends_of(other))
        found = [pair for pair in ends if self.mesh.has_link(*pair)]
        if not found:
            raise MeshError(f"there is no link between {one} and {other}")
        return found

    def _between(self, one: NodeId, other: NodeId) -> list[Link]:
        return [link for pair in self._pairs(one, other) for link in self.mesh.between(*pair)]

    def _probed(self, one: NodeId, other: NodeId) -> list[Link]:
        """Those of the links whose acceptors answer probes, in the direction from one to the other.

        Only the leader of a ZooKeeper ensemble accepts connections at its quorum port. The answer
        of an election port, the end of the connection, passes a link that loses all bytes: each
        direction is probed over the link that its sender opens.
        """
        answering = {*self.nodes, *self.layout.controllers}
        election = peer_port(other, "ELECTION")
        return [
            link
            for link in self._between(one, other)
            if link.acceptor in answering or (link.opener, link.acceptor) == (one, election)
        ]
