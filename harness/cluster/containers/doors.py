"""The ports of Toxiproxy's container: one for each link.

Some programs reach another node by its name, at the port that this node listens on. For them, all
names lead to Toxiproxy's container, where the kernel redirects each connection to the port of its
link, by the address of the node that opened it and by the port that it asked for. No two listeners
of a cluster therefore have the same port.
"""

from collections.abc import Iterable, Mapping

from harness.cluster.address import Address
from harness.cluster.links import GUARDED, HARNESS, LinkSpec
from harness.cluster.mesh.toxiproxy import ProxyEndpoint
from harness.cluster.node import ClusterError
from harness.cluster.ports import HOST
from model.layout import Layout
from model.roles import CLIENTS, NodeId

MESH: NodeId = "toxiproxy"
API_PORT = 8474
FIRST_PORT = 20_001
"""The first port of the links."""
LISTENERS_FROM = 9_091
"""The first port of the nodes' listeners."""
ANY = "0.0.0.0"


class Doors:
    """The listeners' ports, and the ports of the links between them."""

    def __init__(
        self,
        layout: Layout,
        listeners: Mapping[NodeId, Iterable[str]],
        links: Iterable[LinkSpec],
    ) -> None:
        """``listeners`` are those of each node, by name."""
        self._layout = layout
        named = [(node, listener) for node, names in listeners.items() for listener in names]
        self.ports: dict[NodeId, dict[str, int]] = {node: {} for node in listeners}
        """The port of each listener, by node and name; all are different."""
        for port, (node, listener) in enumerate(named, start=LISTENERS_FROM):
            self.ports[node][listener] = port
        self._links = {(link.opener, link.acceptor): link for link in links}
        self._doors = {pair: port for port, pair in enumerate(self._links, start=FIRST_PORT)}
        self._published: dict[int, int] = {}

    @property
    def inside(self) -> list[int]:
        """The ports of Toxiproxy's container that this machine must reach."""
        return [API_PORT, *self._doors.values()]

    def of_clients(self, ports: Mapping[NodeId, int]) -> dict[int, int]:
        """Map the ports of all clients' links to ports of this machine, given by broker."""
        return {self._doors[CLIENTS, broker]: port for broker, port in ports.items()}

    def publish(self, published: Mapping[int, int]) -> Address:
        """Record at which port of this machine each port is published; return Toxiproxy's API."""
        missing = [port for port in self.inside if port not in published]
        if missing:
            raise ClusterError(f"the container engine did not publish port {missing[0]}")
        self._published = dict(published)
        return Address(HOST, self._published[API_PORT])

    def endpoint(self, link: LinkSpec) -> ProxyEndpoint:
        """Return where the proxy of a link listens, and how it is reached."""
        port = self._doors[link.opener, link.acceptor]
        inside = Address(MESH, port)
        if link.by_name:
            inside = Address(link.acceptor, self._listens(link))
        return ProxyEndpoint(
            binds=Address(ANY, port), inside=inside, outside=Address(HOST, self._published[port])
        )

    def past(self, node: NodeId, *, guarded: bool = False) -> Address:
        """Return the address at which this machine reaches a node past all faults.

        ``guarded``: the listener that a plan protects, in place of the one that is probed first.
        """
        opener = GUARDED if guarded else HARNESS
        return Address(HOST, self._published[self._doors[opener, node]])

    def names(self, node: NodeId, hosts: Mapping[str, str]) -> dict[str, str]:
        """Return the addresses of the names that a node uses; ``hosts`` are the true ones."""
        found = {MESH: hosts[MESH]}
        for link in self._links.values():
            if link.by_name and link.opener == node:
                ends = (link.acceptor, self._layout.node_of(link.acceptor))
                found |= dict.fromkeys(ends, hosts[MESH])
        return found | dict.fromkeys(self._layout.ends_of(node), hosts[node])

    def redirections(self, hosts: Mapping[str, str]) -> str | None:
        """Return the nftables rules of Toxiproxy's container; ``None`` if it needs none."""
        rules = [
            f"ip saddr {hosts[opener]} tcp dport {self._listens(link)} redirect to :{port}"
            for (opener, acceptor), port in self._doors.items()
            if (link := self._links[opener, acceptor]).by_name
        ]
        if not rules:
            return None
        chain = "type nat hook prerouting priority -100; policy accept; " + "; ".join(rules)
        return f"table ip faultline-links {{ chain doors {{ {chain}; }}; }}"

    def _listens(self, link: LinkSpec) -> int:
        return self.ports[self._layout.node_of(link.acceptor)][link.listener]
