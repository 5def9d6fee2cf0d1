"""The links of a user's cluster, if the proxies of a Toxiproxy carry them.

The proxy of the connections that one node opens to another is called ``opener.acceptor``, as in
``broker-1.broker-2``, ``clients.broker-1`` and ``broker-1.controller-2``.
"""

import itertools
import random
from collections.abc import Sequence
from pathlib import Path

from harness.cluster.external import cluster_file
from harness.cluster.external.external_cluster import ExternalCluster
from harness.cluster.external.hooks import Call, Hook, Http
from harness.cluster.mesh.mesh_faults import MeshFaults
from harness.cluster.mesh.toxiproxy import Mesh
from harness.cluster.node import ClusterError
from model import roles
from model.layout import Layout
from model.link_faults import LinkFaults
from model.plan import Plan
from model.roles import NodeId

PROXY, TOXIC = "proxy", "toxic"
"""What faults of links do to Toxiproxy, as the record of pending changes names it."""
_STREAMS = ("upstream", "downstream")


class Proxied(MeshFaults, ExternalCluster):
    """Cuts, closes and slows links by the user's Toxiproxy."""

    def __init__(self, plan: Plan, folder: Path, rng: random.Random) -> None:
        super().__init__(plan, folder, rng)
        self.mesh = Mesh()

    async def cut(self, source: NodeId, target: NodeId) -> None:
        self._note_toxic("cut", source, target)
        await super().cut(source, target)

    async def slow(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        self._note_toxic("slow", source, target)
        await super().slow(source, target, latency_s)

    async def refuse(self, one: NodeId, other: NodeId) -> None:
        for name in self._proxies(one, other):
            enable = Http(url=f"{self._api}/proxies/{name}", body='{"enabled": true}')
            self._undo.breaks(PROXY, name, self._undoing(f"enable {name}", enable))
        await super().refuse(one, other)

    def link_faults(self, one: NodeId, other: NodeId) -> LinkFaults:
        if not self.has_link(one, other):
            return ExternalCluster.link_faults(self, one, other)
        faults = super().link_faults(one, other)
        off = ExternalCluster.link_faults(self, one, other).disconnected
        return LinkFaults(faults.cut, faults.refused, off, slowness_s=faults.slowness_s)

    # --- implementation

    async def _connect(self) -> None:
        address = cluster_file.toxiproxy_address(self._file.content)
        assert address is not None, "the file has the address of a Toxiproxy"
        self.mesh.connect(address)
        if not await self.mesh.answers():
            raise ClusterError(f"no Toxiproxy answers at {address}")
        for opener, acceptor in pairs(self.layout):
            node = self.layout.node_of(acceptor)
            if self._survey.address(node) is not None:
                await self.mesh.attach(opener, acceptor, self.direct(node))
        missing = [
            f"{one}.{other}" for one, other in needed(self.layout) if not self._has(one, other)
        ]
        if missing:
            raise ClusterError(f"the Toxiproxy at {address} has no proxy {', '.join(missing)}")

    def _has(self, opener: NodeId, acceptor: NodeId) -> bool:
        return any((link.opener, link.acceptor) == (opener, acceptor) for link in self.mesh.links)

    def _note_toxic(self, kind: str, source: NodeId, target: NodeId) -> None:
        for name in self._proxies(source, target):
            for stream in _STREAMS:
                toxic = f"{kind}-{stream}"
                url = f"{self._api}/proxies/{name}/toxics/{toxic}"
                removal = Http(url=url, method="DELETE", missing_is_success=True)
                where = f"{name} {toxic}"
                self._undo.breaks(TOXIC, where, self._undoing(f"remove {where}", removal))

    def _proxies(self, one: NodeId, other: NodeId) -> Sequence[str]:
        return [link.name for pair in self._pairs(one, other) for link in self.mesh.between(*pair)]

    @property
    def _api(self) -> str:
        return f"http://{cluster_file.toxiproxy_address(self._file.content)}"

    def _undoing(self, what: str, hook: Hook) -> Call:
        timeout_s = self._file.content.hook_timeout_s
        return Call(what=what, hook=hook, folder=str(self._file.folder), timeout_s=timeout_s)


def pairs(layout: Layout) -> list[tuple[NodeId, NodeId]]:
    """Return all links that there may be: opener and acceptor."""
    inside = [
        (opener, acceptor)
        for opener, acceptor in itertools.permutations((*layout.nodes, *layout.controllers), 2)
        if opener in layout.nodes and layout.node_of(acceptor) != opener
    ]
    return [*dict.fromkeys(inside), *((roles.CLIENTS, broker) for broker in layout.brokers)]


def needed(layout: Layout) -> list[tuple[NodeId, NodeId]]:
    """Return the links that must have proxies: those to brokers."""
    peers = itertools.permutations(layout.brokers, 2)
    return [*((roles.CLIENTS, broker) for broker in layout.brokers), *peers]
