"""Judges ephemeral znodes: each exists exactly as long as its session.

That a session was alive is known only from a write that was acknowledged: a server without a leader
may still answer the reads of a session that has expired. That it has ended is known from a
confirmed ``close``, or, at the end, from the time.
"""

from collections.abc import Iterator

from checkers.kernels.found import Found
from checkers.zookeeper.calls import Call, History

WRITES = ("create", "delete", "set", "multi")


def created(history: History) -> dict[str, Call]:
    """Return the call that created each ephemeral znode, by its path."""
    return {
        call.value["created"]: call
        for call in history.of("create")
        if call.ok and call.value.get("ephemeral")
    }


def lost(history: History) -> Iterator[Found]:
    """Find reads that show no ephemeral znode, although its session was alive later."""
    mine = created(history)
    alive = {
        call.process: call for call in history.of(*WRITES) if call.ok
    }  # the last one of each process
    deleted = {call.path for call in history.of("delete") if call.may_have_happened}
    for call in history.of("get"):
        creation = mine.get(call.path)
        if creation is None or not call.ok or call.value["stat"] is not None:
            continue
        sees = call.process == creation.process or call.seen >= creation.zxid
        last = alive[creation.process]
        if sees and creation.precedes(call) and call.precedes(last) and call.path not in deleted:
            yield Found(
                anomaly="zk-ephemeral-lost",
                key=call.path,
                ops=(creation.op, call.op, last.op),
                why=f"event {call.op} shows no znode, although the session that created it at"
                f" event {creation.op} was alive at event {last.op}",
            )


def outlived(history: History) -> Iterator[Found]:
    """Find reads that show an ephemeral znode, although they follow the end of its session."""
    mine = created(history)
    ends = {call.process: call for call in history.of("close") if call.ok and call.zxid > 0}
    for call in history.of("get", "children"):
        for path in _shown(call):
            creation = mine.get(path)
            if creation is None:
                continue
            end = ends.get(creation.process)
            if call.value.get("expired") and history.is_final(call):
                how = "when every session must have ended"
                yield _outlived(path, (creation.op, call.op), call, how)
            elif end is not None and call.seen >= end.zxid:
                how = f"although its session has seen the end of the owner at event {end.op}"
                yield _outlived(path, (creation.op, end.op, call.op), call, how)


def _shown(call: Call) -> list[str]:
    """Return the paths of the znodes that a read shows."""
    if not call.ok:
        return []
    if call.f == "children":
        return [f"{call.path}/{name}" for name in call.value["children"]]
    return [call.path] if call.value["stat"] is not None else []


def _outlived(path: str, ops: tuple[int, ...], call: Call, how: str) -> Found:
    return Found(
        anomaly="zk-ephemeral-outlived",
        key=path,
        ops=ops,
        why=f"event {call.op} shows the ephemeral znode of event {ops[0]}, {how}",
    )


def count(history: History) -> int:
    """Return how many ephemeral znodes were created."""
    return len(created(history))
