"""How long sessions live: ids, passwords, and expiry in buckets of one tick.

A session lives between its timeout and one tick more, counted from the last sign of life.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping

from broker_impl.zookeeper.records import PASSWORD_BYTES


def first_id(server_id: int, wall_ms: int, known: Iterable[int]) -> int:
    """The first session id to give out: server and time of start, and above all that are known."""
    start = (server_id << 56) | ((wall_ms << 24 & 0xFFFFFFFFFFFFFFFF) >> 8)
    return max(start, max(known, default=0) + 1)


def password(secret: bytes, session_id: int) -> bytes:
    """What proves a session to be one's own; every server with the secret can check it."""
    message = session_id.to_bytes(8, "big", signed=True)
    return hmac.digest(secret, message, hashlib.sha256)[:PASSWORD_BYTES]


class SessionTracker:
    """Knows when each session was last heard of; the caller owns the clock (seconds)."""

    def __init__(self, tick_ms: int) -> None:
        self.tick_ms = tick_ms
        self._tick_s = tick_ms / 1000
        self._timeouts_s: dict[int, float] = {}
        self._buckets: dict[int, dict[int, None]] = {}
        self._bucket_of: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._timeouts_s)

    def negotiate(self, timeout_ms: int) -> int:
        """A timeout within 2 to 20 ticks, as near as possible to the one asked for."""
        return min(max(timeout_ms, 2 * self.tick_ms), 20 * self.tick_ms)

    def add(self, session_id: int, timeout_ms: int, now: float) -> None:
        """Track a session from now on, or change its timeout."""
        self._timeouts_s[session_id] = timeout_ms / 1000
        self.touch(session_id, now)

    def add_all(self, sessions: Mapping[int, int], now: float) -> None:
        """Give every session a full timeout from now, as a new leader does."""
        for session_id, timeout_ms in sessions.items():
            self.add(session_id, timeout_ms, now)

    def touch(self, session_id: int, now: float) -> None:
        """A sign of life; none for a session that is not tracked (any more)."""
        timeout = self._timeouts_s.get(session_id)
        if timeout is None:
            return
        bucket = int((now + timeout) / self._tick_s) + 1
        before = self._bucket_of.get(session_id)
        if bucket != before:
            self._leave(session_id)
            self._bucket_of[session_id] = bucket
            self._buckets.setdefault(bucket, {})[session_id] = None

    def touch_all(self, now: float) -> None:
        """A sign of life of everybody."""
        for session_id in self._timeouts_s:
            self.touch(session_id, now)

    def remove(self, session_id: int) -> None:
        """Track a session no longer."""
        self._leave(session_id)
        self._timeouts_s.pop(session_id, None)

    def expired(self, now: float) -> list[int]:
        """Take out the sessions whose time is up."""
        due = [bucket for bucket in self._buckets if bucket * self._tick_s <= now]
        gone = [session_id for bucket in sorted(due) for session_id in self._buckets[bucket]]
        for session_id in gone:
            self.remove(session_id)
        return gone

    def _leave(self, session_id: int) -> None:
        bucket = self._bucket_of.pop(session_id, None)
        if bucket is not None:
            del self._buckets[bucket][session_id]
            if not self._buckets[bucket]:
                del self._buckets[bucket]
