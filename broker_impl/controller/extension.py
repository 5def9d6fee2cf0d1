"""The validation of a CreatePartitions request and the assignment of the added partitions."""

import random
from collections.abc import Mapping, Sequence

from broker_impl.controller import placement
from broker_impl.controller.creation import PARTITIONS_MAX
from broker_impl.errors import ApiError, ErrorCode
from broker_impl.wire.types import BrokerId

Replicas = tuple[BrokerId, ...]


def plan(
    current: Mapping[int, Replicas],
    count: int,
    assignments: Sequence[Sequence[BrokerId]] | None,
    brokers: Mapping[BrokerId, str | None],
    rng: random.Random,
) -> dict[int, Replicas]:
    """Return the partitions to add so that the topic has ``count``.

    assignments: the replicas of each added partition; None: they are placed here. brokers: the live
    brokers, each with its rack. Raises ApiError INVALID_PARTITIONS if ``count`` does not exceed the
    current number or is too large, INVALID_REPLICATION_FACTOR if there are fewer brokers than
    replicas, INVALID_REPLICA_ASSIGNMENT if the number of assignments or of replicas is wrong, or a
    broker is repeated or not live.
    """
    known = len(current)
    if count < known:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, f"the topic has {known} partitions, more than {count}"
        )
    if count == known:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"there are {known} partitions already")
    if count > PARTITIONS_MAX:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, f"a topic can have at most {PARTITIONS_MAX} partitions"
        )
    copies = len(current[0])
    if assignments is None:
        if copies > len(brokers):
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"the topic has {copies} replicas per partition, but only {len(brokers)} "
                "brokers are alive",
            )
        placed = placement.assign(brokers, count - known, copies, rng)
        return {known + number: replicas for number, replicas in placed.items()}
    if len(assignments) != count - known:
        raise _invalid(
            f"the request has {len(assignments)} assignments for {count - known} new partitions"
        )
    added = {known + number: tuple(replicas) for number, replicas in enumerate(assignments)}
    for number, replicas in added.items():
        if len(replicas) != copies:
            raise _invalid(f"partition {number} has {len(replicas)} replicas, others have {copies}")
        if len(set(replicas)) != len(replicas):
            raise _invalid(f"partition {number} has two replicas on one broker")
        for broker in replicas:
            if broker not in brokers:
                raise _invalid(f"broker {broker} is not alive")
    return added


def _invalid(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
