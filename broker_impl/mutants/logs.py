"""Bugs in storage: crash recovery, segments, and what a log accepts and deletes."""

import contextlib
from collections.abc import Iterable, Sequence

from broker_impl.errors import StorageError
from broker_impl.log import directory as directories
from broker_impl.log.aborted_index import AbortedTransaction
from broker_impl.log.config import LogConfig
from broker_impl.log.disk import Disk, DiskFile
from broker_impl.log.segment import Segment
from broker_impl.mutants import mutant
from broker_impl.wire.batch import NONE, BatchHeader, Record, parse_header
from broker_impl.wire.types import Buffer, Offset


@mutant(
    "index-trusted-after-crash",
    of="broker_impl.log.loading:is_trusted",
    source="G01",
    kind="mutation",
    symptom="crash",
    schedule="A broker loses power while it writes, and is restarted.",
)
def is_trusted(clean: bool, end: Offset | None, recovery_point: Offset) -> bool:
    """A segment that has indexes is trusted, after a crash as after a clean shutdown.

    Indexes and batches reach the disk in any order, and some pages not at all. An index may then
    point to where no batch begins, and a log may end within a batch or contain zeros: the broker
    crashes on it when it starts or, if it did not look there, when the place is read.
    """
    return True


@mutant(
    "clean-marker-survives-load-crash",
    of="broker_impl.log.directory:consume_clean_marker",
    source="G02, KAFKA-10471",
    kind="mutation",
    symptom="crash",
    schedule="A broker is shut down cleanly and restarted, loses power while it writes, and is "
    "restarted again.",
)
def consume_clean_marker(disk: Disk) -> bool:
    """The marker of a clean shutdown is not removed when the broker has read it.

    It must stand for one shutdown only. Kafka removed it once all logs were loaded, so a broker
    that crashed before that was taken for clean the next time; here it is never removed. What the
    crash has torn is not looked for and not truncated: the log ends within a batch.
    """
    return disk.exists(directories.CLEAN_SHUTDOWN)


@mutant(
    "no-dir-fsync",
    of="broker_impl.log.loading:new_segment",
    source="G05, KAFKA-3968",
    kind="historic",
    symptom="lost-write",
    schedule="A log that syncs before it acknowledges rolls a new segment, and power is lost.",
)
def new_segment(
    disk: Disk, directory: str, base_offset: Offset, config: LogConfig, now_ms: int
) -> Segment:
    """A new segment's file is synced, but the directory that contains its name is not.

    Syncing a file saves its bytes. After a power loss the directory may have no such name: all that
    was written to the segment, synced or not, is gone at once.
    """
    segment = Segment(disk, directory, base_offset, config, now_ms)
    segment.begin()
    return segment


@mutant(
    "crc-unchecked-on-produce",
    of="broker_impl.log.validation:is_intact",
    source="G20",
    kind="mutation",
    symptom="phantom",
    schedule="One bit of a produce request is flipped on its way to a leader without followers.",
)
def is_intact(records: Buffer, header: BatchHeader) -> bool:
    """A leader appends what a producer sends without checking its CRC.

    Only the leader could make the producer send the batch again. A follower checks the CRC and
    never gets past such a batch; without followers, the batch is acknowledged. A consumer that
    checks CRCs is stuck there, and one that does not reads bytes that no producer wrote.
    """
    return True


@mutant(
    "recovery-point-jumps",
    of="broker_impl.log.loading:still_synced",
    source="G04, KAFKA-10101",
    kind="historic",
    symptom="invariant:log-in-order",
    schedule="A broker is killed and restarted, shut down cleanly, and then power is lost.",
    tier=2,
)
def still_synced(recovery_point: Offset, end_offset: Offset) -> Offset:
    """After recovery from a crash, all records that it found intact count as synced.

    Recovery may have read them from the page cache. They are never synced again, not even at a
    clean shutdown; after a power loss, the next recovery skips these segments and takes them for
    intact, although the disk has kept none of their bytes.
    """
    return end_offset


