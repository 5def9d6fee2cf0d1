"""More partitions for a topic that there is: which they will be, or why there cannot be any."""

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
    """The partitions to be added, so that there are ``count``.

    assignments: of each of them, chosen by hand; None: chosen here. brokers: the live ones, each
    with its rack. ApiError INVALID_PARTITIONS: not more than now, or too many;
    INVALID_REPLICA_ASSIGNMENT: not that many, not as many copies, or not of brokers that are there.
    """
    known = len(current)
    if count < known:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, f"there are {known} partitions, more than {count}"
        )
    if count == known:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"there are {known} partitions already")
    if count > PARTITIONS_MAX:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"at most {PARTITIONS_MAX} partitions a topic")
    copies = len(current[0])
    if assignments is None:
        if copies > len(brokers):
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"{copies} replicas, {len(brokers)} brokers are there",
            )
        placed = placement.assign(brokers, count - known, copies, rng)
        return {known + number: replicas for number, replicas in placed.items()}
    if len(assignments) != count - known:
        raise _invalid(f"{len(assignments)} assignments for {count - known} new partitions")
    added = {known + number: tuple(replicas) for number, replicas in enumerate(assignments)}
    for number, replicas in added.items():
        if len(replicas) != copies:
            raise _invalid(f"partition {number} has {len(replicas)} replicas, others {copies}")
        if len(set(replicas)) != len(replicas):
            raise _invalid(f"partition {number} has a broker twice")
        for broker in replicas:
            if broker not in brokers:
                raise _invalid(f"broker {broker} is not there")
    return added


def _invalid(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
