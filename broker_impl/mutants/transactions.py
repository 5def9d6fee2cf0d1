"""Bugs in transactions: their coordinators, their markers, and who reads how far."""

from collections.abc import Iterable

from broker_impl.coordinator.transactions.metadata import NO_EPOCH, Metadata
from broker_impl.coordinator.transactions.states import State
from broker_impl.errors import ErrorCode
from broker_impl.log.transactions import AbortedIndex, AbortedTransaction
from broker_impl.mutants import mutant
from broker_impl.replica import watermark
from broker_impl.wire.batch import BatchHeader
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
