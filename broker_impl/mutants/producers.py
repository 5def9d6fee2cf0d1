"""Bugs in the idempotent producer's state."""

from collections.abc import Callable, Sequence

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.log.disk import Disk
from broker_impl.log.producers import BatchMetadata, ProducerEntry, ProducerStates
from broker_impl.log.segment import Segment
from broker_impl.log.snapshots import Snapshots
from broker_impl.mutants import mutant
from broker_impl.wire.batch import BatchHeader, sequence_after
from broker_impl.wire.types import Offset


@mutant(
    "pstate-not-replicated",
    of="broker_impl.log.producers:folds_replicated_batches",
    source="D01, KIP-98",
    kind="mutation",
    symptom="duplicate",
    schedule="The answer to a produce is lost, the leader is killed, and the client tries again at "
    "the next leader.",
)
def folds_replicated_batches() -> bool:
    """A follower appends what it fetches and does not remember whose it was.

    Once it leads, it knows no producer. The first batch that it is sent again, because the former
    leader died before it could answer, looks new and is appended a second time.
    """
    return False


@mutant(
    "pstate-lost-on-restart",
    of="broker_impl.log.loading:replay",
    source="D02, KIP-98",
    kind="mutation",
    symptom="duplicate",
    schedule="The answer to a produce is lost, the only replica is killed and started again, and "
    "the client tries again.",
)
def replay(snapshots: Snapshots, segments: list[Segment], now_ms: int) -> ProducerStates:
    """A broker that starts knows no producers: neither a snapshot nor the log is read for them.

    What it appended in its former life it takes for new when it is sent again, because the answer
    was lost with that life. Another replica would have remembered; here there is none.
    """
    return ProducerStates()


@mutant(
    "dup-window-one",
    of="broker_impl.log.producers:check_sequence",
    source="D06, KAFKA-5494",
    kind="mutation",
    symptom="duplicate",
    schedule="A produce is kept on its way until its sender has sent it again and something after.",
)
def check_sequence(entry: ProducerEntry | None, header: BatchHeader) -> BatchMetadata | None:
    """A producer's last batch is remembered, and what lies before it is taken for new.

    A client has up to five requests under way, and networks deliver one that was given up long
    after its second attempt. Kafka 0.11 remembered as little and refused the rest, so that clients
    could have only one request under way; who takes the rest has it twice.
    """
    if entry is None or header.producer_epoch > entry.epoch:
        return None
    if header.producer_epoch == entry.epoch and entry.batches:
        last = entry.batches[-1]
        if (header.base_sequence, header.last_sequence) == (
            last.first_sequence,
            last.last_sequence,
        ):
            return last
        if header.base_sequence <= sequence_after(last.last_sequence, 1):
            return None
    raise ApiError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "a gap, or an epoch that is over")


@mutant(
    "seq-gap-accepted",
    of="broker_impl.log.producers:follows",
    source="D07, KIP-98",
    kind="mutation",
    symptom="duplicate",
    schedule="A produce is kept on its way until its sender has sent it again and far more than "
    "five batches after it.",
)
def follows(last: int, first: int) -> bool:
    """Sequence numbers are looked at to know the last batches again, and not for their order.

    What does not follow the last batch is appended all the same. Across a gap later records come to
    lie in front of earlier ones, once these arrive, or without them for ever. And a step back is a
    batch that is in the log, and was sent so long ago that nobody remembers: it is there twice.
    """
    return True


@mutant(
    "pstate-expired-by-data-ts",
    of="broker_impl.log.producers:silent_since_ms",
    source="D12, KAFKA-9144",
    kind="historic",
    symptom="duplicate",
    schedule="A broker's clock is ahead of its clients' by more than producer.id.expiration.ms, "
    "and an answer to a produce is lost.",
)
def silent_since_ms(entry: ProducerEntry) -> int:
    """A producer counts as silent since the time that its last records bear.

    That is its own clock's, or whatever its application says: whoever copies old records bears old
    times while it sends. It is forgotten in the midst of its work, and what it sends again, because
    an answer was lost, looks new.
    """
    return entry.batches[-1].timestamp_ms if entry.batches else 0


@mutant(
    "open-transactions-not-stored",
    of="broker_impl.log.producers:stored_start",
    source="T1, KIP-98",
    kind="mutation",
    symptom="G1a",
    schedule="A leader is shut down and started again while a transaction is open, which is "
    "aborted then.",
)
def stored_start(start: Offset | None) -> Offset:
    """A snapshot has every producer's numbers, and not whether a transaction is open.

    A broker that was shut down in good order begins with that alone. Readers get what is open at
    once; and when it is aborted nothing was there to be aborted, so that nobody is ever told.
    """
    return -1


@mutant(
    "pstate-snapshot-ahead",
    of="broker_impl.log.producers:remembered",
    source="D03, KAFKA-6683",
    kind="historic",
    symptom="lost-write",
    schedule="Power is lost between the snapshot with which a segment begins and its first batch, "
    "and the batch is sent again.",
    tier=2,
)
def remembered(write: Callable[[], None], remember: Callable[[], None]) -> None:
    """A batch is remembered before it is written.

    When it is the first of a segment, the snapshot that is taken there knows of it, and is synced
    at once. If the batch is not stored then, its producer sends it again, and is told that it is
    in the log already.
    """
    remember()
    write()


@mutant(
    "pstate-snapshot-unsynced",
    of="broker_impl.log.snapshots:store",
    source="D04, KAFKA-9892",
    kind="historic",
    symptom="invariant:producer-state",
    schedule="Records of a producer are deleted with their segments, and the power goes.",
    tier=2,
)
def store(disk: Disk, path: str, data: bytes) -> None:
    """A snapshot of the producers is written, and left to the system to sync.

    As long as the log holds their records a lost one is made up for. Of who has written nothing
    since, and whose records were deleted, only the snapshot told: what such a producer sends again
    is taken for new.
    """
    file = disk.open(path, create=True)
    file.truncate(0)
    file.append([data])
    file.close()


@mutant(
    "follower-validates-seq",
    of="broker_impl.log.producers:copied",
    source="D11, KAFKA-6003",
    kind="historic",
    symptom="stuck",
    schedule="A follower has forgotten a producer that was silent, its leader has not, and the "
    "producer goes on.",
    tier=2,
)
def copied(
    states: ProducerStates,
    headers: Sequence[BatchHeader],
    write: Callable[[], None],
    remember: Callable[[], None],
) -> None:
    """A follower looks at sequence numbers, as if a producer had sent it what it fetches.

    It may know less than its leader: each forgets silent producers by its own clock. What it takes
    for a gap it cannot refuse to anybody, only not fetch; it asks for the same batch for ever.
    """
    known = set(states.entries)
    for header in headers:
        if header.producer_id >= 0 and header.producer_id not in known and header.base_sequence > 0:
            raise ApiError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "an unknown producer")
        known.add(header.producer_id)
    write()
    remember()