@mutant(
    "partial-write-ignored",
    of="broker_impl.log.segment:write_whole",
    source="G15, KAFKA-17181",
    kind="historic",
    symptom="invariant:log-in-order",
    schedule="The disk of a follower is full for a moment; later the follower is killed and "
    "restarted.",
    tier=2,
)
def write_whole(file: DiskFile, buffers: Sequence[Buffer]) -> None:
    """A write to a log ignores how many bytes the disk took.

    A full disk takes what it has room for, perhaps nothing. The replica counts a batch that it did
    not store, acknowledges it, and continues after it. At the next start its log is torn there, and
    recovery truncates what the replica has acknowledged: it may be elected without those records.
    """
    with contextlib.suppress(StorageError):
        file.append(buffers)


@mutant(
    "oversize-first-batch-empty",
    of="broker_impl.api.fetch:owes_a_batch",
    source="G14, KIP-74",
    kind="mutation",
    symptom="stuck",
    schedule="A batch is larger than replica.fetch.max.bytes.",
)
def owes_a_batch(bytes_read: int) -> bool:
    """A fetch never returns more bytes than it asks for, and batches are not split.

    A follower whose limit is smaller than the next batch gets an empty answer and asks again. It
    makes no progress and leaves the ISR, and without it nothing more is committed. Until Kafka
    0.10.1 operators had to avoid this by configuration.
    """
    return False


@mutant(
    "segment-deleted-above-hw",
    of="broker_impl.log.retention:is_committed",
    source="G06, KAFKA-5634",
    kind="historic",
    symptom="invariant:offsets-in-order",
    schedule="Retention runs on a leader whose followers lag and whose clock has jumped.",
    tier=2,
)
def is_committed(next_offset: Offset, high_watermark: Offset) -> bool:
    """Retention deletes segments that are too old or exceed the size limit, committed or not.

    The log then starts after its own high watermark. Followers that have not fetched the deleted
    records cannot continue and start over after them; no replica holds what counts as committed.
    This broker checks its own state after every event, and exits because of it.
    """
    return True


@mutant(
    "last-record-never-expires",
    of="broker_impl.log.retention:is_committed",
    source="KIP-33",
    kind="mutation",
    symptom="invariant:retained-as-configured",
    schedule="A topic with retention.ms gets no more records.",
)
def is_committed_later(next_offset: Offset, high_watermark: Offset) -> bool:
    """A segment is committed once a record after it is.

    The last records of a topic stay until another one is sent: what must be deleted after some time
    by law, for example, is kept for as long as the topic is idle.
    """
    return next_offset < high_watermark


@mutant(
    "retention-below-its-bytes",
    of="broker_impl.log.retention:is_surplus",
    source="KAFKA-70",
    kind="mutation",
    symptom="invariant:retained-as-configured",
    schedule="A log is somewhat larger than retention.bytes.",
)
def is_surplus(segment_bytes: int, surplus_bytes: int) -> bool:
    """The first segment is deleted as soon as the log is larger than retention.bytes.

    The log then has less than retention.bytes, by up to a segment: a consumer that lags by fewer
    bytes than the topic is to keep skips records.
    """
    return surplus_bytes > 0


@mutant(
    "retention-by-age-of-segment",
    of="broker_impl.log.retention:age_ms",
    source="KIP-33",
    kind="mutation",
    symptom="invariant:retained-as-configured",
    schedule="A segment was begun longer ago than retention.ms, and has younger records.",
)
def age_ms(segment: Segment, now_ms: int) -> int:
    """A segment is as old as its file: its newest records go with its oldest ones.

    A topic with little traffic has segments of which each spans more time than retention.ms. A
    record that is appended at their end is deleted soon after it was acknowledged.
    """
    return now_ms - segment.begun_ms


@mutant(
    "keyless-on-compacted",
    of="broker_impl.log.validation:has_keys",
    source="H10, KAFKA-1755",
    kind="historic",
    symptom="lost-write",
    schedule="A record without a key is sent to a compacted topic.",
    tier=2,
)
def has_keys(records: Iterable[Record]) -> bool:
    """A compacted log accepts records without a key, too.

    They are acknowledged and read like others until the cleaner reaches them. It keeps the last
    record of each key, and a record without a key is never one: the cleaner drops it silently.
    Kafka's cleaner at first died of such records.
    """
    return True


