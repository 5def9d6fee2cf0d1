"""A host's two clocks: a monotonic clock, and a wall clock that may be wrong."""

from harness.simulation.timeline import Timeline

EPOCH_S = 1_700_000_000
"""What an exact wall clock shows when the world begins (seconds since 1970)."""


class HostClock:
    """The clocks of a host; both run at one rate, since one oscillator drives them.

    The wall clock may jump. The monotonic clock does not start again when the host is powered on
    again.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.skew_s = 0.0
        """How far the wall clock is ahead, without what the rate has added up."""
        self.rate = 1.0
        self._timeline = timeline
        self._began = 0.0
        self._began_local = 0.0

    def monotonic(self) -> float:
        """Seconds that never decrease; the time of the host's event loops."""
        return self._began_local + (self._timeline.now - self._began) * self.rate

    def wall(self) -> float:
        """Seconds since 1970, according to this host."""
        return EPOCH_S + self.skew_s + self.monotonic()

    def due(self, when: float) -> float:
        """The world's time at which the monotonic clock shows ``when``."""
        return self._began + (when - self._began_local) / self.rate

    def jump(self, seconds: float) -> None:
        """Move the wall clock forward, or back if ``seconds`` is negative."""
        self.skew_s += seconds

    def drift(self, rate: float) -> None:
        """Run at ``rate`` local seconds per second from now on."""
        if rate <= 0:
            raise ValueError(f"a clock's rate is above 0, not {rate}")
        self._began_local = self.monotonic()
        self._began = self._timeline.now
        self.rate = rate
        self._timeline.retime(self)
