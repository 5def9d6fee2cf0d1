"""The sessions as a learner knows them: it reports signs of life, and the leader expires."""

from collections.abc import Mapping


class LearnerSessions:
    """Collects the sessions that have shown signs of life since the leader last asked.

    Args:
        tick_ms: session timeouts are 2 to 20 ticks.
        timeouts_ms: the timeouts of the live sessions, as the database has them.
    """

    def __init__(self, tick_ms: int, timeouts_ms: Mapping[int, int]) -> None:
        self.tick_ms = tick_ms
        self._timeouts_ms = timeouts_ms
        self._own: dict[int, int] = {}
        """The timeouts of sessions that clients have brought here, where they differ."""
        self._touched: dict[int, int] = {}

    def negotiate(self, timeout_ms: int) -> int:
        """Return the timeout within 2 to 20 ticks that is nearest to the requested one."""
        return min(max(timeout_ms, 2 * self.tick_ms), 20 * self.tick_ms)

    def add(self, session_id: int, timeout_ms: int, now: float) -> None:
        """Note the timeout of a session."""
        del now
        if timeout_ms != self._timeouts_ms.get(session_id):
            self._own[session_id] = timeout_ms
        else:
            self._own.pop(session_id, None)

    def touch(self, session_id: int, now: float) -> None:
        """Note a sign of life; sessions that are not known are ignored."""
        del now
        timeout_ms = self._own.get(session_id) or self._timeouts_ms.get(session_id)
        if timeout_ms is not None:
            self._touched[session_id] = timeout_ms

    def touch_all(self, now: float) -> None:
        """Do nothing: only the leader decides how long a session lives."""

    def remove(self, session_id: int) -> None:
        """Forget a session."""
        self._own.pop(session_id, None)
        self._touched.pop(session_id, None)

    def expired(self, now: float) -> list[int]:
        """Return nothing: only the leader decides when a session ends."""
        del now
        return []

    def take(self) -> dict[int, int]:
        """Return the sessions that have shown signs of life, with their timeouts (ms), once."""
        touched, self._touched = self._touched, {}
        return touched
