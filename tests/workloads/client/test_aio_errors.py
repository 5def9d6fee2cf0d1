"""Errors of aiokafka, and what they say about an operation."""

import pytest
from aiokafka import errors

from workloads.client import aio_errors
from workloads.client.aio_offset_delete import StillSubscribed


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, "ok"),
        (errors.MessageSizeTooLargeError(), "fail"),
        (errors.TopicAuthorizationFailedError("t"), "info"),  # an earlier attempt may be written
        (errors.NotLeaderForPartitionError(), "info"),  # also: waited too long for a leader
        (errors.LeaderNotAvailableError(), "info"),
        (errors.RequestTimedOutError(), "info"),
        (errors.NotEnoughReplicasError(), "info"),  # an earlier attempt may have succeeded
        (errors.OutOfOrderSequenceNumber(), "info"),
        (errors.CorruptRecordException(), "info"),  # not retried, but perhaps not the first attempt
        (errors.ProducerClosed(), "info"),
        (errors.UnknownError(), "info"),  # any error that is newer than Kafka 2.2
        (errors.KafkaError("Unexpected error during batch delivery"), "info"),
        (TimeoutError(), "info"),
    ],
)
def test_of_send(error: Exception | None, expected: str) -> None:
    """Only an error that every attempt would get is certain."""
    assert aio_errors.of_send(error) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.NoError, "ok"),
        (errors.TopicAlreadyExistsError, "ok"),
        (errors.InvalidReplicationFactorError, "fail"),
        (errors.RequestTimedOutError, "info"),
        (errors.NotControllerError, "info"),
    ],
)
def test_of_creation(error: type[errors.KafkaError], expected: str) -> None:
    """An existing topic was created by an earlier attempt, because names are used only once."""
    assert aio_errors.of_creation(error) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.UnknownMemberIdError("g"), "fail"),
        (errors.IllegalGenerationError("g"), "fail"),
        (errors.GroupLoadInProgressError(), "fail"),
        (errors.NodeNotReadyError(), "fail"),  # nothing was sent
        (errors.NotCoordinatorForGroupError(), "info"),  # but maybe it was when it wrote
        (errors.GroupCoordinatorNotAvailableError(), "info"),  # also: too few replicas in time
        (errors.RequestTimedOutError(), "info"),
        (errors.KafkaConnectionError(), "info"),
        (errors.TopicAuthorizationFailedError("t"), "info"),  # another partition may be committed
        (errors.UnknownError(), "info"),
    ],
)
def test_of_commit(error: Exception, expected: str) -> None:
    """Only an error for the whole group, before anything is written, is certain."""
    assert aio_errors.of_commit(error) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (StillSubscribed("g"), "fail"),
        (errors.GroupIdNotFound("g"), "fail"),
        (errors.GroupLoadInProgressError(), "fail"),
        (errors.NotCoordinatorForGroupError(), "info"),
        (errors.RequestTimedOutError(), "info"),
    ],
)
def test_of_deletion(error: Exception, expected: str) -> None:
    """A deletion of offsets is like a commit; a group that does not exist has no offsets."""
    assert aio_errors.of_deletion(error) == expected


@pytest.mark.parametrize("error", sorted(aio_errors.REFUSED_SENDS, key=str))
def test_what_is_refused_is_not_retried(error: type[errors.KafkaError]) -> None:
    """aiokafka does not retry the errors that count as certain."""
    assert not error.retriable


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.OffsetOutOfRangeError(), "fail"),
        (errors.PolicyViolationError(), "fail"),
        (errors.NotLeaderForPartitionError(), "info"),  # it may have been the leader before
        (errors.RequestTimedOutError(), "info"),
        (TimeoutError(), "info"),
    ],
)
def test_of_records_deletion(error: Exception, expected: str) -> None:
    """Only errors that precede any change of a log are certain."""
    assert aio_errors.of_records_deletion(error) == expected
