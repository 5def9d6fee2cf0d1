"""The record batch, format v2: a header of 61 bytes, and records that stay opaque.

A broker needs only the header to store and serve a batch. The fields that it assigns itself (base
offset, leader epoch) are outside the CRC and are patched in place. Records are decoded only where
their content matters: look-ups by timestamp, compaction, validation of keys, markers, coordinators,
tools and tests.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from broker_impl.errors import WireError
from broker_impl.wire.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress, decompress
from broker_impl.wire.types import Buffer

__all__ = ["GZIP", "LZ4", "NONE", "SNAPPY", "ZSTD"]  # in addition to what is defined here

HEADER_BYTES: Final = 61
MAGIC: Final = 2

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_PREFIX_BYTES: Final = 12  # base offset and length: what `length` does not count
_CRC_FROM: Final = 21  # the CRC covers attributes to the end
_OFFSET: Final = struct.Struct(">q")
_EPOCH: Final = struct.Struct(">i")
_EPOCH_AT: Final = 12
_MAGIC_AT: Final = 16
_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17
_ATTRIBUTES: Final = struct.Struct(">h")
_MAX_TIMESTAMP_AT: Final = 35

_CODEC_MASK: Final = 0x07
_LENIENT: Final = "surrogateescape"
"""Names of headers need not be UTF-8: Kafka stores them as they come. They are copied unchanged."""
_LOG_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_DELETE_HORIZON: Final = 0x40

CREATE_TIME, LOG_APPEND_TIME = range(2)
"""Values of `BatchHeader.timestamp_type`."""

_DECOMPRESSED_BYTES_MAX: Final = 128 << 20
_SEQUENCES: Final = 1 << 31


def sequence_after(sequence: int, count: int) -> int:
    """Return the sequence number `count` after this one; 0 follows 2^31 - 1 (KAFKA-7692)."""
    return (sequence + count) % _SEQUENCES


class BatchHeader(NamedTuple):
    """The header of a batch, field by field as on the wire."""

    base_offset: int
    length: int
    """The number of bytes after this field; `size` is the size of the whole batch."""
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # the field hides tuple.count, which is not used

    @property
    def size(self) -> int:
        """The size of the whole batch in bytes."""
        return _PREFIX_BYTES + self.length

    @property
    def last_offset(self) -> int:
        """The offset of the last record (inclusive)."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The first offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; -1 if the producer is not idempotent."""
        if self.base_sequence < 0:
            return -1
        return sequence_after(self.base_sequence, self.last_offset_delta)

    @property
    def compression(self) -> int:
        """The codec's number: `NONE`, `GZIP`, `SNAPPY`, `LZ4`, `ZSTD`; 5 to 7 are undefined."""
        return self.attributes & _CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        """`CREATE_TIME` or `LOG_APPEND_TIME`."""
        return LOG_APPEND_TIME if self.attributes & _LOG_APPEND_TIME else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch contains a marker of the transaction coordinator, and no data."""
        return bool(self.attributes & _CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time after which its tombstones or marker may be removed (KIP-534); None: not set."""
        return self.base_timestamp if self.attributes & _DELETE_HORIZON else None


class Record(NamedTuple):
    """One decoded record."""

    key: bytes | None = None
    value: bytes | None = None
    timestamp_ms: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()
    offset: int = -1
    """The record's offset; `encode_batch` ignores it and counts from the batch's base offset."""


def parse_header(buffer: Buffer, at: int = 0) -> BatchHeader:
    """Parse the header at `at`; neither magic nor CRC is checked.

    Raises WireError if there are fewer bytes than a header, or the size is impossible.
    """
    if len(buffer) - at < HEADER_BYTES:
        raise WireError(f"a batch header of {HEADER_BYTES} bytes is truncated")
    header = BatchHeader._make(_HEADER.unpack_from(buffer, at))
    if header.size < HEADER_BYTES:
        raise WireError(f"a batch of {header.size} bytes is smaller than its header")
    return header


def batches(buffer: Buffer, *, torn_tail: bool = False) -> Iterator[tuple[int, BatchHeader]]:
    """Yield the position and header of each batch, in order.

    Raises WireError for a batch whose magic is not 2, or that is cut short. With `torn_tail`, a
    last batch that is cut short ends the iteration instead (a fetch response may end like that).
    """
    at, end = 0, len(buffer)
    while at < end:
        if end - at < HEADER_BYTES and torn_tail:
            return
        if end - at > _MAGIC_AT and buffer[at + _MAGIC_AT] != MAGIC:
            raise WireError(f"a batch has magic {buffer[at + _MAGIC_AT]}, but only 2 is supported")
        header = parse_header(buffer, at)
        if at + header.size > end:
            if torn_tail:
                return
            raise WireError(f"a batch of {header.size} bytes is truncated after {end - at}")
        yield at, header
        at += header.size


