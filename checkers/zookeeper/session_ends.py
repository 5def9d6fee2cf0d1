"""Judges how sessions end: not before their timeout, and not because of another client."""

from collections.abc import Iterator

from checkers.facts import Fault
from checkers.kernels.found import Found
from checkers.zookeeper.calls import Call, History
from model.op import ZNODE_READS

SHARE = 0.5
"""The share of its timeout that a session must survive after an acknowledged write. The rest allows
for what leader and servers know late of each other: sessions last at least two ticks, servers
report their clients to the leader twice per tick."""
UNTRACKED = frozenset((*ZNODE_READS, "close", "abandon", "intrude"))
"""Operations that the leader need not hear of, or that end a session."""
SKEWS = "clock-skew"
"""The fault with which a server's timers run at another rate."""


def early(history: History) -> Iterator[Found]:
    """Find sessions that have expired although a write was acknowledged shortly before."""
    for calls in history.sessions().values():
        written: Call | None = None
        for call in calls:
            timeout_ms = call.value.get("expired_ms")
            if timeout_ms is not None:
                if written is not None and _is_early(written, call, timeout_ms):
                    yield _early(written, call, timeout_ms, history.faults)
                break
            if call.ok and call.f not in UNTRACKED:
                written = call


def _is_early(written: Call, call: Call, timeout_ms: int) -> bool:
    """The leader has heard of the session after the write began; the client of its end before the
    call was completed."""
    return call.ended_ns - written.began_ns < SHARE * timeout_ms * 1e6


def _early(written: Call, call: Call, timeout_ms: int, faults: tuple[Fault, ...]) -> Found:
    is_skewed = any(
        fault.fault == SKEWS
        and fault.from_ns <= call.ended_ns
        and (fault.to_ns is None or fault.to_ns >= written.began_ns)
        for fault in faults
    )
    seconds = (call.ended_ns - written.began_ns) / 1e9
    return Found(
        anomaly="zk-expired-early",
        key=call.place or None,
        variant="disturbed" if is_skewed else "",
        ops=(written.op, call.op),
        why=f"the session of event {written.op}, an acknowledged write, had expired at event"
        f" {call.op}, {seconds:.3f} s after the write began, with a timeout of"
        f" {timeout_ms / 1000:g} s",
    )


def stolen(history: History) -> Iterator[Found]:
    """Find sessions that a server gave to a client with a wrong password."""
    for call in history.of("intrude"):
        if call.ok and call.value.get("granted"):
            yield Found(
                anomaly="zk-session-stolen",
                key=call.place or None,
                ops=(call.op,),
                why=f"the server of event {call.op} gave the session {call.value['victim']:#x} to a"
                " client with a wrong password",
            )


def count(history: History) -> int:
    """Return how many sessions had an acknowledged write."""
    return len({call.process for call in history.calls if call.ok and call.f not in UNTRACKED})
