"""The protocol's data types, to bytes: each function appends parts to a list.

A part is any buffer, so that a megabyte of records travels through a message without being copied.
A value that cannot be written (null where the version has none, a number out of range) raises a
`WireError` from `encode_message`: it is a fault of the caller's, found before anything is sent.
"""

from collections.abc import Callable, Sequence
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
"""Record batches: one buffer, or several that follow each other."""

NO_TAGS = b"\0"
"""The empty section of tagged fields."""

_I16 = Struct(">h")
_I32 = Struct(">i")
_I64 = Struct(">q")
_COMPACT_NULL = b"\0"
_NULL_16 = b"\xff\xff"
_NULL_32 = b"\xff\xff\xff\xff"
_UVARINTS = tuple(bytes([value]) for value in range(0x80))
_JOIN_BYTES_MAX = 4096
"""Up to here copying a part costs less than handing one buffer more to the kernel."""


def encode_message(name: str, writers: Sequence[Writer[T]], message: T, version: int) -> Parts:
    """The message as buffers to be sent one after another; `writers` are by version."""
    if not 0 <= version < len(writers):
        raise WireError(f"{name} has no version {version}")
    parts: Parts = []
    try:
        writers[version](parts, message)
    except (StructError, UnicodeEncodeError, WireError) as error:
        raise WireError(f"{name} v{version}: {error}") from error
    return join_small(parts)


def join_small(parts: Parts) -> Parts:
    """The same bytes with neighbouring small parts as one buffer; large parts as they are."""
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
    """An unsigned number, seven bits a byte, lowest first."""
    if value < 0x80:
        return _UVARINTS[value]
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def present(value: T | None, name: str) -> T:
    """The value, which this version cannot leave out."""
    if value is None:
        raise WireError(f"{name} is null, which this version cannot say")
    return value


def refuse(name: str) -> None:
    """A field holds more than its default, and this version has no place for it."""
    raise WireError(f"this version has no {name}, which may not be dropped")


def write_bool(parts: Parts, value: bool) -> None:
    """One byte, 0 or 1."""
    parts.append(_UVARINTS[value])


def write_int16(parts: Parts, value: int) -> None:
    """Two bytes."""
    parts.append(_I16.pack(value))


def write_int32(parts: Parts, value: int) -> None:
    """Four bytes."""
    parts.append(_I32.pack(value))


def write_int64(parts: Parts, value: int) -> None:
    """Eight bytes."""
    parts.append(_I64.pack(value))


def write_string(parts: Parts, value: str) -> None:
    """UTF-8 behind a 16-bit length."""
    encoded = value.encode()
    parts.append(_I16.pack(len(encoded)) + encoded)


def write_nullable_string(parts: Parts, value: str | None) -> None:
    """UTF-8 behind a 16-bit length, or null."""
    if value is None:
        parts.append(_NULL_16)
    else:
        write_string(parts, value)


def write_compact_string(parts: Parts, value: str) -> None:
    """UTF-8 behind a varint."""
    encoded = value.encode()
    parts.append(uvarint(len(encoded) + 1) + encoded)


def write_compact_nullable_string(parts: Parts, value: str | None) -> None:
    """UTF-8 behind a varint, or null."""
    if value is None:
        parts.append(_COMPACT_NULL)
    else:
        write_compact_string(parts, value)


def write_bytes(parts: Parts, value: Buffer) -> None:
    """A buffer behind a 32-bit length."""
    parts.append(_I32.pack(len(value)))
    parts.append(value)


def write_nullable_bytes(parts: Parts, value: Buffer | None) -> None:
    """A buffer behind a 32-bit length, or null."""
    if value is None:
        parts.append(_NULL_32)
    else:
        write_bytes(parts, value)


def write_compact_bytes(parts: Parts, value: Buffer) -> None:
    """A buffer behind a varint."""
    parts.append(uvarint(len(value) + 1))
    parts.append(value)


def write_compact_nullable_bytes(parts: Parts, value: Buffer | None) -> None:
    """A buffer behind a varint, or null."""
    if value is None:
        parts.append(_COMPACT_NULL)
    else:
        write_compact_bytes(parts, value)


def write_nullable_records(parts: Parts, value: Records | None) -> None:
    """Buffers behind a 32-bit length, or null."""
    if value is None or isinstance(value, bytes | bytearray | memoryview):
        write_nullable_bytes(parts, value)
    else:
        parts.append(_I32.pack(sum(map(len, value))))
        parts.extend(value)


def write_compact_nullable_records(parts: Parts, value: Records | None) -> None:
    """Buffers behind a varint, or null."""
    if value is None or isinstance(value, bytes | bytearray | memoryview):
        write_compact_nullable_bytes(parts, value)
    else:
        parts.append(uvarint(sum(map(len, value)) + 1))
        parts.extend(value)


def write_uuid(parts: Parts, value: UUID) -> None:
    """Sixteen bytes."""
    parts.append(value.bytes)


def write_array(parts: Parts, value: Sequence[T], write_item: Writer[T]) -> None:
    """Items behind a 32-bit count."""
    parts.append(_I32.pack(len(value)))
    for item in value:
        write_item(parts, item)


def write_nullable_array(parts: Parts, value: Sequence[T] | None, write_item: Writer[T]) -> None:
    """Items behind a 32-bit count, or null."""
    if value is None:
        parts.append(_NULL_32)
    else:
        write_array(parts, value, write_item)


def write_compact_array(parts: Parts, value: Sequence[T], write_item: Writer[T]) -> None:
    """Items behind a varint."""
    parts.append(uvarint(len(value) + 1))
    for item in value:
        write_item(parts, item)


def write_compact_nullable_array(
    parts: Parts, value: Sequence[T] | None, write_item: Writer[T]
) -> None:
    """Items behind a varint, or null."""
    if value is None:
        parts.append(_COMPACT_NULL)
    else:
        write_compact_array(parts, value, write_item)


def tagged(number: int, parts: Parts) -> bytes:
    """One tagged field: its number, its size, its value."""
    value = b"".join(parts)
    return uvarint(number) + uvarint(len(value)) + value


def write_tags(parts: Parts, fields: Sequence[bytes]) -> None:
    """A section of tagged fields, which are in the order of their numbers."""
    parts.append(uvarint(len(fields)) + b"".join(fields) if fields else NO_TAGS)
