"""A layout: the nodes of a cluster, and which of them keep the cluster's metadata."""

from dataclasses import dataclass

from model import roles
from model.roles import ZOOKEEPER, NodeId

PEER_PORTS = ("QUORUM", "ELECTION")
"""The ports at which the servers of a ZooKeeper ensemble reach each other."""


def peer_port(server: NodeId, name: str) -> NodeId:
    """Return the end of a link that one of a server's :data:`PEER_PORTS` is."""
    return f"{server}.{name.lower()}"


@dataclass(frozen=True, slots=True)
class Layout:
    """The nodes of a cluster by their roles."""

    brokers: tuple[NodeId, ...]
    zookeepers: tuple[NodeId, ...] = ()
    """The ZooKeeper servers; empty in KRaft mode (KIP-500)."""
    observers: tuple[NodeId, ...] = ()
    """Those of the ZooKeeper servers that do not vote."""
    controllers: tuple[NodeId, ...] = ()
    """The members of KRaft's controller quorum, ``controller-1`` …; empty in ZooKeeper mode."""
    combined: bool = False
    """Is each controller a role of the broker with the same number, and no node of its own?

    Its id then names the controller listener of that broker, as the end of a link.
    """

    @property
    def is_kraft(self) -> bool:
        """Return whether a controller quorum replaces ZooKeeper."""
        return bool(self.controllers)

    @property
    def is_ensemble(self) -> bool:
        """Return whether several ZooKeeper servers elect a leader."""
        return len(self.zookeepers) > 1

    @property
    def voters(self) -> tuple[NodeId, ...]:
        """The ZooKeeper servers that vote."""
        return tuple(node for node in self.zookeepers if node not in self.observers)

    @property
    def members(self) -> tuple[NodeId, ...]:
        """The nodes that serve the workload's clients: the brokers, else the ZooKeeper servers."""
        return self.brokers or self.zookeepers

    @property
    def separate(self) -> tuple[NodeId, ...]:
        """The controllers that are nodes of their own."""
        return () if self.combined else self.controllers

    @property
    def keepers(self) -> tuple[NodeId, ...]:
        """The nodes that keep the metadata: ZooKeeper servers, or controllers, or brokers that are
        controllers, too."""
        quorum = tuple(map(self.node_of, self.controllers))
        return self.zookeepers or quorum

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        """All nodes, the brokers first."""
        return (*self.brokers, *self.zookeepers, *self.separate)

    def node_of(self, end: NodeId) -> NodeId:
        """Return the node that an end of a link belongs to."""
        if self.combined and end in self.controllers:
            return roles.broker(roles.number(end))
        return end.partition(".")[0]

    def ends_of(self, node: NodeId) -> tuple[NodeId, ...]:
        """Return the ends of links that belong to a node.

        These are the node itself, the controller that is a role of a broker, and the ports at which
        the servers of a ZooKeeper ensemble reach each other.
        """
        if self.combined and node in self.brokers:
            controller = roles.controller(roles.number(node))
            return (node, controller) if controller in self.controllers else (node,)
        if node in self.zookeepers and self.is_ensemble:
            return (node, *(peer_port(node, name) for name in PEER_PORTS))
        return (node,)


def with_zookeeper(brokers: int, servers: int = 1, observers: int = 0) -> Layout:
    """Return brokers 1 … N that are coordinated by ZooKeeper, of which the last ``observers``
    servers do not vote; ``brokers`` may be 0.
    """
    zookeepers = tuple(roles.zookeeper(number) for number in range(1, servers + 1))
    return Layout(
        _brokers(brokers),
        (ZOOKEEPER,) if servers == 1 else zookeepers,
        zookeepers[servers - observers :],
    )


def with_kraft(brokers: int, controllers: int, *, combined: bool) -> Layout:
    """Return brokers 1 … N with a quorum of controllers; ``combined``: in the first brokers."""
    quorum = tuple(roles.controller(number) for number in range(1, controllers + 1))
    return Layout(_brokers(brokers), controllers=quorum, combined=combined)


def _brokers(count: int) -> tuple[NodeId, ...]:
    return tuple(roles.broker(number) for number in range(1, count + 1))
