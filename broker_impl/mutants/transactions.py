"""Bugs in transactions: their coordinators, their markers, and what readers are served."""

from collections.abc import Collection, Iterable

from broker_impl.coordinator.transaction_records import TOPIC
from broker_impl.coordinator.transactions.coordinator import Known
from broker_impl.coordinator.transactions.metadata import NO_EPOCH, Metadata
from broker_impl.coordinator.transactions.states import TransactionState
from broker_impl.coordinator.transactions.transaction import Transaction
from broker_impl.errors import ApiError, ErrorCode
from broker_impl.log.aborted_index import AbortedIndex, AbortedTransaction
from broker_impl.log.producers import BatchMetadata, ProducerEntry
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
    schedule="A transaction is open while a consumer reads.",
)
def read_limit(
    replica_id: BrokerId,
    isolation: int,
    high_watermark: Offset,
    last_stable_offset: Offset,
    log_end: Offset,
) -> Offset:
    """A read_committed consumer is served up to the high watermark, like a read_uncommitted one.

    The broker lists aborted transactions in its answers, but an open transaction cannot be listed
    yet. The consumer gets its records, whether the transaction is committed or aborted later.
    """
    return high_watermark if replica_id == watermark.CONSUMER else log_end


@mutant(
    "delayed-fetch-drops-aborted",
    of="broker_impl.api.fetch:isolation_of",
    source="T-24, KAFKA-5376",
    kind="historic",
    symptom="precommitted-read",
    schedule="A consumer waits at the end of a log for records that a transaction then writes.",
)
def isolation_of(asked: int, again: bool) -> int:
    """A fetch that had to wait for records is answered as if it had asked for uncommitted ones.

    The first record of a transaction wakes the fetch, before the transaction's outcome is known.
    The answer does not list aborted transactions either.
    """
    return 0 if again else asked


@mutant(
    "aborted-not-told",
    of="broker_impl.log.aborted_index:overlapping",
    source="T2, KIP-98",
    kind="mutation",
    symptom="G1a",
    schedule="A transaction is aborted, and a consumer keeps reading.",
)
def overlapping(
    indexes: Iterable[AbortedIndex], first: Offset, end: Offset
) -> list[AbortedTransaction]:
    """No fetch response lists aborted transactions.

    Brokers do not filter out the records of aborted transactions; consumers do, by the list in the
    response. Without it, aborted records look committed.
    """
    return []


@mutant(
    "init-no-epoch-bump",
    of="broker_impl.coordinator.transactions.rules:bumped",
    source="T-06, KAFKA-5231",
    kind="historic",
    symptom="lost-write",
    schedule="A producer takes over a transactional id that has no open transaction.",
)
def bumped(metadata: Metadata, expected: Epoch) -> tuple[Epoch, Epoch] | None:
    """A producer that takes over a transactional id gets the same epoch as its predecessor.

    The two cannot be distinguished. The first producer continues, if it is alive; and the second
    one, which numbers its records from 0 again, is answered that its batches are in the log
    already, because the first producer's batches of these numbers are.
    """
    return metadata.producer_epoch, NO_EPOCH


@mutant(
    "timeout-abort-no-bump",
    of="broker_impl.coordinator.transactions.rules:fenced",
    source="T-07, KAFKA-6119",
    kind="historic",
    symptom="torn-transaction",
    schedule="A transaction times out while its producer is still writing.",
)
def fenced(epoch: Epoch) -> Epoch:
    """A transaction that timed out is aborted in its producer's own epoch.

    The producer is neither informed nor fenced. The records that it adds now begin another
    transaction without its knowledge: its commit commits the second half, and the first half is
    lost.
    """
    return epoch


