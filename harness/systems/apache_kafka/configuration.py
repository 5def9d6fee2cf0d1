"""The configuration files of Apache Kafka's brokers and controllers, and of its ZooKeeper."""

from collections.abc import Iterable, Mapping

from harness.cluster import settings
from harness.cluster.address import Address
from harness.cluster.settings import CLIENT_LISTENER, PEER_LISTENER
from harness.cluster.system import Place
from model import racks, roles
from model.layout import Layout
from model.plan import Plan
from model.roles import NodeId

CONTROLLER_LISTENER = "CONTROLLER"
CONTROLLER_IDS_FROM = 1000
"""``node.id`` of controllers that are nodes of their own is this number and their own number."""

SCALED: Mapping[str, str] = {
    "replica.lag.time.max.ms": "3000",
    "replica.socket.timeout.ms": "3000",
    "controller.socket.timeout.ms": "3000",
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "200",
    "request.timeout.ms": "5000",
    "controlled.shutdown.max.retries": "3",
    "controlled.shutdown.retry.backoff.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "log.retention.check.interval.ms": "5000",
    "log.flush.offset.checkpoint.interval.ms": "5000",
    "leader.imbalance.check.interval.seconds": "10",
    "num.partitions": "3",
    "offsets.topic.num.partitions": "10",
    "transaction.state.log.num.partitions": "10",
    # Sessions of the newer protocol of groups (KIP-848), whose members do not choose them.
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    # A cluster that starts has nothing to recover, and threads cost time.
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "4",
}
"""Timeouts scaled to a test of a minute, as for this project's broker, but with room for the pauses
of a Java program that shares two cores with all others."""
ZOOKEEPER_MODE: Mapping[str, str] = {
    "zookeeper.session.timeout.ms": "4000",
    "zookeeper.connection.timeout.ms": "20000",
}
KRAFT_MODE: Mapping[str, str] = {
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.election.timeout.ms": "1500",
    "controller.quorum.fetch.timeout.ms": "2500",
    "controller.quorum.request.timeout.ms": "2500",
    "initial.broker.registration.timeout.ms": "60000",
}


def node_id(node: NodeId, layout: Layout) -> int:
    """Return ``broker.id`` or ``node.id`` of a broker or controller."""
    if node in layout.separate:
        return CONTROLLER_IDS_FROM + roles.number(node)
    return roles.number(node)


def node_of(number: int) -> NodeId:
    """Return the node with this ``node.id``: the inverse of :func:`node_id`."""
    if number > CONTROLLER_IDS_FROM:
        return roles.controller(number - CONTROLLER_IDS_FROM)
    return roles.broker(number)


def of_broker(place: Place, plan: Plan, layout: Layout) -> dict[str, str]:
    """Return all settings of a broker, which may also be a controller."""
    peer = Address(place.node, place.listens[PEER_LISTENER].port)
    clients = {
        name: at for name, at in place.advertised.items() if name.startswith(CLIENT_LISTENER)
    }
    by_mode = _kraft(place, layout) if layout.is_kraft else _zookeeper(place, layout)
    return {
        "listeners": _listed(place.listens.items()),
        "advertised.listeners": _listed({**clients, PEER_LISTENER: peer}.items()),
        "listener.security.protocol.map": _plaintext({*place.listens, *_controller(layout)}),
        "inter.broker.listener.name": PEER_LISTENER,
        "log.dirs": str(place.data),
        "default.replication.factor": str(min(3, plan.brokers)),
        "offsets.topic.replication.factor": str(min(3, plan.brokers)),
        "transaction.state.log.replication.factor": str(min(3, plan.brokers)),
        "transaction.state.log.min.isr": str(min(2, plan.brokers)),
        "min.insync.replicas": str(settings.min_isr(plan.brokers, plan.broker)),
        **by_mode,
        **racks.of_broker(node_id(place.node, layout), plan.options),
        **plan.broker,
    }


def of_controller(place: Place, plan: Plan, layout: Layout) -> dict[str, str]:
    """Return all settings of a controller that is a node of its own."""
    return {
        "listeners": _listed(place.listens.items()),
        "listener.security.protocol.map": _plaintext(place.listens),
        "log.dirs": str(place.data),
        **_kraft(place, layout),
        **plan.broker,
    }


def _zookeeper(place: Place, layout: Layout) -> dict[str, str]:
    servers = ",".join(str(place.links[node]) for node in layout.zookeepers)
    return {"broker.id": str(node_id(place.node, layout)), "zookeeper.connect": servers}


def _kraft(place: Place, layout: Layout) -> dict[str, str]:
    is_controller = CONTROLLER_LISTENER in place.listens
    process_roles = [*(["broker"] if place.node in layout.brokers else [])]
    process_roles += ["controller"] if is_controller else []
    return {
        "node.id": str(node_id(place.node, layout)),
        "process.roles": ",".join(process_roles),
        "controller.listener.names": CONTROLLER_LISTENER,
        "controller.quorum.voters": ",".join(
            f"{node_id(layout.node_of(end), layout)}@{end}:{place.port(CONTROLLER_LISTENER, end)}"
            for end in layout.controllers
        ),
    }


def _controller(layout: Layout) -> tuple[str, ...]:
    return (CONTROLLER_LISTENER,) if layout.is_kraft else ()


def _plaintext(listeners: Iterable[str]) -> str:
    return ",".join(f"{name}:PLAINTEXT" for name in sorted(listeners))


def _listed(listeners: Iterable[tuple[str, Address]]) -> str:
    return ",".join(f"{name}://{address}" for name, address in listeners)
