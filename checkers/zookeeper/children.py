"""Judges sequential znodes and the lists of children."""

from collections.abc import Iterator

from checkers.kernels.found import Found
from checkers.zookeeper.calls import Call, History

DIGITS = 10
"""The length of the number in the name of a sequential znode."""


def number(path: str) -> int:
    """Return the number of a sequential znode."""
    return int(path[-DIGITS:])


def _creations(history: History, *names: str) -> dict[str, list[Call]]:
    """Return the calls that create persistent sequential znodes, by parent."""
    found: dict[str, list[Call]] = {}
    for call in history.of(*names):
        if call.value.get("sequential") and not call.value.get("ephemeral"):
            found.setdefault(call.place, []).append(call)
    return found


def sequences(history: History) -> Iterator[Found]:
    """Find numbers that were used twice, or that are against the order in real time."""
    for parent, calls in _creations(history, "create", "enqueue").items():
        done = [call for call in calls if call.ok]
        first: dict[str, Call] = {}
        for call in done:
            other = first.setdefault(call.value["created"], call)
            if other is not call:
                yield Found(
                    anomaly="zk-sequence-reused",
                    key=parent,
                    offset=number(call.value["created"]),
                    ops=(other.op, call.op),
                    why=f"events {other.op} and {call.op} both created {call.value['created']}",
                )
        yield from _against_time(parent, done)


def _against_time(parent: str, done: list[Call]) -> Iterator[Found]:
    ended = sorted(done, key=lambda call: call.completed)
    at, latest = 0, None
    for call in done:  # in the order of their invocations
        while at < len(ended) and ended[at].precedes(call):
            if latest is None or _place(ended[at]) > _place(latest):
                latest = ended[at]
            at += 1
        if latest is not None and _place(latest) > _place(call):
            yield Found(
                anomaly="zk-sequence-order",
                key=parent,
                offset=_place(call),
                ops=(latest.op, call.op),
                why=f"event {call.op} created number {_place(call)}, although event {latest.op} had"
                f" created number {_place(latest)} before it began",
            )


def _place(call: Call) -> int:
    return number(call.value["created"])


def lists(history: History) -> Iterator[Found]:
    """Find lists of children that lack a znode, show a deleted one, or one that nothing created.

    A list shows every change up to the zxid that its session had seen, and a final one every change
    that was acknowledged.
    """
    creations, deletions = _creations(history, "create"), history.by_path("delete")
    for call in history.of("children"):
        made = creations.get(call.path)
        if call.ok and made is not None:
            yield from _judged(history, call, made, deletions)


def _judged(
    history: History, call: Call, made: list[Call], deletions: dict[str, list[Call]]
) -> Iterator[Found]:
    shown = {f"{call.path}/{name}" for name in call.value["children"]}
    is_final = history.is_final(call)
    known: set[str] = set()
    for creation in made:
        if not creation.ok:
            continue
        path = creation.value["created"]
        known.add(path)
        deleting = [each for each in deletions.get(path, ()) if each.may_have_happened]
        gone = next((each for each in deleting if each.ok and _covers(each, call, is_final)), None)
        if path not in shown and not deleting and _covers(creation, call, is_final):
            yield _found("zk-lost-node" if is_final else "zk-stale-list", call, creation, "lacks")
        elif path in shown and gone is not None:
            yield _found("zk-resurrected-node", call, gone, "still shows")
    in_doubt = sum(1 for each in made if each.outcome == "info" and each.invoked < call.completed)
    strange = sorted(shown - known)
    if len(strange) > in_doubt:
        yield Found(
            anomaly="zk-phantom-node",
            key=call.path,
            offset=number(strange[-1]) if strange[-1][-DIGITS:].isdecimal() else None,
            ops=(call.op,),
            why=f"event {call.op} shows {len(strange)} children that no acknowledged creation made,"
            f" {strange[-1]} among them, and {in_doubt} creations are in doubt",
        )


def _covers(change: Call, call: Call, is_final: bool) -> bool:
    """Return whether a list must show a change."""
    return change.precedes(call) and (is_final or call.seen >= change.zxid)


def _found(anomaly: str, call: Call, change: Call, what: str) -> Found:
    path = str(change.value.get("created") or change.path)
    return Found(
        anomaly=anomaly,
        key=call.path,
        offset=number(path),
        ops=(change.op, call.op),
        why=f"event {call.op} {what} {path} after event {change.op}",
    )


def versions(history: History) -> Iterator[Found]:
    """Find lists of one znode with the same ``cversion`` and different children.

    Each creation and deletion of a child changes the ``cversion``; a client that compares it would
    not notice that its list is out of date.
    """
    first: dict[tuple[str, int, int], Call] = {}
    for call in history.of("children"):
        if not call.ok:
            continue
        stat = call.value["stat"]
        known = first.setdefault((call.path, stat["czxid"], stat["cversion"]), call)
        if known.value["children"] != call.value["children"]:
            yield Found(
                anomaly="zk-list-divergence",
                key=call.path,
                offset=stat["cversion"],
                ops=(known.op, call.op),
                why=f"events {known.op} and {call.op} both show cversion {stat['cversion']}, with"
                f" {len(known.value['children'])} and {len(call.value['children'])} children that"
                " are not the same",
            )


def count(history: History) -> int:
    """Return how many sequential znodes were created."""
    creations = _creations(history, "create", "enqueue")
    return sum(call.ok for calls in creations.values() for call in calls)
