"""Transactions in a log: their markers, and an index of the aborted ones.

A marker is a control batch of one record (KIP-98). The open transactions of a log are part of its
producer state (`producers`). Each segment has an index of aborted transactions; from it,
read_committed consumers get the list of transactions whose records they must skip.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from broker_impl.errors import ApiError, ErrorCode, WireError
from broker_impl.log.disk import Disk, DiskFile
from broker_impl.wire import batch
from broker_impl.wire.batch import Record
from broker_impl.wire.types import Buffer, Epoch, Offset

ABORT, COMMIT = range(2)
"""Types of control records."""

_KEY: Final = struct.Struct(">hh")  # version, type
_VALUE: Final = struct.Struct(">hi")  # version, epoch of the coordinator
_ENTRY: Final = struct.Struct(">hqqqq")
_ENTRY_VERSION: Final = 0
_PLACE: Final = struct.Struct(">qi")  # base offset of a batch, and the length that follows
_LAST_DELTA: Final = struct.Struct(">i")
_LAST_DELTA_AT: Final = 23


class Marker(NamedTuple):
    """The end of a producer's transaction, as its coordinator decided it."""

    producer_id: int
    producer_epoch: Epoch
    is_commit: bool
    coordinator_epoch: Epoch
    """The leader epoch of the coordinator's partition of `__transaction_state`."""


class AbortedTransaction(NamedTuple):
    """A transaction whose records read_committed consumers must not see."""

    producer_id: int
    first_offset: Offset
    last_offset: Offset
    """The offset of its marker."""
    last_stable_offset: Offset
    """The last stable offset once this transaction had ended, as far as this log alone decides it:
    all aborted transactions below it are in the index at or before this entry."""


def encode_marker(marker: Marker, now_ms: int) -> bytes:
    """Encode the control batch that ends a transaction."""
    record = Record(
        _KEY.pack(0, COMMIT if marker.is_commit else ABORT),
        _VALUE.pack(0, marker.coordinator_epoch),
        now_ms,
    )
    return batch.encode_batch(
        [record],
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transactional=True,
        control=True,
    )


def decode_marker(data: Buffer) -> Marker | None:
    """The marker in a control batch; None: a control batch of another kind, or without a record.

    WireError: the record is malformed.
    """
    header = batch.parse_header(data)
    records = batch.records(data)
    if not records:
        return None  # compaction may leave a control batch empty (KAFKA-7467)
    key, value = records[0].key or b"", records[0].value or b""
    if len(key) < _KEY.size:
        raise WireError(f"the key of a control record has {len(key)} bytes")
    _, kind = _KEY.unpack_from(key)
    if kind not in (ABORT, COMMIT):
        return None
    if len(value) < _VALUE.size:
        raise WireError(f"a transaction marker has {len(value)} bytes")
    _, coordinator_epoch = _VALUE.unpack_from(value)
    return Marker(header.producer_id, header.producer_epoch, kind == COMMIT, coordinator_epoch)


def marker_refusal(
    producer_epoch: Epoch, known: Epoch, coordinator_epoch: Epoch, known_coordinator: Epoch
) -> ErrorCode:
    """Why a marker must not be appended; NONE: it may.

    A marker is rejected if its producer epoch is older than one seen here, or if another
    coordinator has sent markers since: that one may have decided otherwise.
    """
    if producer_epoch < known:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if coordinator_epoch < known_coordinator:
        return ErrorCode.TRANSACTION_COORDINATOR_FENCED
    return ErrorCode.NONE


def is_verified(enabled: bool) -> bool:
    """Must a transaction be verified with its coordinator before it begins in a log (KIP-890)?

    enabled: transaction.partition.verification.enable
    """
    return enabled


def refuse_unverified(guard: int | None, valid: int | None) -> None:
    """Reject a transaction's first batch unless the coordinator has verified the transaction.

    ApiError: INVALID_TXN_STATE (KIP-890). guard: the one that the verification was made with;
    valid: the guard that is required, None once a marker was written in between (KAFKA-14884).
    """
    if guard is None or guard != valid:
        raise ApiError(ErrorCode.INVALID_TXN_STATE, "no transaction is known to be open")


