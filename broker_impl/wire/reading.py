"""Readers of the protocol's data types: each takes a position and returns a value and the next one.

The buffer is the rest of one frame: a length that exceeds it is rejected before a byte is copied or
an item is created. A position is never negative. `decode_message` converts the `IndexError` and
`struct.error` of a short buffer and the `UnicodeDecodeError` of a string to a `WireError`, once for
the whole message.
"""

from collections.abc import Callable, Sequence
from struct import Struct
from struct import error as StructError
from typing import TypeVar
from uuid import UUID

from broker_impl.errors import WireError

T = TypeVar("T")
Reader = Callable[[memoryview, int], tuple[T, int]]
"""Reads one value at a position; returns it and the position after it."""

_I16 = Struct(">h")
_I32 = Struct(">i")
_I64 = Struct(">q")
_UVARINT_BYTES_MAX = 5  # enough for 32 bits


def decode_message(name: str, readers: Sequence[Reader[T]], buffer: memoryview, version: int) -> T:
    """Return the message at the start of the buffer; `readers` is indexed by version.

    Raises `WireError` if there is no valid message. Bytes after the message are ignored, as in
    Kafka: librdkafka ends a flexible Metadata request for all topics with one byte too many.
    """
    if not 0 <= version < len(readers):
        raise WireError(f"{name} has no version {version}")
    try:
        message, at = readers[version](buffer, 0)
    except (IndexError, StructError, UnicodeDecodeError) as error:
        raise WireError(f"{name} v{version}: {error}") from error
    except WireError as error:
        raise WireError(f"{name} v{version}: {error}") from error
    if at > len(buffer):
        raise WireError(f"{name} v{version}: {at - len(buffer)} bytes are missing")
    return message


