"""A selector that measures how long the event loop waits: the time in which a broker is idle."""

import selectors
import time
from selectors import SelectorKey


class IdleSelector(selectors.DefaultSelector):
    """The operating system's selector; it adds up the time spent in waiting for events.

    A broker has one loop for all of its requests. What is not spent in waiting is spent in handlers
    of requests and in the broker's other work, so a loop that is never idle delays every request.
    """

    def __init__(self) -> None:
        super().__init__()
        self.idle_s = 0.0
        """The seconds spent in waiting so far."""

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Wait for events, as in the base class."""
        if timeout is not None and timeout <= 0:
            return super().select(timeout)  # something is due at once: the loop does not wait
        begun = time.perf_counter()
        events = super().select(timeout)
        self.idle_s += time.perf_counter() - begun
        return events
