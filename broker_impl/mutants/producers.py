"""Bugs in the state that a log keeps about idempotent producers."""

from collections.abc import Callable, Mapping, Sequence

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.log.disk import Disk
from broker_impl.log.producers import BatchMetadata, ProducerEntry, ProducerStates
from broker_impl.log.segment import Segment
from broker_impl.log.snapshots import Snapshots
from broker_impl.mutants import mutant
from broker_impl.wire.batch import BatchHeader, sequence_after
from broker_impl.wire.types import Epoch, Offset


@mutant(
    "pstate-not-replicated",
    of="broker_impl.log.producers:folds_replicated_batches",
    source="D01, KIP-98",
    kind="mutation",
    symptom="duplicate",
    schedule="The response to a produce request is lost, the leader is killed, and the client "
    "retries at the next leader.",
)
def folds_replicated_batches() -> bool:
    """A follower appends fetched batches without recording them in its producer state.

    When it becomes the leader, it knows no producer. The first batch that a producer sends again,
    because the former leader died before it could answer, looks new and is appended a second time.
    """
    return False


@mutant(
    "pstate-lost-on-restart",
    of="broker_impl.log.loading:replay",
    source="D02, KIP-98",
    kind="mutation",
    symptom="duplicate",
    schedule="The response to a produce request is lost, the only replica is killed and "
    "restarted, and the client retries.",
)
def replay(snapshots: Snapshots, segments: list[Segment], now_ms: int) -> ProducerStates:
    """A broker starts without producer state: it loads no snapshot and does not replay the log.

    A batch that it appended before the restart, and whose answer was lost in the crash, looks new
    when the producer sends it again. Another replica would have kept the state; here there is none.
    """
    return ProducerStates()


