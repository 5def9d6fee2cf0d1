"""When TCP sends unacknowledged segments again, and when it gives a connection up."""

from harness.simulation.segment import TcpOptions


class Retransmission:
    """The times of one end of a connection from which its retransmission timer follows."""

    __slots__ = ("_options", "_progress_at", "_retries", "_rto_s", "_sent_at", "heard_at")

    def __init__(self, options: TcpOptions, now: float) -> None:
        self._options = options
        self._sent_at = 0.0
        """When the flight was last sent, or last made progress if that is later."""
        self._progress_at = 0.0
        """When a segment was last acknowledged, or the flight began."""
        self._retries = 0
        self._rto_s = options.rto_s_min
        self.heard_at = now
        """When the peer was last heard from."""

    def begin(self, now: float) -> None:
        """Note that a segment is sent while none is in flight."""
        self._sent_at = self._progress_at = now

    def acknowledged(self, now: float, echo: float) -> None:
        """Note that the peer has acknowledged something new that was sent at ``echo``."""
        self._sent_at = self._progress_at = now
        options = self._options
        wait_s = 2 * (now - echo)
        if wait_s <= options.rto_s_min:  # the usual case
            self._rto_s = options.rto_s_min
        else:
            self._rto_s = min(wait_s, options.rto_s_max)
        self._retries = 0

    def repeat(self, now: float) -> None:
        """Note that the flight is sent again."""
        self._retries += 1
        self._sent_at = now

    def due(self, *, is_established: bool) -> float:
        """Return when the flight is sent again if nothing is acknowledged until then."""
        if not is_established:
            wait = self._options.syn_rto_s * 2**self._retries
        else:
            wait = min(self._rto_s * 2**self._retries, self._options.rto_s_max)
        due: float = self._sent_at + wait
        return due

    def is_hopeless(self, now: float, *, is_established: bool, has_flight: bool) -> bool:
        """Return whether the connection is given up instead of sending the flight again."""
        if not is_established:
            return self._retries >= self._options.syn_retries
        # A peer that answers but has no room is waited for without limit.
        since = self._progress_at if has_flight else max(self._progress_at, self.heard_at)
        return now - since >= self._options.give_up_s
