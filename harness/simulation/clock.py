"""A host's clocks: one that only goes forward, and the wall clock, which may be wrong."""

from harness.simulation.timeline import Timeline

EPOCH_S = 1_700_000_000
"""What an exact wall clock shows when the world begins (seconds since 1970)."""


class HostClock:
    """Both clocks of a host run at one rate, as an oscillator makes them; the wall clock may jump.

    The monotonic clock does not begin anew when the host is powered on again.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.skew_s = 0.0
        """How far the wall clock is ahead, apart from what the rate has added up."""
        self.rate = 1.0
        self._timeline = timeline
        self._began = 0.0
        self._began_local = 0.0

    def monotonic(self) -> float:
        """Seconds that only grow; what the host's loops call time."""
        return self._began_local + (self._timeline.now - self._began) * self.rate

    def wall(self) -> float:
        """Seconds since 1970, as this host believes."""
        return EPOCH_S + self.skew_s + self.monotonic()

    def due(self, when: float) -> float:
        """The world's time at which the monotonic clock shows ``when``."""
        return self._began + (when - self._began_local) / self.rate

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward, or back."""
        self.skew_s += seconds

    def drift(self, rate: float) -> None:
        """Run at ``rate`` local seconds a second from now on."""
        if rate <= 0:
            raise ValueError(f"a clock's rate is above 0, not {rate}")
        self._began_local = self.monotonic()
        self._began = self._timeline.now
        self.rate = rate
        self._timeline.retime(self)
