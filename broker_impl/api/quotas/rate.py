"""A rate over the last windows of time, as Kafka's quotas measure it."""

from typing import Final

_MS: Final = 1000.0


class Rate:
    """The sum of values in at most ``samples`` windows, the last of which is not over yet.

    A window begins with the first value after the end of the one before it.
    """

    def __init__(self, samples: int, window_ms: float) -> None:
        self._samples = samples
        self._window_ms = window_ms
        self._windows: list[tuple[float, float]] = []
        """The begin and the sum of each window, oldest first."""

    def record(self, value: float, now_ms: float) -> None:
        """Add a value."""
        self._expire(now_ms)
        if self._windows and now_ms - self._windows[-1][0] < self._window_ms:
            begin, total = self._windows[-1]
            self._windows[-1] = begin, total + value
        else:
            self._windows = [*self._windows, (now_ms, value)][-self._samples :]

    def measure(self, now_ms: float) -> tuple[float, float]:
        """Return the rate per second, and the milliseconds over which it is measured.

        Time before the first value counts as if nothing had been recorded: the rate is measured
        over all windows but the last from the start.
        """
        self._expire(now_ms)
        oldest = self._windows[0][0] if self._windows else now_ms
        elapsed = now_ms - oldest
        missing = self._samples - 1 - elapsed // self._window_ms
        if missing > 0:
            elapsed += missing * self._window_ms
        total = sum(value for _, value in self._windows)
        return (total / elapsed * _MS if elapsed > 0 else 0.0), elapsed

    def last_recorded_ms(self) -> float:
        """When the last window began; negative infinity if nothing was recorded."""
        return self._windows[-1][0] if self._windows else float("-inf")

    def _expire(self, now_ms: float) -> None:
        """Drop windows that are too old to count."""
        age_max = self._samples * self._window_ms
        self._windows = [window for window in self._windows if now_ms - window[0] < age_max]


def throttle_ms(rate: float, bound: float, elapsed_ms: float) -> int:
    """Return after what time the rate is down to its bound if nothing else is recorded.

    O is the rate over W, and T the bound: O * W / (W + X) = T gives X = (O - T) / T * W.
    """
    return 0 if rate <= bound else round((rate - bound) / bound * elapsed_ms)
