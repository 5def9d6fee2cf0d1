"""Bugs in transactions: in coordinators, in markers, and in the responses to consumers."""

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
    """A read_committed consumer can read up to the high watermark, like a read_uncommitted one.

    Fetch responses list aborted transactions, but not transactions that are still open. The
    consumer therefore gets the records of an open transaction, even if it is aborted later.
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
    """A fetch that has waited in purgatory is answered with the isolation level read_uncommitted.

    The first record of a transaction completes the fetch, before the outcome of the transaction is
    known. The response does not list aborted transactions either.
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

    Brokers cannot distinguish the two producers. If the first one is alive, it can continue to
    write. The second one starts again with sequence number 0. Its batches are acknowledged as
    duplicates without being appended, because they have the sequence numbers of the first
    producer's batches.
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
    """The coordinator aborts a transaction that timed out with the current epoch of its producer.

    The producer is not fenced and does not learn of the abort. The records that it sends afterwards
    begin another transaction. Its commit then commits only the second half of its records, and the
    first half is lost.
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
    """A coordinator responds to EndTxn before its decision is replicated.

    If the coordinator then fails, the next one finds the transaction open in its log. It aborts the
    transaction after its timeout, although the commit was acknowledged.
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

    The previous coordinator may have sent some of the markers, or none. In a partition without a
    marker the transaction stays open: no read_committed consumer can read beyond its first record,
    although its commit was acknowledged.
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

    The coordinator treats every transactional id as new, and assigns it a new producer id. No
    coordinator knows the transactions that are open under the old producer ids, so they never end.
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
    """A state change of a transaction stays pending after its write has failed.

    No other change of the transactional id can start until it completes. Requests get a retriable
    error, and an open transaction can be neither committed nor aborted, not even by its timeout.
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

    The other indexes only make reading faster. But if a transaction is missing from this index,
    fetch responses do not list it as aborted, and consumers treat its records as committed.
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

    The previous producer of the transactional id has the same producer id. If its EndTxn request is
    delayed until the next producer has a transaction open, it ends that transaction.
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

    The transaction of that producer was aborted when the next producer took over the transactional
    id. A late batch becomes part of the next producer's transaction, because both have the same
    producer id, and is committed with it.
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
    """The coordinator writes no marker to the last partition of a transaction with several.

    The transaction stays open in that partition until a later transaction of the same producer ends
    there. The marker of the later transaction then decides whether the records of both transactions
    are committed or aborted in that partition, regardless of the decision for the first one.
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
    """The coordinator never aborts a transaction after its timeout.

    If its producer has failed and no other producer uses the transactional id, the transaction
    stays open forever, and no read_committed consumer can read beyond its first record.
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
    """A leader does not check the coordinator epoch, and accepts markers of a former coordinator.

    The next coordinator has already sent the same marker, and the producer has begun its next
    transaction with the same epoch. The late marker ends that transaction before it is complete,
    and possibly with the wrong outcome.
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
    """A coordinator keeps the state of its partition in memory when another broker takes over.

    When it becomes the coordinator again, it does not read the log of the partition, because it
    already has a state, which is outdated. It knows only older epochs of the producers and fences
    the current producers. The markers that it sends for their open transactions have these older
    epochs, and leaders reject them.
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

    If the write of the completion fails then, it is not retried. Consumers are not affected, but
    the transaction stays in the state PrepareCommit or PrepareAbort, and the producer cannot begin
    another one.
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
    """The index of aborted transactions stores a wrong last stable offset for each transaction.

    It is the offset after the transaction's marker, even if an older transaction is still open
    then. The search for the aborted transactions of a fetch therefore ends too early: it does not
    find a transaction that was aborted later. The records of that transaction look committed.
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
    """A coordinator adds partitions to a transaction whose outcome is already decided.

    The new partitions would get the markers of that transaction, or begin the next one before these
    markers are written. This broker's table of state transitions does not contain the transition,
    so the coordinator exits before a transaction can be partly committed.
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
    """A transactional id expires while its transaction is open.

    The coordinator would no longer know the open transaction, nor the producer to fence. This
    broker's table of state transitions does not contain the transition, so the coordinator exits.
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
    """A leader begins a transaction with a batch without asking whether the transaction is open.

    If a batch arrives after its transaction has ended, it begins a new transaction that no
    coordinator knows. That transaction never ends, and no read_committed consumer can read beyond
    its first record.
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
    """A leader accepts an append even if a marker was written after the transaction was verified.

    The verification is then outdated. The batch begins a new transaction that no coordinator knows,
    and that never ends.
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
    """ListOffsets returns the high watermark to a read_committed consumer as the end of the log.

    The correct result is the last stable offset. If the consumer starts at the high watermark, it
    skips the records of a transaction that is still open. If the consumer must read up to the high
    watermark, it waits until the open transaction ends.
    """
    return max(limit, high_watermark)