def stable_after(ended: Offset, open_starts: Iterable[Offset]) -> Offset:
    """The first offset of the transactions that are open after a marker at `ended`.

    If none is open, the offset after that marker. High watermarks do not matter, because replicas
    must agree.
    """
    return min(open_starts, default=ended + 1)


def is_kept(entry: AbortedTransaction, end: Offset) -> bool:
    """Does an entry of the index stay when its log is truncated to `end`?"""
    return entry.last_offset < end


def end_of(records: Sequence[memoryview]) -> Offset | None:
    """The offset after the last of these batches; None: there are none."""
    end: Offset | None = None
    for view in records:
        at = 0
        while at + batch.HEADER_BYTES <= len(view):
            base, length = _PLACE.unpack_from(view, at)
            (delta,) = _LAST_DELTA.unpack_from(view, at + _LAST_DELTA_AT)
            end = base + delta + 1
            at += _PLACE.size + length
    return end


class AbortedIndex:
    """The aborted transactions whose markers are in one segment, in the order of their markers.

    A file in Kafka's format (`.txnindex`), created with the first entry. All entries are also held
    in memory. Unlike the other indexes it is not a hint: a transaction that is missing here counts
    as committed.
    """

    def __init__(self, disk: Disk, directory: str, path: str) -> None:
        self._disk, self._directory, self.path = disk, directory, path
        self.entries: list[AbortedTransaction] = []
        self.is_stale = False
        """Was the index dropped while the segment holds markers, so that it must be rebuilt?"""
        self._open_file: DiskFile | None = None
        self._is_named = disk.exists(path)
        self._is_name_durable = self._is_named

    def is_sane(self) -> bool:
        """Does the file, if there is one, hold whole entries?"""
        return not self._is_named or self._file.size % _ENTRY.size == 0

    def load(self) -> None:
        """Read the file."""
        data = self._file.pread(0, self._file.size) if self._is_named else b""
        self.entries = [AbortedTransaction(*row[1:]) for row in _ENTRY.iter_unpack(data)]

    def append(self, transaction: AbortedTransaction) -> None:
        """Add an aborted transaction."""
        self._file.append([_ENTRY.pack(_ENTRY_VERSION, *transaction)])
        self.entries.append(transaction)

    def truncate(self, offset: Offset) -> None:
        """Drop the transactions whose markers are at `offset` or later."""
        kept = [entry for entry in self.entries if is_kept(entry, offset)]
        if len(kept) < len(self.entries):
            self._file.truncate(len(kept) * _ENTRY.size)
            self.entries = kept

    def clear(self) -> None:
        """Drop every entry."""
        self.entries = []
        if self._is_named:
            self._file.truncate(0)

    def begin(self) -> None:
        """Create an empty file, if there is none."""
        assert not self._file.size, f"{self.path} is not empty"

    def fsync(self) -> None:
        """Make every entry survive a crash."""
        if self._is_named:
            self._file.fsync()
            if not self._is_name_durable:
                self._disk.fsync_dir(self._directory)
                self._is_name_durable = True

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        if self._open_file is not None:
            self._open_file.close()
            self._open_file = None

    @property
    def _file(self) -> DiskFile:
        if self._open_file is None:
            self._open_file = self._disk.open(self.path, create=True)
            self._is_named = True
        return self._open_file


def overlapping(
    indexes: Iterable[AbortedIndex], first: Offset, end: Offset
) -> list[AbortedTransaction]:
    """The aborted transactions with records from `first` on and below `end`, by first offset.

    indexes: of the segment that holds `first` and those after it. Markers may come after `end`: the
    search continues until the last stable offset of an entry shows that none is missing.
    """
    found: list[AbortedTransaction] = []
    for index in indexes:
        for entry in index.entries:
            if entry.last_offset >= first and entry.first_offset < end:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return sorted(found, key=_first_offset)
    return sorted(found, key=_first_offset)


def _first_offset(entry: AbortedTransaction) -> Offset:
    return entry.first_offset
