"""Judges the writes and reads of single znodes by what their Stat says.

A znode is created again under the same path as another one, with a larger ``czxid``. Its writes are
numbered by ``version``, and ordered among all writes by ``mzxid``: the pair of ``czxid`` and
``version`` must give the same order as ``mzxid``, and so must the order in real time, because
writes are linearizable.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from checkers.kernels.found import Found
from checkers.zookeeper.calls import Call, History

READS = ("get", "read")
WRITES = ("set", "add")
FENCED = {
    "guard": ("resource", "token"),
    "lead": ("resource", "epoch"),
    "elect": ("epoch_path", "epoch"),
}
"""Recipes that write a znode: where its path is, and what was written."""


class State(NamedTuple):
    """A state of a znode that an answer showed. Tuples compare in the order of time."""

    czxid: int
    version: int
    mzxid: int
    data: str | None
    call: Call
    is_write: bool

    @property
    def write(self) -> tuple[int, int]:
        """What identifies the write that made the state."""
        return self.czxid, self.version


def states(history: History) -> dict[str, list[State]]:
    """Return the states that answers showed, by path."""
    found: dict[str, list[State]] = {}
    for call in history.calls:
        if call.ok:
            for path, state in _shown(call):
                found.setdefault(path, []).append(state)
    return found


def _shown(call: Call) -> Iterator[tuple[str, State]]:
    if call.f in (*WRITES, *READS) and call.value.get("stat") is not None:
        data = str(call.value["total"]) if call.f == "add" else call.value.get("data")
        yield call.path, _state(call.value["stat"], data, call, call.f in WRITES)
    elif call.f in FENCED:
        path, data = FENCED[call.f]
        yield call.value[path], _state(call.value["stat"], str(call.value[data]), call, True)
    elif call.f == "multi":
        for part, result in zip(call.value["parts"], call.value["results"], strict=True):
            if part[0] == "set":
                yield part[1], _state(result, part[2], call, True)


def _state(stat: dict[str, int], data: str | None, call: Call, is_write: bool) -> State:
    return State(stat["czxid"], stat["version"], stat["mzxid"], data, call, is_write)


def updates(history: History) -> Iterator[Found]:
    """Find writes that are lost or accepted twice, and answers that contradict each other."""
    for path, shown in states(history).items():
        by_write: dict[tuple[int, int], list[State]] = {}
        for state in shown:
            by_write.setdefault(state.write, []).append(state)
        for same in by_write.values():
            yield from _same_version(path, same)
        yield from _order_of_versions(path, shown)
        yield from _conditions(path, shown)


def _same_version(path: str, same: list[State]) -> Iterator[Found]:
    """Two writes cannot make the same version, and two answers cannot differ about one."""
    first, *more = sorted(same, key=lambda state: (not state.is_write, state.call.op))
    for state in more:
        ops = (first.call.op, state.call.op)
        if first.is_write and state.is_write and first.call is not state.call:
            yield Found(
                anomaly="zk-lost-update",
                key=path,
                offset=state.version,
                ops=ops,
                why=f"events {ops[0]} and {ops[1]} both were acknowledged to have written version"
                f" {state.version}, so that one of them has undone the other",
            )
        elif (state.mzxid, state.data) != (first.mzxid, first.data):
            yield Found(
                anomaly="zk-divergence",
                key=path,
                offset=state.version,
                ops=ops,
                why=f"version {state.version} is {_text(first)} by event {ops[0]}, and"
                f" {_text(state)} by event {ops[1]}",
            )
            return


def _text(state: State) -> str:
    return f"{state.data!r} of transaction {state.mzxid:#x}"


def _order_of_versions(path: str, shown: list[State]) -> Iterator[Found]:
    """Versions and transactions must give the same order."""
    ordered = {state.write: state for state in sorted(shown, key=lambda state: state.write)}
    for before, after in pairwise(ordered.values()):
        if after.mzxid <= before.mzxid:
            yield Found(
                anomaly="zk-version-order",
                key=path,
                offset=after.version,
                ops=(before.call.op, after.call.op),
                why=f"version {after.version} of {_name(after)} was written by transaction"
                f" {after.mzxid:#x}, and version {before.version} of {_name(before)}, which is"
                f" older, by {before.mzxid:#x}",
            )


def _name(state: State) -> str:
    return f"the znode that {state.czxid:#x} created"


def _conditions(path: str, shown: list[State]) -> Iterator[Found]:
    """A conditional write makes the version after the one that it names."""
    for state in shown:
        asked = state.call.value.get("version", -1)
        if state.call.f == "set" and state.is_write and asked not in (-1, state.version - 1):
            yield Found(
                anomaly="zk-wrong-version",
                key=path,
                offset=state.version,
                ops=(state.call.op,),
                why=f"a write on condition of version {asked} was accepted, and made version"
                f" {state.version}",
            )


def real_time(history: History) -> Iterator[Found]:
    """Find writes whose transactions are in another order than the writes were in real time.

    A write that was acknowledged before another one was invoked has the smaller zxid, also if they
    are to different znodes.
    """
    writes = [
        (path, state)
        for path, shown in states(history).items()
        for state in shown
        if state.is_write
    ]
    began = sorted(writes, key=lambda write: write[1].call.invoked)
    ended = sorted(writes, key=lambda write: write[1].call.completed)
    at, latest = 0, None
    for path, state in began:
        while at < len(ended) and ended[at][1].call.completed < state.call.invoked:
            if latest is None or ended[at][1].mzxid > latest.mzxid:
                latest = ended[at][1]
            at += 1
        if latest is not None and latest.mzxid > state.mzxid:
            ops = (latest.call.op, state.call.op)
            yield Found(
                anomaly="zk-realtime-order",
                key=path,
                offset=state.version,
                ops=ops,
                why=f"event {ops[0]} acknowledged transaction {latest.mzxid:#x} before the write of"
                f" event {ops[1]} was invoked, which is transaction {state.mzxid:#x}",
            )


class Written(NamedTuple):
    """Who wrote a value."""

    call: Call
    path: str


def written(history: History) -> dict[tuple[str, str], Call]:
    """Return the call that wrote, or tried to write, each value of each path."""
    found: dict[tuple[str, str], Call] = {}
    for call in history.calls:
        for path, data in _values(call):
            found[path, data] = call
    return found


def _values(call: Call) -> Iterator[tuple[str, str]]:
    if call.f in ("create", "set") and not call.value.get("sequential"):
        yield call.path, call.value["data"]
    elif call.f == "multi":
        for part in call.value["parts"]:
            if part[0] in ("create", "set"):
                yield part[1], part[2]


def origins(history: History) -> Iterator[Found]:
    """Find data that no client has written, or only one whose write was rejected, or not yet."""
    writers = written(history)
    reported: set[tuple[str, str]] = set()
    for path, shown in states(history).items():
        for state in shown:
            if state.call.f != "get" or not state.data or (path, state.data) in reported:
                continue  # clients create what a workload needs without data
            found = _origin(path, state, writers.get((path, state.data)))
            if found is not None:
                reported.add((path, state.data))
                yield found


def _origin(path: str, state: State, writer: Call | None) -> Found | None:
    read = state.call
    if writer is None:
        ops: tuple[int, ...] = (read.op,)
        anomaly, why = "zk-garbage-read", "which no client has written"
    elif writer.outcome == "fail":
        why = f"whose write event {writer.op} reported as rejected ({writer.error})"
        anomaly, ops = "zk-aborted-read", (writer.op, read.op)
    elif read.completed < writer.invoked:
        anomaly, ops = "zk-garbage-read", (read.op, writer.op)
        why = f"before event {writer.invoked} asked for the write of it"
    else:
        return None
    return Found(
        anomaly=anomaly,
        key=path,
        offset=state.version,
        ops=ops,
        why=f"event {read.op} read {state.data!r}, {why}",
    )


def count(history: History) -> int:
    """Return how many answers showed a state of a znode."""
    return sum(map(len, states(history).values()))