def read_uvarint(buffer: memoryview, at: int) -> tuple[int, int]:
    """Read an unsigned 32-bit number, seven bits per byte, lowest bits first."""
    byte = buffer[at]
    if byte < 0x80:
        return byte, at + 1
    value = byte & 0x7F
    for shift in range(7, 7 * _UVARINT_BYTES_MAX, 7):
        at += 1
        byte = buffer[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 32:
                break
            return value, at + 1
    raise WireError("a varint has more than 32 bits")


def _stop(buffer: memoryview, at: int, length: int) -> int:
    """Return the end of `length` bytes from `at`, which must be inside the buffer."""
    if length < 0:
        raise WireError(
            "null where a value is required" if length == -1 else f"length {length} is invalid"
        )
    stop = at + length
    if stop > len(buffer):
        raise WireError(f"a field announces {length} bytes, but only {len(buffer) - at} are left")
    return stop


# Single numbers: items of an array, or a tagged field. Elsewhere a run of numbers is read at once.


def read_bool(buffer: memoryview, at: int) -> tuple[bool, int]:
    """Read one byte; any value but 0 is true."""
    return buffer[at] != 0, at + 1


def read_int16(buffer: memoryview, at: int) -> tuple[int, int]:
    """Read two bytes."""
    return _I16.unpack_from(buffer, at)[0], at + 2


def read_int32(buffer: memoryview, at: int) -> tuple[int, int]:
    """Read four bytes."""
    return _I32.unpack_from(buffer, at)[0], at + 4


def read_int64(buffer: memoryview, at: int) -> tuple[int, int]:
    """Read eight bytes."""
    return _I64.unpack_from(buffer, at)[0], at + 8


# Strings: a 16-bit length (-1: null), or a varint of the length plus one (0: null).


def read_string(buffer: memoryview, at: int) -> tuple[str, int]:
    """Read a 16-bit length and UTF-8."""
    (length,) = _I16.unpack_from(buffer, at)
    stop = _stop(buffer, at + 2, length)
    return str(buffer[at + 2 : stop], "utf-8"), stop


def read_nullable_string(buffer: memoryview, at: int) -> tuple[str | None, int]:
    """Read a 16-bit length and UTF-8, or null."""
    if buffer[at] == 0xFF and buffer[at + 1] == 0xFF:
        return None, at + 2
    return read_string(buffer, at)


def read_compact_string(buffer: memoryview, at: int) -> tuple[str, int]:
    """Read a varint length and UTF-8."""
    length, at = read_uvarint(buffer, at)
    stop = _stop(buffer, at, length - 1)
    return str(buffer[at:stop], "utf-8"), stop


def read_compact_nullable_string(buffer: memoryview, at: int) -> tuple[str | None, int]:
    """Read a varint length and UTF-8, or null."""
    if not buffer[at]:
        return None, at + 1
    return read_compact_string(buffer, at)


# Bytes, and records, which this module treats as bytes: a view of the frame, never a copy.


def read_bytes(buffer: memoryview, at: int) -> tuple[memoryview, int]:
    """Read a 32-bit length and return a view of that many bytes."""
    (length,) = _I32.unpack_from(buffer, at)
    stop = _stop(buffer, at + 4, length)
    return buffer[at + 4 : stop], stop


def read_nullable_bytes(buffer: memoryview, at: int) -> tuple[memoryview | None, int]:
    """Read a 32-bit length and return a view of that many bytes, or null."""
    (length,) = _I32.unpack_from(buffer, at)
    if length == -1:
        return None, at + 4
    stop = _stop(buffer, at + 4, length)
    return buffer[at + 4 : stop], stop


def read_compact_bytes(buffer: memoryview, at: int) -> tuple[memoryview, int]:
    """Read a varint length and return a view of that many bytes."""
    length, at = read_uvarint(buffer, at)
    stop = _stop(buffer, at, length - 1)
    return buffer[at:stop], stop


def read_compact_nullable_bytes(buffer: memoryview, at: int) -> tuple[memoryview | None, int]:
    """Read a varint length and return a view of that many bytes, or null."""
    if not buffer[at]:
        return None, at + 1
    return read_compact_bytes(buffer, at)


def read_uuid(buffer: memoryview, at: int) -> tuple[UUID, int]:
    """Read sixteen bytes."""
    stop = _stop(buffer, at, 16)
    return UUID(bytes=bytes(buffer[at:stop])), stop


# Arrays: a 32-bit count (-1: null), or a varint of the count plus one (0: null). A count is
# rejected if the buffer cannot hold it: `item_bytes_min` is the smallest size of an item.


def _items(
    buffer: memoryview, at: int, count: int, read_item: Reader[T], item_bytes_min: int
) -> tuple[list[T], int]:
    _stop(buffer, at, count if count < 0 else count * item_bytes_min)
    items = []
    for _ in range(count):
        item, at = read_item(buffer, at)
        items.append(item)
    return items, at


def read_array(
    buffer: memoryview, at: int, read_item: Reader[T], item_bytes_min: int
) -> tuple[list[T], int]:
    """Read a 32-bit count and items."""
    (count,) = _I32.unpack_from(buffer, at)
    return _items(buffer, at + 4, count, read_item, item_bytes_min)


def read_nullable_array(
    buffer: memoryview, at: int, read_item: Reader[T], item_bytes_min: int
) -> tuple[list[T] | None, int]:
    """Read a 32-bit count and items, or null."""
    (count,) = _I32.unpack_from(buffer, at)
    if count == -1:
        return None, at + 4
    return _items(buffer, at + 4, count, read_item, item_bytes_min)


def read_compact_array(
    buffer: memoryview, at: int, read_item: Reader[T], item_bytes_min: int
) -> tuple[list[T], int]:
    """Read a varint count and items."""
    count, at = read_uvarint(buffer, at)
    return _items(buffer, at, count - 1, read_item, item_bytes_min)


def read_compact_nullable_array(
    buffer: memoryview, at: int, read_item: Reader[T], item_bytes_min: int
) -> tuple[list[T] | None, int]:
    """Read a varint count and items, or null."""
    if not buffer[at]:
        return None, at + 1
    return read_compact_array(buffer, at, read_item, item_bytes_min)


# Tagged fields (KIP-482): a count, then number, size and value of each; unknown ones are skipped.


def skip_tags(buffer: memoryview, at: int) -> int:
    """Return the position after a section of tagged fields, all of them unknown."""
    count, at = read_uvarint(buffer, at)
    for _ in range(count):
        _, at, stop = read_tag(buffer, at)
        at = stop
    return at


def read_tag(buffer: memoryview, at: int) -> tuple[int, int, int]:
    """Return a tagged field's number, and the start and end of its value."""
    number, at = read_uvarint(buffer, at)
    size, at = read_uvarint(buffer, at)
    return number, at, _stop(buffer, at, size)


def check_tag_end(at: int, stop: int) -> None:
    """Check that a known tagged field ends where its size says."""
    if at != stop:
        raise WireError(f"a tagged field is {stop - at} bytes longer than its value")