@mutant(
    "commit-acked-before-durable",
    of="broker_impl.node.coordinators.internal_topics:stored",
    source="T-09, KIP-98",
    kind="mutation",
    symptom="lost-write",
    schedule="The log of a coordinator is no longer replicated, a producer commits, and the "
    "coordinator dies.",
)
def stored(topic: str, key: bytes, acknowledged: ErrorCode | None) -> ErrorCode | None:
    """A coordinator answers EndTxn as soon as it alone has stored the decision.

    The next coordinator finds the transaction open, waits for its timeout, and aborts what was
    acknowledged as committed.
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
    schedule="A coordinator dies after it has decided a transaction and before it has sent the "
    "markers, and so does the producer.",
)
def goes_on_after_loading(state: TransactionState) -> bool:
    """A coordinator that takes over sends no markers for transactions that are already decided.

    Its predecessor may have sent some of the markers, or none. Where one is missing the transaction
    stays open: no consumer reads beyond its first record, although its commit was acknowledged.
    """
    return False


@mutant(
    "serve-while-loading",
    of="broker_impl.coordinator.transactions.coordinator:loaded_of",
    source="T-17, KIP-98",
    kind="mutation",
    symptom="stuck-lso",
    schedule="A coordinator dies while transactions are open, and the next coordinator loads its "
    "log slowly.",
)
def loaded_of(known: Known, partition: int) -> dict[str, Transaction] | ErrorCode:
    """A coordinator answers before it has read its log, as if the log were empty.

    Every transactional id is new to it and gets a new producer id. No coordinator is left that
    knows of the transactions that are open under the old producer ids and could end them.
    """
    return known.setdefault(partition, {})


@mutant(
    "pending-state-stuck",
    of="broker_impl.coordinator.transactions.rules:gives_way",
    source="T-19, KAFKA-5351, KAFKA-7519",
    kind="historic",
    symptom="stuck-lso",
    schedule="For a while, too few replicas of the log of a coordinator are in sync.",
)
def gives_way(error: ErrorCode) -> bool:
    """A state change that could not be stored stays pending.

    No other change is made until it completes: requests are answered with a retriable error, and an
    open transaction can be neither committed nor aborted, not even by its timeout.
    """
    return error is ErrorCode.NONE


@mutant(
    "txn-index-not-rebuilt",
    of="broker_impl.log.recovery:may_abort",
    source="T-26, KIP-98",
    kind="mutation",
    symptom="G1a",
    schedule="Transactions are aborted, their leader is killed and restarted, and a consumer "
    "reads from the beginning.",
)
def may_abort(header: BatchHeader) -> bool:
    """Recovery after a crash rebuilds all indexes except the index of aborted transactions.

    The other indexes are hints. A transaction that is missing from this one counts as committed.
    """
    return False


@mutant(
    "fenced-producer-ends-transaction",
    of="broker_impl.coordinator.transactions.rules:refuse_client",
    source="T4, KIP-98",
    kind="mutation",
    symptom="G1a",
    schedule="A producer's EndTxn request is delayed until another producer has taken over the "
    "transactional id and has a transaction open.",
)
def refuse_client(metadata: Metadata, producer_id: int, producer_epoch: Epoch) -> ErrorCode:
    """A request within a transaction is checked by its producer id only, not by its producer epoch.

    The previous producer of the transactional id has the same producer id. Its commit or abort,
    which it gave up long ago, ends its successor's transaction.
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
    schedule="A produce request is delayed until another producer has taken over the "
    "transactional id and has a transaction open in the same partition.",
)
def check_sequence(entry: ProducerEntry | None, header: BatchHeader) -> BatchMetadata | None:
    """A leader appends batches of a producer with an older epoch.

    That producer's transaction was aborted when its successor took over. A batch that arrives late
    joins the transaction of the successor, which has the same producer id, and is committed with
    it.
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
    """All partitions of a transaction get a marker except the last one, if there are several.

    In the last partition the transaction stays open until a later transaction of its producer ends
    there, committed or aborted as that one is, whatever was decided for the first.
    """
    return partitions[:-1] or partitions


@mutant(
    "timeout-never-aborts",
    of="broker_impl.coordinator.transactions.rules:is_timed_out",
    source="T7, KIP-98",
    kind="mutation",
    symptom="stuck-lso",
    schedule="A producer is isolated in the middle of a transaction, and no other producer takes "
    "over its transactional id.",
)
def is_timed_out(metadata: Metadata, now_ms: int) -> bool:
    """No transaction is aborted because it was open for too long.

    Its producer may be dead and its transactional id no longer in use. Then the transaction stays
    open forever, and no consumer reads beyond its first record.
    """
    return False


@mutant(
    "coordinator-epoch-unchecked",
    of="broker_impl.log.aborted_index:marker_refusal",
    source="T-13, KIP-98",
    kind="mutation",
    symptom="torn-transaction",
    schedule="A coordinator is replaced while its markers are delayed, and its successor sends "
    "its own markers.",
)
def marker_refusal(
    producer_epoch: Epoch, known: Epoch, coordinator_epoch: Epoch, known_coordinator: Epoch
) -> ErrorCode:
    """A leader writes the markers of a former coordinator, too.

    The coordinator's successor has sent the same marker since, and the producer has continued: the
    late marker ends the next transaction of the same epoch, before it is complete and perhaps with
    the wrong outcome.
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
    schedule="A coordinator is replaced and elected again, and producers have started and "
    "stopped in between.",
)
def unloaded(known: Known, partition: int) -> dict[str, Transaction]:
    """A coordinator keeps its cached state when it loses its partition to another coordinator.

    When it becomes the coordinator again it does not read its log, because it already has state.
    Current producers are fenced, since it knows older epochs only. Their open transactions would be
    ended by markers with those older epochs, which leaders reject.
    """
    return known.get(partition, {})


