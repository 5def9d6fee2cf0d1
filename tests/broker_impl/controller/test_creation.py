"""How a row of a CreateTopics request becomes a new topic."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from broker_impl.controller.creation import NewTopic, plan
from broker_impl.errors import ApiError, ConfigError, ErrorCode
from broker_impl.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateableTopicConfig,
)


def check(settings: Mapping[str, str]) -> None:
    if "bad" in settings:
        raise ConfigError("bad=x: unknown")


def planned(topic: CreatableTopic) -> NewTopic:
    return plan(
        topic,
        existing=["taken", "a.b", "going"],
        deleting=["going"],
        brokers={1: None, 2: None, 3: None},
        partitions_default=4,
        replication_factor_default=2,
        check_settings=check,
        rng=random.Random(1),
    )


def asked(name: str = "t", partitions: int = 1, copies: int = 1, **more: Any) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=copies, **more)


def by_hand(*rows: tuple[int, list[int]], partitions: int = -1, copies: int = -1) -> CreatableTopic:
    return asked(
        partitions=partitions,
        copies=copies,
        assignments=[
            CreatableReplicaAssignment(partition_index=number, broker_ids=brokers)
            for number, brokers in rows
        ],
    )


def test_numbers_and_defaults() -> None:
    """The count -1 selects the broker's default (KIP-464)."""
    topic = planned(asked(partitions=3, copies=3))
    assert list(topic.assignment) == [0, 1, 2]
    assert topic.replication_factor == 3
    topic = planned(asked(partitions=-1, copies=-1))
    assert len(topic.assignment) == 4
    assert topic.replication_factor == 2


def test_an_assignment_by_hand() -> None:
    """A manual assignment is used as given, in the order of partitions."""
    topic = planned(by_hand((1, [3, 1]), (0, [2, 3])))
    assert list(topic.assignment.items()) == [(0, (2, 3)), (1, (3, 1))]


def test_an_assignment_may_name_absent_brokers() -> None:
    """Kafka 2.8 checks for CreatePartitions, not CreateTopics, that assigned brokers are alive."""
    assert planned(by_hand((0, [9, 1]))).assignment == {0: (9, 1)}


def test_settings_are_kept() -> None:
    """A new topic keeps the overrides of its settings."""
    topic = planned(asked(configs=[CreateableTopicConfig(name="retention.ms", value="5")]))
    assert topic.settings == {"retention.ms": "5"}


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (asked("taken"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (asked("going"), ErrorCode.TOPIC_ALREADY_EXISTS),  # not until the deletion is complete
        # names of metrics do not distinguish '.' and '_'
        (asked("a_b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (asked(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (asked("sp ace"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (asked(partitions=0), ErrorCode.INVALID_PARTITIONS),
        (asked(partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (asked(partitions=10_001), ErrorCode.INVALID_PARTITIONS),  # more than a znode can hold
        (asked(copies=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (asked(copies=4), ErrorCode.INVALID_REPLICATION_FACTOR),  # more than the three brokers
        (
            asked(configs=[CreateableTopicConfig(name="bad", value="x")]),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            asked(configs=[CreateableTopicConfig(name="retention.ms", value=None)]),
            ErrorCode.INVALID_REQUEST,
        ),
        (by_hand((0, [1]), partitions=1, copies=1), ErrorCode.INVALID_REQUEST),
        # partition 1 is missing
        (by_hand((0, [1]), (2, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        # partition 0 occurs twice
        (by_hand((0, [1]), (0, [2])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (by_hand((0, [1, 1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (by_hand((0, [])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (by_hand((0, [1, 2]), (1, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (by_hand((0, [1, -1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_refusals(topic: CreatableTopic, error: ErrorCode) -> None:
    """Each invalid request is refused with its own error code and a message."""
    with pytest.raises(ApiError) as raised:
        planned(topic)
    assert raised.value.code is error
    assert raised.value.message
