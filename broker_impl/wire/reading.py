"""The protocol's data types, from bytes: a position in, a value and the next position out.

The buffer is the rest of one frame, so its end is the end of everything: a length that reaches
beyond it is refused before a byte is copied or an item made. A position is never negative. The
`IndexError` and `struct.error` of a short buffer and the `UnicodeDecodeError` of a string become
a `WireError` in `decode_message`, once for the whole message.
"""

from collections.abc import Callable, Sequence
from struct import Struct
from struct import error as StructError
from typing import TypeVar
from uuid import UUID

from broker_impl.errors import WireError

T = TypeVar("T")
Reader = Callable[[memoryview, int], tuple[T, int]]
"""Reads one value that begins at a position; gives it, and the position behind it."""

_I16 = Struct(">h")
_I32 = Struct(">i")
_I64 = Struct(">q")
_UVARINT_BYTES_MAX = 5  # what 32 bits need


def decode_message(name: str, readers: Sequence[Reader[T]], buffer: memoryview, version: int) -> T:
    """The message that the buffer begins with; `readers` are by version. `WireError` if it is none.

    Bytes behind it are ignored, as Kafka does: librdkafka ends a flexible Metadata request for all
    topics with one byte too many.
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
        raise WireError(f"{name} v{version}: {at - len(buffer)} bytes too few")
    return message


def read_uvarint(buffer: memoryview, at: int) -> tuple[int, int]:
    """An unsigned 32-bit number, seven bits a byte, lowest first."""
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
    raise WireError("a varint of more than 32 bits")


def _stop(buffer: memoryview, at: int, length: int) -> int:
    """The end of `length` bytes from `at`, which must lie in the buffer."""
    if length < 0:
        raise WireError("null where a value is required" if length == -1 else f"length {length}")
    stop = at + length
    if stop > len(buffer):
        raise WireError(f"{length} bytes announced, {len(buffer) - at} there")
    return stop


# Single numbers: items of an array, or a tagged field. Elsewhere a run of them is read at once.


def read_bool(buffer: memoryview, at: int) -> tuple[bool, int]:
    """A byte that is zero or not."""
    return buffer[at] != 0, at + 1


def read_int16(buffer: memoryview, at: int) -> tuple[int, int]:
    """Two bytes."""
    return _I16.unpack_from(buffer, at)[0], at + 2


def read_int32(buffer: memoryview, at: int) -> tuple[int, int]:
    """Four bytes."""
    return _I32.unpack_from(buffer, at)[0], at + 4


def read_int64(buffer: memoryview, at: int) -> tuple[int, int]:
    """Eight bytes."""
    return _I64.unpack_from(buffer, at)[0], at + 8


# Strings: a length of 16 bits (-1: null), or a varint of one more than the length (0: null).


def read_string(buffer: memoryview, at: int) -> tuple[str, int]:
    """UTF-8 behind a 16-bit length."""
    (length,) = _I16.unpack_from(buffer, at)
    stop = _stop(buffer, at + 2, length)
    return str(buffer[at + 2 : stop], "utf-8"), stop


def read_nullable_string(buffer: memoryview, at: int) -> tuple[str | None, int]:
    """UTF-8 behind a 16-bit length, or null."""
    if buffer[at] == 0xFF and buffer[at + 1] == 0xFF:
        return None, at + 2
    return read_string(buffer, at)


def read_compact_string(buffer: memoryview, at: int) -> tuple[str, int]:
    """UTF-8 behind a varint."""
    length, at = read_uvarint(buffer, at)
    stop = _stop(buffer, at, length - 1)
    return str(buffer[at:stop], "utf-8"), stop


def read_compact_nullable_string(buffer: memoryview, at: int) -> tuple[str | None, int]:
    """UTF-8 behind a varint, or null."""
    if not buffer[at]:
        return None, at + 1
    return read_compact_string(buffer, at)


# Bytes, and records, which are bytes to this layer: a view of the frame, never a copy.


def read_bytes(buffer: memoryview, at: int) -> tuple[memoryview, int]:
    """A view behind a 32-bit length."""
    (length,) = _I32.unpack_from(buffer, at)
    stop = _stop(buffer, at + 4, length)
    return buffer[at + 4 : stop], stop


def read_nullable_bytes(buffer: memoryview, at: int) -> tuple[memoryview | None, int]:
    """A view behind a 32-bit length, or null."""
    (length,) = _I32.unpack_from(buffer, at)
    if length == -1:
        return None, at + 4
    stop = _stop(buffer, at + 4, length)
    return buffer[at + 4 : stop], stop


def read_compact_bytes(buffer: memoryview, at: int) -> tuple[memoryview, int]:
    """A view behind a varint."""
    length, at = read_uvarint(buffer, at)
    stop = _stop(buffer, at, length - 1)
    return buffer[at:stop], stop


def read_compact_nullable_bytes(buffer: memoryview, at: int) -> tuple[memoryview | None, int]:
    """A view behind a varint, or null."""
    if not buffer[at]:
        return None, at + 1
    return read_compact_bytes(buffer, at)


def read_uuid(buffer: memoryview, at: int) -> tuple[UUID, int]:
    """Sixteen bytes."""
    stop = _stop(buffer, at, 16)
    return UUID(bytes=bytes(buffer[at:stop])), stop


# Arrays: a count of 32 bits (-1: null), or a varint of one more than the count (0: null).
# No count is believed that cannot be true: `item_bytes_min` is the least that one item occupies.


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
    """Items behind a 32-bit count."""
    (count,) = _I32.unpack_from(buffer, at)
    return _items(buffer, at + 4, count, read_item, item_bytes_min)


def read_nullable_array(
    buffer: memoryview, at: int, read_item: Reader[T], item_bytes_min: int
) -> tuple[list[T] | None, int]:
    """Items behind a 32-bit count, or null."""
    (count,) = _I32.unpack_from(buffer, at)
    if count == -1:
        return None, at + 4
    return _items(buffer, at + 4, count, read_item, item_bytes_min)


def read_compact_array(
    buffer: memoryview, at: int, read_item: Reader[T], item_bytes_min: int
) -> tuple[list[T], int]:
    """Items behind a varint."""
    count, at = read_uvarint(buffer, at)
    return _items(buffer, at, count - 1, read_item, item_bytes_min)


def read_compact_nullable_array(
    buffer: memoryview, at: int, read_item: Reader[T], item_bytes_min: int
) -> tuple[list[T] | None, int]:
    """Items behind a varint, or null."""
    if not buffer[at]:
        return None, at + 1
    return read_compact_array(buffer, at, read_item, item_bytes_min)


# Tagged fields (KIP-482): a count, then number, size and value of each; an unknown one is skipped.


def skip_tags(buffer: memoryview, at: int) -> int:
    """The position behind a section of tagged fields of which none is known."""
    count, at = read_uvarint(buffer, at)
    for _ in range(count):
        _, at, stop = read_tag(buffer, at)
        at = stop
    return at


def read_tag(buffer: memoryview, at: int) -> tuple[int, int, int]:
    """A tagged field's number, and where its value begins and ends."""
    number, at = read_uvarint(buffer, at)
    size, at = read_uvarint(buffer, at)
    return number, at, _stop(buffer, at, size)


def check_tag_end(at: int, stop: int) -> None:
    """A known tagged field must end where its size said."""
    if at != stop:
        raise WireError(f"a tagged field is {stop - at} bytes longer than its value")
