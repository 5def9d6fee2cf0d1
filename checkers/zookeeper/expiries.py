"""Judges when sessions expire: not before their timeout since their last certain sign of life.

A session's client records when it sent the last request, ping or handshake that certainly prolonged
the session (``alive_ms``, counted from the invocation), and how long after that it was known to
have expired (``silent_ms``). An ephemeral znode that is gone shows the end of its session as well,
unless a client may have deleted it or ended the session.

A fault may keep a sign of life from the leader that expires sessions, and a clock may be wrong.
"""

from collections.abc import Iterator
from typing import NamedTuple

from checkers.kernels.found import Found
from checkers.zookeeper.calls import Call, History
from checkers.zookeeper.ephemerals import created
from checkers.zookeeper.sessions import deleted_by_clients

LINGER_NS = 10 * 10**9
"""How long after a fault a follower may answer clients and not reach the leader: at most
``syncLimit`` ticks."""
HARMLESS = frozenset({"partition-clients"})
"""Faults that concern neither the servers nor the links between them."""


class _Sign(NamedTuple):
    """The last certain sign of life of a session."""

    call: Call
    """The call that recorded it."""
    time_ns: int
    timeout_ns: int


def early(history: History) -> Iterator[Found]:
    """Find sessions that expired before their timeout had passed."""
    signs = _signs(history)
    reported: set[int] = set()
    for found, process in (*_reported(history), *_missing(history, signs)):
        if process not in reported:
            reported.add(process)
            yield found


def _signs(history: History) -> dict[int, _Sign]:
    """Return the last sign of life of the session of each process."""
    found: dict[int, _Sign] = {}
    for call in history.calls:
        if "alive_ms" not in call.value:
            continue
        time_ns = call.began_ns + int(call.value["alive_ms"]) * 1_000_000
        if call.process not in found or time_ns >= found[call.process].time_ns:
            timeout_ns = int(call.value["timeout_ms"]) * 1_000_000
            found[call.process] = _Sign(call, time_ns, timeout_ns)
    return found


def _reported(history: History) -> Iterator[tuple[Found, int]]:
    """Yield the sessions that a server has declared expired too early, with their processes."""
    for call in history.calls:
        silent_ms, timeout_ms = call.value.get("silent_ms"), call.value.get("timeout_ms")
        if silent_ms is None or timeout_ms is None or silent_ms >= timeout_ms:
            continue
        since_ns = call.ended_ns - (silent_ms + timeout_ms) * 1_000_000
        why = (
            f"the session of process {call.process} with a timeout of {timeout_ms} ms was reported"
            f" expired {silent_ms} ms after its last certain sign of life, as event {call.op} shows"
        )
        yield _found(history, call.path or None, (call.op,), why, (since_ns, call)), call.process


def _missing(history: History, signs: dict[int, _Sign]) -> Iterator[tuple[Found, int]]:
    """Yield the sessions whose ephemeral znodes were gone too early, with their processes."""
    mine, deleted, ends = created(history), deleted_by_clients(history), _own_ends(history)
    for call in history.of("get"):
        creation = mine.get(call.path)
        if creation is None or not call.ok or call.value["stat"] is not None:
            continue
        if call.path in deleted or call.zxid < creation.zxid or call.value.get("final"):
            continue
        sign = signs.get(creation.process)
        if sign is None or call.ended_ns >= ends.get(creation.process, call.ended_ns + 1):
            continue
        silent_ns = call.ended_ns - sign.time_ns
        if silent_ns < sign.timeout_ns:
            why = (
                f"event {call.op} shows no znode {_ms(silent_ns)} after the last certain sign of"
                f" life of the session that created it at event {creation.op}, whose timeout is"
                f" {_ms(sign.timeout_ns)}"
            )
            ops = (creation.op, sign.call.op, call.op)
            span = (sign.time_ns - sign.timeout_ns, call)
            yield _found(history, call.path, ops, why, span), creation.process


def _found(
    history: History, key: str | None, ops: tuple[int, ...], why: str, span: tuple[int, Call]
) -> Found:
    since_ns, call = span
    is_disturbed = history.is_disturbed_between(since_ns, call.ended_ns, HARMLESS, LINGER_NS)
    return Found(
        anomaly="zk-session-expired-early",
        key=key,
        variant="disturbed" if is_disturbed else "",
        ops=ops,
        why=why,
    )


def _ms(span_ns: int) -> str:
    return f"{span_ns // 1_000_000} ms"


def _own_ends(history: History) -> dict[int, int]:
    """Return from when on each process may have ended its session itself.

    A process whose operation is in doubt is replaced, and its client closes the session. A client
    that was abandoned does not.
    """
    ends: dict[int, int] = {}
    for call in history.calls:
        if call.f == "close":
            ends.setdefault(call.process, call.began_ns)
        elif (call.outcome == "info" and call.f != "abandon") or _has_crashed(call):
            ends.setdefault(call.process, call.ended_ns)
    return ends


def _has_crashed(call: Call) -> bool:
    return call.outcome == "fail" and (call.error or "").startswith("client-crash")


def count(history: History) -> int:
    """Return how many sessions have recorded signs of life."""
    return len({call.process for call in history.calls if "alive_ms" in call.value})
