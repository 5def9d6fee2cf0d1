"""What brokers answer about a log: each answer is compared with the log of the broker, as stored.

The answers are those of ListOffsets, OffsetForLeaderEpoch and Fetch to clients. A broker computes
them from indexes and caches; the checks here compute them again from the headers of all batches
in the log, at the moment of the answer:

- ``answered-as-leader``: only the leader answers ListOffsets and OffsetForLeaderEpoch, and only a
  request that names its own leader epoch or none (KIP-320); a follower answers a fetch only to a
  consumer that names its rack (KIP-392).
- ``listed-as-stored``: the earliest offset is the start of the log, the latest one the end that
  this reader may read up to (KAFKA-5522), an offset by time is that of the first record with this
  time or a later one, and the offset of the largest time has that time (KIP-734).
- ``epoch-end-as-stored``: a leader epoch ends where the first later epoch begins (KIP-279).
- ``read-as-stored``: a fetch returns the batches of the log one after the other, the one that
  contains its offset first; an offset within the log is not out of range; no follower states a high
  watermark above its own, and no leader a stable offset above the begin of an open transaction; a
  response of a fetch session shows a partition with records.
- ``preferred-in-sync``: a leader prefers a replica in the reader's rack that is in sync, and has
  the offset that is fetched (KIP-392).
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

LATEST, EARLIEST, LARGEST = -1, -2, -3
"""Timestamps with a meaning: the end, the start, and the record with the largest time."""
NONE: Final = -1
"""Stands for no leader epoch, no offset and no timestamp."""


class StoredBatch(NamedTuple):
    """A batch of a log, by its header."""

    base: int
    next: int
    """The offset after its last record."""
    epoch: int
    """The leader epoch in which it was appended."""
    largest_ms: int
    """The largest timestamp of its records."""
    crc: int = 0
    is_empty: bool = False
    """Compaction has removed all of its records."""


class StoredRecord(NamedTuple):
    """A record of the log."""

    offset: int
    time_ms: int


class Replica(NamedTuple):
    """A replica and its log at one moment. End offsets are exclusive."""

    is_leader: bool
    epoch: int
    """The leader epoch."""
    epoch_start: int
    """The end of the log when the leader was elected."""
    start: int
    stable: int
    """The last stable offset, where the first open transaction begins."""
    high: int
    """The high watermark."""
    end: int
    batches: Sequence[StoredBatch] = ()
    is_whole: bool = True
    """False if compaction has removed records, or if batches are missing in ``batches``."""
    is_read: bool = True
    """False if not all batches of the log are in ``batches``."""


class Listed(NamedTuple):
    """A question of ListOffsets, and an answer to it without an error."""

    timestamp: int
    isolation: int
    asked_epoch: int
    """The leader epoch that the client named; -1 if none."""
    offset: int
    found_ms: int
    epoch: int
    """The leader epoch in the answer; -1 if the version has none."""


class EpochEnd(NamedTuple):
    """A question of OffsetForLeaderEpoch, and an answer to it without an error."""

    wanted: int
    asked_epoch: int
    epoch: int
    end: int


class Read(NamedTuple):
    """A fetch of a partition by a consumer, and its answer."""

    offset: int
    has_rack: bool
    asked_epoch: int
    is_out_of_range: bool
    high: int
    start: int
    """The start of the log in the answer."""
    batches: Sequence[tuple[int, int, int]]
    """Base offset, next offset and CRC of each batch in the answer."""
    stable: int = NONE
    """The last stable offset in the answer; -1 if the reader reads uncommitted records."""


def as_leader(replica: Replica, asked_epoch: int) -> str | None:
    """Return why this replica must not have answered without an error, or ``None``."""
    if not replica.is_leader:
        return "it is not the leader"
    if asked_epoch not in (NONE, replica.epoch):
        return f"the client named leader epoch {asked_epoch}, and it leads in {replica.epoch}"
    return None


def listed(replica: Replica, answer: Listed) -> str | None:
    """Return how an answer of ListOffsets differs from the log, or ``None``."""
    if answer.timestamp == EARLIEST:
        return _differs("the start of the log", replica.start, answer.offset)
    limit = replica.stable if answer.isolation else replica.high
    if answer.timestamp == LATEST:
        if replica.high < replica.epoch_start:
            return (
                f"its high watermark {replica.high} is below {replica.epoch_start}, where its "
                "epoch begins, so a former leader may have stated a later end"
            )
        if answer.epoch not in (NONE, replica.epoch):
            return _differs("its leader epoch", replica.epoch, answer.epoch)
        return _differs("the end for this reader", limit, answer.offset)
    if 0 <= answer.offset < replica.start:
        return f"offset {answer.offset} is below {replica.start}, the start of the log"
    if not replica.is_read:
        return None
    stored = [
        batch for batch in replica.batches if batch.next > replica.start and not batch.is_empty
    ]
    if answer.timestamp == LARGEST:
        return _of_largest_time(replica, stored, limit, answer)
    return _of_time(replica, stored, limit, answer)


def _of_largest_time(
    replica: Replica, stored: Sequence[StoredBatch], limit: int, answer: Listed
) -> str | None:
    largest = max((batch.largest_ms for batch in stored), default=NONE)
    having = [batch for batch in stored if batch.largest_ms == largest]
    if any(batch.base < replica.start for batch in having):
        return None  # the record with that time may be deleted
    if answer.offset == NONE:
        if having and all(batch.next <= limit for batch in having):
            return f"no record was found, but offsets from {having[0].base} have time {largest}"
        return None
    if answer.offset >= limit:
        return f"offset {answer.offset} is not below {limit}, the end for this reader"
    if answer.found_ms != largest:
        return _differs("the largest time", largest, answer.found_ms)
    return None if _within(having, answer) else f"offset {answer.offset} does not have {largest}"


def _of_time(
    replica: Replica, stored: Sequence[StoredBatch], limit: int, answer: Listed
) -> str | None:
    later = [batch for batch in stored if batch.largest_ms >= answer.timestamp]
    if later and later[0].base < replica.start:
        return None  # the record with that time may be deleted
    if answer.offset == NONE:
        if later and later[0].next <= limit:
            return f"no record was found, but one from offset {later[0].base} on is late enough"
        return None
    if answer.found_ms < answer.timestamp:
        return f"the record has time {answer.found_ms}, before {answer.timestamp}"
    if answer.offset >= limit:
        return f"offset {answer.offset} is not below {limit}, the end for this reader"
    if not later or not _within(later[:1], answer):
        base = later[0].base if later else "none"
        return f"offset {answer.offset}, but the first batch that is late enough begins at {base}"
    return None


def _within(batches: Sequence[StoredBatch], answer: Listed) -> bool:
    """Whether one of these batches has the offset, the time and the epoch of an answer."""
    return any(
        batch.base <= answer.offset < batch.next
        and answer.found_ms <= batch.largest_ms
        and answer.epoch in (NONE, batch.epoch)
        for batch in batches
    )


def first_in_batch(records: Sequence[StoredRecord], answer: Listed) -> str | None:
    """Return how an answer by time differs from the records of its batch, or ``None``."""
    wanted_ms = answer.timestamp
    if wanted_ms == LARGEST:
        wanted_ms = max((record.time_ms for record in records), default=NONE)
    first = next((record for record in records if record.time_ms >= wanted_ms), None)
    if first is None or first == (answer.offset, answer.found_ms):
        return None
    return (
        f"offset {answer.offset} with time {answer.found_ms}, but the first record of its batch "
        f"that is late enough is at {first.offset}, with time {first.time_ms}"
    )


def epoch_end(replica: Replica, answer: EpochEnd) -> str | None:
    """Return how an answer of OffsetForLeaderEpoch differs from the log, or ``None``."""
    stored = [batch for batch in replica.batches if batch.next > replica.start]
    if not stored or answer.wanted < stored[0].epoch or not replica.is_whole:
        return None
    if answer.wanted > replica.epoch:
        return None if answer.epoch == NONE else "a later epoch than its own cannot have ended"
    if answer.wanted == replica.epoch != answer.epoch:
        return f"it leads in epoch {replica.epoch}, and does not know it"
    if answer.epoch == NONE:
        return f"its log has records of epoch {stored[0].epoch}, so it knows where that one ends"
    later = [batch.base for batch in stored if batch.epoch > answer.wanted]
    end = later[0] if later else replica.end
    if answer.epoch > answer.wanted or any(
        answer.epoch < batch.epoch <= answer.wanted for batch in stored
    ):
        return f"epoch {answer.epoch} is not the last one up to {answer.wanted}"
    if answer.epoch != replica.epoch and all(batch.epoch != answer.epoch for batch in stored):
        return f"no record of its log has the epoch {answer.epoch}"
    return _differs(f"the end of epoch {answer.wanted}", end, answer.end)


def read(before: Replica, now: Replica, answer: Read) -> str | None:
    """Return how the answer to a fetch differs from the log, or ``None``.

    ``before`` is the replica when the fetch arrived, in the same role and leader epoch.
    """
    if answer.is_out_of_range:
        if before.start <= answer.offset <= before.end and now.start <= answer.offset <= now.end:
            return f"offset {answer.offset} is out of range, but {now.start} to {now.end} exist"
        return None
    if not now.is_leader and answer.high > max(before.high, now.high):
        return f"it stated the high watermark {answer.high}, but its own is {now.high}"
    if now.is_leader and answer.stable > now.stable:
        return f"it stated the stable offset {answer.stable}, but its own is {now.stable}"
    if answer.start > now.start:
        return f"it stated {answer.start} as the start of the log, which is {now.start}"
    if not answer.batches or not now.is_whole:
        return None
    first = bisect_right(now.batches, answer.offset, key=lambda batch: batch.next)
    kept = now.batches[first : first + len(answer.batches)]
    for given, batch in zip(answer.batches, kept, strict=False):
        if given != (batch.base, batch.next, batch.crc):
            return (
                f"it returned a batch from {given[0]} to {given[1]}; next in its log is the one "
                f"from {batch.base} to {batch.next}"
            )
    return None


class ProducerBatch(NamedTuple):
    """A batch of an idempotent producer, as sent or as stored."""

    producer: int
    epoch: int
    first: int
    """The sequence number of its first record."""
    records: int


SEQUENCES: Final = 1 << 31
PRODUCERS_CODEC: Final = -1
"""``compression.type=producer``: the codec with which the producer has sent the batch."""


def acknowledged(
    sent: ProducerBatch,
    stored: ProducerBatch | None,
    before: ProducerBatch | None,
    *,
    in_sequence: bool,
) -> str | None:
    """Return how a batch that was acknowledged differs from the log, or ``None``.

    Args:
        sent: the batch.
        stored: the batch at the offset in the answer; None if there is none.
        before: the last earlier batch of the producer in the log; None if there is none.
        in_sequence: whether sequence numbers have to follow each other.
    """
    if stored is None:
        return "its log has no batch at the offset in the answer"
    if stored != sent:
        return f"it acknowledged {sent}, and its log has {stored}"
    if before is None or not in_sequence:
        return None
    if before.epoch > sent.epoch:
        return f"{sent} follows a batch of the later epoch {before.epoch}"
    is_same = before.epoch == sent.epoch
    wanted = (before.first + before.records) % SEQUENCES if is_same else 0
    return None if sent.first == wanted else f"{sent}, but sequence {wanted} was next"


def stamped(answered_ms: int, *, is_stamped: bool, stored_ms: int) -> str | None:
    """Return how the time of an acknowledged batch differs from the log, or ``None``.

    Args:
        answered_ms: the LogAppendTime in the answer; -1 if there is none.
        is_stamped: whether the batch in the log has the timestamp type LogAppendTime.
        stored_ms: its largest time.
    """
    if answered_ms < 0 or (is_stamped and stored_ms == answered_ms):
        return None
    type_ = "LogAppendTime" if is_stamped else "CreateTime"
    return f"it answered LogAppendTime {answered_ms}, and its log has {type_} {stored_ms}"


class Format(NamedTuple):
    """How a batch is stored."""

    codec: int
    """The number of the codec in the batch's attributes; 0: it is not compressed."""
    is_stamped: bool
    """Whether its timestamp type is LogAppendTime."""


