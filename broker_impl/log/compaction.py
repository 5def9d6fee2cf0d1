"""The rules of log compaction: a log keeps each record key's last record, and what is still needed.

Compaction never changes offsets, only which of them still have a record. A pass reads the keys of
the part that is new since the last pass (``OffsetMap``), and copies the log from its start to there
without records that a later record of their key replaces, and without those of aborted
transactions. What a reader may have to see stays for ``delete.retention.ms`` after the pass that
found it to be the last: tombstones, and markers of transactions without a record (KIP-534). The
batch by which a producer is known stays, without its records, and so does the first batch of each
leader epoch but the first. Every other batch is removed with its last record, except the one that
marks the end of the log (KAFKA-17076).
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from broker_impl.log import aborted_index
from broker_impl.log.aborted_index import AbortedTransaction, Marker
from broker_impl.log.config import INT64_MAX, LogConfig
from broker_impl.log.epochs import EpochStart
from broker_impl.log.producers import ProducerEntry
from broker_impl.log.segment import RELATIVE_OFFSET_MAX
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record
from broker_impl.wire.types import Offset

# -- when a log is compacted, and up to which offset -----------------------------------------------


class Extent(NamedTuple):
    """The facts about a closed segment by which the cleaner selects what to compact."""

    next_offset: Offset
    size: int
    newest_ms: int
    """The largest timestamp in the segment."""
    first_ms: int = -1
    """The timestamp of its first batch; -1: it has none, or it does not matter."""


def limit(high_watermark: Offset, last_stable_offset: Offset) -> Offset:
    """The offset from which on records must stay: they may be truncated, or be aborted (T1)."""
    return min(high_watermark, last_stable_offset)


def cleanable(
    closed: Iterable[Extent], end: Offset, now_ms: int, config: LogConfig
) -> Iterator[Extent]:
    """The first closed segments, as many as are below ``end`` and old enough."""
    for extent in closed:
        if extent.next_offset > end:
            return
        if not has_lagged(extent.newest_ms, now_ms, config.min_compaction_lag_ms):
            return
        yield extent


def has_lagged(newest_ms: int, now_ms: int, lag_ms: int) -> bool:
    """Is the newest record of a segment old enough for a pass that reads it (KIP-58)?"""
    return lag_ms <= 0 or newest_ms <= now_ms - lag_ms


def has_max_lag(config: LogConfig) -> bool:
    """Must a new record be compacted after some time, however small the new part is (KIP-354)?"""
    return config.max_compaction_lag_ms < INT64_MAX


def dirty_after_cut(first_dirty: Offset, end: Offset) -> Offset:
    """The start of the part that no pass has read, in a log that was truncated to ``end``.

    Records that are appended later are new, whatever had these offsets before (KAFKA-3330).
    """
    return min(first_dirty, end)


def dirty_ratio(extents: Iterable[Extent], dirty: Offset) -> float:
    """The share of these bytes, between 0 and 1, in segments that end after ``dirty``."""
    total = new = 0
    for extent in extents:
        total += extent.size
        if extent.next_offset > dirty:
            new += extent.size
    return new / total if new else 0.0


def is_due(extents: list[Extent], dirty: Offset, now_ms: int, config: LogConfig) -> bool:
    """Is a pass due, because enough of the log is new, or a new record has waited for too long?

    The first record of a segment has waited for longest (KIP-354).
    """
    ratio = dirty_ratio(extents, dirty)
    if not ratio:
        return False
    if ratio > config.min_cleanable_dirty_ratio:
        return True
    begun = [each.first_ms for each in extents if each.next_offset > dirty and each.first_ms > 0]
    return bool(begun) and now_ms - min(begun) > config.max_compaction_lag_ms


# -- which records stay ----------------------------------------------------------------------------


class OffsetMap:
    """The last offset of each record key, for a limited number of keys."""

    def __init__(self, keys_max: int) -> None:
        self.end: Offset = 0
        """All records below were read, so a key that is missing here has no record there."""
        self._keys_max = keys_max
        self._last: dict[bytes, Offset] = {}

    def put(self, key: bytes, offset: Offset) -> bool:
        """Store a later record of a key; False: there is no room for another key."""
        if key not in self._last and len(self._last) >= self._keys_max:
            return False
        self._last[key] = offset
        return True

    def get(self, key: bytes) -> Offset:
        """The last offset of the key; -1: it does not occur."""
        return self._last.get(key, -1)


def has_keys(header: BatchHeader) -> bool:
    """Does this batch have keys of users? A marker's own key must not count (KAFKA-14055)."""
    return not header.is_control


