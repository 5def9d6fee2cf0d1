"""Limits on the memory that all connections of a broker hold together.

Requests count from their first byte until they are handled (``queued.max.request.bytes``, KIP-72).
While they hold too much, a connection is not read at the start of a new frame. A connection in the
middle of a frame is read on, because only a complete frame can be handled and released;
``frame_room`` limits how many large frames arrive at once.

Responses that a slow reader has not read yet count separately: while those hold too much, a Fetch
gets at most one batch.
"""

import asyncio
from collections.abc import Callable
from typing import Final

UNREAD_BYTES_MAX: Final = 128 * 1024 * 1024
"""Unread responses in memory, above which Fetch responses are small."""


class Bounds:
    """The bytes that all connections hold."""

    def __init__(self, requests_max: int) -> None:
        """``requests_max``: the limit for requests in bytes; 0 or less means no limit."""
        self.request_bytes = 0
        self._requests_max = requests_max
        self._waiting: dict[Callable[[], None], None] = {}
        self._is_waking = False
        self._unread: dict[Callable[[], int], None] = {}

    @property
    def is_full(self) -> bool:
        """Whether requests hold as much memory as they may."""
        return 0 < self._requests_max <= self.request_bytes

    def hold(self, count: int) -> None:
        """Add ``count`` bytes, which may be negative, to those that requests hold."""
        self.request_bytes += count
        self._wake_soon()

    def wait(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` once there is room; waiters are called one by one, while there is room."""
        self._waiting[wake] = None

    def forget(self, wake: Callable[[], None]) -> None:
        """Remove a waiter."""
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
        """Add a slow reader; ``unread`` returns the number of bytes that it has not read yet."""
        self._unread[unread] = None

    def unblocked(self, unread: Callable[[], int]) -> None:
        """Remove a reader that has caught up or disconnected."""
        self._unread.pop(unread, None)

    def answer_room(self) -> int:
        """The maximum size of a response in bytes."""
        return max(0, UNREAD_BYTES_MAX - sum(unread() for unread in self._unread))
