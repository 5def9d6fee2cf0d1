"""Suggests the producer or consumer setting, by Kafka's names, that a misspelt one resembles."""

from collections.abc import Mapping

from harness.app import names
from model.plan import Plan

COMMON = (
    "acks",
    "allow.auto.create.topics",
    "auto.commit.interval.ms",
    "auto.offset.reset",
    "batch.num.messages",
    "batch.size",
    "check.crcs",
    "compression.type",
    "delivery.timeout.ms",
    "enable.auto.commit",
    "enable.idempotence",
    "fetch.error.backoff.ms",
    "fetch.max.bytes",
    "fetch.message.max.bytes",
    "fetch.min.bytes",
    "fetch.wait.max.ms",
    "group.instance.id",
    "heartbeat.interval.ms",
    "isolation.level",
    "linger.ms",
    "max.in.flight.requests.per.connection",
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "message.max.bytes",
    "message.send.max.retries",
    "message.timeout.ms",
    "metadata.max.age.ms",
    "partition.assignment.strategy",
    "queue.buffering.max.ms",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retries",
    "retry.backoff.ms",
    "session.timeout.ms",
    "socket.timeout.ms",
    "transaction.timeout.ms",
    "transactional.id",
)
"""Settings that users commonly write; librdkafka cannot list its own."""


def hint(plan: Plan, refusal: str) -> str:
    """Return what to append to a client library's refusal of an unknown setting."""
    for settings in (plan.producer, plan.consumer):
        for name in _mentioned(settings, refusal):
            if name not in COMMON and (close := names.close_to(name, COMMON)):
                return f"; did you mean {' or '.join(close)}?"
    return ""


def _mentioned(settings: Mapping[str, str], refusal: str) -> list[str]:
    return [name for name in settings if f'"{name}"' in refusal or f"'{name}'" in refusal]
