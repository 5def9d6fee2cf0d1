"""Sessions of the server: ids, passwords, and expiry in buckets of one tick.

A session expires between its timeout and one tick more after its last sign of life.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping

from broker_impl.zookeeper.records import PASSWORD_BYTES

_SERVER_SHIFT = 56
_IDS = 2**64


def first_id(server_id: int, wall_ms: int, known: Iterable[int]) -> int:
    """The first new session id: made of server id and start time, and above all known ids.

    The server's id is in the upper 8 bits, so the ids of other servers do not count.
    """
    start = (server_id << _SERVER_SHIFT) | ((wall_ms << 24) % _IDS >> 8)
    own = [id_ for session_id in known if (id_ := session_id % _IDS) >> _SERVER_SHIFT == server_id]
    return _signed(max(start, max(own, default=0) + 1))


def next_id(session_id: int) -> int:
    """The session id after this one."""
    return _signed((session_id + 1) % _IDS)


def _signed(number: int) -> int:
    """A number of 64 bits as it is sent: negative if its first bit is set."""
    return number - _IDS if number >= _IDS // 2 else number


def shared_password(session_id: int) -> bytes:
    """The password of a session in an ensemble, as Apache ZooKeeper makes it.

    Every server of an ensemble can check it, those of the other implementation too. It is no
    secret: it follows from the id (``java.util.Random`` with the id and a constant as its seed).
    """
    state = ((session_id ^ _JAVA_SECRET) ^ _JAVA_MULTIPLIER) & _JAVA_MASK
    out = bytearray()
    while len(out) < PASSWORD_BYTES:
        state = (state * _JAVA_MULTIPLIER + 0xB) & _JAVA_MASK
        out += (state >> 16).to_bytes(4, "little")
    return bytes(out)


_JAVA_SECRET = 0xB3415C00
_JAVA_MULTIPLIER = 0x5DEECE66D
_JAVA_MASK = 2**48 - 1


def password(secret: bytes, session_id: int) -> bytes:
    """The secret that a client must present to resume a session.

    Every server with the same ``secret`` can check it.
    """
    message = session_id.to_bytes(8, "big", signed=True)
    return hmac.digest(secret, message, hashlib.sha256)[:PASSWORD_BYTES]


def is_password(expected: bytes, given: bytes | None) -> bool:
    """Return whether a client may resume a session: it has presented the session's password."""
    return hmac.compare_digest(expected, given or b"")


def ends_with_connection() -> bool:
    """Return whether a session ends when its connection is lost: it waits for its client."""
    return False


def bucket_of(now: float, timeout_s: float, tick_s: float) -> int:
    """Return the tick at whose beginning a session expires that shows a sign of life now."""
    return int((now + timeout_s) / tick_s) + 1


class SessionTracker:
    """Tracks when each session was last active; the caller supplies the time (seconds)."""

    def __init__(self, tick_ms: int) -> None:
        self.tick_ms = tick_ms
        self._tick_s = tick_ms / 1000
        self._timeouts_s: dict[int, float] = {}
        self._buckets: dict[int, dict[int, None]] = {}
        self._bucket_of: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._timeouts_s)

    def __contains__(self, session_id: int) -> bool:
        return session_id in self._timeouts_s

    def negotiate(self, timeout_ms: int) -> int:
        """The timeout within 2 to 20 ticks that is nearest to the requested one."""
        return min(max(timeout_ms, 2 * self.tick_ms), 20 * self.tick_ms)

    def add(self, session_id: int, timeout_ms: int, now: float) -> None:
        """Start to track a session, or change its timeout."""
        self._timeouts_s[session_id] = timeout_ms / 1000
        self.touch(session_id, now)

    def add_all(self, sessions: Mapping[int, int], now: float) -> None:
        """Give every session a full timeout from now, as a new leader does."""
        for session_id, timeout_ms in sessions.items():
            self.add(session_id, timeout_ms, now)

    def touch(self, session_id: int, now: float) -> None:
        """Extend a session after a sign of life; sessions that are not tracked are ignored."""
        timeout = self._timeouts_s.get(session_id)
        if timeout is None:
            return
        bucket = bucket_of(now, timeout, self._tick_s)
        before = self._bucket_of.get(session_id)
        if bucket != before:
            self._leave(session_id)
            self._bucket_of[session_id] = bucket
            self._buckets.setdefault(bucket, {})[session_id] = None

    def touch_all(self, now: float) -> None:
        """Extend all sessions."""
        for session_id in self._timeouts_s:
            self.touch(session_id, now)

    def remove(self, session_id: int) -> None:
        """Stop tracking a session."""
        self._leave(session_id)
        self._timeouts_s.pop(session_id, None)

    def expired(self, now: float) -> list[int]:
        """Remove and return the sessions whose timeout has passed."""
        due = [bucket for bucket in self._buckets if bucket * self._tick_s <= now]
        gone = [session_id for bucket in sorted(due) for session_id in self._buckets[bucket]]
        for session_id in gone:
            self.remove(session_id)
        return gone

    def expiries(self) -> list[tuple[float, list[int]]]:
        """Return when sessions expire unless they show signs of life, and which."""
        return [
            (bucket * self._tick_s, sorted(self._buckets[bucket]))
            for bucket in sorted(self._buckets)
        ]

    def _leave(self, session_id: int) -> None:
        bucket = self._bucket_of.pop(session_id, None)
        if bucket is not None:
            del self._buckets[bucket][session_id]
            if not self._buckets[bucket]:
                del self._buckets[bucket]
