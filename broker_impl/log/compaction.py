"""What a compacted log keeps: the last record of each key, and what is still needed besides.

Offsets never change, only which of them still have a record. A pass reads the keys of the part that
is new since the last one (``OffsetMap``), and copies the log from its start to there: without
records that a later one of their key replaces, without those of aborted transactions. What a reader
may have to hear of stays for ``delete.retention.ms`` after the pass that found it to be the last:
tombstones, and markers of transactions without a record (KIP-534). The batch by which a producer is
known stays without its records. Every other batch goes with its last record, but for the one that
says where the log ends (KAFKA-17076).
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from broker_impl.log import transactions
from broker_impl.log.config import LogConfig
from broker_impl.log.producers import ProducerEntry
from broker_impl.log.transactions import AbortedTransaction, Marker
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record
from broker_impl.wire.types import Offset

_RELATIVE_OFFSET_MAX: Final = 2**31 - 1


# -- when, and how far -----------------------------------------------------------------------------


class Extent(NamedTuple):
    """A closed segment, as what is to be compacted is chosen."""

    next_offset: Offset
    size: int
    newest_ms: int
    """The largest timestamp in it."""


def limit(high_watermark: Offset, last_stable_offset: Offset) -> Offset:
    """What lies here or later must stay: it may be taken back, or be aborted (T1)."""
    return min(high_watermark, last_stable_offset)


def cleanable(
    closed: Iterable[Extent], end: Offset, now_ms: int, config: LogConfig
) -> Iterator[Extent]:
    """The first of the closed segments, as many as lie below ``end`` and are old enough."""
    for extent in closed:
        if extent.next_offset > end:
            return
        lag = config.min_compaction_lag_ms
        if lag > 0 and extent.newest_ms > now_ms - lag:
            return
        yield extent


def dirty_after_cut(first_dirty: Offset, end: Offset) -> Offset:
    """Where the part begins that no pass has read, of a log that ends here since it was cut.

    What will be appended behind is new, whatever lay there once (KAFKA-3330).
    """
    return min(first_dirty, end)


def dirty_ratio(extents: Iterable[Extent], dirty: Offset) -> float:
    """How much of these bytes, between 0 and 1, lies behind ``dirty``."""
    total = new = 0
    for extent in extents:
        total += extent.size
        if extent.next_offset > dirty:
            new += extent.size
    return new / total if new else 0.0


def is_due(extents: list[Extent], dirty: Offset, now_ms: int, config: LogConfig) -> bool:
    """Is there enough that is new, or something that has waited for too long?"""
    ratio = dirty_ratio(extents, dirty)
    if not ratio:
        return False
    if ratio > config.min_cleanable_dirty_ratio:
        return True
    oldest = next(extent.newest_ms for extent in extents if extent.next_offset > dirty)
    return now_ms - oldest > config.max_compaction_lag_ms


# -- what ------------------------------------------------------------------------------------------


class OffsetMap:
    """The last offset of each key, of as many keys as there is room for."""

    def __init__(self, keys_max: int) -> None:
        self.end: Offset = 0
        """Everything below was read: what is not here is no key's last record."""
        self._keys_max = keys_max
        self._last: dict[bytes, Offset] = {}

    def put(self, key: bytes, offset: Offset) -> bool:
        """A later record of a key; False: there is no room for another key."""
        if key not in self._last and len(self._last) >= self._keys_max:
            return False
        self._last[key] = offset
        return True

    def get(self, key: bytes) -> Offset:
        """The last offset of the key; -1: it does not occur."""
        return self._last.get(key, -1)


def has_keys(header: BatchHeader) -> bool:
    """Are the keys in this batch those of users? A marker has one of its own (KAFKA-14055)."""
    return not header.is_control


