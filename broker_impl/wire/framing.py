"""Frames and headers of requests and responses.

A frame is a 32-bit length followed by that many bytes. A request begins with a header that names
its API and version, a response with the correlation id of its request.
"""

from collections.abc import Iterator
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from broker_impl.errors import FrameTooLarge, WireError
from broker_impl.wire.messages.apis import APIS
from broker_impl.wire.reading import read_nullable_string, skip_tags
from broker_impl.wire.types import Buffer
from broker_impl.wire.writing import NO_TAGS, Parts, join_small, write_nullable_string

API_VERSIONS: Final = 18
CONTROLLED_SHUTDOWN: Final = 7

_LENGTH: Final = Struct(">i")
_LENGTH_BYTES: Final = 4
_REQUEST: Final = Struct(">hhi")
_CORRELATION: Final = Struct(">i")

_CAPACITY_MIN: Final = 4096
_GROWTH: Final = 16
"""The largest ratio of a frame's buffer to the bytes that have arrived for it …"""
_FAST_GROWTH_MAX: Final = 1024 * 1024
"""… up to this size; above it, the ratio is 2."""


class FrameReader:
    """Splits received bytes into complete frames; the caller owns the socket.

    There are two ways to add bytes, which can be mixed: `receive` copies bytes; for a
    `BufferedProtocol`, `get_buffer` returns the place for the next bytes and `buffer_updated` takes
    their number. A complete frame is one writable buffer of exactly its size. The buffer is never
    made much larger than what has arrived, so that a sender that announces a large frame must send
    as many bytes as the receiver allocates.

    `scratch` receives bytes that do not belong to a known large frame yet. All readers of a process
    may share one, because no other code runs between `get_buffer` and `buffer_updated`.
    """

    def __init__(self, bytes_max: int, scratch: bytearray) -> None:
        self._bytes_max = bytes_max
        self._scratch = memoryview(scratch)
        self._length = bytearray()  # the part of the next frame's length that has arrived
        self._frame: bytearray | None = (
            None  # the arriving frame, of which `_filled` bytes have arrived
        )
        self._filled = 0
        self._size = 0
        self._whole: list[memoryview] = []
        self._refused: FrameTooLarge | None = None

    def limit(self, bytes_max: int) -> None:
        """Set the maximum size of the frames that have not begun yet."""
        self._bytes_max = bytes_max

    @property
    def bytes_held(self) -> int:
        """The memory allocated for the arriving frame."""
        return len(self._frame) if self._frame is not None else 0

    @property
    def bytes_announced(self) -> int:
        """The size of the arriving frame, or 0."""
        return self._size if self._frame is not None else 0

    def head(self, count: int) -> bytes:
        """Return up to ``count`` first bytes of the arriving frame, if they have arrived."""
        return bytes(self._frame[: min(count, self._filled)]) if self._frame is not None else b""

    def get_buffer(self) -> memoryview:
        """Return the place for the next bytes; valid until `buffer_updated`."""
        if self._frame is None:
            return self._scratch
        if self._filled == len(self._frame):
            self._grow(self._filled)
        return memoryview(self._frame)[self._filled :]

    def buffer_updated(self, count: int) -> None:
        """Process the first ``count`` bytes of the buffer that `get_buffer` returned last."""
        if self._frame is None:
            self.receive(self._scratch[:count])
            return
        self._filled += count
        self._finish()

    def receive(self, data: Buffer) -> None:
        """Process received bytes. They are copied, so the caller may reuse the buffer."""
        view = memoryview(data)
        at = 0
        while at < len(view) and self._refused is None:
            at = self._take(view, at) if self._frame is not None else self._begin(view, at)

    def frames(self) -> Iterator[memoryview]:
        """Yield each frame that is complete, without its length, once.

        Raises `FrameTooLarge` after the last valid frame; no further bytes are read after that.
        """
        whole, self._whole = self._whole, []
        yield from whole
        if self._refused is not None:
            raise self._refused

    def _begin(self, view: memoryview, at: int) -> int:
        """Read the start of a frame: its length as far as it has arrived, or the complete frame."""
        start = at + _LENGTH_BYTES
        if not self._length and start <= len(view):
            size: int = _LENGTH.unpack_from(view, at)[0]
            if 0 <= size <= min(self._bytes_max, len(view) - start):
                self._whole.append(memoryview(bytearray(view[start : start + size])))
                return start + size
        stop = at + _LENGTH_BYTES - len(self._length)
        self._length += view[at:stop]
        if len(self._length) < _LENGTH_BYTES:
            return len(view)
        size = _LENGTH.unpack(self._length)[0]
        self._length.clear()
        if not 0 <= size <= self._bytes_max:
            self._refused = FrameTooLarge(
                f"a frame announces {size} bytes, only {self._bytes_max} are allowed"
            )
            return len(view)
        self._size = size
        self._filled = 0
        # Allocate for what has arrived: the caller may not want to read on.
        self._frame = bytearray(min(size, max(_CAPACITY_MIN, len(view) - stop)))
        self._finish()  # a frame may be empty
        return stop

    def _take(self, view: memoryview, at: int) -> int:
        """Copy bytes into the arriving frame."""
        frame = self._frame
        assert frame is not None, "the previous frame is not complete"
        stop = min(len(view), at + self._size - self._filled)
        if self._filled + stop - at > len(frame):
            frame = self._grow(self._filled + stop - at)
        frame[self._filled : self._filled + stop - at] = view[at:stop]
        self._filled += stop - at
        self._finish()
        return stop

    def _grow(self, needed: int) -> bytearray:
        """Allocate a larger buffer for the arriving frame, and copy what has arrived into it."""
        fast = min(needed * _GROWTH, _FAST_GROWTH_MAX)
        larger = bytearray(min(self._size, max(_CAPACITY_MIN, fast, needed * 2)))
        if self._frame is not None and self._filled:
            larger[: self._filled] = memoryview(self._frame)[: self._filled]
        self._frame = larger
        return larger

    def _finish(self) -> None:
        if self._filled == self._size:
            assert self._frame is not None, "the previous frame is not complete"
            self._whole.append(memoryview(self._frame))
            self._frame = None