@mutant(
    "completion-not-retried",
    of="broker_impl.coordinator.transactions.rules:is_to_complete",
    source="T7, KIP-98",
    kind="mutation",
    symptom="stuck-producer",
    schedule="Too few replicas of the log of a coordinator are in sync when the last marker of a "
    "transaction has been written.",
)
def is_to_complete(state: TransactionState, unmarked: Collection[TopicPartition]) -> bool:
    """A coordinator checks whether a transaction is complete only when a marker is acknowledged.

    If the completion cannot be stored then, it is not tried again. Consumers notice nothing, but
    the transactional id stays in the middle of its commit and cannot begin another transaction.
    """
    return False


@mutant(
    "aborted-search-ends-early",
    of="broker_impl.log.aborted_index:stable_after",
    source="T2, KIP-98",
    kind="mutation",
    symptom="G1a",
    schedule="A transaction is aborted while an older one is open, which is aborted later, and a "
    "consumer reads a few records at a time.",
)
def stable_after(ended: Offset, open_starts: Iterable[Offset]) -> Offset:
    """The index of aborted transactions records each one as if none were open after its marker.

    A consumer that reads what comes before that marker learns of this transaction, but of none that
    ended later. The records of an older transaction, aborted later, look committed.
    """
    return ended + 1


@mutant(
    "addpartitions-during-prepare",
    of="broker_impl.coordinator.transactions.rules:on_add",
    source="T-39, KIP-98",
    kind="mutation",
    symptom="crash",
    schedule="A producer writes again while the markers of its last transaction are delayed.",
    tier=2,
)
def on_add(state: TransactionState) -> ErrorCode:
    """Partitions are added to a transaction whose outcome is already decided.

    They would be marked with it, or open another transaction before its markers are written. Here
    the state table has no such transition, so the coordinator exits before it can tear a
    transaction.
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
    """A transactional id expires in the middle of a transaction.

    The coordinator would no longer know that the transaction is open, nor which producer to fence.
    Here the state table has no such transition, so the coordinator exits instead.
    """
    return now_ms >= metadata.updated_ms + expiration_ms


@mutant(
    "late-produce-hangs",
    of="broker_impl.log.aborted_index:is_verified",
    source="T-02, KAFKA-14402, KAFKA-14561, KIP-890",
    kind="historic",
    symptom="stuck-lso",
    schedule="A produce request is delayed until its producer has aborted the transaction and has "
    "stopped.",
)
def is_verified(enabled: bool) -> bool:
    """A leader takes a transaction's first batch as its beginning, however late the batch arrives.

    A batch that arrives after its own transaction has ended begins one that no coordinator knows
    of. That transaction never ends, and no consumer reads beyond its first record.
    """
    return False


@mutant(
    "verify-without-guard",
    of="broker_impl.log.aborted_index:refuse_unverified",
    source="T-03, KAFKA-14884",
    kind="historic",
    symptom="stuck-lso",
    schedule="The response that a transaction is open is delayed on its way to the leader that "
    "asked, until the transaction is aborted.",
    tier=2,
)
def refuse_unverified(guard: int | None, valid: int | None) -> None:
    """A leader accepts an append if it has ever verified the transaction with the coordinator.

    A marker may have been written since then. A batch that is appended after it begins a
    transaction that no coordinator knows of and that never ends.
    """
    if guard is None:
        raise ApiError(ErrorCode.INVALID_TXN_STATE, "no transaction is known to be open")


@mutant(
    "listoffsets-rc-uses-hw",
    of="broker_impl.replica.watermark:listed_end",
    source="T-41, KAFKA-5522",
    kind="historic",
    symptom="lso-ahead",
    schedule="A transaction is open while a client asks for the last stable offset.",
    tier=2,
)
def listed_end(limit: Offset, high_watermark: Offset) -> Offset:
    """ListOffsets answers a read_committed consumer with the high watermark as the end of the log.

    A consumer that starts there starts after a transaction that is still open and never gets its
    records. A consumer that is meant to read up to there waits as long as the transaction is open.
    """
    return max(limit, high_watermark)
