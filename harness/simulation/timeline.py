"""The single order of events of a simulated world: virtual time, and a heap of future events."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Any, Protocol

_COMPACT_ABOVE = 256
"""Cancelled timers are removed once there are more than this, and they are the majority."""


class TimerClock(Protocol):
    """The clock by which a timer is set."""

    def due(self, when: float) -> float:
        """The world's time at which the clock shows ``when``."""


class TimerLoop(Protocol):
    """The event loop that a timer belongs to."""

    @property
    def clock(self) -> TimerClock:
        """The clock of the loop's host."""

    def enqueue(self, handle: asyncio.Handle) -> None:
        """Run ``handle`` after those that are ready."""


class Timer(asyncio.TimerHandle):
    """A timer of a process's loop."""

    __slots__ = ("is_waiting", "loop")

    loop: TimerLoop
    is_waiting: bool
    """True until the timer comes due."""


class Timeline:
    """Virtual seconds since the world began, and a heap of the events still to come.

    An entry is an action of the network or a kernel, ``(when, number, action, args)``, or a timer
    of a process, ``(when, number, timer, None)``. Entries due at the same time are carried out in
    the order in which they were added.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.heap: list[tuple[float, int, Any, tuple[Any, ...] | None]] = []
        self._numbers = itertools.count()
        self._cancelled = 0

    def at(self, when: float, action: Callable[..., object], *args: Any) -> None:
        """Call ``action`` at ``when``, outside every process."""
        heapq.heappush(self.heap, (when, next(self._numbers), action, args))

    def add_timer(self, when: float, timer: Timer) -> None:
        """Add a timer of a process that is due at ``when`` (world time)."""
        timer.is_waiting = True
        heapq.heappush(self.heap, (when, next(self._numbers), timer, None))

    def timer_cancelled(self) -> None:
        """Count a cancelled timer; it stays in the heap until there are too many of them."""
        self._cancelled += 1
        if self._cancelled > _COMPACT_ABOVE and self._cancelled * 2 > len(self.heap):
            self._rebuild([entry for entry in self.heap if not _is_cancelled(entry)])

    def pass_due(self, now: float) -> None:
        """Carry out what is due by now; timers that are due become ready in their loops."""
        heap = self.heap
        pop = heapq.heappop
        while heap and heap[0][0] <= now:
            _, _, item, args = pop(heap)
            if args is not None:
                item(*args)
                continue
            item.is_waiting = False
            if item._cancelled:
                self._cancelled -= 1
            else:
                item.loop.enqueue(item)

    def forget(self, loop: TimerLoop) -> None:
        """Remove the timers of a loop whose process has ended, which would keep all its objects.

        The order of all other events stays.
        """
        kept = []
        for entry in self.heap:
            _, _, item, args = entry
            if args is None and item.loop is loop:
                item.is_waiting = False
            elif not _is_cancelled(entry):
                kept.append(entry)
        self._rebuild(kept)

    def retime(self, clock: TimerClock) -> None:
        """Recompute when the timers of a host are due, because its clock's rate has changed."""
        self._rebuild(
            [
                (clock.due(item.when()), number, item, args)
                if args is None and item.loop.clock is clock
                else (when, number, item, args)
                for when, number, item, args in self.heap
                if not _is_cancelled((when, number, item, args))
            ]
        )

    def _rebuild(self, entries: list[tuple[float, int, Any, tuple[Any, ...] | None]]) -> None:
        self.heap[:] = entries
        heapq.heapify(self.heap)
        self._cancelled = 0


def _is_cancelled(entry: tuple[float, int, Any, tuple[Any, ...] | None]) -> bool:
    return entry[3] is None and bool(entry[2]._cancelled)
