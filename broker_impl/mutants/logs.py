"""Bugs in what is stored: recovery after crashes, segments, what may enter a log and leave it."""

import contextlib
from collections.abc import Sequence

from broker_impl.errors import StorageError
from broker_impl.log import manager
from broker_impl.log.config import LogConfig
from broker_impl.log.disk import Disk, DiskFile
from broker_impl.log.segment import Segment
from broker_impl.mutants import mutant
from broker_impl.wire.batch import BatchHeader
from broker_impl.wire.types import Buffer, Offset


@mutant(
    "index-trusted-after-crash",
    of="broker_impl.log.loading:is_trusted",
    source="G01",
    kind="mutation",
    symptom="crash",
    schedule="A broker loses power while it writes, and is started again.",
)
def is_trusted(clean: bool, end: Offset | None, recovery_point: Offset) -> bool:
    """What has indexes is taken as it lies, after a crash as after a clean end.

    Indexes and batches reach the disk in any order, pages in between not at all. An index then
    leads to where no batch begins, and a log ends within one, or is zeros somewhere: the broker
    trips over it when it starts, or, when it has not looked, once somebody reads there.
    """
    return True


@mutant(
    "clean-marker-survives-load-crash",
    of="broker_impl.log.manager:consume_clean_marker",
    source="G02, KAFKA-10471",
    kind="mutation",
    symptom="crash",
    schedule="A broker is stopped in order, started, loses power while it writes, and is started "
    "again.",
)
def consume_clean_marker(disk: Disk) -> bool:
    """The marker of a clean end stays when it has been read.

    It is to say of one end that it was clean. Kafka removed it only when all logs were loaded, and
    one that crashed before was taken for clean the next time; here it is never removed. What the
    crash has torn is not looked for, and nothing is cut: the log ends within a batch.
    """
    return disk.exists(manager.CLEAN_SHUTDOWN)


@mutant(
    "no-dir-fsync",
    of="broker_impl.log.loading:new_segment",
    source="G05, KAFKA-3968",
    kind="historic",
    symptom="lost-write",
    schedule="A log that syncs what it acknowledges begins a new segment, and the power goes.",
)
def new_segment(
    disk: Disk, directory: str, base_offset: Offset, config: LogConfig, now_ms: int
) -> Segment:
    """A new segment's file is synced, and the directory that has its name is not.

    Syncing a file saves its bytes. After a loss of power there may be none of that name: all that
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
    schedule="One bit of a produce is turned over on its way to a leader without followers.",
)
def is_intact(records: Buffer, header: BatchHeader) -> bool:
    """A leader appends what a producer sends without a look at its CRC.

    It is the only one who could have the producer send it again. A follower looks, and never gets
    past such a batch; where there is none, it is acknowledged. A consumer that looks is stuck
    there, and one that does not reads what nobody has written.
    """
    return True


@mutant(
    "recovery-point-jumps",
    of="broker_impl.log.loading:still_synced",
    source="G04, KAFKA-10101",
    kind="historic",
    symptom="lost-write",
    schedule="A broker is killed and started again, stopped in order, and then the power goes.",
    tier=2,
)
def still_synced(recovery_point: Offset, end_offset: Offset) -> Offset:
    """What was found sound after a crash counts as synced from then on.

    It was read, and perhaps from memory. Nobody syncs it any more, not even a broker that is
    stopped in order; and when the power has gone, the next recovery leaves it out, and takes
    segments for whole of which the disk has kept nothing.
    """
    return end_offset


@mutant(
    "partial-write-ignored",
    of="broker_impl.log.segment:write_whole",
    source="G15, KAFKA-17181",
    kind="historic",
    symptom="invariant:candidate-completeness",
    schedule="The disk of a follower is full for a moment; later it is killed and started again.",
    tier=2,
)
def write_whole(file: DiskFile, buffers: Sequence[Buffer]) -> None:
    """Nobody looks how much of a batch was written.

    A disk takes what it has room for, perhaps nothing. The replica counts what it did not store,
    acknowledges it, and goes on behind it. When it starts the next time, its log is torn there, and
    what is cut off it has given its word for: it may be elected without.
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
    """Nobody is given more bytes than he asks for, and a batch is given whole.

    A follower that asks for less than the next batch has is given nothing, and asks again. It gets
    no further, leaves the ISR, and without it nothing more is committed. Until Kafka 0.10.1 that
    was for operators to avoid.
    """
    return False


@mutant(
    "segment-deleted-above-hw",
    of="broker_impl.log.partition_log:is_committed",
    source="G06, KAFKA-5634",
    kind="historic",
    symptom="invariant:offsets-in-order",
    schedule="Retention looks at a leader whose followers are behind, and whose clock has jumped.",
    tier=2,
)
def is_committed(next_offset: Offset, high_watermark: Offset) -> bool:
    """Retention deletes what is old or too much, committed or not.

    The log then starts behind its own watermark. Followers that have yet to fetch what was deleted
    find nothing to go on with and start anew behind it; what comes out as committed nobody has.
    This broker looks at its own state after every event, and ends over it.
    """
    return True


@mutant(
    "keyless-on-compacted",
    of="broker_impl.log.validation:has_keys",
    source="H10, KAFKA-1755",
    kind="historic",
    symptom="lost-write",
    schedule="A record without a key is sent to a compacted topic.",
    tier=2,
)
def has_keys(records: Buffer) -> bool:
    """A compacted log takes records without a key, too.

    They are acknowledged and read like others until the cleaner comes to them. It keeps the last
    record of each key, and these are the last of none: it drops them, and tells nobody. Kafka's
    died of them at first.
    """
    return True


@mutant(
    "seq-wrap",
    of="broker_impl.log.producers:follows",
    source="D08, KAFKA-7692, KAFKA-7693",
    kind="historic",
    symptom="stuck-producer",
    schedule="A producer has sent 2³¹ records to a partition.",
    tier=2,
)
def follows(last: int, first: int) -> bool:
    """Sequence numbers are thought never to end.

    Behind the last one a producer begins with 0 again. To a leader that expects one more than the
    last that is a step back, which it refuses for ever.
    """
    return first == last + 1


@mutant(
    "unaligned-start-stuck",
    of="broker_impl.log.partition_log:may_start_within",
    source="G09, KAFKA-6975",
    kind="historic",
    symptom="stuck",
    tier=2,
    schedule="Records are deleted up to the midst of a batch, and a replica that was away has none "
    "of that batch.",
)
def may_start_within(start: Offset, end: Offset, header: BatchHeader) -> bool:
    """A log that is empty begins where it was told to, and with nothing before that.

    DeleteRecords may let a log begin in the midst of a batch, which the leader can only send as a
    whole. The follower refuses it, as it does not continue its log, and asks for it again, for
    ever; it is never in sync any more, and one more replica lost is one too many.
    """
    return False