class Fates:
    """The state of transactions along a log, up to where a pass has read it.

    There is one for a whole pass: a transaction may span many segments (KAFKA-8351).
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """aborted: the transactions with an abort marker in the part that is read."""
        self._coming = deque(sorted(aborted, key=_first_offset))
        self._aborted: dict[int, AbortedTransaction] = {}
        self._seen: dict[int, None] = {}  # producers whose records were read

    def is_aborted(self, header: BatchHeader) -> bool:
        """Take in a batch of records; does it belong to an aborted transaction?"""
        self._go_on(header.last_offset)
        if not header.is_transactional:
            return False
        self._seen[header.producer_id] = None
        return header.producer_id in self._aborted

    def ended(
        self, header: BatchHeader, marker: Marker | None
    ) -> tuple[bool, AbortedTransaction | None]:
        """Take in a control batch: is no batch of its transaction left? Which one does it abort?

        The aborted transaction is returned only if a batch of it is left.
        """
        self._go_on(header.last_offset)
        if marker is None:
            return False, None
        had_batches = header.producer_id in self._seen
        self._seen.pop(header.producer_id, None)
        aborted = self._aborted.pop(header.producer_id, None)
        return not had_batches, aborted if had_batches else None

    def _go_on(self, offset: Offset) -> None:
        while self._coming and self._coming[0].first_offset <= offset:
            transaction = self._coming.popleft()
            self._aborted[transaction.producer_id] = transaction


def carried(fates: Fates) -> Fates:
    """The state of transactions where one copy ends and the next begins: unchanged."""
    return fates


def delete_horizon(known: int | None, now_ms: int, retention_ms: int) -> int:
    """When a tombstone or marker may be removed; set once, by the first pass that reads it."""
    return now_ms + retention_ms if known is None else known


def may_go(horizon_ms: int | None, now_ms: int) -> bool:
    """Has the delete horizon passed? Not before a pass has set it."""
    return horizon_ms is not None and horizon_ms < now_ms


def keeps(record: Record, last: Offset, horizon_ms: int | None, now_ms: int) -> bool:
    """Does a record stay? Only the last of its key, and a tombstone only for a time.

    A record without a key does not stay. last: the offset of the last record with its key, of those
    that the pass has read; -1: it has read none.
    """
    if record.key is None or record.offset < last:
        return False
    return record.value is not None or not may_go(horizon_ms, now_ms)


def is_last_of_producer(header: BatchHeader, entry: ProducerEntry | None) -> bool:
    """Is this the batch by which its producer is known?

    Without it, a retry could not be distinguished from a new batch (KAFKA-5490).
    """
    if entry is None:
        return False
    if entry.batches:
        return header.last_offset == entry.batches[-1].last_offset
    return header.is_control and header.producer_epoch == entry.epoch


def begins_epoch(header: BatchHeader, epochs: Sequence[EpochStart]) -> bool:
    """Is this the first batch of a leader epoch, and not of the first one that the log knows?

    A replica that copies the log knows an epoch by its batches. If it lacks one and leads, its
    answer to a follower that has this epoch names an earlier one (KIP-279), and the follower
    truncates what is committed. Without any earlier epoch the answer names none, and the follower
    keeps what is committed.
    """
    epoch, first, last = header.partition_leader_epoch, header.base_offset, header.last_offset
    return any(each.epoch == epoch and first <= each.start <= last for each in epochs[1:])


def stays_whole(header: BatchHeader, end: Offset) -> bool:
    """Does a batch keep the records that it would lose, because no committed batch follows it?

    end: nothing at or after it may be compacted. What is there may still be truncated, and then
    this batch alone marks the end of the log: without it, a replica that copies the log could not
    reach that offset, and would use it again as the leader (KAFKA-17076). Only a tombstone, a
    marker or records of an aborted transaction can be concerned. The batch is removed by a later
    pass, when more batches follow it. Without its records the batch would mark the end as well, but
    clients that count records would never reach it.
    """
    return header.next_offset >= end


class Verdict(NamedTuple):
    """The decision about one batch."""

    records: list[Record] | None
    """The records that stay; None: all of them, and the batch is copied unchanged."""
    delete_horizon_ms: int | None = None
    """The delete horizon to set in the batch."""
    aborted: AbortedTransaction | None = None
    """The aborted transaction that this marker ends, if readers must still learn of it."""


AS_IT_IS: Final = Verdict(None)


def judge(
    header: BatchHeader,
    data: bytes,
    offsets: OffsetMap,
    fates: Fates,
    now_ms: int,
    config: LogConfig,
) -> Verdict:
    """Decide which records of a batch stay, and take the batch into ``fates``."""
    if not has_keys(header):
        return _judge_marker(header, data, fates, now_ms, config)
    is_aborted = fates.is_aborted(header)
    if header.base_offset >= offsets.end and not is_aborted:
        return AS_IT_IS
    horizon = header.delete_horizon_ms
    found = batch.records(data)
    kept = [
        record
        for record in found
        if not is_aborted
        and (
            record.offset >= offsets.end
            or keeps(record, offsets.get(record.key or b""), horizon, now_ms)
        )
    ]
    new_horizon = horizon
    if any(record.value is None for record in kept):
        new_horizon = delete_horizon(horizon, now_ms, config.delete_retention_ms)
    if len(kept) == len(found) and new_horizon == horizon:
        return AS_IT_IS
    return Verdict(kept, new_horizon)


def _judge_marker(
    header: BatchHeader, data: bytes, fates: Fates, now_ms: int, config: LogConfig
) -> Verdict:
    is_of_nothing, aborted = fates.ended(header, aborted_index.decode_marker(data))
    if not is_of_nothing:
        return Verdict(None, aborted=aborted)
    known = header.delete_horizon_ms
    if may_go(known, now_ms):
        return Verdict([])
    horizon = delete_horizon(known, now_ms, config.delete_retention_ms)
    return AS_IT_IS if horizon == known else Verdict(batch.records(data), horizon)


def aborted_in(known: Iterable[AbortedTransaction], end: Offset) -> Iterable[AbortedTransaction]:
    """The aborted transactions that a pass needs, which has read keys up to ``end``: all of them.

    Markers come after their records, possibly after ``end``; and the indexes of copied segments are
    rebuilt, when no other source says what was aborted (KAFKA-13727).
    """
    return known


def not_ended_before(
    known: Iterable[AbortedTransaction], start: Offset
) -> Iterable[AbortedTransaction]:
    """The aborted transactions that matter to a reader that begins at ``start``.

    It never reads the marker of an earlier one, so that it would take the next transaction of that
    one's producer for aborted.
    """
    return (each for each in known if each.last_offset >= start)


def goes_on(config: LogConfig) -> bool:
    """May a running pass replace segments? Not once the topic is no longer compacted.

    Records that are not the last of their key must stay then (KAFKA-12840).
    """
    return config.is_compacted


def fits(sizes: int, size: int, first: Offset, next_offset: Offset, config: LogConfig) -> bool:
    """May a segment of ``size`` bytes join the copy that begins at ``first``?

    sizes: the bytes of the segments that are in the copy already.
    """
    return sizes + size <= config.segment_bytes and next_offset - 1 - first <= RELATIVE_OFFSET_MAX


def _first_offset(transaction: AbortedTransaction) -> Offset:
    return transaction.first_offset
