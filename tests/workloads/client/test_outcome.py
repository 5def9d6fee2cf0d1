"""Errors of librdkafka, and what they say about an operation."""

import pytest
from confluent_kafka import KafkaError

from workloads.client import outcome


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, "ok"),
        ("MSG_SIZE_TOO_LARGE", "fail"),
        ("TOPIC_AUTHORIZATION_FAILED", "info"),  # an earlier attempt may be written
        ("INVALID_RECORD", "fail"),
        ("_MSG_TIMED_OUT", "info"),
        ("_TRANSPORT", "info"),
        ("NOT_LEADER_FOR_PARTITION", "info"),  # KAFKA-13574: answered to writes that succeeded
        ("REQUEST_TIMED_OUT", "info"),
        ("NOT_ENOUGH_REPLICAS", "info"),  # an earlier attempt may have succeeded
        ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "info"),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", "info"),
        ("_PURGE_QUEUE", "info"),  # purged while it waited for its second attempt
        ("_PURGE_INFLIGHT", "info"),
        ("_UNKNOWN_TOPIC", "info"),
        ("_FATAL", "info"),
        ("some name from the future", "info"),
    ],
)
def test_of_send(error: str | None, expected: str) -> None:
    """Only an error that every attempt would get is certain."""
    assert outcome.of_send(error) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, "ok"),
        ("TOPIC_ALREADY_EXISTS", "ok"),
        ("INVALID_REPLICATION_FACTOR", "fail"),
        ("_TIMED_OUT", "info"),
        ("REQUEST_TIMED_OUT", "info"),
        ("NOT_CONTROLLER", "info"),
    ],
)
def test_of_creation(error: str | None, expected: str) -> None:
    """An existing topic was created by an earlier attempt, because names are used only once."""
    assert outcome.of_creation(error) == expected


@pytest.mark.parametrize(
    ("error", "first", "later"),
    [
        (None, "ok", "ok"),
        ("ILLEGAL_GENERATION", "fail", "info"),
        ("COORDINATOR_LOAD_IN_PROGRESS", "fail", "info"),
        ("NOT_COORDINATOR", "info", "info"),
        ("COORDINATOR_NOT_AVAILABLE", "info", "info"),
        ("_TIMED_OUT", "info", "info"),
    ],
)
def test_of_commit(error: str | None, first: str, later: str) -> None:
    """A rejection is certain only if it is the response to the first attempt."""
    assert outcome.of_commit(error, is_first=True) == first
    assert outcome.of_commit(error, is_first=False) == later


@pytest.mark.parametrize(
    "table", [outcome.REFUSED_SENDS, outcome.REFUSED_CREATIONS, outcome.REFUSED_COMMITS]
)
def test_names_are_those_of_librdkafka(table: frozenset[str]) -> None:
    """Every name in the tables is one of librdkafka's; a misspelt one would silently mean doubt."""
    known = {KafkaError(getattr(KafkaError, name)).name() for name in dir(KafkaError)
             if name.isupper()}  # fmt: skip
    assert set(table) <= known


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        (["ok", "ok"], "ok"),
        (["fail", "fail"], "fail"),
        (["ok", "fail"], "info"),
        (["ok", "info"], "info"),
        (["info"], "info"),
    ],
)
def test_of_several(parts: list[outcome.Outcome], whole: str) -> None:
    """An operation has succeeded or failed only if all of its parts have."""
    assert outcome.of_several(parts) == whole


@pytest.mark.parametrize(
    ("error", "expected"),
    [(None, "ok"), ("UNKNOWN_TOPIC_OR_PART", "ok"), ("REQUEST_TIMED_OUT", "info")],
)
def test_of_topic_deletion(error: str | None, expected: str) -> None:
    """An unknown topic is deleted."""
    assert outcome.of_topic_deletion(error) == expected


@pytest.mark.parametrize(("error", "expected"), [(None, "ok"), ("OFFSET_OUT_OF_RANGE", "info")])
def test_of_records_deletion(error: str | None, expected: str) -> None:
    """A rejected deletion of records is in doubt, because an earlier attempt may have succeeded."""
    assert outcome.of_records_deletion(error) == expected