def check_crc(buffer: Buffer, at: int, header: BatchHeader) -> bool:
    """Return whether the CRC-32C of the batch at `at` matches its bytes, without copying them."""
    with memoryview(buffer) as view, view[at + _CRC_FROM : at + header.size] as covered:
        return bool(crc32c(covered) == header.crc)


def patch(
    head: memoryview | bytearray, header: BatchHeader, base_offset: int, leader_epoch: int
) -> BatchHeader:
    """Write the leader's fields into a batch, in place, and return its new header.

    header: the header as it was. The CRC stays valid.
    """
    _OFFSET.pack_into(head, 0, base_offset)
    _EPOCH.pack_into(head, _EPOCH_AT, leader_epoch)
    return header._replace(base_offset=base_offset, partition_leader_epoch=leader_epoch)


def stamp(head: bytearray, rest: Buffer, log_append_time_ms: int) -> BatchHeader:
    """Convert a batch to LogAppendTime with a new CRC, and return its new header.

    Only the bytes of its header, `head`, are written to.
    """
    (attributes,) = _ATTRIBUTES.unpack_from(head, _CRC_FROM)
    _ATTRIBUTES.pack_into(head, _CRC_FROM, attributes | _LOG_APPEND_TIME)
    return set_max_timestamp(head, rest, log_append_time_ms)


def set_max_timestamp(head: bytearray, rest: Buffer, timestamp_ms: int) -> BatchHeader:
    """Write the largest time of a batch and a new CRC into its header, and return the new header.

    Only the bytes of its header, `head`, are written to.
    """
    _OFFSET.pack_into(head, _MAX_TIMESTAMP_AT, timestamp_ms)
    _CRC.pack_into(head, _CRC_AT, crc32c(rest, crc32c(bytes(head[_CRC_FROM:]))))
    return parse_header(head)


def recompressed(
    buffer: Buffer, header: BatchHeader, codec: int, *, bytes_max: int = _DECOMPRESSED_BYTES_MAX
) -> bytes:
    """Return the batch of this header, its records compressed by another codec and unchanged.

    Raises WireError as :func:`records` does.
    """
    payload = bytes(buffer[HEADER_BYTES : header.size])
    payload = compress(decompress(payload, header.compression, bytes_max), codec)
    changed = header._replace(
        length=HEADER_BYTES - _PREFIX_BYTES + len(payload),
        crc=0,
        attributes=header.attributes & ~_CODEC_MASK | codec,
    )
    batch = bytearray(_HEADER.pack(*changed))
    batch += payload
    _CRC.pack_into(batch, _CRC_AT, crc32c(bytes(batch[_CRC_FROM:])))
    return bytes(batch)


def records(buffer: Buffer, *, bytes_max: int = _DECOMPRESSED_BYTES_MAX) -> list[Record]:
    """Decode the records of all batches.

    Raises WireError for invalid bytes, or if a batch has more than `bytes_max` decompressed.
    """
    decoded: list[Record] = []
    for at, header in batches(buffer):
        payload = bytes(buffer[at + HEADER_BYTES : at + header.size])
        plain = decompress(payload, header.compression, bytes_max)
        try:
            decoded.extend(_decode_records(plain, header))
        except (IndexError, struct.error, UnicodeDecodeError) as error:
            raise WireError(
                f"invalid records in the batch at offset {header.base_offset}: {error}"
            ) from None
    return decoded


def encode_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    compression: int = NONE,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """Encode one batch of CreateTime with these records at consecutive offsets."""
    assert records, "a batch must have at least one record"
    base_timestamp = records[0].timestamp_ms
    plain = b"".join(
        _encode_record(record, delta, record.timestamp_ms - base_timestamp)
        for delta, record in enumerate(records)
    )
    payload = compress(plain, compression)
    attributes = compression | transactional * _TRANSACTIONAL | control * _CONTROL
    batch = bytearray(
        _HEADER.pack(
            base_offset,
            HEADER_BYTES - _PREFIX_BYTES + len(payload),
            leader_epoch,
            MAGIC,
            0,
            attributes,
            len(records) - 1,
            base_timestamp,
            max(record.timestamp_ms for record in records),
            producer_id,
            producer_epoch,
            base_sequence,
            len(records),
        )
    )
    batch += payload
    _CRC.pack_into(batch, _CRC_AT, crc32c(bytes(batch[_CRC_FROM:])))
    return bytes(batch)


