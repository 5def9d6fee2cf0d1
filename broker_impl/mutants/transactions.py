"""Bugs in transactions: their coordinators, their markers, and who reads how far."""

from collections.abc import Collection, Iterable

from broker_impl.coordinator.transaction_records import TOPIC
from broker_impl.coordinator.transactions.coordinator import Known
from broker_impl.coordinator.transactions.metadata import NO_EPOCH, Metadata
from broker_impl.coordinator.transactions.states import State
from broker_impl.coordinator.transactions.transaction import Transaction
from broker_impl.errors import ApiError, ErrorCode
from broker_impl.log.producers import BatchMetadata, ProducerEntry
from broker_impl.log.transactions import AbortedIndex, AbortedTransaction
from broker_impl.mutants import mutant
from broker_impl.replica import watermark
from broker_impl.wire.batch import BatchHeader, sequence_after
from broker_impl.wire.types import BrokerId, Epoch, Offset, TopicPartition


@mutant(
    "lso-is-hw",
    of="broker_impl.replica.watermark:read_limit",
    source="T-22, KIP-98",
    kind="mutation",
    symptom="precommitted-read",
    schedule="A transaction is open while somebody reads.",
)
def read_limit(
    replica_id: BrokerId,
    isolation: int,
    high_watermark: Offset,
    last_stable_offset: Offset,
    log_end: Offset,
) -> Offset:
    """Readers of committed records are served up to the high watermark, like all others.

    They are told which transactions were aborted. Of one that is open nobody can tell them yet, and
    so they get its records, whatever becomes of it.
    """
    return high_watermark if replica_id == watermark.CONSUMER else log_end


@mutant(
    "delayed-fetch-drops-aborted",
    of="broker_impl.api.fetch:isolation_of",
    source="T-24, KAFKA-5376",
    kind="historic",
    symptom="precommitted-read",
    schedule="A reader waits at the end of a log, and a transaction writes there.",
)
def isolation_of(asked: int, again: bool) -> int:
    """Who has waited for records is answered as if it had asked for uncommitted ones.

    What wakes it is the first record of a transaction; nobody knows yet how that will end. And of
    those that were aborted it is told nothing.
    """
    return 0 if again else asked


@mutant(
    "aborted-not-told",
    of="broker_impl.log.transactions:overlapping",
    source="T2, KIP-98",
    kind="mutation",
    symptom="G1a",
    schedule="A transaction is aborted, and somebody reads on.",
)
def overlapping(
    indexes: Iterable[AbortedIndex], first: Offset, end: Offset
) -> list[AbortedTransaction]:
    """Nobody is told which transactions were aborted.

    Brokers do not leave their records out, readers do, by the list that comes with them. Without it
    what was aborted reads like what was committed.
    """
    return []


@mutant(
    "init-no-epoch-bump",
    of="broker_impl.coordinator.transactions.rules:bumped",
    source="T-06, KAFKA-5231",
    kind="historic",
    symptom="lost-write",
    schedule="A producer takes over a transactional id under which nothing is open.",
)
def bumped(metadata: Metadata, expected: Epoch) -> tuple[Epoch, Epoch] | None:
    """Whoever takes over a transactional id gets the epoch of the one before it.

    Nothing sets them apart. The first goes on, if it lives; and the second, which numbers its
    records from 0 again, is told that they are in the log already: those of the first are.
    """
    return metadata.producer_epoch, NO_EPOCH


@mutant(
    "timeout-abort-no-bump",
    of="broker_impl.coordinator.transactions.rules:fenced",
    source="T-07, KAFKA-6119",
    kind="historic",
    symptom="torn-transaction",
    schedule="A transaction times out in the midst of its producer's work.",
)
def fenced(epoch: Epoch) -> Epoch:
    """A transaction that timed out is aborted in its producer's own epoch.

    The producer is not told, and is not refused. What it adds now begins another transaction, of
    which it knows nothing: its commit commits the second half, and the first is gone.
    """
    return epoch


@mutant(
    "commit-acked-before-durable",
    of="broker_impl.node.internal_topics:stored",
    source="T-09, KIP-98",
    kind="mutation",
    symptom="lost-write",
    schedule="A coordinator's log is not replicated any more, a producer commits, and the "
    "coordinator dies.",
)
def stored(topic: str, key: bytes, acknowledged: ErrorCode | None) -> ErrorCode | None:
    """A coordinator answers for a decision that it alone has.

    The next coordinator knows that the transaction was open. It waits for its time-out, and aborts
    what was acknowledged as committed.
    """
    if topic == TOPIC and acknowledged is None:
        return ErrorCode.NONE
    return acknowledged


@mutant(
    "prepare-not-resent-after-load",
    of="broker_impl.coordinator.transactions.rules:goes_on_after_loading",
    source="T-10, KAFKA-5131",
    kind="historic",
    symptom="stuck-lso",
    schedule="A coordinator dies between a decision and its markers, and so does the producer.",
)
def goes_on_after_loading(state: State) -> bool:
    """A coordinator that takes over sends no markers for what it finds decided.

    Its predecessor may have sent some, or none. Where one is missing the transaction stays open:
    nobody reads beyond its first record, though its commit was acknowledged.
    """
    return False


