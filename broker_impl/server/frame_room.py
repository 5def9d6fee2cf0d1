"""Memory for arriving frames: a frame reserves all of its bytes before its body is read.

A frame that has started can therefore always be completed. Until it has room, its connection is not
read (backpressure, as in Kafka's memory pool, KIP-72). Small frames need no room. Ordinary and
large frames have separate rooms, so that a slow upload of 100 MB does not delay ordinary requests;
requests of brokers also have their own, because replication and orders must not wait for clients.
"""

import asyncio
from typing import Final, NamedTuple, Protocol

from broker_impl.api.table import APIS

SMALL_BYTES: Final = 16 * 1024
"""Frames up to this size are always read; of a larger one, this much is read before it has room."""
ORDINARY_BYTES: Final = 2 * 1024 * 1024
"""Twice the default ``message.max.bytes``; larger frames share the room for large frames."""
ORDINARY_ROOM: Final = 32 * 1024 * 1024
STALLED_S: Final = 10.0
"""The silence within a frame after which its connection is closed, if other frames wait for room.

It is shorter than the timeout of clients, whose requests wait.
"""
_FETCH, _EPOCH_ENDS, _ADD_PARTITIONS_TO_TXN, _MARKERS = 1, 23, 24, 27
FROM_BROKERS: Final = frozenset(
    {key for key, row in APIS.items() if row.between_brokers}
    | {_FETCH, _EPOCH_ENDS, _ADD_PARTITIONS_TO_TXN, _MARKERS}
)
"""The requests that brokers send to each other, on any listener."""


class Frame(Protocol):
    """An arriving frame, represented by its connection."""

    progress_at: float
    """When its last bytes arrived, in the loop's time."""

    def advance(self) -> None:
        """Continue: the frame has room now."""

    def stalled(self) -> None:
        """Close the connection: the frame has stalled, and other frames wait for its room."""


class _Share(NamedTuple):
    """The part of the room that a frame has reserved."""

    size: int
    since: float


class FrameRoom:
    """A limited number of bytes for arriving frames, reserved in the order of requests."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_held = 0
        """The total size of the frames that have room."""
        self._bytes_max = bytes_max
        self._shares: dict[Frame, _Share] = {}
        self._waiting: dict[Frame, int] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_crowded(self) -> bool:
        """Whether frames wait for room."""
        return bool(self._waiting)

    def admit(self, frame: Frame, size: int) -> bool:
        """Return whether the frame has room; if not, its ``advance`` is called once it has."""
        if frame in self._shares:
            return True
        self._waiting[frame] = size
        self._admit_next()
        if frame in self._shares:
            return True
        self._watch()
        return False

    def release(self, frame: Frame) -> None:
        """Release the room of a frame that is complete or whose connection is closed."""
        self._waiting.pop(frame, None)
        share = self._shares.pop(frame, None)
        if share is not None:
            self.bytes_held -= share.size
        loop = asyncio.get_running_loop()
        for admitted in self._admit_next():
            loop.call_soon(admitted.advance)
        if not self._waiting and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _admit_next(self) -> list[Frame]:
        """Give room to waiting frames, in order, as far as it lasts; a single frame always fits."""
        admitted = []
        now = asyncio.get_running_loop().time()
        while self._waiting:
            frame, size = next(iter(self._waiting.items()))
            if self._shares and self.bytes_held + size > self._bytes_max:
                break
            del self._waiting[frame]
            self._shares[frame] = _Share(size, now)
            self.bytes_held += size
            admitted.append(frame)
        return admitted

    def _watch(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(STALLED_S, self._end_stalled)

    def _end_stalled(self) -> None:
        self._timer = None
        silent_since = asyncio.get_running_loop().time() - STALLED_S
        for frame, share in tuple(self._shares.items()):
            if max(frame.progress_at, share.since) <= silent_since:
                frame.stalled()
        if self._waiting:
            self._watch()
