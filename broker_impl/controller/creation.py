"""The validation of a CreateTopics request and the resulting assignment of the new topic."""

import random
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from broker_impl.controller import placement
from broker_impl.controller.topics import collision, name_error
from broker_impl.errors import ApiError, ConfigError, ErrorCode
from broker_impl.wire import topic_ids
from broker_impl.wire.messages.create_topics_request import CreatableTopic
from broker_impl.wire.types import BrokerId

DEFAULT = -1
"""Requests the broker's default number of partitions or replicas (KIP-464)."""
PARTITIONS_MAX = 10_000
"""The limit for one topic: its assignment is one znode, which holds about a megabyte."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """The replica assignment and the settings with which a topic will be created in ZooKeeper."""

    assignment: Mapping[int, tuple[BrokerId, ...]]
    settings: Mapping[str, str]
    topic_id: UUID

    @property
    def replication_factor(self) -> int:
        """The number of replicas of the first partition, which the response reports."""
        return len(self.assignment[0])


def plan(
    asked: CreatableTopic,
    *,
    existing: Iterable[str],
    deleting: Container[str],
    brokers: Mapping[BrokerId, str | None],
    partitions_default: int,
    replication_factor_default: int,
    check_settings: Callable[[Mapping[str, str]], object],
    rng: random.Random,
) -> NewTopic:
    """Return the topic to create for this request, or raise `ApiError`.

    existing: the names that are in use. deleting: the names of topics that are being deleted.
    brokers: the rack of each live broker. check_settings: raises ConfigError for invalid settings.
    """
    _check_name(asked.name, list(existing), deleting)
    settings = _settings(asked, check_settings)
    if asked.assignments:
        if (asked.num_partitions, asked.replication_factor) != (DEFAULT, DEFAULT):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "a request gives either the assigned replicas or the numbers of partitions "
                "and replicas, not both",
            )
        return NewTopic(_assigned(asked), settings, topic_ids.draw(rng))
    partitions = partitions_default if asked.num_partitions == DEFAULT else asked.num_partitions
    if partitions <= 0:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, "a topic needs at least one partition")
    if partitions > PARTITIONS_MAX:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, f"a topic can have at most {PARTITIONS_MAX} partitions"
        )
    copies = asked.replication_factor
    if copies == DEFAULT:
        copies = replication_factor_default
    if copies <= 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "a partition needs at least one replica"
        )
    if copies > len(brokers):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"the replication factor is {copies}, but only {len(brokers)} brokers are alive",
        )
    assignment = placement.assign(brokers, partitions, copies, rng)
    return NewTopic(assignment, settings, topic_ids.draw(rng))


def _check_name(name: str, existing: list[str], deleting: Container[str]) -> None:
    if name in deleting:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} is being deleted")
    if name in existing:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} is there already")
    if (error := name_error(name)) is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, error)
    if (other := collision(name, existing)) is not None:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"the names {name} and {other} collide in metrics"
        )


def _settings(
    asked: CreatableTopic, check: Callable[[Mapping[str, str]], object]
) -> dict[str, str]:
    settings = {}
    for config in asked.configs:
        if config.value is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"the setting {config.name} has no value")
        settings[config.name] = config.value
    try:
        check(settings)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error
    return settings


def _assigned(asked: CreatableTopic) -> dict[int, tuple[BrokerId, ...]]:
    """Return the assignment that the request specifies.

    As in Kafka 2.8, the assignment may contain brokers that are not registered. Their replicas are
    created when they register.
    """
    assignment = {row.partition_index: tuple(row.broker_ids) for row in asked.assignments}
    if len(assignment) != len(asked.assignments) or sorted(assignment) != list(
        range(len(assignment))
    ):
        raise _bad_assignment("partitions must be numbered from 0, without gaps")
    for partition, replicas in assignment.items():
        if not replicas:
            raise _bad_assignment(f"partition {partition} has no replicas")
        if len(set(replicas)) != len(replicas):
            raise _bad_assignment(f"partition {partition} has two replicas on one broker")
        if len(replicas) != len(assignment[0]):
            raise _bad_assignment("all partitions must have the same number of replicas")
        if min(replicas) < 0:
            raise _bad_assignment(f"partition {partition} has a negative broker id")
    return {partition: assignment[partition] for partition in sorted(assignment)}


def _bad_assignment(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