class Fates:
    """What becomes of transactions along a log, as far as a pass has read it.

    One for a whole pass: a transaction may span many segments (KAFKA-8351).
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """aborted: those with a marker in what is read."""
        self._coming = deque(sorted(aborted, key=_first_offset))
        self._aborted: dict[int, AbortedTransaction] = {}
        self._seen: dict[int, None] = {}  # whose records were met

    def is_aborted(self, header: BatchHeader) -> bool:
        """A batch of records comes: is it of an aborted transaction?"""
        self._go_on(header.last_offset)
        if not header.is_transactional:
            return False
        self._seen[header.producer_id] = None
        return header.producer_id in self._aborted

    def ended(
        self, header: BatchHeader, marker: Marker | None
    ) -> tuple[bool, AbortedTransaction | None]:
        """A control batch comes: does it end a transaction of which no batch is left? And which
        aborted one does it end of which there is one?"""
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
    """What is known of transactions where one copy ends and the next begins: the same."""
    return fates


def delete_horizon(known: int | None, now_ms: int, retention_ms: int) -> int:
    """From when on a tombstone or marker may go: decided once, by the first pass that meets it."""
    return now_ms + retention_ms if known is None else known


def may_go(horizon_ms: int | None, now_ms: int) -> bool:
    """Has everybody had the time to hear of it? Not before a pass has decided until when."""
    return horizon_ms is not None and horizon_ms < now_ms


def keeps(record: Record, last: Offset, horizon_ms: int | None, now_ms: int) -> bool:
    """Does a record stay? Not without a key, nor when a later one has it; a tombstone for a time.

    last: the offset of the last record with its key, of those that the pass has read; -1: it has
    read none.
    """
    if record.key is None or record.offset < last:
        return False
    return record.value is not None or not may_go(horizon_ms, now_ms)


def is_last_of_producer(header: BatchHeader, entry: ProducerEntry | None) -> bool:
    """Is it by this batch that its producer is known? Without it, a retry could not be told from
    what is new (KAFKA-5490)."""
    if entry is None:
        return False
    if entry.batches:
        return header.last_offset == entry.batches[-1].last_offset
    return header.is_control and header.producer_epoch == entry.epoch


def stays_whole(header: BatchHeader, end: Offset) -> bool:
    """Does a batch keep the records that it would lose, since no committed batch is behind it?

    end: nothing at or behind it may be compacted. What is there may still be taken back, and then
    this batch alone says where the log ends: a replica that copies the log could not come to that
    offset, and would use it again as the leader (KAFKA-17076). Only a tombstone or a marker can be
    concerned. It goes with a later pass, when there is more behind it. Without its records the
    batch would say the same, but clients that count records would never come to the end.
    """
    return header.next_offset >= end


class Verdict(NamedTuple):
    """What becomes of one batch."""

    records: list[Record] | None
    """Those that stay; None: all of them, and the batch is copied as it is."""
    delete_horizon_ms: int | None = None
    """To be set."""
    aborted: AbortedTransaction | None = None
    """It is the marker of this transaction, which readers must still be told of."""


AS_IT_IS: Final = Verdict(None)


def judge(
    header: BatchHeader,
    data: bytes,
    offsets: OffsetMap,
    fates: Fates,
    now_ms: int,
    config: LogConfig,
) -> Verdict:
    """Which records of a batch stay. ``fates`` takes it in."""
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
    is_of_nothing, aborted = fates.ended(header, transactions.decode_marker(data))
    if not is_of_nothing:
        return Verdict(None, aborted=aborted)
    known = header.delete_horizon_ms
    if may_go(known, now_ms):
        return Verdict([])
    horizon = delete_horizon(known, now_ms, config.delete_retention_ms)
    return AS_IT_IS if horizon == known else Verdict(batch.records(data), horizon)


def aborted_in(known: Iterable[AbortedTransaction], end: Offset) -> Iterable[AbortedTransaction]:
    """Which of a log's aborted transactions matter to a pass that has read keys up to ``end``: all.

    Markers lie behind their records, also behind ``end``; and the indexes of the segments that are
    copied are made anew, when nothing else says what was aborted (KAFKA-13727).
    """
    return known


def goes_on(config: LogConfig) -> bool:
    """May a pass that is under way replace segments? Not once the topic is no longer compacted:
    records that are not the last of their key are to stay then (KAFKA-12840)."""
    return config.is_compacted


def fits(sizes: int, size: int, first: Offset, next_offset: Offset, config: LogConfig) -> bool:
    """May a segment of ``size`` bytes be copied into the one that begins at ``first`` and has
    ``sizes`` already?"""
    return sizes + size <= config.segment_bytes and next_offset - 1 - first <= _RELATIVE_OFFSET_MAX


def _first_offset(transaction: AbortedTransaction) -> Offset:
    return transaction.first_offset
