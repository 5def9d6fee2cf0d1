"""The brokers' settings for a run: Kafka's names, with timeouts scaled to a test of a minute."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Self

import javaproperties

from broker_impl.config import check_active
from broker_impl.errors import ConfigError
from harness.cluster.address import Address
from model import masking, roles
from model.roles import ZOOKEEPER, NodeId

CLIENT_LISTENER = "CLIENT"
PEER_LISTENER = "REPLICATION"

SESSION_TIMEOUT_MS = 2000
TICK_MS = 500
"""ZooKeeper grants sessions of 2 to 20 ticks."""

SCALED: Mapping[str, str] = {
    # A broker that is cut off or frozen loses its session within seconds …
    "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "replica.lag.time.max.ms": "1500",
    # … a request into a black hole times out within them …
    "replica.socket.timeout.ms": "1500",
    "controller.socket.timeout.ms": "1500",
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "100",
    "request.timeout.ms": "3000",
    "controlled.shutdown.max.retries": "3",
    "controlled.shutdown.retry.backoff.ms": "200",
    # … and what happens every few minutes happens every few seconds.
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "log.retention.check.interval.ms": "5000",
    "log.flush.offset.checkpoint.interval.ms": "5000",
    "leader.imbalance.check.interval.seconds": "10",
    "num.partitions": "3",
}


_DECIDED_BY_RUN = frozenset(
    {"log.dir", "host.name", "port", "advertised.host.name", "advertised.port"}
)
"""Kafka's older names of settings that :func:`of_broker` sets by the newer ones, which win."""


def refusal(settings: Mapping[str, str]) -> str | None:
    """Why brokers would reject or ignore one of these settings; ``None`` if they apply all.

    A broker ignores settings that it does not know, so a plan must not rely on them.
    """
    for name, text in settings.items():
        shown = masking.masked(name, text)
        if name in _DECIDED_BY_RUN:
            return f"--set broker.{name}={shown}: the run itself sets addresses and log directories"
        try:
            check_active(name, text)
        except ConfigError as error:
            why = str(error).replace(text, shown) if shown != text and text else str(error)
            return f"--set broker.{name}={shown}: {why}"
    return None


def session_timeout_s(overrides: Mapping[str, str]) -> float:
    """How long a broker may be silent before ZooKeeper expires its session, in seconds."""
    return int({**SCALED, **overrides}["zookeeper.session.timeout.ms"]) / 1000


def lag_max_s(overrides: Mapping[str, str]) -> float:
    """How long a follower may lag before its leader removes it from the ISR, in seconds."""
    return int({**SCALED, **overrides}["replica.lag.time.max.ms"]) / 1000


def min_isr(brokers: int, overrides: Mapping[str, str]) -> int:
    """The number of replicas that must have a record before it is acknowledged."""
    return int(overrides.get("min.insync.replicas", min(2, brokers)))


def transaction_min_isr(overrides: Mapping[str, str]) -> int:
    """The same number for the transaction log, whatever other topics have."""
    return int(overrides.get("transaction.state.log.min.isr", 2))


def is_synced(overrides: Mapping[str, str]) -> bool:
    """Return whether every record is synced on those replicas before it is acknowledged."""
    return overrides.get("log.flush.interval.messages") == "1"


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses that one broker listens on, advertises, and connects to."""

    listeners: Mapping[str, Address]
    """The addresses to bind, by listener name; the replication listener is one of them."""
    advertised: Mapping[str, Address]
    """The addresses at which clients reach a listener: a proxy's, where there is one."""
    zookeepers: tuple[Address, ...]
    """The links to the ZooKeeper servers."""
    peers: Mapping[int, Address] = field(default_factory=dict)
    """The link to each peer, by ``broker.id``."""

    @classmethod
    def of_links(
        cls,
        listeners: Mapping[str, Address],
        advertised: Mapping[str, Address],
        links: Mapping[NodeId, Address],
    ) -> Self:
        """Return the addresses of a broker with these links to ZooKeeper and to its peers."""
        servers = {node: at for node, at in links.items() if node.startswith(ZOOKEEPER)}
        peers = {roles.number(node): at for node, at in links.items() if node not in servers}
        return cls(listeners, advertised, tuple(servers.values()), peers)


def client_listener(name: str | None) -> str:
    """The name of the listener of all clients, or of a client that has its own links."""
    return CLIENT_LISTENER if name is None else f"{CLIENT_LISTENER}_{name.upper()}"


def of_broker(
    number: int,
    brokers: int,
    addresses: Addresses,
    data: PurePath,
    overrides: Mapping[str, str],
) -> dict[str, str]:
    """All settings of one broker; ``overrides`` are the plan's and win."""
    return {
        "broker.id": str(number),
        "listeners": _listed(addresses.listeners.items()),
        "advertised.listeners": _listed(addresses.advertised.items()),
        "listener.security.protocol.map": ",".join(
            f"{name}:PLAINTEXT" for name in addresses.listeners
        ),
        "inter.broker.listener.name": PEER_LISTENER,
        "log.dirs": str(data),
        "zookeeper.connect": ",".join(map(str, addresses.zookeepers)),
        "default.replication.factor": str(min(3, brokers)),
        **SCALED,
        "min.insync.replicas": str(min_isr(brokers, overrides)),
        **{f"faultline.peer.{peer}": str(link) for peer, link in addresses.peers.items()},
        **overrides,
    }


def write(path: Path, settings: Mapping[str, str]) -> None:
    """Write the settings as a ``server.properties`` file."""
    path.write_text(javaproperties.dumps(settings, timestamp=False, sort_keys=True))


def _listed(listeners: Iterable[tuple[str, Address]]) -> str:
    return ",".join(f"{name}://{address}" for name, address in listeners)
