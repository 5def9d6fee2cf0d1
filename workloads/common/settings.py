"""The default settings of brokers, producers and consumers."""

from collections.abc import Mapping

BROKER: Mapping[str, str] = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "auto.create.topics.enable": "false",
}
"""The settings of brokers that neither coordinate groups nor transactions."""


PRODUCER: Mapping[str, str] = {
    "acks": "all",
    "enable.idempotence": "true",
    "linger.ms": "0",
    # Short, so that a fault that is shorter than a test has visible effects.
    "request.timeout.ms": "3000",
    "delivery.timeout.ms": "10000",
    "socket.timeout.ms": "4000",
    "socket.connection.setup.timeout.ms": "2000",
    "topic.metadata.refresh.interval.ms": "2000",
    "topic.metadata.propagation.max.ms": "10000",
    "reconnect.backoff.ms": "50",
    "reconnect.backoff.max.ms": "1000",
    "retry.backoff.ms": "50",
    "retry.backoff.max.ms": "500",
}
"""The settings of idempotent producers."""


CONSUMER: Mapping[str, str] = {
    "isolation.level": "read_uncommitted",
    "enable.auto.commit": "false",
    # A position outside the log must be reported, not reset.
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": "100",
    "fetch.error.backoff.ms": "100",
    "socket.timeout.ms": "4000",
    "socket.connection.setup.timeout.ms": "2000",
    "topic.metadata.refresh.interval.ms": "2000",
    "topic.metadata.propagation.max.ms": "10000",
    "reconnect.backoff.ms": "50",
    "reconnect.backoff.max.ms": "1000",
}
"""The settings of consumers that read by ``assign``."""
