"""Frames and headers: what stands around every request and response.

A frame is a length of 32 bits and that many bytes; a request's begin with a header that says what
they are, a response's with the number of the request that it answers.
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
"""A buffer is at most so many times as large as the bytes that have come for it …"""
_FAST_GROWTH_MAX: Final = 1024 * 1024
"""… up to this size; then at most twice as large."""


class FrameReader:
    """Bytes in, whole frames out; the caller owns the socket.

    Two ways in, freely mixed: `receive` takes bytes that came, and for a `BufferedProtocol`
    `get_buffer` says where the next ones go and `buffer_updated` how many came. A frame lies in one
    writable buffer of exactly its size. That buffer is never made much larger than what has come,
    so that announcing a frame costs its sender as many bytes as it costs us memory.

    `scratch` receives what does not yet belong to a known large frame. All readers of a process may
    share one, because between `get_buffer` and `buffer_updated` nothing else runs.
    """

    def __init__(self, bytes_max: int, scratch: bytearray) -> None:
        self._bytes_max = bytes_max
        self._scratch = memoryview(scratch)
        self._length = bytearray()  # of the next frame, as far as it has come
        self._frame: bytearray | None = (
            None  # the one under way; its first `_filled` bytes are there
        )
        self._filled = 0
        self._size = 0
        self._whole: list[memoryview] = []
        self._refused: FrameTooLarge | None = None

    @property
    def bytes_held(self) -> int:
        """The memory of the frame that is under way."""
        return len(self._frame) if self._frame is not None else 0

    @property
    def bytes_announced(self) -> int:
        """The size of the frame that is under way, or 0."""
        return self._size if self._frame is not None else 0

    def head(self, count: int) -> bytes:
        """The first bytes of the frame that is under way, as far as they have come."""
        return bytes(self._frame[: min(count, self._filled)]) if self._frame is not None else b""

    def get_buffer(self) -> memoryview:
        """Where the next bytes should be put; valid until `buffer_updated`."""
        if self._frame is None:
            return self._scratch
        if self._filled == len(self._frame):
            self._grow(self._filled)
        return memoryview(self._frame)[self._filled :]

    def buffer_updated(self, count: int) -> None:
        """So many bytes were put into the last `get_buffer`."""
        if self._frame is None:
            self.receive(self._scratch[:count])
            return
        self._filled += count
        self._finish()

    def receive(self, data: Buffer) -> None:
        """Bytes that came; they are copied."""
        view = memoryview(data)
        at = 0
        while at < len(view) and self._refused is None:
            at = self._take(view, at) if self._frame is not None else self._begin(view, at)

    def frames(self) -> Iterator[memoryview]:
        """The frames that have become whole, each without its length, each once.

        Raises `FrameTooLarge` behind the last good one; nothing is read after that.
        """
        whole, self._whole = self._whole, []
        yield from whole
        if self._refused is not None:
            raise self._refused

    def _begin(self, view: memoryview, at: int) -> int:
        """Reads a frame's length, or as much of it as there is; or the frame, if all of it came."""
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
            self._refused = FrameTooLarge(f"{size} bytes announced, {self._bytes_max} allowed")
            return len(view)
        self._size = size
        self._filled = 0
        # Room for what has come: the caller may not want to read on.
        self._frame = bytearray(min(size, max(_CAPACITY_MIN, len(view) - stop)))
        self._finish()  # a frame may be empty
        return stop

    def _take(self, view: memoryview, at: int) -> int:
        """Moves bytes into the frame under way."""
        frame = self._frame
        assert frame is not None, "a frame is under way"
        stop = min(len(view), at + self._size - self._filled)
        if self._filled + stop - at > len(frame):
            frame = self._grow(self._filled + stop - at)
        frame[self._filled : self._filled + stop - at] = view[at:stop]
        self._filled += stop - at
        self._finish()
        return stop

    def _grow(self, needed: int) -> bytearray:
        """A larger buffer for the frame under way, with what has come of it."""
        fast = min(needed * _GROWTH, _FAST_GROWTH_MAX)
        larger = bytearray(min(self._size, max(_CAPACITY_MIN, fast, needed * 2)))
        if self._frame is not None and self._filled:
            larger[: self._filled] = memoryview(self._frame)[: self._filled]
        self._frame = larger
        return larger

    def _finish(self) -> None:
        if self._filled == self._size:
            assert self._frame is not None, "a frame is under way"
            self._whole.append(memoryview(self._frame))
            self._frame = None


class RequestHeader(NamedTuple):
    """What a request says of itself."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def is_flexible(api_key: int, api_version: int) -> bool:
    """Whether this version has tagged fields, in its body and in its headers (KIP-482)."""
    api = APIS.get(api_key)
    return api is not None and api.flexible_from is not None and api_version >= api.flexible_from


def decode_request_header(frame: memoryview) -> tuple[RequestHeader, memoryview]:
    """A request's header and its body. Raises `WireError`.

    Header v2 for flexible versions, else v1; v0, without a client id, for ControlledShutdown v0. A
    version that we do not know has the header of those that we do.
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
        raise WireError(f"request header: {error}") from error
    return RequestHeader(api_key, api_version, correlation_id, client_id), frame[at:]


def encode_request(header: RequestHeader, body: Parts) -> Parts:
    """A request's frame, its length included."""
    head: Parts = [_REQUEST.pack(header.api_key, header.api_version, header.correlation_id)]
    if header.api_key != CONTROLLED_SHUTDOWN or header.api_version != 0:
        write_nullable_string(head, header.client_id)
    if is_flexible(header.api_key, header.api_version):
        head.append(NO_TAGS)
    return _frame(head, body)


def encode_response(api_key: int, api_version: int, correlation_id: int, body: Parts) -> Parts:
    """A response's frame, its length included."""
    head: Parts = [_CORRELATION.pack(correlation_id)]
    if _has_tags(api_key, api_version):
        head.append(NO_TAGS)
    return _frame(head, body)


def decode_response(frame: memoryview, api_key: int, api_version: int) -> tuple[int, memoryview]:
    """The number of the request that this response answers, and its body. Raises `WireError`."""
    try:
        (correlation_id,) = _CORRELATION.unpack_from(frame)
        at = _CORRELATION.size
        if _has_tags(api_key, api_version):
            at = skip_tags(frame, at)
    except (IndexError, StructError) as error:
        raise WireError(f"response header: {error}") from error
    return correlation_id, frame[at:]


def _has_tags(api_key: int, api_version: int) -> bool:
    """Whether a response has header v1; ApiVersions never, as its reader may know no better."""
    return api_key != API_VERSIONS and is_flexible(api_key, api_version)


def _frame(head: Parts, body: Parts) -> Parts:
    size = sum(map(len, head)) + sum(map(len, body))
    return join_small([_LENGTH.pack(size), *head, *body])
