"""Room for frames that are still arriving, and which connections wait for it.

A frame gets room for all of its bytes before its body is read, so that a frame which has begun can
always be finished; until then its connection is not read (backpressure, as Kafka's memory pool has
it, KIP-72). Small frames need no room. Frames of ordinary size and large ones have rooms of their
own, so that a slow upload of 100 MB holds up no ordinary request; so have the requests of brokers,
whose replication and orders must not wait for clients.
"""

import asyncio
from typing import Final, NamedTuple, Protocol

from broker_impl.api.table import APIS

SMALL_BYTES: Final = 16 * 1024
"""Frames up to this size are always read; so much is read of a frame before it has room."""
ORDINARY_BYTES: Final = 2 * 1024 * 1024
"""Twice the default ``message.max.bytes``: larger frames share the room for large ones."""
ORDINARY_ROOM: Final = 32 * 1024 * 1024
STALLED_S: Final = 10.0
"""Silence in the middle of a frame that costs its connection the room, once others wait for it.
Less than the time-out of clients, whose requests wait."""
_FETCH, _EPOCH_ENDS, _ADD_PARTITIONS_TO_TXN, _MARKERS = 1, 23, 24, 27
FROM_BROKERS: Final = frozenset(
    {key for key, row in APIS.items() if row.between_brokers}
    | {_FETCH, _EPOCH_ENDS, _ADD_PARTITIONS_TO_TXN, _MARKERS}
)
"""The requests that brokers send each other, on whichever listener."""


class Frame(Protocol):
    """A frame that is arriving, as its connection."""

    progress_at: float
    """When bytes of it came last, by the loop's clock."""

    def advance(self) -> None:
        """It has room now."""

    def stalled(self) -> None:
        """It has stalled, and other frames wait for its room."""


class _Share(NamedTuple):
    """What a frame has of the room."""

    size: int
    since: float


class FrameRoom:
    """So many bytes for frames that are arriving; they get room in the order in which they ask."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_held = 0
        """The size of all frames that have room."""
        self._bytes_max = bytes_max
        self._shares: dict[Frame, _Share] = {}
        self._waiting: dict[Frame, int] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_crowded(self) -> bool:
        """Do frames wait for room?"""
        return bool(self._waiting)

    def admit(self, frame: Frame, size: int) -> bool:
        """Whether the frame has room; if not, ``advance`` is called once it has."""
        if frame in self._shares:
            return True
        self._waiting[frame] = size
        self._admit_next()
        if frame in self._shares:
            return True
        self._watch()
        return False

    def release(self, frame: Frame) -> None:
        """The frame has arrived, or its connection is lost."""
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
        """Give room to those who wait, in order, as far as there is any; one alone always fits."""
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
