"""Bugs in the compaction of logs: what is taken for replaced, and what goes with it."""

from collections.abc import Iterable

from broker_impl.log.compaction import Fates
from broker_impl.log.config import LogConfig
from broker_impl.log.producers import ProducerEntry
from broker_impl.log.transactions import ABORT, COMMIT, AbortedTransaction, Marker
from broker_impl.mutants import mutant
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader
from broker_impl.wire.types import Buffer, Offset


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


@mutant(
    "txn-index-after-partial-clean",
    of="broker_impl.log.compaction:aborted_in",
    source="T-27, KAFKA-13727",
    kind="historic",
    symptom="G1a",
    schedule="There are more keys than the cleaner has room for, and transactions are aborted.",
    tier=2,
)
def aborted_in(known: Iterable[AbortedTransaction], end: Offset) -> Iterable[AbortedTransaction]:
    """A pass that had no room for more keys knows of what was aborted as far as it has read them.

    It copies whole segments. What was aborted behind that place, in the last of them, is copied,
    too, but the new index does not name it; and readers take for committed what no index names.
    """
    return (each for each in known if each.last_offset < end)


@mutant(
    "marker-removed-across-groups",
    of="broker_impl.log.compaction:carried",
    source="T-29, KAFKA-8351",
    kind="historic",
    symptom="G1a",
    schedule="A transaction that is aborted lies in several segments, which become several.",
    tier=2,
)
def carried(fates: Fates) -> Fates:
    """What is open where one copy ends is forgotten before the next.

    The rest of the transaction counts as committed, its marker as that of nothing. Segments that
    are copied so do not say that it was aborted, and after a while nothing does.
    """
    return Fates(fates._coming)


@mutant(
    "empty-control-batch-crash",
    of="broker_impl.log.transactions:decode_marker",
    source="T-42, KAFKA-7467",
    kind="historic",
    symptom="crash",
    schedule="Markers are older than delete.retention.ms, and a replica reads what they leave.",
    tier=3,
)
def decode_marker(data: Buffer) -> Marker | None:
    """Every control batch is thought to have a record.

    A marker of nothing goes after a while, and its batch stays empty where it is the last that a
    producer is known by. Whoever reads it then, a broker at its start, a follower, the cleaner
    itself, looks for its first record, and ends.
    """
    header, first = batch.parse_header(data), batch.records(data)[0]
    assert first.key is not None
    assert first.value is not None
    kind, coordinator_epoch = first.key[3], int.from_bytes(first.value[2:6], "big")
    if kind not in (ABORT, COMMIT):
        return None
    return Marker(header.producer_id, header.producer_epoch, kind == COMMIT, coordinator_epoch)


@mutant(
    "swap-recovery-deletes",
    of="broker_impl.log.swapping:counts",
    source="G18, KAFKA-6264, KAFKA-12520",
    kind="historic",
    symptom="lost-write",
    schedule="The power goes while a compacted segment takes the place of several.",
    tier=2,
)
def counts(name: str) -> bool:
    """What is left of an interrupted compaction is removed at start, whatever its name says.

    A copy that is called ``.swap`` may be all that there is: the segments that it was made of are
    removed before it gets its own name.
    """
    return False


@mutant(
    "compaction-after-policy-change",
    of="broker_impl.log.compaction:goes_on",
    source="H08, KAFKA-12840",
    kind="historic",
    symptom="invariant:compaction-as-configured",
    schedule="A topic loses compact from its cleanup.policy while its log is compacted.",
    tier=2,
)
def goes_on(config: LogConfig) -> bool:
    """A pass that has begun is brought to its end, whatever the topic's policy is by then.

    Whoever has taken ``compact`` away, to keep every record from now on, is told that it is done,
    and loses those that are not the last of their key.
    """
    return True


@mutant(
    "cleaner-drops-last-seq",
    of="broker_impl.log.compaction:is_last_of_producer",
    source="H07, KAFKA-5490, KAFKA-8335",
    kind="historic",
    symptom="duplicate",
    schedule="A produce has no answer, its records are replaced, a replica that was away fetches "
    "what is left, and is elected.",
    tier=2,
)
def is_last_of_producer(header: BatchHeader, entry: ProducerEntry | None) -> bool:
    """A batch goes with its last record, though its producer is known by it.

    Whoever reads the log from then on, a replica that was behind or a broker at its start, does not
    know how far that producer had come. The same batch, sent once more, is new to him.
    """
    return False