@mutant(
    "dup-window-one",
    of="broker_impl.log.producers:check_sequence",
    source="D06, KAFKA-5494",
    kind="mutation",
    symptom="duplicate",
    schedule="A produce request is delayed until its producer has retried it and sent another.",
)
def check_sequence(entry: ProducerEntry | None, header: BatchHeader) -> BatchMetadata | None:
    """A leader remembers only a producer's last batch and takes any earlier batch for a new one.

    A client has up to five requests in flight, and a network can deliver a request that the client
    gave up long after the client's second attempt. Kafka 0.11 remembered as little and rejected all
    other batches, so that clients were limited to one request in flight. A leader that accepts them
    instead appends them twice.
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
    raise ApiError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        "a gap, or an epoch that is over",
    )


@mutant(
    "seq-gap-accepted",
    of="broker_impl.log.producers:follows",
    source="D07, KIP-98",
    kind="mutation",
    symptom="duplicate",
    schedule="A produce request is delayed until its producer has retried it and sent many more "
    "than five later batches.",
)
def follows(last: int, first: int) -> bool:
    """A leader compares sequence numbers to recognize recent batches, but not to check their order.

    A batch that does not follow the last one is appended all the same. After a gap, later records
    come before earlier ones if those still arrive, or the earlier ones are missing forever. A step
    back in the sequence is a batch that is already in the log, sent so long ago that it is no
    longer among the remembered batches: it is appended twice.
    """
    return True


@mutant(
    "pstate-expired-by-data-ts",
    of="broker_impl.log.producers:silent_since_ms",
    source="D12, KAFKA-9144",
    kind="historic",
    symptom="duplicate",
    schedule="The broker's clock is ahead of its clients' clocks by more than "
    "producer.id.expiration.ms, and the response to a produce request is lost.",
)
def silent_since_ms(entry: ProducerEntry) -> int:
    """A producer counts as silent since the timestamp of its last records.

    That timestamp comes from the producer's clock or from its application: a program that copies
    old records sends old timestamps. The producer's state expires while the producer is still
    sending, and a batch that it sends again, because an answer was lost, looks new.
    """
    return entry.batches[-1].timestamp_ms if entry.batches else 0


@mutant(
    "producer-expired-in-transaction",
    of="broker_impl.log.producers:may_expire",
    source="T1, KIP-98",
    kind="mutation",
    symptom="G1a",
    schedule="A transaction is open for longer than producer.id.expiration.ms, and is then "
    "aborted.",
)
def may_expire(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    """A producer that was silent for long enough is removed, also with a transaction open.

    A transaction may be open for as long as its own timeout, without a batch in each partition.
    When its marker arrives, the log does not know where the transaction has begun. If it is
    aborted, no fetch response lists it, and readers take its records for committed.
    """
    return now_ms - entry.seen_ms >= expiration_ms


@mutant(
    "open-transactions-not-stored",
    of="broker_impl.log.producers:stored_start",
    source="T1, KIP-98",
    kind="mutation",
    symptom="G1a",
    schedule="A leader is shut down and restarted while a transaction is open, which is then "
    "aborted.",
)
def stored_start(start: Offset | None) -> Offset:
    """A snapshot holds each producer's sequence numbers, but not the start of its open transaction.

    A broker that was shut down cleanly starts from that snapshot alone. Readers get the records of
    the open transaction at once. When the transaction is aborted later, the broker knows of no
    transaction to abort, so no reader ever learns that its records are aborted.
    """
    return -1


@mutant(
    "coordinator-epoch-not-stored",
    of="broker_impl.log.producers:stored_coordinator",
    source="KIP-98",
    kind="mutation",
    symptom="invariant:same-after-kill",
    schedule="A segment is closed and synced after a transaction has ended.",
)
def stored_coordinator(epoch: Epoch) -> Epoch:
    """A snapshot does not hold the coordinator epoch of each producer's last marker.

    After a start from that snapshot, the log accepts the marker of an earlier coordinator, which
    may have decided otherwise than the current one.
    """
    return -1


@mutant(
    "pstate-snapshot-ahead",
    of="broker_impl.log.producers:remembered",
    source="D03, KAFKA-6683",
    kind="historic",
    symptom="lost-write",
    schedule="Power is lost between the snapshot at the start of a segment and the first batch "
    "of that segment, and the batch is sent again.",
    tier=2,
)
def remembered(write: Callable[[], None], remember: Callable[[], None]) -> None:
    """A leader adds a batch to the producer state before it writes the batch.

    If the batch is the first of a segment, the snapshot that is taken at that segment's start
    includes the batch, and the snapshot is synced at once. If the batch is then not stored, its
    producer sends it again, and the leader answers that the batch is already in the log.
    """
    remember()
    write()


@mutant(
    "pstate-snapshot-unsynced",
    of="broker_impl.log.snapshots:store",
    source="D04, KAFKA-9892",
    kind="historic",
    symptom="invariant:producer-state",
    schedule="Records of a producer are deleted with their segments, and power is lost.",
    tier=2,
)
def store(disk: Disk, path: str, data: bytes) -> None:
    """A snapshot of the producer state is written but not synced.

    As long as the log holds the producers' records, a lost snapshot is rebuilt from them. For a
    producer that has been silent since, and whose records were deleted, the snapshot is the only
    source: what such a producer sends again is taken for new.
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
    schedule="A follower has expired the state of an idle producer, its leader has not, and the "
    "producer sends again.",
    tier=2,
)
def copied(
    states: ProducerStates,
    headers: Sequence[BatchHeader],
    write: Callable[[], None],
    remember: Callable[[], None],
) -> None:
    """A follower checks sequence numbers of fetched batches, as a leader does on produce.

    The follower may know fewer producers than its leader, because each expires silent producers by
    its own clock. It cannot reject a supposed gap to any producer; it can only fail to append the
    batch, so it fetches the same batch forever.
    """
    known = set(states.entries)
    for header in headers:
        if header.producer_id >= 0 and header.producer_id not in known and header.base_sequence > 0:
            raise ApiError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "an unknown producer")
        known.add(header.producer_id)
    write()
    remember()


@mutant(
    "open-transactions-unsorted",
    of="broker_impl.log.producers:open_transactions",
    source="T1, KIP-98",
    kind="mutation",
    symptom="invariant:read-as-stored",
    schedule="A broker restarts while two transactions are open, of which the second one to begin "
    "is that of the producer that is known for longer.",
)
def open_transactions(entries: Mapping[int, ProducerEntry]) -> dict[int, Offset]:
    """After a start, the transaction of the first known producer counts as the first open one.

    Another one may have begun before it: read_committed consumers read its records, whether or not
    it commits.
    """
    return {
        number: entry.transaction_start
        for number, entry in entries.items()
        if entry.transaction_start is not None
    }
