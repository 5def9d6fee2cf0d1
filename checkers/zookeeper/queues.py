"""Judges queues: every element is taken once, none is lost, and none comes from nowhere."""

from collections.abc import Iterator

from checkers.kernels.found import Found
from checkers.zookeeper.calls import Call, History


def taken(history: History) -> Iterator[Found]:
    """Find elements that were taken twice, or that no client had appended."""
    appended = {call.value["data"]: call for call in history.of("enqueue")}
    first: dict[str, Call] = {}
    for call in history.of("dequeue"):
        if not call.ok or call.value["deleted"] is None:
            continue
        path, data = call.value["deleted"], call.value["data"]
        other = first.setdefault(path, call)
        if other is not call:
            yield Found(
                anomaly="zk-duplicate-dequeue",
                key=call.path,
                ops=(other.op, call.op),
                why=f"events {other.op} and {call.op} both took {path}",
            )
        source = appended.get(data)
        if source is None or source.outcome == "fail" or source.invoked > call.completed:
            yield Found(
                anomaly="zk-phantom-element",
                key=call.path,
                ops=(call.op,) if source is None else (source.op, call.op),
                why=f"event {call.op} took {data!r} at {path}, which no client had appended",
            )


def lost(history: History) -> Iterator[Found]:
    """Find acknowledged elements that no client took, and that are not in the queue at the end."""
    finals = [call for call in history.of("children") if history.is_final(call)]
    for queue, calls in history.by_path("enqueue").items():
        ends = [call for call in finals if call.path == queue]
        if not ends:
            continue
        end = ends[-1]
        left = {f"{queue}/{name}" for name in end.value["children"]}
        takers = [c for c in history.by_path("dequeue").get(queue, ()) if c.may_have_happened]
        gone = {call.value.get("deleted") for call in takers}
        missing = [
            call
            for call in calls
            if call.ok and call.precedes(end) and call.value["created"] not in left | gone
        ]
        unnamed = sum("deleted" not in call.value for call in takers)
        for call in missing if len(missing) > unnamed else ():
            yield Found(
                anomaly="zk-lost-element",
                key=queue,
                ops=(call.op, end.op),
                why=f"event {call.op} appended {call.value['created']}, no client took it, and the"
                f" queue at event {end.op} does not have it",
            )


def count(history: History) -> int:
    """Return how many elements were appended."""
    return sum(call.ok for call in history.of("enqueue"))
