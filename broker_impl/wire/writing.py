"""Writers of the protocol's data types: each function appends parts to a list.

A part is any buffer, so that a megabyte of records passes through a message without a copy. A value
that cannot be written (null where the version has none, a number out of range) raises a `WireError`
from `encode_message`: it is an error of the caller, found before anything is sent.
"""

from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from struct import error as StructError
from typing import TypeVar
from uuid import UUID

from broker_impl.errors import WireError
from broker_impl.wire.types import Buffer

T = TypeVar("T")
Parts = list[Buffer]
Writer = Callable[[Parts, T], None]
Records = Buffer | Sequence[Buffer]
"""Record batches: one buffer, or several consecutive ones."""

NO_TAGS = b"\0"
"""An empty section of tagged fields."""

_I16 = Struct(">h")
_I32 = Struct(">i")
_I64 = Struct(">q")
_COMPACT_NULL = b"\0"
_NULL_16 = b"\xff\xff"
_NULL_32 = b"\xff\xff\xff\xff"
_UVARINTS = tuple(bytes([value]) for value in range(0x80))
_JOIN_BYTES_MAX = 4096
"""Up to this size, copying a part costs less than passing one more buffer to the kernel."""


def encode_message(name: str, writers: Sequence[Writer[T]], message: T, version: int) -> Parts:
    """Return the message as buffers to send one after another; `writers` is indexed by version."""
    if not 0 <= version < len(writers):
        raise WireError(f"{name} has no version {version}")
    parts: Parts = []
    try:
        writers[version](parts, message)
    except (StructError, UnicodeEncodeError, WireError) as error:
        raise WireError(f"{name} v{version}: {error}") from error
    return join_small(parts)


def join_small(parts: Parts) -> Parts:
    """Return the same bytes with adjacent small parts joined; large parts stay as they are."""
    if sum(map(len, parts)) <= _JOIN_BYTES_MAX:
        return [b"".join(parts)] if parts else []
    buffers: Parts = []
    small: Parts = []
    for part in parts:
        if len(part) <= _JOIN_BYTES_MAX:
            small.append(part)
            continue
        if small:
            buffers.append(b"".join(small))
            small = []
        buffers.append(part)
    if small:
        buffers.append(b"".join(small))
    return buffers


def uvarint(value: int) -> bytes:
    """Encode an unsigned number, seven bits per byte, lowest bits first."""
    if value < 0x80:
        return _UVARINTS[value]
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def present(value: T | None, name: str) -> T:
    """Return a value that must not be null in this version."""
    if value is None:
        raise WireError(f"{name} is null, which this version does not allow")
    return value


def refuse(name: str) -> None:
    """Raise WireError for a field that has a value and does not exist in this version."""
    raise WireError(f"this version has no field {name}, and the field must not be ignored")


def write_bool(parts: Parts, value: bool) -> None:
    """Write one byte, 0 or 1."""
    parts.append(_UVARINTS[value])


def write_int16(parts: Parts, value: int) -> None:
    """Write two bytes."""
    parts.append(_I16.pack(value))


def write_int32(parts: Parts, value: int) -> None:
    """Write four bytes."""
    parts.append(_I32.pack(value))


def write_int64(parts: Parts, value: int) -> None:
    """Write eight bytes."""
    parts.append(_I64.pack(value))


def write_string(parts: Parts, value: str) -> None:
    """Write a 16-bit length and UTF-8."""
    encoded = value.encode()
    parts.append(_I16.pack(len(encoded)) + encoded)


def write_nullable_string(parts: Parts, value: str | None) -> None:
    """Write a 16-bit length and UTF-8, or null."""
    if value is None:
        parts.append(_NULL_16)
    else:
        write_string(parts, value)


def write_compact_string(parts: Parts, value: str) -> None:
    """Write a varint length and UTF-8."""
    encoded = value.encode()
    parts.append(uvarint(len(encoded) + 1) + encoded)


def write_compact_nullable_string(parts: Parts, value: str | None) -> None:
    """Write a varint length and UTF-8, or null."""
    if value is None:
        parts.append(_COMPACT_NULL)
    else:
        write_compact_string(parts, value)


