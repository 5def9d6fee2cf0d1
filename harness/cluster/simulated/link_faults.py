"""The faults of the links between the hosts of a simulated world.

Several faults may do the same to one link; the effect ends when all of them have ended.
"""

from collections import Counter
from collections.abc import Sequence

from harness.simulation.network import Link, Network
from model.link_faults import LinkFaults
from model.roles import NodeId

Way = tuple[NodeId, NodeId]
"""From one host to another."""


class LinkFaultInjector:
    """The links between some hosts."""

    def __init__(self, network: Network, hosts: Sequence[NodeId]) -> None:
        self._network = network
        self._hosts = tuple(hosts)
        self._cuts: Counter[Way] = Counter()
        self._refusals: Counter[Way] = Counter()
        self._slow: dict[Way, list[float]] = {}
        """The latency that each fault adds; the largest applies."""
        self._off: dict[NodeId, None] = {}
        self._leaks: dict[NodeId, tuple[float, int]] = {}
        """The share of packets that is lost, and the number lost before the fault."""

    # Cut: no byte gets through, and no end is notified.

    def cut(self, source: NodeId, target: NodeId) -> None:
        self._cuts[source, target] += 1
        self._connect_or_not(source, target)

    def heal(self, source: NodeId, target: NodeId) -> None:
        self._cuts[source, target] -= self._cuts[source, target] > 0
        self._connect_or_not(source, target)

    def lost(self, one: NodeId, other: NodeId) -> int:
        """The number of segments swallowed between the two hosts."""
        link = self._network.link(one, other)
        return link.lost + link.back.lost

    # Refused: open connections are reset, new ones are refused.

    def refuse(self, one: NodeId, other: NodeId) -> None:
        pair = _unordered(one, other)
        self._refusals[pair] += 1
        if self._refusals[pair] == 1:
            self._network.refuse(one, other)
            self._network.refuse(other, one)
            self._network.reset(one, other)

    def accept(self, one: NodeId, other: NodeId) -> None:
        pair = _unordered(one, other)
        if self._refusals[pair] == 1:
            self._network.admit(one, other)
            self._network.admit(other, one)
        self._refusals[pair] -= self._refusals[pair] > 0

    def is_refused(self, source: NodeId, target: NodeId) -> bool:
        """Return whether the network itself refuses connects."""
        return self._network.link(source, target).refuses

    # Slow.

    def slow(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        """Add a fault's latency; the largest latency of a link's faults applies."""
        latencies = self._slow.setdefault((source, target), [])
        self._network.link(source, target).latency_s += max(
            0.0, latency_s - max(latencies, default=0.0)
        )
        latencies.append(latency_s)

    def quicken(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        """End one fault's latency."""
        latencies = self._slow.get((source, target), [])
        if latency_s not in latencies:
            return
        latencies.remove(latency_s)
        self._network.link(source, target).latency_s -= max(
            0.0, latency_s - max(latencies, default=0.0)
        )
        if not latencies:
            del self._slow[source, target]

    def slowness_s(self, one: NodeId, other: NodeId) -> float:
        """How much longer faults make a round trip between the two hosts."""
        ways = ((one, other), (other, one))
        return sum(max(self._slow[way]) for way in ways if way in self._slow)

    def faults(self, one: NodeId, other: NodeId) -> LinkFaults:
        """The combined effect of all faults on the links between the two hosts."""
        return LinkFaults(
            cut=any(self._cuts[way] > 0 for way in ((one, other), (other, one))),
            refused=self._refusals[_unordered(one, other)] > 0,
            disconnected=one in self._off or other in self._off,
            lossy=one in self._leaks or other in self._leaks,
            slowness_s=self.slowness_s(one, other),
        )

    def heal_all(self) -> None:
        """End all cuts, refusals and latencies of all links."""
        for way in [way for way, count in self._cuts.items() if count]:
            self._cuts[way] = 1
            self.heal(*way)
        for pair in [pair for pair, count in self._refusals.items() if count]:
            self._refusals[pair] = 1
            self.accept(*pair)
        for way, latencies in list(self._slow.items()):
            for latency_s in list(latencies):
                self.quicken(*way, latency_s)

    # Disconnected from the network.

    def disconnect(self, node: NodeId) -> None:
        self._off[node] = None
        self._connect_or_not_all(node)

    def reconnect(self, node: NodeId) -> None:
        if self._off.pop(node, 0) is None:
            self._connect_or_not_all(node)

    def is_off(self, node: NodeId) -> bool:
        """Return whether all links of the node are cut."""
        return all(link.is_cut for link in self._links(node))

    # Packets that get lost.

    def leak(self, node: NodeId, share: float) -> None:
        """Lose this share of the segments that the node receives, and of those that it sends."""
        self._leaks.setdefault(node, (share, self._dropped(node)))
        self._lose(node)

    def seal(self, node: NodeId) -> None:
        if self._leaks.pop(node, None):
            self._lose(node)

    def dropped(self, node: NodeId) -> int | None:
        """How many segments the current fault has lost; ``None`` for a node without one."""
        if node not in self._leaks:
            return None
        _, before = self._leaks[node]
        return self._dropped(node) - before

    # Implementation.

    def _links(self, node: NodeId) -> list[Link]:
        """All links of a node, in both directions."""
        ways = [(node, other) for other in self._hosts if other != node]
        return [
            link
            for way in ways
            for link in (self._network.link(*way), self._network.link(*reversed(way)))
        ]

    def _connect_or_not(self, source: NodeId, target: NodeId) -> None:
        cut = self._cuts[source, target] > 0 or source in self._off or target in self._off
        if cut and not self._network.link(source, target).is_cut:
            self._network.cut(source, target)
        elif not cut and self._network.link(source, target).is_cut:
            self._network.heal(source, target)

    def _connect_or_not_all(self, node: NodeId) -> None:
        for other in self._hosts:
            if other != node:
                self._connect_or_not(node, other)
                self._connect_or_not(other, node)

    def _lose(self, node: NodeId) -> None:
        for link in self._links(node):
            ends = (link.source.name, link.target.name)
            link.loss = max((self._leaks[end][0] for end in ends if end in self._leaks), default=0)

    def _dropped(self, node: NodeId) -> int:
        return sum(link.dropped for link in self._links(node))


def _unordered(one: NodeId, other: NodeId) -> Way:
    return (one, other) if one <= other else (other, one)
