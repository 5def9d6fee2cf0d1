"""Bugs in how followers handle their leader's responses, and in what a fetch may return."""

from broker_impl.api.fetch_sessions.rules import Sent
from broker_impl.errors import ErrorCode
from broker_impl.mutants import mutant
from broker_impl.replica import events
from broker_impl.replica.events import Effect, HighWatermarkAdvanced
from broker_impl.replica.results import FetchResult
from broker_impl.wire.messages.fetch_request import FetchRequest
from broker_impl.wire.types import Epoch, TopicPartition

_changes_reads_of = events.changes_reads_of


@mutant(
    "truncate-after-fetcher-removed",
    of="broker_impl.replica.follower:counts",
    source="A14, KAFKA-13207, KAFKA-8012",
    kind="historic",
    symptom="crash",
    schedule="A follower whose log is longer than its leader's sends a fetch, and is elected "
    "leader before it receives the response that their logs diverge.",
    tier=2,
)
def counts(asked: Epoch, leader_epoch: Epoch, is_awaited: bool) -> bool:
    """A replica obeys an answer in whatever role it has when the answer arrives, even as leader.

    A replica that asked as a follower may have become the leader since, elected with records that
    its former leader never had. The answer makes it truncate them below the start of its own epoch,
    so what it has as the leader is gone. Kafka continued in this state and lost committed records;
    here the leader notices that its log was truncated under it, and the broker exits.
    """
    return True


@mutant(
    "session-forgets-epoch",
    of="broker_impl.api.fetch_sessions.rules:fencing_epoch",
    source="A09, KAFKA-9338, KIP-227, KIP-320",
    kind="historic",
    symptom="lost-write",
    schedule="A follower with a fetch session does not learn of a new epoch and keeps fetching "
    "from a leader that was replaced meanwhile, has truncated its log and has been elected again.",
    tier=2,
)
def fencing_epoch(named: Epoch, known: Epoch) -> Epoch:
    """A leader checks the epoch of a reader in full fetches only, and not within a session.

    The session does not keep the leader epoch that the reader named, so that a reader which missed
    an election is served as before, as long as its session lasts. A leader counts such a follower's
    fetch offset, although the records before it may differ from its own, and acknowledges records
    that no other replica has. Kafka had this bug from 2.1, the first release that compares epochs,
    to 2.4.
    """
    return known


@mutant(
    "session-misses-watermark",
    of="broker_impl.replica.events:changes_reads_of",
    source="KIP-227",
    kind="mutation",
    symptom="invariant:fetched-when-readable",
    schedule="A consumer with a fetch session receives a part of a log of which the rest is not "
    "committed yet, and fetches again once it is, before anything else is appended.",
)
def changes_reads_of(effect: Effect) -> TopicPartition | None:
    """A fetch session reads a partition again after an append, but not after a new high watermark.

    A fetch between the append of a record and its replication finds nothing, and the partition
    counts as read. If the record is committed while the consumer has no fetch at the broker, the
    consumer receives it only after the next append, which may be hours later.
    """
    return None if isinstance(effect, HighWatermarkAdvanced) else _changes_reads_of(effect)


@mutant(
    "fetch-limit-of-each-partition",
    of="broker_impl.api.fetch:bytes_for",
    source="KIP-74",
    kind="mutation",
    symptom="invariant:fetched-within-limits",
    schedule="A reader that lags fetches several partitions with a small max_bytes.",
)
def bytes_for(partition_max: int, left: int) -> int:
    """Each partition returns up to its own limit, whatever the others return.

    So it was before KIP-74. A reader that lags in a thousand partitions gets a thousand times the
    limit of a partition in one response, and may run out of memory.
    """
    return max(0, partition_max)


@mutant(
    "acl-checked-at-session-start",
    of="broker_impl.api.access.fetch_rights:as_checked",
    source="KIP-11 and KIP-227 are related",
    kind="mutation",
    symptom="invariant:leaked",
    schedule="A consumer with a fetch session loses its right to read, and continues to fetch in "
    "the session.",
)
def as_checked(request: FetchRequest) -> FetchRequest:
    """The rights of a consumer are checked when its fetch session begins, and not within it.

    An incremental fetch names the partitions that it fetches differently than before, and only
    these are checked. A consumer whose right to read is taken away receives new records as long as
    its session lasts.
    """
    return request


@mutant(
    "watermark-not-shown",
    of="broker_impl.api.fetch_sessions.rules:is_shown",
    source="KIP-227",
    kind="mutation",
    symptom="stuck",
    schedule="Producers stop writing to a partition.",
)
def is_shown(before: Sent, result: FetchResult) -> bool:
    """An incremental response leaves out a partition of which only the high watermark has changed.

    Without new records the followers do not learn that the last ones are committed, and consumers
    that read from a follower in their rack (KIP-392) do not get them.
    """
    return (
        bool(result.records)
        or result.error is not ErrorCode.NONE
        or result.diverging is not None
        or result.preferred_read_replica >= 0
    )
