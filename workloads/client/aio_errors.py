"""What an error of aiokafka says about an operation: it happened, it did not, or it is in doubt.

Doubt is the default, for the reasons given in ``workloads.client.outcome``; like librdkafka,
aiokafka reports only the last attempt of a record. Two cases can be distinguished here that
librdkafka does not distinguish:

- An error raised while a record is handed over (``await producer.send(…)``: no metadata, too large,
  no space in the buffer, closed) means that the record was never queued: certainly ``fail``.
- The result of its future (``await future``) is a broker's response or the end of the retries. It
  is ``fail`` only for what every broker rejects at every attempt. ``NotLeaderForPartitionError``
  and ``LeaderNotAvailableError`` are also set for a batch that has waited too long for a leader
  (``message_accumulator.drain_by_nodes``), at its first attempt or a later one: doubt.

aiokafka 0.14 knows the protocol's errors up to 72; a later one (INVALID_RECORD,
UNSUPPORTED_COMPRESSION_TYPE, PRODUCER_FENCED) is its ``UnknownError``: doubt.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

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
        errors.UnsupportedForMessageFormatError,
    }
)
"""Errors of a record's future that mean that the record is certainly not in the log.

TopicAuthorizationFailedError is not among them: if the right to write is taken away meanwhile, an
earlier attempt, whose response was lost, may have written the record.
"""

REFUSED_CREATIONS: AbstractSet[type[errors.KafkaError]] = frozenset(
    {
        errors.ClusterAuthorizationFailedError,
        errors.InvalidConfigurationError,
        errors.InvalidPartitionsError,
        errors.InvalidReplicationAssignmentError,
        errors.InvalidReplicationFactorError,  # also: too few live brokers at the moment
        errors.InvalidTopicError,
        errors.PolicyViolationError,
        errors.TopicAuthorizationFailedError,
    }
)
"""Errors of CreateTopics that mean that the topic was certainly not created."""


REFUSED_COMMITS: AbstractSet[type[errors.KafkaError]] = frozenset(
    {
        errors.GroupAuthorizationFailedError,
        errors.GroupLoadInProgressError,
        errors.IllegalGenerationError,
        errors.InvalidGroupIdError,
        errors.NodeNotReadyError,  # there is no connection to send it over
        errors.RebalanceInProgressError,
        errors.UnknownMemberIdError,
    }
)
"""Errors of one OffsetCommit, each for the whole group, that mean that nothing was committed.

A broker that is not the coordinator (any more) is not among them, because it may have been the
coordinator when it wrote the commit to its log. Errors of single partitions are not either, because
the commit may have succeeded for another partition.
"""


def of_commit(error: Exception) -> Outcome:
    """Return the outcome of a commit that was sent once, by its error."""
    return "fail" if type(error) in REFUSED_COMMITS else "info"


REFUSED_DELETIONS: AbstractSet[type[errors.KafkaError]] = REFUSED_COMMITS | {
    StillSubscribed,
    errors.GroupIdNotFound,
}
"""Errors of one OffsetDelete that mean that nothing was deleted.

A group that is not found has committed nothing.
"""


def of_deletion(error: Exception) -> Outcome:
    """Return the outcome of an offset deletion that was requested once, by its error."""
    return "fail" if type(error) in REFUSED_DELETIONS else "info"


def of_topic_deletion(error: type[Exception]) -> Outcome:
    """Return the outcome of a topic's deletion by its error.

    If the topic is unknown, an earlier attempt has deleted it.
    """
    return "ok" if error in (errors.NoError, errors.UnknownTopicOrPartitionError) else "info"


REFUSED_RECORDS_DELETIONS: AbstractSet[type[errors.KafkaError]] = frozenset(
    {
        errors.InvalidTopicError,
        errors.OffsetOutOfRangeError,
        errors.PolicyViolationError,
        errors.UnknownTopicOrPartitionError,
    }
)
"""Errors of one DeleteRecords that mean that no record was deleted.

A broker that is not the leader any more is not among them, because it may have been the leader when
it advanced the start of the log.
"""


def of_records_deletion(error: Exception) -> Outcome:
    """Return the outcome of a deletion of records that was requested once, by its error."""
    return "fail" if type(error) in REFUSED_RECORDS_DELETIONS else "info"


def of_send(error: Exception | None) -> Outcome:
    """Return the outcome of a record by the error of its future."""
    if error is None:
        return "ok"
    return "fail" if type(error) in REFUSED_SENDS else "info"


def of_creation(error: type[Exception]) -> Outcome:
    """Return the outcome of a topic's creation by its error.

    If the topic exists, an earlier attempt has created it.
    """
    if error in (errors.NoError, errors.TopicAlreadyExistsError):
        return "ok"
    return "fail" if error in REFUSED_CREATIONS else "info"


@contextmanager
def its_assertions() -> Iterator[None]:
    """Raise a ``KafkaError`` for an assertion that fails inside aiokafka."""
    try:
        yield
    except AssertionError as error:
        raise errors.KafkaError(f"AssertionError: {error}") from error


def name_of(error: BaseException) -> str:
    """Return the name of an error, as the history has it."""
    return type(error).__name__