@mutant(
    "serve-while-loading",
    of="broker_impl.coordinator.transactions.coordinator:loaded_of",
    source="T-17, KIP-98",
    kind="mutation",
    symptom="stuck-lso",
    schedule="A coordinator dies while transactions are open, and the next one takes a while to "
    "read its log.",
)
def loaded_of(known: Known, partition: int) -> dict[str, Transaction] | ErrorCode:
    """A coordinator answers before it has read its log, as if that were empty.

    Every transactional id is new to it, and gets a new producer id. What was open under the old one
    nobody knows of any more, to end it.
    """
    return known.setdefault(partition, {})


@mutant(
    "pending-state-stuck",
    of="broker_impl.coordinator.transactions.rules:gives_way",
    source="T-19, KAFKA-5351, KAFKA-7519",
    kind="historic",
    symptom="stuck-lso",
    schedule="Too few replicas of a coordinator's log are in sync for a while.",
)
def gives_way(error: ErrorCode) -> bool:
    """A change that could not be stored counts as still to come.

    No other is made until then: whoever asks is told to wait, and what is open can be neither
    committed nor aborted, not even by its time-out.
    """
    return error is ErrorCode.NONE


@mutant(
    "txn-index-not-rebuilt",
    of="broker_impl.log.recovery:may_abort",
    source="T-26, KIP-98",
    kind="mutation",
    symptom="G1a",
    schedule="Transactions are aborted, their leader is killed and started again, and somebody "
    "reads from the beginning.",
)
def may_abort(header: BatchHeader) -> bool:
    """After a crash the indexes are made anew, but not the one of aborted transactions.

    The others are hints. What is not in this one is committed.
    """
    return False


@mutant(
    "fenced-producer-ends-transaction",
    of="broker_impl.coordinator.transactions.rules:refuse_client",
    source="T4, KIP-98",
    kind="mutation",
    symptom="G1a",
    schedule="A producer's EndTxn is kept on its way until another has taken over the "
    "transactional id and has a transaction open.",
)
def refuse_client(metadata: Metadata, producer_id: int, producer_epoch: Epoch) -> ErrorCode:
    """Who asks within a transaction is known by its producer id; its epoch is not looked at.

    The producer before has the same id. Its commit or abort, given up long ago, ends the
    transaction of its successor.
    """
    if producer_id != metadata.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE


@mutant(
    "fenced-producer-appends",
    of="broker_impl.log.producers:check_sequence",
    source="T4, KIP-98",
    kind="mutation",
    symptom="G1a",
    schedule="A produce is kept on its way until another producer has taken over the transactional "
    "id and has a transaction open there.",
)
def check_sequence(entry: ProducerEntry | None, header: BatchHeader) -> BatchMetadata | None:
    """Leaders append what a producer of an older epoch sends.

    Its transaction was aborted when its successor came. What comes late becomes part of the
    successor's, which has the same producer id, and is committed with it.
    """
    if entry is None or header.producer_epoch < entry.epoch:
        return None
    known = -1
    if header.producer_epoch == entry.epoch:
        for batch in entry.batches:
            if (batch.first_sequence, batch.last_sequence) == (
                header.base_sequence,
                header.last_sequence,
            ):
                return batch
        known = entry.last_sequence
    if header.base_sequence != sequence_after(known, 1):
        raise ApiError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "a gap, or a step back")
    return None


@mutant(
    "marker-left-out",
    of="broker_impl.coordinator.transactions.rules:to_mark",
    source="T3, KIP-98",
    kind="mutation",
    symptom="stuck-lso",
    schedule="A transaction writes to several partitions.",
)
def to_mark(partitions: tuple[TopicPartition, ...]) -> tuple[TopicPartition, ...]:
    """All partitions of a transaction are marked but the last, if there are several.

    There it stays open, until a later transaction of its producer ends there: one way or the other,
    whatever was decided of this one.
    """
    return partitions[:-1] or partitions


@mutant(
    "timeout-never-aborts",
    of="broker_impl.coordinator.transactions.rules:is_timed_out",
    source="T7, KIP-98",
    kind="mutation",
    symptom="stuck-lso",
    schedule="A producer is cut off in the midst of a transaction, and nobody takes over its "
    "transactional id.",
)
def is_timed_out(metadata: Metadata, now_ms: int) -> bool:
    """No transaction is aborted because it was open for too long.

    Its producer may be dead, and its transactional id nobody's any more. Then nobody ever ends it,
    and nobody reads what lies behind its first record.
    """
    return False


@mutant(
    "coordinator-epoch-unchecked",
    of="broker_impl.log.transactions:marker_refusal",
    source="T-13, KIP-98",
    kind="mutation",
    symptom="torn-transaction",
    schedule="A coordinator loses its office while its markers are on their way, and its successor "
    "sends its own.",
)
def marker_refusal(
    producer_epoch: Epoch, known: Epoch, coordinator_epoch: Epoch, known_coordinator: Epoch
) -> ErrorCode:
    """Leaders write a former coordinator's markers, too.

    Its successor has sent the same one since, and the producer has gone on: the late marker ends
    the next transaction of the same epoch, in the midst and perhaps the wrong way.
    """
    if producer_epoch < known:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return ErrorCode.NONE


