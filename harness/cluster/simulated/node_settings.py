"""The settings of simulated nodes: each has its own host, on which all nodes use equal ports."""

import itertools
from collections.abc import Mapping
from pathlib import PurePosixPath

from broker_impl.zookeeper.program import Settings
from broker_impl.zookeeper.quorum.ensemble import Member
from harness.cluster import ensembles, links, settings
from harness.cluster.address import Address
from harness.cluster.links import LinkSpec
from harness.cluster.settings import CLIENT_LISTENER, PEER_LISTENER, Addresses
from model import racks, roles
from model.layout import PEER_PORTS, Layout
from model.plan import Plan
from model.roles import ZOOKEEPER, NodeId

QUORUM_PORT, ELECTION_PORT = 2888, 3888
PORTS: Mapping[str, int] = {
    CLIENT_LISTENER: 9092,
    PEER_LISTENER: 9093,
    ZOOKEEPER: 2181,
    **dict(zip(PEER_PORTS, (QUORUM_PORT, ELECTION_PORT), strict=True)),
}
"""The port of each listener, by name."""


def listener(layout: Layout, node: NodeId) -> str:
    """Return the name of a node's listener for clients."""
    return ZOOKEEPER if node in layout.zookeepers else CLIENT_LISTENER


def address(layout: Layout, node: NodeId) -> Address:
    """Return the address of a node's listener for clients."""
    return Address(node, PORTS[listener(layout, node)])


def of_zookeeper(layout: Layout, plan: Plan, name: NodeId) -> Settings:
    """Return the settings of a ZooKeeper server, alone or in an ensemble."""
    chosen = ensembles.settings(plan)
    members = [
        Member(
            roles.number(node),
            node,
            QUORUM_PORT,
            ELECTION_PORT,
            observes=node in layout.observers,
        )
        for node in layout.zookeepers
    ]
    return Settings(
        host="0.0.0.0",
        port=PORTS[ZOOKEEPER],
        tick_ms=chosen[ensembles.TICK],
        snap_count=chosen[ensembles.SNAP_COUNT],
        window=chosen[ensembles.LOG_COUNT],
        me=roles.number(name) if layout.is_ensemble else 0,
        members=tuple(members) if layout.is_ensemble else (),
    )


def of_broker(layout: Layout, plan: Plan, number: int) -> dict[str, str]:
    """Return the settings of a broker: its host's name and ports, without proxies."""
    name = roles.broker(number)
    listeners = (CLIENT_LISTENER, PEER_LISTENER)
    addresses = Addresses(
        listeners={each: Address("0.0.0.0", PORTS[each]) for each in listeners},
        advertised={each: Address(name, PORTS[each]) for each in listeners},
        zookeepers=tuple(address(layout, node) for node in layout.zookeepers),
    )
    data = PurePosixPath("/data")
    chosen = {**racks.of_broker(number, plan.options), **plan.broker}
    return settings.of_broker(number, plan.brokers, addresses, data, chosen)


def links_of(layout: Layout) -> list[LinkSpec]:
    """Return all links between nodes; those between servers are probed at the port for clients.

    A fault of a link concerns all ports of the two hosts.
    """
    found = [link for link in links.between(layout, ()) if link.listener not in PEER_PORTS]
    pairs = itertools.permutations(layout.zookeepers, 2)
    return [*found, *(LinkSpec(one, other, ZOOKEEPER) for one, other in pairs)]
