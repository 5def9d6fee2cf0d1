"""When a session certainly showed its last sign of life, and for how long it was silent then.

A server extends a session no earlier than the client sent the request, the ping or the handshake
that was answered. In an ensemble the server that answers reports this to its leader, which expires
sessions, within a part of the timeout. An answer is no evidence if the session was silent before
for so long that the leader may have expired it just then. It is evidence again once the session has
outlived that.
"""

SHARE = 0.5
"""The share of the timeout within which a leader certainly hears of a sign of life."""


class SignsOfLife:
    """The signs of life of one session; times are seconds of one clock."""

    def __init__(self) -> None:
        self.last_s: float | None = None
        """When the last certain sign of life was sent; ``None`` before the first handshake."""
        self.timeout_s = 0.0
        """The smallest timeout that a server has granted."""
        self.silent_s: float | None = None
        """How long after the last certain sign of life the session was known to have expired."""
        self._latest_s = 0.0
        """When the latest request was sent that was answered."""
        self._doubted_until_s: float | None = None

    def connected(self, sent_s: float, timeout_s: float) -> None:
        """Note a handshake, which the leader answers: it is always certain."""
        self.timeout_s = min(self.timeout_s or timeout_s, timeout_s)
        self.last_s = self._latest_s = sent_s
        self._doubted_until_s = None

    def answered(self, sent_s: float, now_s: float) -> None:
        """Note an answer that has just arrived to what was sent then."""
        if self.last_s is None:
            return
        within_s = self.timeout_s * SHARE
        if now_s - self._latest_s > within_s:
            self._doubted_until_s = now_s + within_s
        self._latest_s = max(self._latest_s, sent_s)
        if self._doubted_until_s is None or sent_s >= self._doubted_until_s:
            self._doubted_until_s = None
            self.last_s = max(self.last_s, sent_s)

    def expired(self, now_s: float) -> None:
        """Note that a server has reported the end of the session."""
        if self.last_s is not None and self.silent_s is None:
            self.silent_s = now_s - self.last_s
