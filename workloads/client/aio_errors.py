"""What an error of aiokafka says about the operation: it happened, it did not, nobody knows.

Doubt is the default, for the reasons told in ``workloads.client.outcome``; aiokafka, too, reports a
record's last attempt only. Two things can be told apart here that librdkafka does not tell:

- what is raised while a record is handed over (``await producer.send(…)``: no metadata, too large,
  no room, closed) was never queued: certainly ``fail``;
- what its future ends in (``await future``) is an answer of a broker or the end of the retries, and
  ``fail`` only for what every broker refuses at every attempt. ``NotLeaderForPartitionError`` and
  ``LeaderNotAvailableError`` are set there, too, for a batch that has waited too long for a leader
  (``message_accumulator.drain_by_nodes``), its first attempt or a later one: doubt.

aiokafka 0.14 knows the protocol's errors up to 72; a later one (INVALID_RECORD,
UNSUPPORTED_COMPRESSION_TYPE, PRODUCER_FENCED) is its ``UnknownError``: doubt.
"""

from collections.abc import Set as AbstractSet

from aiokafka import errors

from workloads.client.aio_offset_delete import StillSubscribed
from workloads.client.outcome import Outcome

REFUSED_SENDS: AbstractSet[type[errors.KafkaError]] = frozenset(
    {
        errors.InvalidRequiredAcksError,
        errors.InvalidTimestampError,
        errors.InvalidTopicError,
        errors.MessageSizeTooLargeError,
        errors.RecordListTooLargeError,
        errors.TopicAuthorizationFailedError,
        errors.UnsupportedForMessageFormatError,
    }
)
"""Errors of a record's future by which it is certainly not in the log."""

REFUSED_CREATIONS: AbstractSet[type[errors.KafkaError]] = frozenset(
    {
        errors.ClusterAuthorizationFailedError,
        errors.InvalidConfigurationError,
        errors.InvalidPartitionsError,
        errors.InvalidReplicationAssignmentError,
        errors.InvalidReplicationFactorError,  # also: fewer live brokers than replicas, just now
        errors.InvalidTopicError,
        errors.PolicyViolationError,
        errors.TopicAuthorizationFailedError,
    }
)
"""Answers to CreateTopics by which the topic was certainly not created."""


REFUSED_COMMITS: AbstractSet[type[errors.KafkaError]] = frozenset(
    {
        errors.GroupAuthorizationFailedError,
        errors.GroupLoadInProgressError,
        errors.IllegalGenerationError,
        errors.InvalidGroupIdError,
        errors.NodeNotReadyError,  # there is no connection to send it by
        errors.RebalanceInProgressError,
        errors.UnknownMemberIdError,
    }
)
"""Answers to one OffsetCommit, each for the group as a whole, by which nothing was committed. Not
among them: a coordinator that is none (any more) may have been one when it wrote the commit to its
log, and what is refused for one partition may be committed for another."""


def of_commit(error: Exception) -> Outcome:
    """The outcome of a commit that was sent once, by what it ended in."""
    return "fail" if type(error) in REFUSED_COMMITS else "info"


REFUSED_DELETIONS: AbstractSet[type[errors.KafkaError]] = REFUSED_COMMITS | {
    StillSubscribed,
    errors.GroupIdNotFound,
}
"""Answers to one OffsetDelete by which nothing was deleted; a group that is not found has committed
nothing."""


def of_deletion(error: Exception) -> Outcome:
    """The outcome of a deletion that was asked for once, by what it ended in."""
    return "fail" if type(error) in REFUSED_DELETIONS else "info"


def of_topic_deletion(error: type[Exception]) -> Outcome:
    """The outcome of a topic's deletion by the error answered for it; one that is unknown was
    deleted by an earlier attempt."""
    return "ok" if error in (errors.NoError, errors.UnknownTopicOrPartitionError) else "info"


REFUSED_RECORDS_DELETIONS: AbstractSet[type[errors.KafkaError]] = frozenset(
    {
        errors.InvalidTopicError,
        errors.OffsetOutOfRangeError,
        errors.PolicyViolationError,
        errors.UnknownTopicOrPartitionError,
    }
)
"""Answers to one DeleteRecords by which no record was deleted. Not among them: who leads no longer
may have led when it moved the log's start."""


def of_records_deletion(error: Exception) -> Outcome:
    """The outcome of a deletion of records that was asked for once, by what it ended in."""
    return "fail" if type(error) in REFUSED_RECORDS_DELETIONS else "info"


def of_send(error: Exception | None) -> Outcome:
    """The outcome of a record by what its future ended in."""
    if error is None:
        return "ok"
    return "fail" if type(error) in REFUSED_SENDS else "info"


def of_creation(error: type[Exception]) -> Outcome:
    """The outcome of a topic's creation by the error answered for it; a topic that exists was
    created by an earlier attempt."""
    if error in (errors.NoError, errors.TopicAlreadyExistsError):
        return "ok"
    return "fail" if error in REFUSED_CREATIONS else "info"
