"""Finds Kafka's messages in the bytes of a connection, from its first byte on.

A message is a frame: a size of four bytes, followed by the header of a request, or by the
correlation id of the request that is answered. Bytes that cannot be a frame (TLS, for example) and
frames that are too large for a buffer are passed on as they arrive.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from broker_impl.wire.messages.apis import APIS

REQUEST: Final = Struct(">ihhi")
"""Size, API key, API version, correlation id."""
RESPONSE: Final = Struct(">ii")
"""Size, correlation id."""
SIZE_BYTES: Final = 4
FLIPPED_FROM_END: Final = 9
"""The distance of the byte to flip from the end of a request.

In a Produce request of one partition from the workloads' clients, the value of the last record is
there: one byte for its number of headers, which is 0, follows it.
"""
FRAME_BYTES_MAX: Final = 4 << 20
"""The largest frame that is buffered: four times what producers send at most by default."""
_SIZE_MAX: Final = (1 << 27) - 1
"""No broker accepts or sends a larger frame by default."""
_KEY_MAX: Final = 511
"""Far above the largest API key; brokers may be newer than the table of APIs."""
_VERSION_MAX: Final = 63


class Piece(NamedTuple):
    """Bytes to pass on together: a whole message, or bytes of something else."""

    data: bytes
    head: tuple[int, ...] | None
    """The fields of a message's head (:data:`REQUEST` or :data:`RESPONSE`)."""


class Splitter:
    """Splits one direction of a connection into messages; the caller owns the socket."""

    def __init__(self, head: Struct, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        """``head``: the layout of the beginning of a frame."""
        self._head = head
        self._bytes_max = frame_bytes_max
        self._buffer = bytearray()
        self._passing = 0
        """How many bytes of a frame that is too large for the buffer still have to come."""
        self.is_raw = False
        """True once the bytes are not Kafka's protocol; it stays true."""

    def pieces(self, data: bytes) -> Iterator[Piece]:
        """Add bytes, and yield what can be passed on."""
        self._buffer += data
        while (piece := self._next()) is not None:
            yield piece

    def rest(self) -> bytes:
        """Return and forget the incomplete message at the end of the stream."""
        return self._take(len(self._buffer))

    def _next(self) -> Piece | None:
        buffered = len(self._buffer)
        if not self._passing and not self.is_raw:
            fields = self._fields()
            if fields is not None:
                frame_bytes = SIZE_BYTES + fields[0]
                if frame_bytes <= buffered:
                    return Piece(self._take(frame_bytes), fields)
                if frame_bytes > self._bytes_max:
                    self._passing = frame_bytes
        count = buffered if self.is_raw else min(self._passing, buffered)
        self._passing -= 0 if self.is_raw else count
        return Piece(self._take(count), None) if count else None

    def _fields(self) -> tuple[int, ...] | None:
        """The head of the next frame once it has arrived; it may show that there are no frames."""
        if len(self._buffer) < SIZE_BYTES:
            return None
        size = int.from_bytes(self._buffer[:SIZE_BYTES], "big", signed=True)
        if not self._head.size - SIZE_BYTES <= size <= _SIZE_MAX:
            self.is_raw = True
            return None
        if len(self._buffer) < self._head.size:
            return None
        fields = self._head.unpack_from(self._buffer)
        if self._head is REQUEST:
            _, key, version, _ = fields
            self.is_raw = not (0 <= key <= _KEY_MAX and 0 <= version <= _VERSION_MAX)
        return None if self.is_raw else fields

    def _take(self, count: int) -> bytes:
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken


def api_key(name: str) -> int:
    """The key of an API; ``ValueError`` if no API has this name."""
    for key, api in APIS.items():
        if api.name == name:
            return key
    raise ValueError(f"no API is called {name}")


def has_string(request: bytes, text: str) -> bool:
    """Return whether one of the request's fields is this string, such as a group or a topic.

    Strings are found by their length and their bytes, wherever they are in the request. The length
    is encoded as the version of the request encodes it, because one byte of a longer string's
    length may equal the other encoding of a shorter one's.
    """
    _, key, version, _ = REQUEST.unpack_from(request)
    flexible_from = APIS[key].flexible_from if key in APIS else None
    encoded = text.encode()
    if flexible_from is not None and version >= flexible_from:
        return _compact_length(len(encoded)) + encoded in request
    return len(encoded).to_bytes(2, "big") + encoded in request


def is_long_enough_to_flip(request: bytes) -> bool:
    """Return whether the byte that ``corrupt-request`` changes is behind the request's head."""
    return len(request) > SIZE_BYTES + REQUEST.size + FLIPPED_FROM_END


def with_flipped_bit(data: bytes, at: int) -> bytes:
    """Flip one bit of the byte at ``at``, which may count from the end."""
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


def _compact_length(length: int) -> bytes:
    """The length of a compact string (KIP-482): one more than its bytes, as a varint."""
    number = length + 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])
