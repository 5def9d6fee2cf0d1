import random

import pytest

from broker_impl.controller import extension
from broker_impl.errors import ApiError, ErrorCode

CURRENT = {0: (1, 2), 1: (2, 3)}
BROKERS = dict.fromkeys((1, 2, 3))


def test_partitions_are_added_behind_those_that_there_are() -> None:
    """CreatePartitions adds the missing partitions, with as many replicas as the others have."""
    added = extension.plan(CURRENT, 5, None, BROKERS, random.Random(1))
    assert list(added) == [2, 3, 4]
    assert all(len(set(replicas)) == 2 for replicas in added.values())


def test_they_may_be_assigned_by_hand() -> None:
    """A manual assignment applies to the new partitions in the order of the request."""
    added = extension.plan(CURRENT, 4, [[3, 1], [1, 3]], BROKERS, random.Random(1))
    assert added == {2: (3, 1), 3: (1, 3)}


@pytest.mark.parametrize(
    ("count", "assignments", "error"),
    [
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (20_000, None, ErrorCode.INVALID_PARTITIONS),
        (3, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[1, 1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[1, 9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_is_refused(count: int, assignments: list[list[int]] | None, error: ErrorCode) -> None:
    """The partitions must grow in number, within a limit; replicas must be distinct and alive."""
    with pytest.raises(ApiError) as refused:
        extension.plan(CURRENT, count, assignments, BROKERS, random.Random(1))
    assert refused.value.code is error


def test_there_may_be_too_few_brokers() -> None:
    """CreatePartitions fails if there are fewer brokers than replicas of the other partitions."""
    with pytest.raises(ApiError) as refused:
        extension.plan(CURRENT, 3, None, {1: None}, random.Random(1))
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
