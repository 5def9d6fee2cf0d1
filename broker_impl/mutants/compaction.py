"""Bugs in log compaction: which records count as replaced, and what is removed with them."""

from collections.abc import Iterable, Sequence

from broker_impl.log import compaction
from broker_impl.log.aborted_index import ABORT, COMMIT, AbortedTransaction, Marker
from broker_impl.log.compaction import Fates
from broker_impl.log.config import LogConfig
from broker_impl.log.epochs import EpochStart
from broker_impl.log.producers import ProducerEntry
from broker_impl.mutants import mutant
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record
from broker_impl.wire.types import Buffer, Offset

_with_only = batch.with_only


@mutant(
    "tombstone-early",
    of="broker_impl.log.compaction:may_go",
    source="H01, KAFKA-4529",
    kind="historic",
    symptom="lost-write",
    schedule="A key is deleted, and its log compacted.",
)
def may_go(horizon_ms: int | None, now_ms: int) -> bool:
    """The first compaction pass that meets a tombstone removes it along with the deleted value.

    A consumer that has read the value before, and reaches the tombstone's offset afterwards, finds
    nothing there and keeps the deleted value; so does a replica that fetches late. Kafka once used
    the modification time of a segment's file, which compaction itself may set.
    """
    return True


@mutant(
    "delete-horizon-renewed",
    of="broker_impl.log.compaction:delete_horizon",
    source="KAFKA-8522, KIP-534",
    kind="historic",
    symptom="invariant:compaction-as-configured",
    schedule="A log with tombstones is compacted again within delete.retention.ms.",
)
def delete_horizon(known: int | None, now_ms: int, retention_ms: int) -> int:
    """Each compaction pass gives the tombstones that it meets another delete.retention.ms.

    A log that is compacted more often than that keeps its tombstones for ever, and each pass reads
    and copies them again. So does a topic of which most keys are deleted soon, such as one of
    sessions. Kafka had this bug until 3.1: a pass renewed the time of the segment's file.
    """
    return now_ms + retention_ms


@mutant(
    "delete-horizon-shifts-times",
    of="broker_impl.wire.batch:with_only",
    source="KIP-534",
    kind="mutation",
    symptom="invariant:compacted-to-latest",
    schedule="A batch with a tombstone is compacted.",
)
def with_only(
    header: BatchHeader, records: Sequence[Record], *, delete_horizon_ms: int | None = None
) -> bytes:
    """A batch that is given a delete horizon has its records at and after that time.

    The horizon is stored where the base timestamp was, to which the timestamps of the records are
    relative; they are not computed again. A search by time no longer finds the records, and
    readers take them for records of tomorrow.
    """
    if delete_horizon_ms is not None and records:
        shift = delete_horizon_ms - records[0].timestamp_ms
        records = [each._replace(timestamp_ms=each.timestamp_ms + shift) for each in records]
    return _with_only(header, records, delete_horizon_ms=delete_horizon_ms)


@mutant(
    "compact-past-lso",
    of="broker_impl.log.compaction:limit",
    source="H04",
    kind="mutation",
    symptom="lost-write",
    schedule="A transaction is open across two segments, and is aborted.",
)
def limit(high_watermark: Offset, last_stable_offset: Offset) -> Offset:
    """Records up to the high watermark may be compacted, even if their transaction is still open.

    A record of an open transaction counts as the last of its record key, and the one before it is
    removed. When the transaction is aborted, consumers get neither.
    """
    return high_watermark


@mutant(
    "marker-removed-by-key",
    of="broker_impl.log.compaction:has_keys",
    source="T-28, KAFKA-14055",
    kind="historic",
    symptom="lost-write",
    schedule="Transactions are committed and aborted, and the log that holds them is compacted.",
)
def has_keys(header: BatchHeader) -> bool:
    """A marker is compacted like any other record, with its version and type as its record key.

    Of all commit markers in a log only the last one stays, and of all abort markers likewise; or
    none, if a user's key is the same four bytes. A transaction without its marker continues into
    the producer's next one and gets that one's outcome.
    """
    return True


@mutant(
    "txn-index-after-partial-clean",
    of="broker_impl.log.compaction:aborted_in",
    source="T-27, KAFKA-13727",
    kind="historic",
    symptom="G1a",
    schedule="The cleaner's buffer is too small for all keys, and transactions are aborted.",
    tier=2,
)
def aborted_in(known: Iterable[AbortedTransaction], end: Offset) -> Iterable[AbortedTransaction]:
    """A pass whose key map is full knows aborted transactions only up to where it has read keys.

    It copies whole segments. Aborted records after that offset, in the last of them, are copied
    too, but the new index does not list their transactions, and consumers take what no index lists
    for committed.
    """
    return (each for each in known if each.last_offset < end)


@mutant(
    "marker-removed-across-groups",
    of="broker_impl.log.compaction:carried",
    source="T-29, KAFKA-8351",
    kind="historic",
    symptom="G1a",
    schedule="The records of an aborted transaction span several segments, which the "
    "cleaner writes into several new ones.",
    tier=2,
)
def carried(fates: Fates) -> Fates:
    """The state of open transactions is dropped between one copied group of segments and the next.

    The rest of the transaction counts as committed, and its marker as one without a transaction.
    The new segments do not record that it was aborted, and once the marker is removed nothing does.
    """
    return Fates(fates._coming)