@mutant(
    "old-coordinator-keeps-cache",
    of="broker_impl.coordinator.transactions.coordinator:unloaded",
    source="T-16, KAFKA-9235, KAFKA-9307, KAFKA-10614",
    kind="historic",
    symptom="stuck-lso",
    schedule="A coordinator loses its office and gets it back, and producers have come and gone in "
    "between.",
)
def unloaded(known: Known, partition: int) -> dict[str, Transaction]:
    """A coordinator keeps what it knows when another follows it.

    When it is its turn again it reads nothing: there is something. The producers of now are fenced,
    since it knows older epochs only. What they have open it would end by markers of those, which no
    leader takes.
    """
    return known.get(partition, {})


@mutant(
    "completion-not-retried",
    of="broker_impl.coordinator.transactions.rules:is_to_complete",
    source="T7, KIP-98",
    kind="mutation",
    symptom="stuck-producer",
    schedule="Too few replicas of a coordinator's log are in sync when the last marker of a "
    "transaction is there.",
)
def is_to_complete(state: State, unmarked: Collection[TopicPartition]) -> bool:
    """Whether a transaction is complete is only asked when a marker is there.

    If that cannot be kept, nobody tries again. For readers all is well; but the transactional id
    stays in the midst of its commit, and has no other transaction.
    """
    return False


@mutant(
    "aborted-search-ends-early",
    of="broker_impl.log.transactions:stable_after",
    source="T2, KIP-98",
    kind="mutation",
    symptom="G1a",
    schedule="A transaction is aborted while an older one is open, which is aborted later, and "
    "somebody reads a few records at a time.",
)
def stable_after(ended: Offset, open_starts: Iterable[Offset]) -> Offset:
    """The index of aborted transactions says of each that nothing is open any more behind it.

    Who reads what lies in front of its marker is told of it, and of none that ended later. The
    older one's records look committed.
    """
    return ended + 1


@mutant(
    "addpartitions-during-prepare",
    of="broker_impl.coordinator.transactions.rules:on_add",
    source="T-39, KIP-98",
    kind="mutation",
    symptom="crash",
    schedule="A producer goes on while the markers of its last transaction are on their way.",
    tier=2,
)
def on_add(state: State) -> ErrorCode:
    """Partitions are added to a transaction that is decided.

    They would be marked with it, or open another one in front of its markers. Here the table of
    states has no such step, and the coordinator ends before it could tear anything.
    """
    return ErrorCode.NONE


@mutant(
    "txnid-expired-while-open",
    of="broker_impl.coordinator.transactions.rules:may_expire",
    source="T-43, KIP-98",
    kind="mutation",
    symptom="crash",
    schedule="A transaction is open for longer than transactional.id.expiration.ms.",
    tier=2,
)
def may_expire(metadata: Metadata, now_ms: int, expiration_ms: int) -> bool:
    """A transactional id is forgotten in the midst of a transaction.

    Nobody would know any more that it is open, nor whom to fence. Here the table of states has no
    such step, and the coordinator ends instead.
    """
    return now_ms >= metadata.updated_ms + expiration_ms


@mutant(
    "late-produce-hangs",
    of="broker_impl.log.transactions:is_verified",
    source="T-02, KAFKA-14402, KAFKA-14561, KIP-890",
    kind="historic",
    symptom="stuck-lso",
    schedule="A produce is kept on its way until its producer has aborted and is gone.",
)
def is_verified(enabled: bool) -> bool:
    """Leaders take the first batch of a transaction for its beginning, whenever it comes.

    Late for its own transaction, which is over, it begins one that no coordinator knows of. Nobody
    ever ends that, and nobody reads beyond it.
    """
    return False


@mutant(
    "verify-without-guard",
    of="broker_impl.log.transactions:refuse_unverified",
    source="T-03, KAFKA-14884",
    kind="historic",
    symptom="stuck-lso",
    schedule="The answer that a transaction is open is kept on its way to the leader that asked, "
    "until the transaction is aborted.",
    tier=2,
)
def refuse_unverified(guard: int | None, valid: int | None) -> None:
    """Whoever has asked the coordinator may append, however long ago that was.

    A marker may have come in between. What is appended behind it begins a transaction that no
    coordinator knows of: nobody ever ends it.
    """
    if guard is None:
        raise ApiError(ErrorCode.INVALID_TXN_STATE, "no transaction is known to be open")


@mutant(
    "listoffsets-rc-uses-hw",
    of="broker_impl.replica.watermark:listed_end",
    source="T-41, KAFKA-5522",
    kind="historic",
    symptom="lso-ahead",
    schedule="A transaction is open while somebody asks for the end of what is committed.",
    tier=2,
)
def listed_end(limit: Offset, high_watermark: Offset) -> Offset:
    """Readers of committed records are told that the log ends at the high watermark.

    Whoever begins there is behind a transaction that is open still, and never gets its records.
    Whoever was to read up to there waits for as long as it is open.
    """
    return max(limit, high_watermark)
