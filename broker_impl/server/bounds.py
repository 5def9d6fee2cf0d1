"""How much memory the connections of a broker may hold together, and who waits while it is full.

Requests count from their first byte until they are handled (``queued.max.request.bytes``, KIP-72).
While they hold too much, a connection that is about to begin another frame is not read; one that is
in the midst of a frame goes on, since only a whole frame can be handled and let go. How many large
frames are in the midst at once is bounded by ``frame_room``.
Answers that a slow reader leaves unread count, too: while those hold too much, a Fetch gets no
more than one batch.
"""

import asyncio
from collections.abc import Callable
from typing import Final

UNREAD_BYTES_MAX: Final = 128 * 1024 * 1024
"""Answers in memory that nobody has read yet, beyond which Fetch answers are small."""


class Bounds:
    """The bytes that all connections hold."""

    def __init__(self, requests_max: int) -> None:
        """``requests_max``: bytes of requests; no limit unless it is above 0."""
        self.request_bytes = 0
        self._requests_max = requests_max
        self._waiting: dict[Callable[[], None], None] = {}
        self._is_waking = False
        self._unread: dict[Callable[[], int], None] = {}

    @property
    def is_full(self) -> bool:
        """Do requests hold as much as they may?"""
        return 0 < self._requests_max <= self.request_bytes

    def hold(self, count: int) -> None:
        """Requests hold so many bytes more, or less."""
        self.request_bytes += count
        self._wake_soon()

    def wait(self, wake: Callable[[], None]) -> None:
        """Call this once there is room: one after the other, as long as there is."""
        self._waiting[wake] = None

    def forget(self, wake: Callable[[], None]) -> None:
        """Nobody waits there any more."""
        self._waiting.pop(wake, None)

    def _wake_soon(self) -> None:
        if self._waiting and not self.is_full and not self._is_waking:
            self._is_waking = True
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._is_waking = False
        if self._waiting and not self.is_full:
            wake = next(iter(self._waiting))
            del self._waiting[wake]
            wake()
            self._wake_soon()

    def blocked(self, unread: Callable[[], int]) -> None:
        """A reader is slow: ``unread`` tells how much it has left."""
        self._unread[unread] = None

    def unblocked(self, unread: Callable[[], int]) -> None:
        """It has caught up, or is gone."""
        self._unread.pop(unread, None)

    def answer_room(self) -> int:
        """Bytes that an answer may have by now."""
        return max(0, UNREAD_BYTES_MAX - sum(unread() for unread in self._unread))
