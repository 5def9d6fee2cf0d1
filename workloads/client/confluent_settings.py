"""The settings of librdkafka: which of them a process rejects, and those it always has."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

from workloads.client.common import silenced

QUIET: Mapping[str, Any] = {
    "log_level": 0,
    "logger": silenced("librdkafka"),  # otherwise level 0, fatal errors, would go to stderr
    "broker.address.family": "v4",
}
"""What every client is given: no output, and one kind of addresses."""


ALIASES = {
    "delivery.timeout.ms": "message.timeout.ms",
    "acks": "request.required.acks",
    "linger.ms": "queue.buffering.max.ms",
    "max.in.flight.requests.per.connection": "max.in.flight",
}
"""The names that plans and contracts use, and librdkafka's aliases.

If a plan used both names of a setting, librdkafka would obey the later one, and the run would be
judged by the other.
"""


SERVER_SIDE = ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy")
"""What the coordinator decides in the newer protocol of groups; librdkafka rejects these there."""
ASSIGNORS = {"range": "range"}
"""The coordinator's assignors (KIP-848) by those of members; ``uniform`` stands for all others."""


def of_member(consumer: Mapping[str, Any], assignor: str) -> dict[str, Any]:
    """Return the settings of a member of a group, in the protocol that ``group.protocol`` names.

    With ``consumer`` (KIP-848) the coordinator assigns, and its own settings limit sessions.
    """
    if consumer.get("group.protocol") != "consumer":
        return {**consumer, "partition.assignment.strategy": assignor}
    kept = {name: value for name, value in consumer.items() if name not in SERVER_SIDE}
    return {**kept, "group.remote.assignor": ASSIGNORS.get(assignor, "uniform")}


def of_outsider(consumer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a consumer that commits to a group without being a member."""
    if consumer.get("group.protocol") != "consumer":
        return dict(consumer)
    return {name: value for name, value in consumer.items() if name not in SERVER_SIDE}


def _misleading(settings: Mapping[str, str]) -> str | None:
    for name in settings:
        for right, alias in ALIASES.items():
            if name == alias:
                return f"{name}: write {right} instead"
    return None


def refusal(producer: Mapping[str, str], consumer: Mapping[str, str]) -> str | None:
    """Return why librdkafka rejects these settings; ``None`` if it accepts them."""
    for kind, make, settings in (
        ("producer", Producer, dict(producer)),
        ("consumer", Consumer, of_outsider(consumer) | {"group.id": "none"}),
    ):
        if (why := _misleading(settings)) is not None:
            return f"--set {kind}.{why}"
        try:
            make({**QUIET, **settings})
        except KafkaException as error:
            return f"--set {kind}.…: {error.args[0].str()}"
        except (TypeError, ValueError) as error:
            return f"--set {kind}.…: {error}"
    return None


def connection_refusal(properties: Mapping[str, str]) -> str | None:
    """Return why librdkafka rejects settings of every client; ``None`` if it accepts them."""
    if (why := _misleading(properties)) is not None:
        return why
    try:
        Producer({**QUIET, **properties})
    except KafkaException as error:
        text: str = error.args[0].str()
        return text
    except (TypeError, ValueError) as error:
        return str(error)
    return None
