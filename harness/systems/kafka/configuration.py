"""The settings of this project's brokers, and the command of its ZooKeeper."""

import sys

from harness.cluster import security, settings
from harness.cluster.settings import Addresses
from harness.cluster.system import Place
from model import racks, roles
from model.layout import PEER_PORTS, Layout, peer_port
from model.plan import Plan
from model.roles import ZOOKEEPER


def broker_settings(place: Place, plan: Plan) -> dict[str, str]:
    """Return all settings of the broker at this place."""
    addresses = Addresses.of_links(place.listens, place.advertised, place.links)
    number = roles.number(place.node)
    chosen = {**racks.of_broker(number, plan.options), **plan.broker}
    own = security.broker_settings(plan, [*place.listens], place.configuration)
    return settings.of_broker(number, plan.brokers, addresses, place.data, chosen) | own


def zookeeper_arguments(place: Place, layout: Layout) -> list[str]:
    """Return the arguments of Python that start this project's ZooKeeper at this place.

    A setting that follows with another value replaces the one here.
    """
    return [
        *("-m", "broker_impl.zookeeper", "--listen", str(place.listens[ZOOKEEPER])),
        *("--data", str(place.data), "--tick-ms", str(settings.TICK_MS), "--connections-max", "0"),
        *(_member_arguments(place, layout) if layout.is_ensemble else ()),
    ]


def _member_arguments(place: Place, layout: Layout) -> list[str]:
    """Return the arguments that name the ensemble, as this server reaches its other servers."""
    arguments = ["--id", str(roles.number(place.node))]
    for node in layout.zookeepers:
        if node == place.node:
            host, ports = node, [place.listens[name].port for name in PEER_PORTS]
        else:
            ends = [place.links[peer_port(node, name)] for name in PEER_PORTS]
            host, ports = ends[0].host, [end.port for end in ends]
        if place.names:
            host = place.names.get(node, host)
        kind = ":observer" if node in layout.observers else ""
        member = f"{roles.number(node)}={host}:{ports[0]}:{ports[1]}{kind}"
        arguments += ["--server", member]
    return arguments


def zookeeper_command(place: Place, layout: Layout) -> list[str]:
    """Return the command of this project's ZooKeeper as a process of this machine."""
    return [sys.executable, *zookeeper_arguments(place, layout)]
