"""The configuration files of Apache ZooKeeper's servers, alone, in an ensemble, or with Kafka."""

import platform
from collections.abc import Mapping

from harness.cluster.system import Place
from model import roles
from model.layout import PEER_PORTS, Layout, peer_port

MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
"""The class that runs a server."""


def hosts(place: Place) -> str:
    """Return the file in which a node looks up names (``jdk.net.hosts.file``).

    It must contain all names that the node uses. ZooKeeper 3.4.13, in 2.0 and 2.1, looks up the
    text of an unresolved address as a name (ZOOKEEPER-3779).
    """
    local = (
        "localhost",
        platform.node(),
        *(f"{at.host}/<unresolved>" for at in place.links.values()),
    )
    names = {**dict.fromkeys(local, "127.0.0.1"), **place.names}
    return "".join(f"{address} {name}\n" for name, address in names.items())


def settings_of(
    place: Place, layout: Layout, tick_ms: int, more: Mapping[str, int] | None = None
) -> str:
    """Return the configuration file of a ZooKeeper server, alone or in an ensemble."""
    client = place.listens[roles.ZOOKEEPER]
    lines = [
        f"tickTime={tick_ms}",
        f"dataDir={place.data}",
        f"clientPort={client.port}",
        f"clientPortAddress={client.host}",
        "admin.enableServer=false",
        "maxClientCnxns=0",
        "4lw.commands.whitelist=*",
        *(f"{name}={value}" for name, value in (more or {}).items()),
    ]
    if place.node in layout.observers:
        lines.append("peerType=observer")
    if layout.is_ensemble:
        lines += ["initLimit=20", "syncLimit=8", "quorumListenOnAllIPs=false"]
        for node in layout.zookeepers:
            quorum, election = (place.port(name, peer_port(node, name)) for name in PEER_PORTS)
            kind = ":observer" if node in layout.observers else ""
            lines.append(f"server.{roles.number(node)}={node}:{quorum}:{election}{kind}")
    return "\n".join(lines) + "\n"


def first(place: Place) -> list[str]:
    """Return the command that writes the server's id, before its first start."""
    number, path = str(roles.number(place.node)), str(place.data / "myid")
    return ["sh", "-c", 'echo "$0" > "$1"', number, path]
