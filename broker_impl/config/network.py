"""Settings of a broker's identity, its addresses, and its connections."""

from dataclasses import dataclass

from broker_impl.config.setting import INT32_MAX, key
from broker_impl.kafka_settings import Kind

NEWEST, KAFKA_2_8 = "newest", "2.8"
"""Values of ``faultline.api.versions``."""


@dataclass(frozen=True, kw_only=True)
class IdentitySettings:
    """The broker's id, and the addresses of its listeners, its data and ZooKeeper."""

    broker_id: int = key("broker.id", -1, "The id of this broker.", low=-1)
    broker_rack: str = key(
        "broker.rack", "", "The rack of this broker; replicas are spread over racks."
    )
    listeners: tuple[str, ...] = key(
        "listeners", ("PLAINTEXT://:9092",), "NAME://host:port, …; port 0 selects a free port."
    )
    advertised_listeners: tuple[str, ...] = key(
        "advertised.listeners",
        (),
        "The addresses that clients and brokers connect to; default: listeners.",
    )
    listener_security_protocol_map: tuple[str, ...] = key(
        "listener.security.protocol.map",
        ("PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT", "SASL_SSL:SASL_SSL"),
        "NAME:PROTOCOL, …",
    )
    inter_broker_listener_name: str = key(
        "inter.broker.listener.name", "", "The listener that brokers use; default: the first one."
    )
    faultline_api_versions: str = key(
        "faultline.api.versions",
        NEWEST,
        "The newest versions of APIs for clients: all that this broker has, or those of Kafka 2.8.",
        one_of=(NEWEST, KAFKA_2_8),
    )
    log_dirs: str = key(
        "log.dirs", "/tmp/kafka-logs", "The data directories, separated by commas (KIP-112)."
    )
    metrics_listener: str = key(
        "faultline.metrics.listener",
        "",
        "host:port of the metrics for Prometheus; port 0 selects a free port; empty: no metrics.",
    )
    zookeeper_connect: str = key(
        "zookeeper.connect", "", "The ZooKeeper servers: host:port,host:port/chroot."
    )
    zookeeper_session_timeout_ms: int = key(
        "zookeeper.session.timeout.ms",
        18_000,
        "The broker's ZooKeeper session expires after this silence.",
        low=1,
    )


@dataclass(frozen=True, kw_only=True)
class ConnectionSettings:
    """Limits of connections and of requests."""

    max_connections: int = key(
        "max.connections", INT32_MAX, "Maximum number of connections over all listeners.", low=0
    )
    max_connections_per_ip: int = key(
        "max.connections.per.ip",
        INT32_MAX,
        "Maximum number of connections from one address.",
        low=0,
    )
    connections_max_idle_ms: int = key(
        "connections.max.idle.ms",
        600_000,
        "Idle connections are closed after this; -1: never.",
        low=-1,
        kind=Kind.LONG,
    )
    socket_request_max_bytes: int = key(
        "socket.request.max.bytes", 100 * 1024 * 1024, "Maximum size of a request.", low=1
    )
    queued_max_request_bytes: int = key(
        "queued.max.request.bytes",
        -1,
        "Bytes of requests in progress at which the broker stops reading.",
        low=-1,
        kind=Kind.LONG,
    )
    queued_max_requests: int = key(
        "queued.max.requests",
        500,
        "Maximum number of requests in progress on one connection.",
        low=1,
    )
    request_timeout_ms: int = key(
        "request.timeout.ms",
        30_000,
        "How long a broker waits for another broker's response, or for ZooKeeper in a request.",
        low=1,
    )
    fetch_max_bytes: int = key(
        "fetch.max.bytes", 55 * 1024 * 1024, "Maximum size of a fetch response.", low=1024
    )
