"""What an error of librdkafka says about an operation: it happened, it did not, or it is in doubt.

Doubt is the default. A wrong ``fail`` makes a correct broker look as if it had invented a record.
So an error is in a table of certain rejections only if no attempt can have had an effect, not even
an earlier one whose response was lost: the client reports the last attempt's error only, and does
not reveal whether the record may have been persisted (its ``message status`` is not in the Python
interface). Hence a record that was purged from the queue, rejected with ``NOT_ENOUGH_REPLICAS`` or
reported with an unknown topic is in doubt: it may have waited there for its second attempt.
"""

from collections.abc import Set as AbstractSet
from typing import Literal

Outcome = Literal["ok", "fail", "info"]

REFUSED_SENDS: AbstractSet[str] = frozenset(
    {
        # Every broker rejects the same record at every attempt.
        "INVALID_MSG_SIZE",
        "INVALID_RECORD",
        "INVALID_REQUIRED_ACKS",
        "INVALID_TIMESTAMP",
        "MSG_SIZE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
        "TOPIC_EXCEPTION",
        "UNSUPPORTED_COMPRESSION_TYPE",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    }
)
"""Errors of delivery reports that mean that the record is certainly not in the log.

TOPIC_AUTHORIZATION_FAILED is not among them: if the right to write is taken away meanwhile, an
earlier attempt, whose response was lost, may have written the record.
"""

REFUSED_CREATIONS: AbstractSet[str] = frozenset(
    {
        "CLUSTER_AUTHORIZATION_FAILED",
        "INVALID_CONFIG",
        "INVALID_PARTITIONS",
        "INVALID_REPLICATION_FACTOR",  # also: too few live brokers at the moment
        "INVALID_REPLICA_ASSIGNMENT",
        "POLICY_VIOLATION",
        "TOPIC_AUTHORIZATION_FAILED",
        "TOPIC_EXCEPTION",
    }
)
"""Errors of CreateTopics that mean that the topic was certainly not created."""


REFUSED_COMMITS: AbstractSet[str] = frozenset(
    {
        "COORDINATOR_LOAD_IN_PROGRESS",
        "FENCED_INSTANCE_ID",
        "GROUP_AUTHORIZATION_FAILED",
        "ILLEGAL_GENERATION",
        "INVALID_GROUP_ID",
        "REBALANCE_IN_PROGRESS",
        "UNKNOWN_MEMBER_ID",
    }
)
"""Errors of OffsetCommit, each for the whole group: this attempt has committed nothing."""


def of_topic_deletion(error: str | None) -> Outcome:
    """Return the outcome of a topic's deletion, which is ``ok`` for an unknown topic.

    An earlier attempt has deleted such a topic.
    """
    return "ok" if error in (None, "UNKNOWN_TOPIC_OR_PART") else "info"


def of_records_deletion(error: str | None) -> Outcome:
    """Return the outcome of a deletion of records.

    librdkafka does not reveal whether it sent the request once: records before an offset that one
    leader rejects as not committed may have been deleted by another leader before.
    """
    return "ok" if error is None else "info"


def of_commit(error: str | None, *, is_first: bool) -> Outcome:
    """Return the outcome of a commit by the name of its error.

    ``is_first``: no other attempt can have preceded this response.
    """
    if error is None:
        return "ok"
    return "fail" if is_first and error in REFUSED_COMMITS else "info"


def of_send(error: str | None) -> Outcome:
    """Return the outcome of a record by the name of its delivery report's error."""
    if error is None:
        return "ok"
    return "fail" if error in REFUSED_SENDS else "info"


def of_creation(error: str | None) -> Outcome:
    """Return the outcome of a topic's creation, which is ``ok`` for an existing topic.

    An earlier attempt has created such a topic.
    """
    if error is None or error == "TOPIC_ALREADY_EXISTS":
        return "ok"
    return "fail" if error in REFUSED_CREATIONS else "info"


def of_several(outcomes: list[Outcome]) -> Outcome:
    """Return the outcome of an operation of several parts: that of all parts, or else ``info``.

    A mixture of parts that succeeded and parts that failed is in doubt as a whole.
    """
    assert outcomes, "an operation has at least one part"
    first = outcomes[0]
    return first if all(outcome == first for outcome in outcomes) else "info"
