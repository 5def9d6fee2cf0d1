"""Plans use Kafka's names for settings, and aiokafka its own."""

import inspect

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from workloads.client import aio_settings
from workloads.client.aio_settings import (
    consumer_arguments,
    member_arguments,
    producer_arguments,
    refusal,
)
from workloads.idempotent import WORKLOAD


def test_the_workloads_own_settings_are_taken() -> None:
    """aiokafka accepts the workload's default settings."""
    assert refusal(WORKLOAD.producer, WORKLOAD.consumer) is None
    assert producer_arguments(WORKLOAD.producer) == {
        "acks": "all",
        "enable_idempotence": True,
        "linger_ms": 0,
        "request_timeout_ms": 3000,
        "retry_backoff_ms": 50,
        "metadata_max_age_ms": 2000,
        "delivery_timeout_ms": 10_000,
    }
    assert consumer_arguments(WORKLOAD.consumer) == {
        "isolation_level": "read_uncommitted",
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "fetch_max_wait_ms": 100,
        "retry_backoff_ms": 100,
        "request_timeout_ms": 4000,
        "metadata_max_age_ms": 2000,
    }


@pytest.mark.parametrize(
    ("client", "table"),
    [
        (AIOKafkaProducer, aio_settings.PRODUCER),
        (AIOKafkaConsumer, aio_settings.CONSUMER),
    ],
)
def test_names_are_those_of_aiokafka(
    client: type, table: dict[str, tuple[str, aio_settings.Parse]]
) -> None:
    """Every argument in the tables is one of aiokafka's."""
    known = {*inspect.signature(client).parameters, aio_settings.DELIVERY_TIMEOUT}
    assert {argument for argument, _ in table.values()} <= known


def test_the_defaults_are_the_contracts() -> None:
    """The defaults are the strict ones by which a plan without settings is judged."""
    producer = producer_arguments({})
    assert (producer["acks"], producer["enable_idempotence"]) == ("all", True)
    assert consumer_arguments({})["isolation_level"] == "read_committed"
    assert producer_arguments({"acks": "1"})["enable_idempotence"] is False
    assert producer_arguments({"acks": "-1"})["enable_idempotence"] is True


def test_kafkas_name_counts_before_librdkafkas() -> None:
    """Of two names for one argument, Kafka's takes precedence over librdkafka's."""
    arguments = consumer_arguments({"request.timeout.ms": "7", "socket.timeout.ms": "4000"})
    assert arguments["request_timeout_ms"] == 7


def test_a_fetch_may_wait_until_just_before_its_timeout() -> None:
    """A fetch that ends a millisecond before its request times out is accepted."""
    settings = {"fetch.max.wait.ms": "3999", "socket.timeout.ms": "4000"}
    assert consumer_arguments(settings)["fetch_max_wait_ms"] == 3999


@pytest.mark.parametrize(
    ("producer", "consumer", "told"),
    [
        ({"acks": "most"}, {}, "producer.acks=most: must be one of all, -1, 1, 0"),
        (
            {},
            {"fetch.max.wait.ms": "4000", "socket.timeout.ms": "4000"},
            "consumer.fetch.wait.max.ms=4000: must be below the timeout of requests, 4000 ms",
        ),
        (
            {"acks": "1", "enable.idempotence": "true"},
            {},
            "producer.enable.idempotence=true: needs",
        ),
        ({"enable.idempotence": "yes"}, {}, "producer.enable.idempotence=yes: must be one of true"),
        ({"linger.ms": "-1"}, {}, "producer.linger.ms=-1: must be a whole number"),
        ({"compression.type": "rar"}, {}, "producer.compression.type=rar: must be one of none"),
        ({"message.timeout.ms": "1"}, {}, "producer.message.timeout.ms: write delivery.timeout.ms"),
        ({"request.required.acks": "1"}, {}, "producer.request.required.acks: write acks"),
        (
            {"max.in.flight.requests.per.connection": "5"},
            {},
            "producer.max.in.flight.requests.per.connection=5: must be 1; aiokafka sends one",
        ),
        ({}, {"enable.auto.commit": "true"}, "consumer.enable.auto.commit=true: must be false"),
        ({}, {"auto.offset.reset": "end"}, "consumer.auto.offset.reset=end: must be one of error"),
        ({}, {"no.such.key": "1"}, "consumer.no.such.key: aiokafka has no such setting"),
        ({}, {"group.id": "g"}, "consumer.group.id: aiokafka has no such setting"),
    ],
)
def test_what_cannot_be_obeyed_is_refused(
    producer: dict[str, str], consumer: dict[str, str], told: str
) -> None:
    """A setting that aiokafka cannot obey is rejected in one line that names it."""
    why = refusal(producer, consumer) or ""
    assert why.startswith(f"--set {told}")
    assert "\n" not in why


def test_one_request_at_a_time_is_not_refused() -> None:
    """The one value that aiokafka always has is accepted."""
    assert refusal({"max.in.flight.requests.per.connection": "1"}, {}) is None
    assert refusal({"compression.type": "none"}, {"check.crcs": "true"}) is None
    assert producer_arguments({"compression.type": "gzip"})["compression_type"] == "gzip"


def test_a_member_begins_somewhere_and_is_waited_for() -> None:
    """A member starts from the beginning, and rebalances wait ``max.poll.interval.ms`` for it."""
    arguments = member_arguments(
        {"auto.offset.reset": "error", "session.timeout.ms": "700", "max.poll.interval.ms": "900"}
    )
    assert arguments["auto_offset_reset"] == "earliest"
    assert (arguments["session_timeout_ms"], arguments["max_poll_interval_ms"]) == (700, 900)
    assert arguments["rebalance_timeout_ms"] == 900
    assert "rebalance_timeout_ms" not in member_arguments({})
