"""The keys of a compacted log's records, for an observer: each batch is read once.

The list of a log grows with it, and a new one begins when the log was truncated or compacted.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple
from zlib import crc32

from broker_impl.errors import WireError
from broker_impl.wire.batch import BatchHeader, Record
from broker_impl.wire.types import Offset

_TYPE_AT = 2  # the position of the marker's type in the key of a control record
_COMMIT = 1


class KeyedRecord(NamedTuple):
    """A record with a key, or the marker that ends a transaction."""

    offset: Offset
    key: bytes
    """Empty for a marker."""
    value_crc: int | None
    """The CRC-32 of the value; None: the record is a tombstone."""
    producer_id: int = -1
    """Of a transaction's record or marker; -1: the record is in no transaction."""
    commits: bool | None = None
    """Whether a marker commits its transaction; None: it is no marker."""
    timestamp_ms: int = -1
    """-1 for a marker."""
    headers: tuple[tuple[str, bytes | None], ...] = ()


class KeyedRecords:
    """Reads the records of one log."""

    def __init__(self) -> None:
        self._headers: Sequence[BatchHeader] = ()
        self._read = 0
        self._found: list[KeyedRecord] = []

    def read(
        self, headers: Sequence[BatchHeader], records: Callable[[int], list[Record]]
    ) -> list[KeyedRecord]:
        """Return what the log has up to the first batch that cannot be decoded.

        ``headers`` only grows; another object stands for another content. ``records`` returns the
        records of a batch by its number.
        """
        if headers is not self._headers:
            self._headers, self._read, self._found = headers, 0, []
        while self._read < len(headers):
            try:
                self._found += _keyed(headers[self._read], records(self._read))
            except WireError:
                break
            self._read += 1
        return self._found


def _keyed(header: BatchHeader, records: list[Record]) -> list[KeyedRecord]:
    producer_id = header.producer_id if header.is_transactional else -1
    if header.is_control:
        return [
            KeyedRecord(record.offset, b"", None, producer_id, record.key[_TYPE_AT + 1] == _COMMIT)
            for record in records
            if record.key is not None and len(record.key) > _TYPE_AT + 1
        ]
    return [
        KeyedRecord(
            record.offset,
            record.key,
            None if record.value is None else crc32(record.value),
            producer_id,
            None,
            record.timestamp_ms,
            record.headers,
        )
        for record in records
        if record.key is not None
    ]
