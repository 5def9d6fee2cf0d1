"""The settings of simulated nodes: each has its own host, on which all nodes use equal ports."""

import itertools
from collections.abc import Mapping
from pathlib import PurePosixPath

from broker_impl.config import AUTHORIZER
from broker_impl.zookeeper.program import Settings
from broker_impl.zookeeper.quorum.ensemble import Member
from harness.cluster import ensembles, links, security, settings
from harness.cluster.address import Address
from harness.cluster.links import LinkSpec
from harness.cluster.security import HARNESS_LISTENER
from harness.cluster.settings import CLIENT_LISTENER, PEER_LISTENER, Addresses
from model import data_directories, racks, roles
from model.layout import PEER_PORTS, Layout
from model.plan import Plan
from model.roles import ZOOKEEPER, NodeId

QUORUM_PORT, ELECTION_PORT = 2888, 3888
OUTSIDER = "outsider"
"""The user without rights, and its password."""
OUTSIDER_LISTENER = OUTSIDER.upper()
"""The listener on which it authenticates."""
PORTS: Mapping[str, int] = {
    CLIENT_LISTENER: 9092,
    PEER_LISTENER: 9093,
    OUTSIDER_LISTENER: 9094,
    HARNESS_LISTENER: 9095,
    ZOOKEEPER: 2181,
    **dict(zip(PEER_PORTS, (QUORUM_PORT, ELECTION_PORT), strict=True)),
}
"""The port of each listener, by name."""


_OF_ITS_LISTENER = f"listener.name.{OUTSIDER}"
_GUARDED: Mapping[str, str] = {
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    f"{_OF_ITS_LISTENER}.sasl.enabled.mechanisms": "PLAIN",
    f"{_OF_ITS_LISTENER}.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'user_{OUTSIDER}="{OUTSIDER}";'
    ),
}
"""The settings of brokers with ACLs; clients of the other listeners may do everything."""


def listener(layout: Layout, node: NodeId) -> str:
    """Return the name of a node's listener for clients."""
    return ZOOKEEPER if node in layout.zookeepers else CLIENT_LISTENER


def address(layout: Layout, node: NodeId) -> Address:
    """Return the address of a node's listener for clients."""
    return Address(node, PORTS[listener(layout, node)])


def open_address(layout: Layout, plan: Plan, node: NodeId) -> Address:
    """Return the address of a node's listener without authentication."""
    if node in layout.zookeepers or security.of(plan) is None:
        return address(layout, node)
    return Address(node, PORTS[HARNESS_LISTENER])


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
    listeners = [*security.listeners((CLIENT_LISTENER, PEER_LISTENER), plan)]
    own = security.broker_settings(plan, listeners, PurePosixPath("/"))
    if outsider_s(plan):
        protocols = own.get("listener.security.protocol.map")
        protocols = protocols or ",".join(f"{each}:PLAINTEXT" for each in listeners)
        protocols += f",{OUTSIDER_LISTENER}:SASL_PLAINTEXT"
        own = {**_GUARDED, **own, "listener.security.protocol.map": protocols}
        listeners.append(OUTSIDER_LISTENER)
    addresses = Addresses(
        listeners={each: Address("0.0.0.0", PORTS[each]) for each in listeners},
        advertised={each: Address(name, PORTS[each]) for each in listeners},
        zookeepers=tuple(address(layout, node) for node in layout.zookeepers),
    )
    data = PurePosixPath("/data")
    chosen = {**racks.of_broker(number, plan.options), **plan.broker}
    own["log.dirs"] = data_directories.of_broker(data, plan.options)
    return settings.of_broker(number, plan.brokers, addresses, data, chosen) | own


def outsider_s(plan: Plan) -> float:
    """Return the mean pause between two fetches of the outsider in seconds; 0: there is none."""
    return float(plan.options.get("outsider_ms", 0)) / 1000


def outsider_addresses(layout: Layout, plan: Plan) -> tuple[dict[int, Address], dict[int, Address]]:
    """Return where the operator of ACLs reaches each broker, and where the outsider does."""
    brokers = {roles.number(name): name for name in layout.brokers}
    return (
        {number: open_address(layout, plan, name) for number, name in brokers.items()},
        {number: Address(name, PORTS[OUTSIDER_LISTENER]) for number, name in brokers.items()},
    )


def links_of(layout: Layout) -> list[LinkSpec]:
    """Return all links between nodes; those between servers are probed at the port for clients.

    A fault of a link concerns all ports of the two hosts.
    """
    found = [link for link in links.between(layout, ()) if link.listener not in PEER_PORTS]
    pairs = itertools.permutations(layout.zookeepers, 2)
    return [*found, *(LinkSpec(one, other, ZOOKEEPER) for one, other in pairs)]
