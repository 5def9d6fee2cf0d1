"""Bugs in what brokers answer to readers: offsets, ends of epochs, and replicas to read from."""

from collections.abc import Iterable, Sequence

from broker_impl.api.fetch_sessions.rules import Sent, sent
from broker_impl.errors import ErrorCode
from broker_impl.log.indexes import TimestampAt
from broker_impl.log.segment import Segment
from broker_impl.mutants import mutant
from broker_impl.replica.results import FetchResult
from broker_impl.replica.selection import Candidate
from broker_impl.wire.batch import Record
from broker_impl.wire.types import BrokerId, Offset


@mutant(
    "listed-by-time-past-end",
    of="broker_impl.replica.watermark:is_listed",
    source="KIP-79, KIP-98; KAFKA-5522 is related",
    kind="mutation",
    symptom="invariant:listed-as-stored",
    schedule="A client asks for an offset by time while the leader has records that are not "
    "committed.",
)
def is_listed(offset: Offset, limit: Offset) -> bool:
    """An offset by time may be that of a record which is not committed, or not stable.

    The next leader may have another record there, and a consumer that begins at this offset misses
    the records that it asked for.
    """
    return True


@mutant(
    "latest-before-own-epoch",
    of="broker_impl.replica.watermark:may_list_end",
    source="KIP-207, KAFKA-2334",
    kind="historic",
    symptom="invariant:listed-as-stored",
    schedule="A client asks a new leader for the end of the log, before the leader's high "
    "watermark has reached the start of its epoch.",
)
def may_list_end(high_watermark: Offset, epoch_start: Offset) -> bool:
    """A new leader answers with its own high watermark at once, however early that is.

    The former leader had stated a later end. A client that compares its position with the end of
    the log finds that the log ends before records which it has already read.
    """
    return True


@mutant(
    "read-begins-after-batch",
    of="broker_impl.log.reading:begins_at",
    source="R10",
    kind="mutation",
    symptom="invariant:read-as-stored",
    schedule="A consumer fetches from an offset in the middle of a batch.",
)
def begins_at(segment: Segment, offset: Offset) -> int:
    """A fetch from an offset in the middle of a batch begins with the batch that follows.

    A consumer that continues from such an offset misses the other records of the batch.
    """
    position = segment.locate(offset)
    for at, header in segment.headers(position):
        if header.base_offset >= offset:
            return at
    return segment.size


