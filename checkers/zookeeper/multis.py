"""Judges multis: all parts are executed in one transaction, or none.

The znodes of a group are only written together, so that each has the same version, data and
transaction as the others at every time.
"""

from bisect import bisect_right
from collections.abc import Iterator

from checkers.kernels.found import Found
from checkers.zookeeper import znodes
from checkers.zookeeper.calls import History
from checkers.zookeeper.znodes import State


def groups(history: History) -> dict[str, frozenset[str]]:
    """Return the paths that the multis of each place set, all of which they always set."""
    found: dict[str, set[frozenset[str]]] = {}
    for call in history.of("multi"):
        paths = frozenset(part[1] for part in call.value["parts"] if part[0] == "set")
        found.setdefault(call.place, set()).add(paths)
    return {
        place: next(iter(sets)) for place, sets in found.items() if len(sets) == 1 and min(sets)
    }


def torn(history: History) -> Iterator[Found]:
    """Find multis of which only a part was executed, or seen."""
    shown = znodes.states(history)
    for place, paths in groups(history).items():
        if len(paths) < 2:
            continue
        states = [(path, state) for path in sorted(paths) for state in shown.get(path, ())]
        yield from _differing(place, states)
        yield from _partly_seen(history, place, paths, states)


def _differing(place: str, states: list[tuple[str, State]]) -> Iterator[Found]:
    """The same version must have the same transaction and data in every znode of a group."""
    first: dict[int, tuple[str, State]] = {}
    for path, state in states:
        if state.version == 0:  # each was created alone
            continue
        other_path, other = first.setdefault(state.version, (path, state))
        if path != other_path and (other.mzxid, other.data) != (state.mzxid, state.data):
            ops = (other.call.op, state.call.op)
            yield Found(
                anomaly="zk-torn-multi",
                key=place,
                offset=state.version,
                ops=ops,
                why=f"version {state.version} of {other_path} is {other.data!r} of transaction"
                f" {other.mzxid:#x}, and that of {path} is {state.data!r} of {state.mzxid:#x}",
            )
            return


def _partly_seen(
    history: History, place: str, paths: frozenset[str], states: list[tuple[str, State]]
) -> Iterator[Found]:
    """A read must show every multi up to the zxid that its session has seen."""
    multis = sorted((state.mzxid, state.call.op) for _, state in states if state.version > 0)
    zxids = [zxid for zxid, _ in multis]
    for call in history.of("get"):
        if call.path not in paths or not call.ok:
            continue
        at = bisect_right(zxids, call.seen)
        stat = call.value["stat"]
        if at and (stat is None or stat["mzxid"] < zxids[at - 1]):
            zxid, witness = multis[at - 1]
            version = 0 if stat is None else stat["version"]
            yield Found(
                anomaly="zk-torn-multi",
                key=place,
                offset=version,
                ops=(witness, call.op),
                why=f"event {call.op} shows version {version} of {call.path}, although its session"
                f" had seen transaction {zxid:#x}, which event {witness} shows in another znode",
            )


def conditions(history: History) -> Iterator[Found]:
    """Find multis that were executed although one of their conditions cannot have held."""
    most = sum(call.may_have_happened for call in history.of("multi", "set"))
    for call in history.of("multi"):
        impossible = [part for part in call.value["parts"] if part[0] == "check" and part[2] > most]
        if call.ok and impossible:
            yield Found(
                anomaly="zk-unchecked-multi",
                key=call.place,
                ops=(call.op,),
                why=f"event {call.op} was executed on condition of version {impossible[0][2]} of"
                f" {impossible[0][1]}, which has been written {most} times at most",
            )
