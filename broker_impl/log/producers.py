"""The state that a log keeps about each idempotent producer, to recognize retried batches.

Per producer: its epoch and its last five batches (a client has at most five requests in flight).
The state at an offset is a fold over the log up to there, on every replica (KIP-98, KIP-360).

Known gap, as in Kafka: a producer without state here may start with any sequence number, because
its state may have expired; so a lost first batch can pass unnoticed (KAFKA-14904).

Here, a transaction is open from a producer's first transactional batch to its coordinator's marker.
"""

import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.log import aborted_index
from broker_impl.log.aborted_index import AbortedTransaction, Marker
from broker_impl.wire.batch import BatchHeader, sequence_after
from broker_impl.wire.types import Epoch, Offset

BATCHES_REMEMBERED: Final = 5
NO_SEQUENCE: Final = -1

_SNAPSHOT_VERSION: Final = 1
_SNAPSHOT_HEAD: Final = struct.Struct(">hI")  # version, CRC of all that follows
_COUNT: Final = struct.Struct(">i")
_ROW: Final = struct.Struct(">qhiqiqiq")
_NO_COORDINATOR: Final = -1
_NO_OFFSET: Final = -1


class MalformedSnapshot(ValueError):
    """A snapshot file that is torn, damaged or of another version."""


class BatchMetadata(NamedTuple):
    """What identifies a batch as a duplicate, and what the answer to a duplicate needs."""

    last_sequence: int
    last_offset: Offset
    offset_delta: int
    """Last offset minus first offset."""
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        """The sequence number of the first record."""
        return sequence_after(self.last_sequence, -self.offset_delta)

    @property
    def first_offset(self) -> Offset:
        """The offset of the first record."""
        return self.last_offset - self.offset_delta


@dataclass(slots=True)
class ProducerEntry:
    """One producer's epoch and last batches, oldest first; `batches` is empty after a marker."""

    epoch: Epoch
    batches: tuple[BatchMetadata, ...] = ()
    transaction_start: Offset | None = None
    """The first offset of the open transaction."""
    seen_ms: int = 0
    """When this broker last appended a batch of the producer; stored, but not replicated."""
    coordinator_epoch: Epoch = _NO_COORDINATOR
    """The coordinator epoch of the last marker; -1 without any."""

    @property
    def last_sequence(self) -> int:
        """The last sequence number; -1 if there is none in this epoch."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


def check_sequence(entry: ProducerEntry | None, header: BatchHeader) -> BatchMetadata | None:
    """Check a producer's batch: the earlier batch that it duplicates, or None: append it.

    INVALID_PRODUCER_EPOCH: an older epoch than the known one. OUT_OF_ORDER_SEQUENCE_NUMBER: a gap,
    a step back before the remembered batches, or a new epoch that does not start at 0.
    """
    if entry is None:
        return None
    first, last = header.base_sequence, header.last_sequence
    if header.producer_epoch == entry.epoch:
        for batch in entry.batches:
            if batch.last_sequence == last and batch.first_sequence == first:
                return batch
    if header.producer_epoch < entry.epoch:
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {header.producer_id} has epoch {entry.epoch}, not {header.producer_epoch}",
        )
    is_new_epoch = header.producer_epoch > entry.epoch
    known = NO_SEQUENCE if is_new_epoch else entry.last_sequence
    if not (starts_epoch(first) if is_new_epoch else follows(known, first)):
        raise ApiError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} sent sequence {first} after {known}",
        )
    return None


def check_epoch(entry: ProducerEntry | None, header: BatchHeader) -> None:
    """Check a coordinator's append in a producer's name; ApiError: INVALID_PRODUCER_EPOCH.

    A coordinator uses no sequence numbers, so there is no sequence to check (P2).
    """
    if entry is not None and header.producer_epoch < entry.epoch:
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {header.producer_id} has epoch {entry.epoch}, not {header.producer_epoch}",
        )


def check_transactional(entry: ProducerEntry, header: BatchHeader) -> None:
    """Reject a non-transactional batch of a producer that has a transaction open.

    ApiError: INVALID_TXN_STATE.
    """
    if entry.transaction_start is not None and not header.is_transactional:
        raise ApiError(
            ErrorCode.INVALID_TXN_STATE,
            f"producer {header.producer_id} has an open transaction, but this batch is not "
            "part of it",
        )


def follows(last: int, first: int) -> bool:
    """Is a batch that begins with sequence number `first` the next one after `last`?

    last: -1 if there is none in this producer epoch.
    """
    return first == sequence_after(last, 1)


def starts_epoch(first: int) -> bool:
    """Is a batch that begins with sequence number `first` the first one of a new producer epoch?

    A later batch must wait for it: if it came first, the log would lack the batches before it.
    """
    return first == 0


def folds_replicated_batches() -> bool:
    """Are batches that this replica fetches, or reads at start, added to the producer state?

    They must be: a producer's retry may reach the next leader, or this one after a restart.
    """
    return True


def stored_start(start: Offset | None) -> Offset:
    """The start of a producer's open transaction, as stored in a snapshot; -1: none is open."""
    return _NO_OFFSET if start is None else start