@mutant(
    "time-index-in-seconds",
    of="broker_impl.log.timestamps:searched_time",
    source="KIP-33",
    kind="mutation",
    symptom="invariant:listed-as-stored",
    schedule="A client asks for an offset by time, and an index has an entry less than a second "
    "after that time.",
)
def searched_time(timestamp_ms: int) -> int:
    """A search by time skips the index entries of the same second.

    The records of these entries are late enough, and are skipped all the same: the answer is a
    later record, or none.
    """
    return (timestamp_ms // 1000 + 1) * 1000


@mutant(
    "max-time-of-first-segment",
    of="broker_impl.log.timestamps:largest",
    source="KIP-734; KAFKA-16310 is related",
    kind="mutation",
    symptom="invariant:listed-as-stored",
    schedule="A log has several segments.",
)
def largest(known: TimestampAt, candidate: TimestampAt) -> TimestampAt:
    """The record with the largest time is always taken from the first segment.

    An operator who asks how old the newest record is sees a topic that is no longer written.
    """
    return known if known.timestamp_ms >= 0 else candidate


@mutant(
    "max-time-of-last-record",
    of="broker_impl.log.timestamps:newest",
    source="KAFKA-16342, KAFKA-16310, KIP-734",
    kind="historic",
    symptom="invariant:listed-as-stored",
    schedule="A batch has several records, and the last one is not the first with the largest "
    "time.",
)
def newest(records: Sequence[Record]) -> Record | None:
    """The offset of the largest time is that of the last record of its batch.

    The broker knows the largest time of a batch from its header, and takes its last record for the
    one that has it.
    """
    return records[-1] if records else None


@mutant(
    "earliest-of-segment",
    of="broker_impl.replica.watermark:listed_start",
    source="KIP-107",
    kind="mutation",
    symptom="invariant:listed-as-stored",
    schedule="Records are deleted, and a client asks for the earliest offset.",
)
def listed_start(log_start: Offset, first_stored: Offset) -> Offset:
    """The earliest offset is that of the first segment, although its records were deleted.

    A consumer that begins there receives OFFSET_OUT_OF_RANGE, and asks for the earliest offset
    again.
    """
    return first_stored


@mutant(
    "any-replica-lists-offsets",
    of="broker_impl.replica.fencing:of_listing",
    source="KIP-320",
    kind="mutation",
    symptom="invariant:answered-as-leader",
    schedule="A client whose metadata is old asks a former leader for an offset.",
)
def of_listing(refusal: ErrorCode) -> ErrorCode:
    """A follower and a former leader answer ListOffsets from their own logs.

    A consumer that begins at the end of the log, and asks a replica that lags for it, receives
    records again that it had skipped.
    """
    return ErrorCode.NONE


@mutant(
    "any-replica-ends-epochs",
    of="broker_impl.replica.fencing:of_epoch_end",
    source="KIP-320, KAFKA-7395",
    kind="mutation",
    symptom="invariant:answered-as-leader",
    schedule="A consumer whose metadata is old asks a former leader where an epoch ends.",
)
def of_epoch_end(refusal: ErrorCode) -> ErrorCode:
    """A follower and a former leader answer OffsetForLeaderEpoch from their own logs.

    A consumer that checks its position after an election hears from the former leader that nothing
    was truncated.
    """
    return ErrorCode.NONE


@mutant(
    "epoch-without-records-unknown",
    of="broker_impl.log.epochs:is_known",
    source="KAFKA-7415",
    kind="historic",
    symptom="invariant:epoch-end-as-stored",
    schedule="A reader asks a new leader for the end of its epoch before the first record of it.",
)
def is_known(start: Offset, log_end: Offset) -> bool:
    """A leader does not know its own epoch before it has appended a record in it.

    A follower that asks for the end of that epoch has to truncate to its high watermark, and a
    consumer takes its position for lost.
    """
    return start < log_end


@mutant(
    "epochs-end-at-log-end",
    of="broker_impl.log.epochs:end_to_return",
    source="KIP-101, KIP-320",
    kind="mutation",
    symptom="invariant:epoch-end-as-stored",
    schedule="A reader asks for the end of an epoch that a later one has followed.",
)
def end_to_return(next_start: Offset, log_end: Offset) -> Offset:
    """Every epoch seems to end at the end of the log.

    Neither a follower, which keeps them, nor a consumer that checks its position learns that
    records of an old epoch were replaced.
    """
    return log_end


@mutant(
    "read-replica-out-of-sync",
    of="broker_impl.replica.selection:can_serve",
    source="KIP-392",
    kind="mutation",
    symptom="invariant:preferred-in-sync",
    schedule="A replica in the rack of a consumer leaves the ISR.",
)
def can_serve(candidate: Candidate, offset: Offset) -> bool:
    """A leader prefers any replica in the consumer's rack, whether or not it is in sync.

    The consumer reads from a replica that lags, and may not receive the records for a long time.
    """
    return candidate.log_start <= offset


@mutant(
    "read-replica-elsewhere",
    of="broker_impl.replica.selection:preferred",
    source="KIP-392",
    kind="mutation",
    symptom="invariant:preferred-in-sync",
    schedule="No replica in the rack of a consumer can serve it.",
)
def preferred(
    rack: str, leader: Candidate, followers: Iterable[Candidate], offset: Offset
) -> BrokerId | None:
    """A leader sends a consumer to another rack rather than to none.

    The traffic between racks is not avoided, and the consumer reads from a replica that may lag
    behind the leader.
    """
    others = [each for each in followers if each.is_in_sync]
    return None if leader.rack == rack or not others else others[0].broker


@mutant(
    "follower-serves-uncommitted",
    of="broker_impl.replica.watermark:read_end",
    source="KIP-392, KAFKA-725",
    kind="mutation",
    symptom="invariant:answer-above-hw",
    schedule="A consumer reads from a follower that has records which are not committed.",
)
def read_end(limit: Offset, log_end: Offset, *, is_leader: bool) -> Offset:
    """A follower serves consumers up to the end of its log, not up to its high watermark.

    What it has beyond that may be truncated at the next election.
    """
    return limit if is_leader else log_end


@mutant(
    "follower-serves-anyone",
    of="broker_impl.api.fetch:may_ask_followers",
    source="KIP-392, finding 14",
    kind="historic",
    symptom="invariant:answered-as-leader",
    schedule="A consumer without a rack whose metadata is old fetches from a follower.",
)
def may_ask_followers(version: int, rack: str) -> bool:
    """A follower serves every consumer, also one that takes it for the leader.

    To such a consumer an offset that the follower does not have yet seems not to exist, and the
    consumer gives up its position.
    """
    return True


@mutant(
    "listed-by-time-below-start",
    of="broker_impl.log.timestamps:is_readable",
    source="KIP-107",
    kind="mutation",
    symptom="invariant:listed-as-stored",
    schedule="Records are deleted up to an offset within a batch, and a client asks for the offset "
    "of a time before that.",
)
def is_readable(offset: Offset, start: Offset, limit: Offset) -> bool:
    """An offset by time may be that of a deleted record, in a batch that is needed for others.

    A consumer that begins there is out of range and begins elsewhere, at the end by default.
    """
    return offset < limit


@mutant(
    "preferred-left-out",
    of="broker_impl.api.fetch_sessions.rules:is_shown",
    source="KIP-227, KIP-392",
    kind="mutation",
    symptom="invariant:read-as-stored",
    schedule="A consumer with a fetch session names its rack, and another replica is in that rack.",
)
def is_shown(before: Sent, result: FetchResult) -> bool:
    """An incremental response leaves out a partition for which it only has a preferred replica.

    The answer has no records, no error, and nothing else that has changed. The leader of the
    partition returns no records to the consumer, and does not name the replica that has them.
    """
    return (
        bool(result.records)
        or result.error is not ErrorCode.NONE
        or result.diverging is not None
        or sent(result) != before
    )