def write_bytes(parts: Parts, value: Buffer) -> None:
    """Write a 32-bit length and a buffer."""
    parts.append(_I32.pack(len(value)))
    parts.append(value)


def write_nullable_bytes(parts: Parts, value: Buffer | None) -> None:
    """Write a 32-bit length and a buffer, or null."""
    if value is None:
        parts.append(_NULL_32)
    else:
        write_bytes(parts, value)


def write_compact_bytes(parts: Parts, value: Buffer) -> None:
    """Write a varint length and a buffer."""
    parts.append(uvarint(len(value) + 1))
    parts.append(value)


def write_compact_nullable_bytes(parts: Parts, value: Buffer | None) -> None:
    """Write a varint length and a buffer, or null."""
    if value is None:
        parts.append(_COMPACT_NULL)
    else:
        write_compact_bytes(parts, value)


def write_nullable_records(parts: Parts, value: Records | None) -> None:
    """Write a 32-bit length and buffers, or null."""
    if value is None or isinstance(value, bytes | bytearray | memoryview):
        write_nullable_bytes(parts, value)
    else:
        parts.append(_I32.pack(sum(map(len, value))))
        parts.extend(value)


def write_compact_nullable_records(parts: Parts, value: Records | None) -> None:
    """Write a varint length and buffers, or null."""
    if value is None or isinstance(value, bytes | bytearray | memoryview):
        write_compact_nullable_bytes(parts, value)
    else:
        parts.append(uvarint(sum(map(len, value)) + 1))
        parts.extend(value)


def write_uuid(parts: Parts, value: UUID) -> None:
    """Write sixteen bytes."""
    parts.append(value.bytes)


class SharedItems(list[T]):
    """Items of an array that many messages contain: each version of them is encoded once.

    Neither the list nor an item may change once a message with them has been encoded.
    """

    __slots__ = ("_encoded",)

    def __init__(self, items: Iterable[T]) -> None:
        super().__init__(items)
        self._encoded: dict[Writer[T], bytes] = {}

    def encoded(self, write_item: Writer[T]) -> bytes:
        """Return the items as this writer encodes them."""
        known = self._encoded.get(write_item)
        if known is None:
            parts: Parts = []
            for item in self:
                write_item(parts, item)
            known = self._encoded[write_item] = b"".join(parts)
        return known


def _write_items(parts: Parts, items: Sequence[T], write_item: Writer[T]) -> None:
    if type(items) is SharedItems:
        parts.append(items.encoded(write_item))
        return
    for item in items:
        write_item(parts, item)


def write_array(parts: Parts, value: Sequence[T], write_item: Writer[T]) -> None:
    """Write a 32-bit count and items."""
    parts.append(_I32.pack(len(value)))
    _write_items(parts, value, write_item)


def write_nullable_array(parts: Parts, value: Sequence[T] | None, write_item: Writer[T]) -> None:
    """Write a 32-bit count and items, or null."""
    if value is None:
        parts.append(_NULL_32)
    else:
        write_array(parts, value, write_item)


def write_compact_array(parts: Parts, value: Sequence[T], write_item: Writer[T]) -> None:
    """Write a varint count and items."""
    parts.append(uvarint(len(value) + 1))
    _write_items(parts, value, write_item)


def write_compact_nullable_array(
    parts: Parts, value: Sequence[T] | None, write_item: Writer[T]
) -> None:
    """Write a varint count and items, or null."""
    if value is None:
        parts.append(_COMPACT_NULL)
    else:
        write_compact_array(parts, value, write_item)


def tagged(number: int, parts: Parts) -> bytes:
    """Encode one tagged field: its number, its size, its value."""
    value = b"".join(parts)
    return uvarint(number) + uvarint(len(value)) + value


def write_tags(parts: Parts, fields: Sequence[bytes]) -> None:
    """Write a section of tagged fields, which must be sorted by their numbers."""
    parts.append(uvarint(len(fields)) + b"".join(fields) if fields else NO_TAGS)