@mutant(
    "empty-control-batch-crash",
    of="broker_impl.log.aborted_index:decode_marker",
    source="T-42, KAFKA-7467",
    kind="historic",
    symptom="crash",
    schedule="Transaction markers get older than delete.retention.ms, and a replica fetches the "
    "log that was compacted since.",
    tier=3,
)
def decode_marker(data: Buffer) -> Marker | None:
    """The decoder expects every control batch to hold a record.

    A marker without a transaction is removed after a while, but its batch stays, empty, if it is
    the last one of its producer. A starting broker, a follower or the cleaner itself that reads the
    batch then looks for its first record and crashes.
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
    of="broker_impl.log.segment_swap:counts",
    source="G18, KAFKA-6264, KAFKA-12520",
    kind="historic",
    symptom="lost-write",
    schedule="Power is lost while a compacted segment replaces several older segments.",
    tier=2,
)
def counts(name: str) -> bool:
    """At start, a log removes all files of an interrupted compaction, even ``.swap`` files.

    A copy that is called ``.swap`` may be the only one left: the segments that it replaces are
    removed before it gets its own name.
    """
    return False


@mutant(
    "compaction-after-policy-change",
    of="broker_impl.log.compaction:goes_on",
    source="H08, KAFKA-12840",
    kind="historic",
    symptom="invariant:compaction-as-configured",
    schedule="The policy `compact` is removed from a topic's cleanup.policy while its log is being "
    "compacted.",
    tier=2,
)
def goes_on(config: LogConfig) -> bool:
    """A compaction pass runs to its end even if the topic's policy has changed meanwhile.

    If an operator removes ``compact``, to keep every record from then on, the change succeeds, and
    all records that are not the last of their record key are still lost.
    """
    return True


@mutant(
    "compaction-before-lag",
    of="broker_impl.log.compaction:has_lagged",
    source="KIP-58",
    kind="mutation",
    symptom="invariant:compaction-as-configured",
    schedule="Segments of a topic with min.compaction.lag.ms are closed soon after they are "
    "written.",
)
def has_lagged(newest_ms: int, now_ms: int, lag_ms: int) -> bool:
    """Records are compacted at once, also those that min.compaction.lag.ms keeps for a time.

    A consumer that has not yet read them, but is within the lag, does not get all of them.
    """
    return True


@mutant(
    "cleaner-drops-last-seq",
    of="broker_impl.log.compaction:is_last_of_producer",
    source="H07, KAFKA-5490, KAFKA-8335",
    kind="historic",
    symptom="duplicate",
    schedule="A produce request gets no response and its records are overwritten; a replica that "
    "was down fetches the rest of the log and is elected.",
    tier=2,
)
def is_last_of_producer(header: BatchHeader, entry: ProducerEntry | None) -> bool:
    """A batch is removed with its last record, even if it is the last one of its producer.

    A replica that was behind, or a broker at its start, reads the log from then on without learning
    how far that producer had come. When the producer sends the batch again, it looks new.
    """
    return False


@mutant(
    "full-key-map-drops",
    of="broker_impl.log.compaction:keeps",
    source="KIP-58",
    kind="mutation",
    symptom="invariant:compacted-to-latest",
    schedule="A log has more new keys than a pass of the cleaner has room for.",
)
def keeps(record: Record, last: Offset, horizon_ms: int | None, now_ms: int) -> bool:
    """A record stays if the pass has read it as the last of its key, and not otherwise.

    A pass reads keys until its map is full (log.cleaner.dedupe.buffer.size), and may copy a segment
    of which it has not read the end: the records there are removed, the last ones of their keys.
    """
    if record.key is None or record.offset != last:
        return False
    return record.value is not None or not compaction.may_go(horizon_ms, now_ms)


@mutant(
    "key-map-skips-committed",
    of="broker_impl.log.compaction:not_ended_before",
    source="finding 39; KAFKA-8351 is related",
    kind="historic",
    symptom="invariant:compacted-to-latest",
    schedule="A producer aborts a transaction, the log is compacted, the producer commits its next "
    "one, and the log is compacted again.",
)
def not_ended_before(
    known: Iterable[AbortedTransaction], start: Offset
) -> Iterable[AbortedTransaction]:
    """A pass that reads new keys takes every aborted transaction of the log into account.

    It never reads the markers of those that an earlier pass has read, so the next transaction of
    each of their producers counts as aborted, and the records that it replaces stay. If it deletes
    a key, the tombstone is removed after delete.retention.ms, and the key has its former value
    again.
    """
    return known


@mutant(
    "epoch-removed-by-compaction",
    of="broker_impl.log.compaction:begins_epoch",
    source="finding 38; KIP-279 is related",
    kind="historic",
    symptom="invariant:truncation-below-hw",
    schedule="All records of a leader epoch are replaced, a new replica copies the compacted log "
    "and leads, and a replica that has the epoch as its last one follows.",
    tier=2,
    is_planned=False,
)
def begins_epoch(header: BatchHeader, epochs: Sequence[EpochStart]) -> bool:
    """The first batch of an epoch is removed with its last record.

    A replica that copies the log then does not know the epoch. As the leader it names an earlier
    one, and a follower that has the epoch truncates its log to the end of that, below its high
    watermark.
    """
    return False
