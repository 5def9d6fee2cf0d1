"""Translates settings from Kafka's and librdkafka's names to the arguments of aiokafka.

A name without a counterpart in aiokafka is rejected rather than dropped, because a run is judged by
what it was configured to do. The exceptions are in :data:`LEFT_OUT`: librdkafka's timeouts and
backoffs of connections, which the workloads set and on which no verdict depends. The defaults on
which a verdict does depend are those of the contract (``checkers.expectations``), not aiokafka's
own: by default aiokafka would produce with ``acks=1``, without idempotence.
"""

from collections.abc import Callable, Mapping
from typing import Any

from aiokafka import codec

LEFT_OUT = frozenset(
    {
        "reconnect.backoff.ms",  # aiokafka reconnects whenever it has something to send
        "reconnect.backoff.max.ms",
        "retry.backoff.max.ms",  # the pause between two attempts does not grow
        "socket.connection.setup.timeout.ms",  # request_timeout_ms limits connecting, too
        "topic.metadata.propagation.max.ms",  # a record waits until its own timeout
    }
)
"""Settings without a counterpart that change no guarantee."""

Parse = Callable[[str], Any]


class BadSetting(ValueError):
    """A setting that aiokafka cannot obey; the message begins with the setting's name."""


def _whole(value: str) -> int:
    if not value.isdecimal():
        raise BadSetting("must be a whole number")
    return int(value)


def _flag(value: str) -> bool:
    return bool(_one_of({"true": True, "false": False})(value))


def _one_of(values: Mapping[str, Any]) -> Parse:
    def parse(value: str) -> Any:
        if value not in values:
            raise BadSetting(f"must be one of {', '.join(values)} for aiokafka")
        return values[value]

    return parse


def _compression(value: str) -> str | None:
    if value == "none":
        return None
    known = {
        "gzip": codec.has_gzip,
        "snappy": codec.has_snappy,
        "lz4": codec.has_lz4,
        "zstd": codec.has_zstd,
    }
    if value not in known or not known[value]():
        raise BadSetting(f"must be one of none, {', '.join(known)}, with its library installed")
    return value


_COMMON: Mapping[str, tuple[str, Parse]] = {
    "topic.metadata.refresh.interval.ms": ("metadata_max_age_ms", _whole),
    "metadata.max.age.ms": ("metadata_max_age_ms", _whole),
    "connections.max.idle.ms": ("connections_max_idle_ms", _whole),
    # librdkafka has a timeout for sockets, and Kafka one for requests; aiokafka has one for both,
    # and closes the connection of a request that exceeds it.
    "socket.timeout.ms": ("request_timeout_ms", _whole),
    "request.timeout.ms": ("request_timeout_ms", _whole),
}

DELIVERY_TIMEOUT = "delivery_timeout_ms"
"""An argument that aiokafka does not have; this package implements it."""

PRODUCER: Mapping[str, tuple[str, Parse]] = {
    **_COMMON,
    "acks": ("acks", _one_of({"all": "all", "-1": "all", "1": 1, "0": 0})),
    "enable.idempotence": ("enable_idempotence", _flag),
    "linger.ms": ("linger_ms", _whole),
    "batch.size": ("max_batch_size", _whole),
    "message.max.bytes": ("max_request_size", _whole),
    "max.request.size": ("max_request_size", _whole),
    "compression.type": ("compression_type", _compression),
    "retry.backoff.ms": ("retry_backoff_ms", _whole),
    "delivery.timeout.ms": (DELIVERY_TIMEOUT, _whole),
    "transaction.timeout.ms": ("transaction_timeout_ms", _whole),
}
"""aiokafka's name of each setting of producers, and how to parse its value.

Of two names for one argument, the later one here takes precedence.
"""

CONSUMER: Mapping[str, tuple[str, Parse]] = {
    **_COMMON,
    "isolation.level": (
        "isolation_level",
        _one_of({level: level for level in ("read_uncommitted", "read_committed")}),
    ),
    "auto.offset.reset": (
        "auto_offset_reset",
        _one_of({"error": "none", "none": "none", "earliest": "earliest", "latest": "latest"}),
    ),
    "fetch.wait.max.ms": ("fetch_max_wait_ms", _whole),
    "fetch.max.wait.ms": ("fetch_max_wait_ms", _whole),
    "fetch.min.bytes": ("fetch_min_bytes", _whole),
    "fetch.max.bytes": ("fetch_max_bytes", _whole),
    "max.partition.fetch.bytes": ("max_partition_fetch_bytes", _whole),
    "fetch.error.backoff.ms": ("retry_backoff_ms", _whole),
    "retry.backoff.ms": ("retry_backoff_ms", _whole),
    "client.rack": ("client_rack", str),
    "check.crcs": ("check_crcs", _flag),
    "session.timeout.ms": ("session_timeout_ms", _whole),
    "heartbeat.interval.ms": ("heartbeat_interval_ms", _whole),
    "max.poll.interval.ms": ("max_poll_interval_ms", _whole),
    "auto.commit.interval.ms": ("auto_commit_interval_ms", _whole),
}
"""aiokafka's name of each setting of consumers, and how to parse its value."""