def with_only(
    header: BatchHeader, records: Sequence[Record], *, delete_horizon_ms: int | None = None
) -> bytes:
    """Encode a batch with this header and only these of its records, at their original offsets.

    The producer's fields stay even if no record does, and the batch keeps its last offset.
    delete_horizon_ms: stored in place of the base timestamp; None: the existing one stays.
    """
    horizon = header.delete_horizon_ms if delete_horizon_ms is None else delete_horizon_ms
    first = records[0].timestamp_ms if records else header.base_timestamp
    base_timestamp = first if horizon is None else horizon
    plain = b"".join(
        _encode_record(
            record, record.offset - header.base_offset, record.timestamp_ms - base_timestamp
        )
        for record in records
    )
    attributes = header.attributes if horizon is None else header.attributes | _DELETE_HORIZON
    max_timestamp = header.max_timestamp
    if not records:
        attributes &= ~_CODEC_MASK
    elif header.timestamp_type == CREATE_TIME:
        max_timestamp = max(record.timestamp_ms for record in records)
    payload = compress(plain, header.compression) if records else b""
    length = HEADER_BYTES - _PREFIX_BYTES + len(payload)
    kept = header._replace(
        length=length,
        crc=0,
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        count=len(records),
    )
    batch = bytearray(_HEADER.pack(*kept))
    batch += payload
    _CRC.pack_into(batch, _CRC_AT, crc32c(bytes(batch[_CRC_FROM:])))
    return bytes(batch)


def _decode_records(data: bytes, header: BatchHeader) -> Iterator[Record]:
    at = 0
    for _ in range(header.count):
        length, at = _varint(data, at)
        end = at + length
        if length < 0 or end > len(data):
            raise WireError(
                f"a record has {length} bytes, but only {len(data) - at} are left in the batch"
            )
        timestamp_delta, at = _varint(data, at + 1)  # after the record's unused attributes
        offset_delta, at = _varint(data, at)
        key, at = _blob(data, at, end)
        value, at = _blob(data, at, end)
        header_count, at = _varint(data, at)
        headers: list[tuple[str, bytes | None]] = []
        for _ in range(header_count):
            name, at = _blob(data, at, end)
            blob, at = _blob(data, at, end)
            headers.append(((name or b"").decode(errors=_LENIENT), blob))
        if at != end:
            raise WireError(
                f"the fields of a record of {length} bytes end {end - at} bytes before the record"
            )
        if header.timestamp_type == LOG_APPEND_TIME:
            timestamp = header.max_timestamp
        else:
            timestamp = header.base_timestamp + timestamp_delta
        yield Record(key, value, timestamp, tuple(headers), header.base_offset + offset_delta)
    if at != len(data):
        raise WireError(f"{len(data) - at} bytes follow the last of {header.count} records")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at
    raw, shift = byte & 0x7F, 7
    while True:
        byte = data[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at
        shift += 7
        if shift > 63:
            raise WireError("a variable-length integer has more than ten bytes")


def _blob(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = _varint(data, at)
    if length < 0:
        return None, at
    if at + length > end:
        raise WireError(f"a field has {length} bytes, but only {end - at} are left in the record")
    return data[at : at + length], at + length


def _encode_varint(number: int) -> bytes:
    raw = (number << 1) ^ (number >> 63)
    if raw < 0x80:
        return bytes((raw,))
    encoded = bytearray()
    while raw >= 0x80:
        encoded.append(raw & 0x7F | 0x80)
        raw >>= 7
    encoded.append(raw)
    return bytes(encoded)


def _encode_blob(blob: bytes | None) -> bytes:
    return b"\x01" if blob is None else _encode_varint(len(blob)) + blob


def _encode_record(record: Record, offset_delta: int, timestamp_delta: int) -> bytes:
    body = b"".join(
        (
            b"\x00",
            _encode_varint(timestamp_delta),
            _encode_varint(offset_delta),
            _encode_blob(record.key),
            _encode_blob(record.value),
            _encode_varint(len(record.headers)),
            *(
                _encode_blob(name.encode(errors=_LENIENT)) + _encode_blob(blob)
                for name, blob in record.headers
            ),
        )
    )
    return _encode_varint(len(body)) + body