class RequestHeader(NamedTuple):
    """The header of a request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def is_flexible(api_key: int, api_version: int) -> bool:
    """Return whether this version has tagged fields in its body and headers (KIP-482)."""
    api = APIS.get(api_key)
    return api is not None and api.flexible_from is not None and api_version >= api.flexible_from


def decode_request_header(frame: memoryview) -> tuple[RequestHeader, memoryview]:
    """Return a request's header and its body. Raises `WireError`.

    Flexible versions have header v2, others v1; ControlledShutdown v0 has v0, without a client id.
    An unknown version is read with the header that the known ones suggest.
    """
    try:
        api_key, api_version, correlation_id = _REQUEST.unpack_from(frame)
        at = _REQUEST.size
        client_id = None
        if api_key != CONTROLLED_SHUTDOWN or api_version != 0:
            client_id, at = read_nullable_string(frame, at)  # not compact in v2 either
        if is_flexible(api_key, api_version):
            at = skip_tags(frame, at)
    except (IndexError, StructError, UnicodeDecodeError) as error:
        raise WireError(f"invalid request header: {error}") from error
    return RequestHeader(api_key, api_version, correlation_id, client_id), frame[at:]


def encode_request(header: RequestHeader, body: Parts) -> Parts:
    """Return a request's frame, including its length."""
    head: Parts = [_REQUEST.pack(header.api_key, header.api_version, header.correlation_id)]
    if header.api_key != CONTROLLED_SHUTDOWN or header.api_version != 0:
        write_nullable_string(head, header.client_id)
    if is_flexible(header.api_key, header.api_version):
        head.append(NO_TAGS)
    return _frame(head, body)


def encode_response(api_key: int, api_version: int, correlation_id: int, body: Parts) -> Parts:
    """Return a response's frame, including its length."""
    head: Parts = [_CORRELATION.pack(correlation_id)]
    if _has_tags(api_key, api_version):
        head.append(NO_TAGS)
    return _frame(head, body)


def decode_response(frame: memoryview, api_key: int, api_version: int) -> tuple[int, memoryview]:
    """Return a response's correlation id and its body. Raises `WireError`."""
    try:
        (correlation_id,) = _CORRELATION.unpack_from(frame)
        at = _CORRELATION.size
        if _has_tags(api_key, api_version):
            at = skip_tags(frame, at)
    except (IndexError, StructError) as error:
        raise WireError(f"invalid response header: {error}") from error
    return correlation_id, frame[at:]


def _has_tags(api_key: int, api_version: int) -> bool:
    """Return whether a response has header v1.

    ApiVersions never has it, because a client that knows older versions only must be able to read
    the response.
    """
    return api_key != API_VERSIONS and is_flexible(api_key, api_version)


def _frame(head: Parts, body: Parts) -> Parts:
    size = sum(map(len, head)) + sum(map(len, body))
    return join_small([_LENGTH.pack(size), *head, *body])
