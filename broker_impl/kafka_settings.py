"""Kinds of values, and the settings of Kafka 2.8 on which this broker does not act.

A ``server.properties`` file of Kafka may contain these settings. Their values are checked like
those of all settings, so that a file that Kafka rejects is rejected here too; they have no other
effect. ``docs/broker-settings.md`` lists them for users.
"""

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple

from broker_impl.errors import ConfigError

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}")


class Kind(IntEnum):
    """The type of a setting's value, with the numbers of DescribeConfigs (KIP-226, KIP-569)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_BITS: Final = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}


def parse_value(kind: Kind, name: str, text: str) -> Any:
    """Convert a text to a value; a ConfigError says what is valid."""
    text = text.strip()
    if kind is Kind.BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"{name}={text}: must be true or false")
        return text.lower() == "true"
    if kind in _BITS:
        return _whole(text, name, _BITS[kind])
    if kind is Kind.DOUBLE:
        try:
            return float(text)
        except ValueError:
            raise ConfigError(f"{name}={text}: must be a number") from None
    if kind is Kind.LIST:
        return tuple(item.strip() for item in text.split(",") if item.strip())
    return text


def check_range(name: str, text: str, value: float, low: float | None, high: float | None) -> None:
    """Raise ConfigError for a number that is out of range or NaN."""
    if low is not None and not value >= low:
        raise ConfigError(f"{name}={text}: must be at least {low}")
    if high is not None and not value <= high:
        raise ConfigError(f"{name}={text}: must be at most {high}")


def _whole(text: str, name: str, bits: int) -> int:
    if _WHOLE.fullmatch(text) is None:
        raise ConfigError(f"{name}={text}: must be a whole number")
    value = int(text)
    most = 2 ** (bits - 1) - 1
    check_range(name, text, value, -most - 1, most)
    return value


class Inactive(NamedTuple):
    """A setting on which this broker does not act."""

    kind: Kind
    low: int | None = None
    one_of: tuple[str, ...] | None = None

    def check(self, name: str, text: str) -> None:
        """Raise ConfigError for a value that Kafka would reject."""
        value = parse_value(self.kind, name, text)
        if self.low is not None:
            check_range(name, text.strip(), value, self.low, None)
        if self.one_of is not None and value not in self.one_of:
            raise ConfigError(f"{name}={text}: must be one of {', '.join(self.one_of)}")


_TEXT: Final = Inactive(Kind.STRING)
_NUMBER: Final = Inactive(Kind.INT)
_LONG: Final = Inactive(Kind.LONG)
_SHORT: Final = Inactive(Kind.SHORT)
_DECIMAL: Final = Inactive(Kind.DOUBLE)
_FLAG: Final = Inactive(Kind.BOOLEAN)
_NAMES: Final = Inactive(Kind.LIST)
_CLASS: Final = Inactive(Kind.CLASS)
_PASSWORD: Final = Inactive(Kind.PASSWORD)


def _at_least(low: int, kind: Kind = Kind.INT) -> Inactive:
    return Inactive(kind, low)


INACTIVE: Final[Mapping[str, Inactive]] = {
    # Threads, sockets and buffers: one event loop serves all connections.
    "background.threads": _at_least(1),
    "control.plane.listener.name": _TEXT,
    "max.connection.creation.rate": _at_least(0),
    "max.connections.per.ip.overrides": _TEXT,
    "num.io.threads": _at_least(1),
    "num.network.threads": _at_least(1),
    "num.recovery.threads.per.data.dir": _at_least(1),
    "num.replica.alter.log.dirs.threads": _NUMBER,
    "num.replica.fetchers": _NUMBER,
    "replica.socket.receive.buffer.bytes": _NUMBER,
    "socket.connection.setup.timeout.max.ms": _LONG,
    "socket.connection.setup.timeout.ms": _LONG,
    "socket.receive.buffer.bytes": _NUMBER,
    "socket.send.buffer.bytes": _NUMBER,
    # Logs and replication.
    "delete.records.purgatory.purge.interval.requests": _NUMBER,
    "fetch.purgatory.purge.interval.requests": _NUMBER,
    "inter.broker.protocol.version": _TEXT,
    "leader.imbalance.per.broker.percentage": _NUMBER,
    "log.cleaner.io.buffer.load.factor": _DECIMAL,
    "log.cleaner.io.buffer.size": _at_least(0),
    "log.cleaner.io.max.bytes.per.second": _DECIMAL,
    "log.cleaner.threads": _at_least(0),
    "log.flush.start.offset.checkpoint.interval.ms": _at_least(0),
    "log.preallocate": _FLAG,
    "offsets.commit.required.acks": _SHORT,
    "offsets.topic.compression.codec": _NUMBER,
    "producer.purgatory.purge.interval.requests": _NUMBER,
    "transaction.remove.expired.transaction.cleanup.interval.ms": _at_least(1),
    # Broker ids and policies.
    "alter.config.policy.class.name": _CLASS,
    "broker.id.generation.enable": _FLAG,
    "create.topic.policy.class.name": _CLASS,
    "reserved.broker.max.id": _at_least(0),
    # ZooKeeper.
    "zookeeper.clientCnxnSocket": _TEXT,
    "zookeeper.connection.timeout.ms": _NUMBER,
    "zookeeper.max.in.flight.requests": _at_least(1),
    "zookeeper.ssl.cipher.suites": _NAMES,
    "zookeeper.ssl.client.enable": _FLAG,
    "zookeeper.ssl.crl.enable": _FLAG,
    "zookeeper.ssl.enabled.protocols": _NAMES,
    "zookeeper.ssl.endpoint.identification.algorithm": _TEXT,
    "zookeeper.ssl.keystore.location": _TEXT,
    "zookeeper.ssl.keystore.password": _PASSWORD,
    "zookeeper.ssl.keystore.type": _TEXT,
    "zookeeper.ssl.ocsp.enable": _FLAG,
    "zookeeper.ssl.protocol": _TEXT,
    "zookeeper.ssl.truststore.location": _TEXT,
    "zookeeper.ssl.truststore.password": _PASSWORD,
    "zookeeper.ssl.truststore.type": _TEXT,
    "zookeeper.sync.time.ms": _NUMBER,
    # Security: every listener is PLAINTEXT, every client may do everything.
    "delegation.token.expiry.check.interval.ms": _at_least(1, Kind.LONG),
    "delegation.token.expiry.time.ms": _at_least(1, Kind.LONG),
    "delegation.token.master.key": _PASSWORD,
    "delegation.token.max.lifetime.ms": _at_least(1, Kind.LONG),
    "delegation.token.secret.key": _PASSWORD,
    "password.encoder.cipher.algorithm": _TEXT,
    "password.encoder.iterations": _at_least(1024),
    "password.encoder.key.length": _at_least(8),
    "password.encoder.keyfactory.algorithm": _TEXT,
    "password.encoder.old.secret": _PASSWORD,
    "password.encoder.secret": _PASSWORD,
    "principal.builder.class": _CLASS,
    "sasl.client.callback.handler.class": _CLASS,
    "sasl.jaas.config": _PASSWORD,
    "sasl.kerberos.kinit.cmd": _TEXT,
    "sasl.kerberos.min.time.before.relogin": _LONG,
    "sasl.kerberos.principal.to.local.rules": _NAMES,
    "sasl.kerberos.service.name": _TEXT,
    "sasl.kerberos.ticket.renew.jitter": _DECIMAL,
    "sasl.kerberos.ticket.renew.window.factor": _DECIMAL,
    "sasl.login.callback.handler.class": _CLASS,
    "sasl.login.class": _CLASS,
    "sasl.login.refresh.buffer.seconds": _SHORT,
    "sasl.login.refresh.min.period.seconds": _SHORT,
    "sasl.login.refresh.window.factor": _DECIMAL,
    "sasl.login.refresh.window.jitter": _DECIMAL,
    "sasl.server.callback.handler.class": _CLASS,
    "security.providers": _TEXT,
    "ssl.cipher.suites": _NAMES,
    "ssl.engine.factory.class": _CLASS,
    "ssl.keymanager.algorithm": _TEXT,
    "ssl.keystore.certificate.chain": _PASSWORD,
    "ssl.keystore.key": _PASSWORD,
    "ssl.keystore.password": _PASSWORD,
    "ssl.principal.mapping.rules": _TEXT,
    "ssl.protocol": _TEXT,
    "ssl.provider": _TEXT,
    "ssl.secure.random.implementation": _TEXT,
    "ssl.trustmanager.algorithm": _TEXT,
    "ssl.truststore.password": _PASSWORD,
    # Quotas.
    "client.quota.callback.class": _CLASS,
    "controller.quota.window.num": _at_least(1),
    "controller.quota.window.size.seconds": _at_least(1),
    # Metrics.
    "kafka.metrics.polling.interval.secs": _at_least(1),
    "kafka.metrics.reporters": _NAMES,
    "metric.reporters": _NAMES,
    "metrics.num.samples": _at_least(1),
    "metrics.recording.level": _TEXT,
    "metrics.sample.window.ms": _at_least(1, Kind.LONG),
    # KRaft, of which 2.8 has an early version (``process.roles`` is refused).
    "broker.heartbeat.interval.ms": _NUMBER,
    "broker.session.timeout.ms": _NUMBER,
    "controller.listener.names": _TEXT,
    "controller.quorum.append.linger.ms": _NUMBER,
    "controller.quorum.election.backoff.max.ms": _NUMBER,
    "controller.quorum.election.timeout.ms": _NUMBER,
    "controller.quorum.fetch.timeout.ms": _NUMBER,
    "controller.quorum.request.timeout.ms": _NUMBER,
    "controller.quorum.retry.backoff.ms": _NUMBER,
    "controller.quorum.voters": _NAMES,
    "initial.broker.registration.timeout.ms": _NUMBER,
    "metadata.log.dir": _TEXT,
    "node.id": _NUMBER,
    "process.roles": _NAMES,
    "sasl.mechanism.controller.protocol": _TEXT,
}
"""Inactive settings by name, with Kafka's types and lower bounds."""
_OF_ONE_BROKER: Final = (
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.principal.to.local.rules",
    "sasl.kerberos.service.name",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
)
_CHANGEABLE: Final = (
    "background.threads",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.buffer.size",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.threads",
    "log.preallocate",
    "max.connection.creation.rate",
    "max.connections.per.ip.overrides",
    "metric.reporters",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
CHANGEABLE: Final[Mapping[str, Inactive]] = {
    name: INACTIVE[name] for name in (*_CHANGEABLE, *_OF_ONE_BROKER)
}
"""Inactive settings that AlterConfigs accepts for brokers, as in Kafka."""
OF_ONE_BROKER: Final = frozenset(_OF_ONE_BROKER)
"""Those that Kafka changes for single brokers only. They are of mechanisms that are refused."""
LISTENER_PREFIX: Final = "listener.name."


def inactive(name: str) -> Inactive | None:
    """Return the setting of this name if this broker does not act on it, else None.

    ``listener.name.<listener>.<setting>`` sets one listener's security or limits (KIP-103, KIP-402,
    KIP-612); `broker_impl.config` reads those of security first.
    """
    if name.startswith(LISTENER_PREFIX):
        inner = name.removeprefix(LISTENER_PREFIX).partition(".")[2]
        return INACTIVE.get(inner, _PASSWORD) if inner else None
    return INACTIVE.get(name)
