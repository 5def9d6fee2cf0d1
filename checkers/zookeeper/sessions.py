"""Judges what sessions see: never an older state than before, and their own writes.

A reply has the zxid up to which its server had applied transactions. A later read of the same
session must show every transaction up to there, from whichever server it comes.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, pairwise

from checkers.kernels.found import Found
from checkers.zookeeper import znodes
from checkers.zookeeper.calls import Call, History
from checkers.zookeeper.znodes import State


def zxids(history: History) -> Iterator[Found]:
    """Find sessions whose replies go back to an older state of the ensemble."""
    for process, calls in history.sessions().items():
        answered = [call for call in calls if call.zxid > 0]
        for before, after in pairwise(answered):
            if after.zxid < before.zxid:
                yield Found(
                    anomaly="zk-nonmonotonic-session",
                    key=after.path or None,
                    ops=(before.op, after.op),
                    why=f"process {process} was answered at {before.zxid:#x} by event {before.op},"
                    f" and at {after.zxid:#x}, which is older, by event {after.op}",
                )


class _Known:
    """The states of one znode by their transactions."""

    def __init__(self, shown: list[State]) -> None:
        self._ordered = sorted(shown, key=lambda state: state.mzxid)
        self._zxids = [state.mzxid for state in self._ordered]

    def latest(self, zxid: int) -> State | None:
        """Return the last state that is known up to a transaction."""
        at = bisect_right(self._zxids, zxid)
        return self._ordered[at - 1] if at else None


def deleted_by_clients(history: History) -> set[str]:
    """Return the paths whose znodes a client may have deleted."""
    found = {call.path for call in history.of("delete") if call.may_have_happened}
    for call in history.of("multi"):
        parts = call.value.get("parts", ()) if call.may_have_happened else ()
        found |= {part[1] for part in parts if part[0] == "delete"}
    return found


def deleted_paths(history: History) -> set[str]:
    """Return the paths whose znodes a client or the end of a session may have deleted."""
    found = deleted_by_clients(history)
    for call in history.of("create", "multi"):
        if call.may_have_happened and call.value.get("ephemeral"):
            found.add(call.path)
        for part in call.value.get("parts", ()):
            is_ephemeral = part[0] == "create" and any(part[3:])
            if call.may_have_happened and is_ephemeral:
                found.add(part[1])
    return found


def reads(history: History) -> Iterator[Found]:
    """Find reads that are older than the state that their session had seen."""
    deleted = deleted_paths(history)
    gets = history.by_path(*znodes.READS)
    for path, shown in znodes.states(history).items():
        known = _Known(shown)
        for call in gets.get(path, ()):
            if not call.ok:
                continue
            latest = known.latest(call.seen)
            stat = call.value["stat"]
            if latest is None or (stat is None and path in deleted):
                continue
            if stat is None or stat["mzxid"] < latest.mzxid:
                yield _stale(path, call, latest)


def _stale(path: str, call: Call, latest: State) -> Found:
    if latest.call.process == call.process and latest.is_write:
        anomaly, what = "zk-read-your-writes", "its session had written"
    elif latest.call.process == call.process and latest.call.precedes(call):
        anomaly, what = "zk-nonmonotonic-read", "its session had read"
    else:
        anomaly, what = "zk-stale-read", "was part of the state that its session had seen"
    stat = call.value["stat"]
    shows = "no znode" if stat is None else f"version {stat['version']} ({stat['mzxid']:#x})"
    return Found(
        anomaly=anomaly,
        key=path,
        offset=latest.version,
        ops=(latest.call.op, call.op),
        why=f"event {call.op} shows {shows}, although version {latest.version}"
        f" ({latest.mzxid:#x}) of event {latest.call.op} {what}",
    )


def synced(history: History) -> Iterator[Found]:
    """Find reads after ``sync`` that do not show a write which was acknowledged before.

    If the leader may have been replaced meanwhile, ``sync`` promises nothing, and the finding is
    legal; after the recovery it promises everything.
    """
    gets = history.by_path(*znodes.READS)
    deleted = deleted_paths(history)
    for path, shown in znodes.states(history).items():
        writes = sorted(
            (state for state in shown if state.is_write), key=lambda state: state.call.completed
        )
        ends = [state.call.completed for state in writes]
        latest = list(accumulate(writes, _later))
        for call in gets.get(path, ()):
            if not call.ok or not call.value.get("sync"):
                continue
            at = bisect_right(ends, call.invoked)
            if at and not _shows(call, latest[at - 1], deleted):
                yield _lost(path, call, latest[at - 1], history)


def _later(one: State, other: State) -> State:
    return other if other.mzxid > one.mzxid else one


def _shows(call: Call, state: State, deleted: set[str]) -> bool:
    stat = call.value["stat"]
    if stat is None:
        return call.path in deleted
    return bool(stat["mzxid"] >= state.mzxid)


def _lost(path: str, call: Call, state: State, history: History) -> Found:
    is_final = history.is_final(call)
    is_excused = not is_final and history.is_disturbed(call)
    return Found(
        anomaly="zk-lost-write" if is_final else "zk-stale-sync-read",
        key=path,
        offset=state.version,
        variant="disturbed" if is_excused else "",
        ops=(state.call.op, call.op),
        why=f"event {state.call.op} acknowledged version {state.version} of transaction"
        f" {state.mzxid:#x}, which the read after sync of event {call.op} does not show",
    )