def formatted(found: Format, sent: Format, configured: Format) -> str | None:
    """Return how the format of an acknowledged batch differs from the settings, or ``None``.

    Args:
        found: the format in the log.
        sent: that in which the producer has sent the batch.
        configured: what ``compression.type`` (`PRODUCERS_CODEC` for ``producer``) and
            ``message.timestamp.type`` demand.
    """
    wanted = sent.codec if configured.codec == PRODUCERS_CODEC else configured.codec
    if found.codec != wanted:
        return (
            f"its log has a batch with codec {found.codec}, and compression.type asks for {wanted}"
        )
    if found.is_stamped != configured.is_stamped:
        types = "CreateTime", "LogAppendTime"
        own, right = types[found.is_stamped], types[configured.is_stamped]
        return f"its log has a batch with {own}, and message.timestamp.type is {right}"
    return None


def left_out(was: Replica, end: int, offset: int, epoch: int) -> str | None:
    """Return why an incremental fetch response must not be without this partition, or ``None``.

    Args:
        was: the replica when the request arrived, which named no other partition.
        end: where its records ended for this reader.
        offset: where the read was to begin.
        epoch: the leader epoch in the request; -1 if none.
    """
    if epoch not in (NONE, was.epoch):
        return "the response is without a partition whose leader epoch the request does not know"
    if not was.is_leader or not was.start <= offset < end:
        return None
    return f"the response leaves out the records from offset {offset} on, which end at {end}"


def preferred(
    leader: int, isr: Sequence[int], racks: Mapping[int, str], rack: str, chosen: int
) -> str | None:
    """Return why a leader must not prefer this replica for a reader in ``rack``, or ``None``."""
    if chosen == leader:
        return "it prefers itself, so the reader would ask again for ever"
    if chosen not in isr:
        return f"it prefers broker {chosen}, which is not in the ISR {list(isr)}"
    if chosen in racks and racks[chosen] != rack:
        return f"it prefers broker {chosen} in rack {racks[chosen]} for a reader in {rack}"
    return None


def held(chosen: int, start: int, end: int, offset: int) -> str | None:
    """Return why a leader must not prefer this replica for a fetch from ``offset``, or ``None``.

    start, end: where the replica's log begins and ends, as the leader knows; -1: it does not.
    """
    if start <= offset <= end:
        return None
    return f"it prefers broker {chosen}, which has {start} to {end}, for a fetch from {offset}"


def _differs(what: str, right: int, given: int) -> str | None:
    return None if given == right else f"{what} is {right}, but it answered {given}"