@mutant(
    "seq-wrap",
    of="broker_impl.log.producers:follows",
    source="D08, KAFKA-7692, KAFKA-7693",
    kind="historic",
    symptom="stuck-producer",
    schedule="A producer sends more than 2³¹ records to a partition.",
    tier=2,
)
def follows(last: int, first: int) -> bool:
    """Sequence numbers are expected never to wrap around.

    After the last number a producer begins with 0 again. A leader that expects the last number plus
    one takes that for a step back and rejects it forever.
    """
    return first == last + 1


@mutant(
    "unaligned-start-stuck",
    of="broker_impl.log.appending:may_start_within",
    source="G09, KAFKA-6975",
    kind="historic",
    symptom="stuck",
    tier=2,
    schedule="Records are deleted up to the middle of a batch, and a replica that was down has "
    "no record of that batch.",
)
def may_start_within(start: Offset, end: Offset, header: BatchHeader) -> bool:
    """An empty log starts exactly at its given start offset and accepts no earlier record.

    DeleteRecords may make a log start in the middle of a batch, which the leader can only send as a
    whole. The follower rejects the batch, as it does not continue its log, and fetches it again,
    forever. It never becomes in sync, so the partition tolerates one failure less.
    """
    return False


@mutant(
    "append-time-not-written",
    of="broker_impl.wire.batch:stamp",
    source="KIP-32",
    kind="mutation",
    symptom="invariant:acknowledged-as-stored",
    schedule="A producer writes to a topic with message.timestamp.type=LogAppendTime.",
)
def stamp(head: bytearray, rest: Buffer, log_append_time_ms: int) -> BatchHeader:
    """A batch keeps its producer's times in a log whose times are those of the leader.

    Retention and offsets by time then depend on the clocks of the producers.
    """
    return parse_header(head)


@mutant(
    "uncompressed-stays",
    of="broker_impl.log.validation:codec",
    source="KIP-110",
    kind="mutation",
    symptom="invariant:acknowledged-as-stored",
    schedule="A producer without compression writes to a topic with compression.type=gzip.",
)
def codec(sent: BatchHeader, config: LogConfig) -> int:
    """Only batches that are compressed are compressed again with the topic's codec.

    A topic whose operators ask for compression keeps the batches of most producers, which compress
    nothing by default, as they are: it takes several times the space, unnoticed.
    """
    if config.compression is None or sent.compression == NONE:
        return sent.compression
    return config.compression


@mutant(
    "aborted-survive-truncation",
    of="broker_impl.log.aborted_index:is_kept",
    source="KIP-98",
    kind="mutation",
    symptom="invariant:same-after-kill",
    schedule="A leader appends the marker of an aborted transaction, which no follower has got, "
    "and is replaced.",
)
def is_kept(entry: AbortedTransaction, end: Offset) -> bool:
    """A truncation leaves the index of aborted transactions as it is.

    The transaction's marker is gone, and its coordinator writes it again. Until then, and in what
    the producer id writes at these offsets, readers skip records by the former entry.
    """
    return True


@mutant(
    "times-survive-truncation",
    of="broker_impl.log.indexes:first_cut",
    source="KIP-33",
    kind="mutation",
    symptom="invariant:same-after-kill",
    schedule="A leader that is cut off from its followers appends records, and is replaced.",
)
def first_cut(next_offset: Offset, base_offset: Offset) -> int:
    """A truncation leaves the time index as it is.

    The largest timestamp of the segment is one of a record that is gone. Retention by time keeps
    the segment for too long, and a search by time looks for records in it in vain.
    """
    return 1 << 31


@mutant(
    "places-survive-truncation",
    of="broker_impl.log.segment:placed_before",
    source="R6",
    kind="mutation",
    symptom="invariant:same-after-kill",
    schedule="A leader that is cut off from its followers appends records, and is replaced.",
)
def placed_before(size: int, places: dict[Offset, int]) -> dict[Offset, int]:
    """A segment remembers where batches were in its file, also those that are truncated.

    A read from such an offset begins within another batch, or at the wrong one.
    """
    return places
