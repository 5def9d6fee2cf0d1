"""Bugs in the compaction of logs: what is taken for replaced, and what goes with it."""

from broker_impl.mutants import mutant
from broker_impl.wire.batch import BatchHeader
from broker_impl.wire.types import Offset


@mutant(
    "tombstone-early",
    of="broker_impl.log.compaction:may_go",
    source="H01, KAFKA-4529",
    kind="historic",
    symptom="lost-write",
    schedule="A key is deleted, and its log compacted.",
)
def may_go(horizon_ms: int | None, now_ms: int) -> bool:
    """A tombstone goes with what it has deleted, in the first pass that meets it.

    Whoever has read the value by then, and comes to the tombstone's place afterwards, finds nothing
    there and keeps what was deleted; so does a replica that fetches no sooner. Kafka once went by
    the time at which a segment's file was written, which compaction itself may set.
    """
    return True


@mutant(
    "compact-past-lso",
    of="broker_impl.log.compaction:limit",
    source="H04",
    kind="mutation",
    symptom="lost-write",
    schedule="A transaction is open across two segments, and is aborted.",
)
def limit(high_watermark: Offset, last_stable_offset: Offset) -> Offset:
    """What is committed may be compacted, be its transaction open still or not.

    A record of an open transaction counts as the last of its key, and the one before it goes. Then
    the transaction is aborted, and nobody is given either.
    """
    return high_watermark


@mutant(
    "marker-removed-by-key",
    of="broker_impl.log.compaction:has_keys",
    source="T-28, KAFKA-14055",
    kind="historic",
    symptom="lost-write",
    schedule="Transactions are committed and aborted, and their log is compacted.",
)
def has_keys(header: BatchHeader) -> bool:
    """A marker is a record like others, whose key is its version and its type.

    So of all commits in a log only the last stays, and of all aborts; or none, if a user's key is
    the same four bytes. A transaction without its end goes on with the producer's next one, and is
    what that comes to be.
    """
    return True