def stored_coordinator(epoch: Epoch) -> Epoch:
    """The coordinator epoch of a producer's last marker, as stored in a snapshot."""
    return epoch


def silent_since_ms(entry: ProducerEntry) -> int:
    """When a producer's last batch arrived, on this broker's clock.

    The timestamps of its records are not used: they may be wrong, or old (KAFKA-9144).
    """
    return entry.seen_ms


def may_expire(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    """May a producer be removed: was it silent for long enough, without an open transaction?

    However long a transaction is open, its marker must find where it began (KIP-98).
    """
    return entry.transaction_start is None and now_ms - silent_since_ms(entry) >= expiration_ms


def open_transactions(entries: Mapping[int, ProducerEntry]) -> dict[int, Offset]:
    """The starts of the open transactions by producer id, in the order of the log.

    Read_committed consumers read up to the first of them (KIP-98).
    """
    starts = (
        (entry.transaction_start, number)
        for number, entry in entries.items()
        if entry.transaction_start is not None
    )
    return {number: start for start, number in sorted(starts)}


class _Ended(NamedTuple):
    """A transaction that has ended in this log, but perhaps not yet on all replicas."""

    first_offset: Offset
    marker: Offset


class ProducerStates:
    """The state of all producers of one log."""

    def __init__(self, entries: dict[int, ProducerEntry] | None = None) -> None:
        self.entries: dict[int, ProducerEntry] = entries or {}
        """The entries by producer id."""
        self._open = open_transactions(self.entries)
        self._ended: deque[_Ended] = deque()
        self._guards: dict[int, int] = {}
        self._guards_given = 0
        self._guards_expired = 0

    def first_unstable(self, high_watermark: Offset) -> Offset | None:
        """The start of the oldest transaction that has not ended for readers; None: all have.

        These are transactions without a marker, or with one that is not committed yet (T1).
        """
        ended = self._ended
        if not ended and not self._open:
            return None
        self.settle(high_watermark)
        first_open = next(iter(self._open.values()), None)  # in the order of the log
        if not ended:
            return first_open
        first_ended = min(each.first_offset for each in ended)
        return first_ended if first_open is None else min(first_ended, first_open)

    def settle(self, high_watermark: Offset) -> None:
        """Forget the transactions that have ended for readers, because their markers are committed.

        In a log that is not read, there is no other occasion.
        """
        while self._ended and self._ended[0].marker < high_watermark:
            self._ended.popleft()

    @property
    def unsettled(self) -> int:
        """How many transactions have ended that readers may still take for open."""
        return len(self._ended)

    def guard(self, producer_id: int) -> int | None:
        """A guard to pass with the first batch of a transaction, once the transaction is verified.

        None while a transaction of the producer is open here: no verification is needed then.
        """
        if producer_id in self._open:
            return None
        if producer_id not in self._guards:
            self._guards_given += 1
            self._guards[producer_id] = self._guards_given
        return self._guards[producer_id]

    def follow(self, former: "ProducerStates") -> None:
        """Continue the guards' numbering after a truncation, so that older guards stay invalid."""
        self._guards_given = self._guards_expired = former._guards_given

    def check_verified(self, header: BatchHeader, guard: int | None) -> None:
        """Reject a batch that begins an unverified transaction; ApiError: INVALID_TXN_STATE."""
        if header.is_transactional and header.producer_id not in self._open:
            aborted_index.refuse_unverified(guard, self._guards.get(header.producer_id))

    def fold(
        self, header: BatchHeader, now_ms: int, marker: Marker | None = None
    ) -> AbortedTransaction | None:
        """Add a batch of the log to its producer's state; no batch is rejected (KAFKA-6003).

        marker: the content of a control batch. Returns the transaction that it aborts, if one was
        open.
        """
        entry = self.entries.get(header.producer_id)
        if entry is None:
            entry = self.entries[header.producer_id] = ProducerEntry(header.producer_epoch)
        elif entry.epoch != header.producer_epoch:
            entry.epoch = header.producer_epoch
            entry.batches = ()
        entry.seen_ms = now_ms
        if header.is_control:
            return self._end(header, entry, marker)
        if header.is_transactional and entry.transaction_start is None:
            entry.transaction_start = header.base_offset
            self._open[header.producer_id] = header.base_offset
            self._guards.pop(header.producer_id, None)
        if header.base_sequence < 0:
            return None  # a coordinator appended it
        batch = BatchMetadata(
            header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp
        )
        entry.batches = (*entry.batches[1 - BATCHES_REMEMBERED :], batch)
        return None

    def _end(
        self, header: BatchHeader, entry: ProducerEntry, marker: Marker | None
    ) -> AbortedTransaction | None:
        self._guards.pop(header.producer_id, None)
        started, entry.transaction_start = entry.transaction_start, None
        self._open.pop(header.producer_id, None)
        if marker is not None:
            entry.coordinator_epoch = marker.coordinator_epoch
        if started is None:
            return None
        self._ended.append(_Ended(started, header.last_offset))
        if marker is None or marker.is_commit:
            return None
        return AbortedTransaction(
            header.producer_id,
            started,
            header.last_offset,
            aborted_index.stable_after(header.last_offset, self._open.values()),
        )

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Remove producers that were silent for `expiration_ms` and have no transaction open.

        Unused guards that were given out before the previous call are removed, too.
        """
        silent = [
            producer_id
            for producer_id, entry in self.entries.items()
            if may_expire(entry, now_ms, expiration_ms)
        ]
        for producer_id in silent:
            del self.entries[producer_id]
        given, self._guards_expired = self._guards_expired, self._guards_given
        self._guards = {number: guard for number, guard in self._guards.items() if guard > given}

    def clear(self) -> None:
        """Remove all producers."""
        self.entries.clear()
        self._open.clear()
        self._ended.clear()
        self._guards.clear()

    def encode(self) -> bytes:
        """Encode a snapshot in Kafka's format.

        A producer has a row without a batch, whose timestamp is when it was last seen, and a row
        for each remembered batch, oldest first. Kafka reads the last row of a producer and
        remembers one batch, this broker remembers them all.
        """
        rows = b"".join(
            _ROW.pack(
                producer_id,
                entry.epoch,
                *(batch.last_sequence, batch.last_offset, batch.offset_delta, batch.timestamp_ms),
                stored_coordinator(entry.coordinator_epoch),
                stored_start(entry.transaction_start),
            )
            for producer_id, entry in self.entries.items()
            for batch in (_seen_at(entry.seen_ms), *entry.batches)
        )
        body = _COUNT.pack(len(rows) // _ROW.size) + rows
        return _SNAPSHOT_HEAD.pack(_SNAPSHOT_VERSION, crc32c(body)) + body

    @classmethod
    def decode(cls, snapshot: bytes, now_ms: int) -> "ProducerStates":
        """Decode a snapshot. MalformedSnapshot: it is torn, damaged or of another version.

        A producer whose time is unknown, or later than now, counts as seen now.
        """
        entries: dict[int, ProducerEntry] = {}
        for producer_id, epoch, sequence, offset, delta, timestamp, coordinator, start in _rows(
            snapshot
        ):
            entry = entries.setdefault(producer_id, ProducerEntry(epoch, seen_ms=now_ms))
            entry.epoch = epoch
            entry.coordinator_epoch = coordinator
            entry.transaction_start = None if start == _NO_OFFSET else start
            if sequence != NO_SEQUENCE:
                entry.batches += (BatchMetadata(sequence, offset, delta, timestamp),)
            elif 0 <= timestamp < now_ms:
                entry.seen_ms = timestamp
        return cls(entries)


def remembered(write: Callable[[], None], remember: Callable[[], None]) -> None:
    """Write a producer's batch, then add it to the producer state (KAFKA-6683).

    The write may fail; and it may begin a segment, with a snapshot of the state before the batch.
    """
    write()
    remember()


def copied(
    states: ProducerStates,
    headers: Sequence[BatchHeader],
    write: Callable[[], None],
    remember: Callable[[], None],
) -> None:
    """Write batches that a leader has accepted, then add them to the producer state.

    None is rejected: the leader may have state of a producer that has expired here (KAFKA-6003).
    """
    write()
    if folds_replicated_batches():
        remember()


def _seen_at(time_ms: int) -> BatchMetadata:
    return BatchMetadata(NO_SEQUENCE, _NO_OFFSET, 0, time_ms)


def _rows(snapshot: bytes) -> Iterator[tuple[int, ...]]:
    body = snapshot[_SNAPSHOT_HEAD.size :]
    if len(body) < _COUNT.size:
        raise MalformedSnapshot("the producer snapshot is truncated")
    version, crc = _SNAPSHOT_HEAD.unpack_from(snapshot)
    (count,) = _COUNT.unpack_from(body)
    if version != _SNAPSHOT_VERSION:
        raise MalformedSnapshot(f"the producer snapshot has the unknown version {version}")
    if crc != crc32c(body) or len(body) != _COUNT.size + count * _ROW.size:
        raise MalformedSnapshot("the producer snapshot is damaged")
    return _ROW.iter_unpack(body[_COUNT.size :])