_FIXED: Mapping[str, tuple[str, str]] = {
    "max.in.flight.requests.per.connection": (
        "1",
        "aiokafka sends one request at a time to a broker",
    ),
    "enable.auto.commit": (
        "false",
        "the operation subscribe decides whether a member commits automatically",
    ),
}
"""Settings that cannot be chosen: the one valid value, and why."""

_INSTEAD: Mapping[str, str] = {
    "request.required.acks": "acks",
    "message.timeout.ms": "delivery.timeout.ms",
    "queue.buffering.max.ms": "linger.ms",
    "max.in.flight": "max.in.flight.requests.per.connection",
}
"""librdkafka's aliases, which the contract does not know."""


def _arguments(
    settings: Mapping[str, str], names: Mapping[str, tuple[str, Parse]]
) -> dict[str, Any]:
    for name, value in settings.items():
        if name in _INSTEAD:
            raise BadSetting(f"{name}: write {_INSTEAD[name]} instead")
        if name in _FIXED and value != _FIXED[name][0]:
            right, why = _FIXED[name]
            raise BadSetting(f"{name}={value}: must be {right}; {why}")
        if name not in names and name not in _FIXED and name not in LEFT_OUT:
            raise BadSetting(f"{name}: aiokafka has no such setting")
    arguments = {}
    for name, (argument, parse) in names.items():
        if name in settings:
            try:
                arguments[argument] = parse(settings[name])
            except BadSetting as error:
                raise BadSetting(f"{name}={settings[name]}: {error}") from None
    return arguments


def producer_arguments(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of an ``AIOKafkaProducer``, and :data:`DELIVERY_TIMEOUT`.

    Raises :class:`BadSetting`.
    """
    given = _arguments(settings, PRODUCER)
    acks = given.get("acks", "all")
    arguments = {
        "acks": acks,
        "enable_idempotence": acks == "all",
        DELIVERY_TIMEOUT: 120_000,  # Kafka's default
        **given,
    }
    if arguments["enable_idempotence"] and acks != "all":
        raise BadSetting(f"enable.idempotence=true: needs acks=all, not {acks}")
    return arguments


def consumer_arguments(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of an ``AIOKafkaConsumer``. Raises :class:`BadSetting`."""
    arguments = {
        "isolation_level": "read_committed",
        "enable_auto_commit": False,
        **_arguments(settings, CONSUMER),
    }
    wait_ms, timeout_ms = (
        arguments.get(name) for name in ("fetch_max_wait_ms", "request_timeout_ms")
    )
    if wait_ms is not None and timeout_ms is not None and wait_ms >= timeout_ms:
        raise BadSetting(
            f"fetch.wait.max.ms={wait_ms}: must be below the timeout of requests, {timeout_ms} ms;"
            " otherwise each fetch at the end of a partition times out"
        )
    return arguments


def member_arguments(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of an ``AIOKafkaConsumer`` that is a member of a group.

    It starts from the beginning where nothing is committed. In a rebalance the other members wait
    for it as long as for Kafka's own consumer, ``max.poll.interval.ms``. Raises
    :class:`BadSetting`.
    """
    arguments = {**consumer_arguments(settings), "auto_offset_reset": "earliest"}
    if "max_poll_interval_ms" in arguments:
        arguments["rebalance_timeout_ms"] = arguments["max_poll_interval_ms"]
    return arguments


def refusal(producer: Mapping[str, str], consumer: Mapping[str, str]) -> str | None:
    """Return why aiokafka rejects these settings; ``None`` if it accepts them."""
    try:
        kind = "producer"
        producer_arguments(producer)
        kind = "consumer"
        consumer_arguments(consumer)
    except BadSetting as error:
        return f"--set {kind}.{error}"
    return None
