"""Plants defects of every kind in generated histories, wherever they may be in a partition."""

import random
from collections.abc import Callable
from typing import Any

from bench.histories import World
from model.op import NEMESIS

Events = list[dict[str, Any]]


def history(seed: int, *, transactional: bool = False) -> tuple[Events, list[str]]:
    """Return the events of a history, and the names of its defects."""
    rng = random.Random(seed)
    world = World(
        rng,
        keys=rng.choice((1, 1, 2)),
        writers=rng.randint(1, 4),
        readers=rng.randint(1, 3),
        doubt=rng.choice((0.0, 0.0, 0.0, 0.01)),
        restarts=rng.choice((0.0, 0.0, 0.0, 0.03)),
        lost=rng.choice((0, 0, 1)),
        doubled=rng.choice((0, 0, 1)),
        phantom=rng.choice((0, 0, 1)),
        span=200,
    )
    events = [
        {
            "index": op.index, "time_ns": op.time_ns, "process": op.process, "type": op.type,
            "f": op.f, "value": op.value, **({"error": op.error} if op.error else {}),
        }
        for op in world.events(rng.randint(60, 260))
    ]  # fmt: skip
    if transactional:
        _as_transactions(events, rng)
    kinds = {**DEFECTS, **(OF_TRANSACTIONS if transactional else {})}
    names = rng.choices(sorted(kinds), k=rng.choice((0, 1, 1, 1, 2, 3)))
    for name in names:
        kinds[name](events, rng)
    for index, event in enumerate(events):
        event["index"] = index
    return events, names


def _as_transactions(events: Events, rng: random.Random) -> None:
    """Let transactions do what operations did, and abort some that send again what was sent."""
    share = rng.choice((0.9, 1.0, 1.0))
    is_txn = dict[tuple[int, str], bool]()
    reading = rng.choice((0.0, 0.3, 1.0))
    for event in events:
        what = event["process"], event["f"]
        if event["type"] == "invoke" and what[0] != NEMESIS:
            is_txn[what] = rng.random() < {"send": share, "poll": reading}.get(what[1], 0)
        if is_txn.get(what):
            event["f"] = "txn"


def _sends(events: Events, kind: str = "ok") -> list[tuple[dict[str, Any], list[Any]]]:
    """Return the completed sends with their events; each has its partition, offset and value."""
    return [
        (event, send)
        for event in events
        if event["process"] != NEMESIS and event["type"] == kind and event["f"] in ("send", "txn")
        for send in event["value"] or ()
        if send[0] == "send" and (kind == "invoke" or isinstance(send[2], list))
    ]


def _polls(events: Events) -> list[tuple[dict[str, Any], str, list[list[int]]]]:
    """Return the lists of records that were delivered, with their events and partitions."""
    return [
        (event, key, records)
        for event in events
        if event["process"] != NEMESIS and event["type"] == "ok" and event["f"] in ("poll", "txn")
        for poll in event["value"] or ()
        if poll[0] == "poll" and len(poll) > 1
        for key, records in poll[1].items()
        if records
    ]


def _invocation(events: Events, event: dict[str, Any]) -> dict[str, Any]:
    place = next(n for n, each in enumerate(events) if each is event)
    return next(e for e in reversed(events[:place]) if e["process"] == event["process"])


def _renamed(events: Events, event: dict[str, Any], old: int, new: int) -> None:
    """Let an operation send another value."""
    for each in (event, _invocation(events, event)):
        for send in each["value"]:
            if send[0] == "send" and send[2] == old:
                send[2] = new
            elif send[0] == "send" and isinstance(send[2], list) and send[2][1] == old:
                send[2] = [send[2][0], new]


def lost(events: Events, rng: random.Random) -> None:
    _, send = rng.choice(_sends(events))
    for _, _, records in _polls(events):
        records[:] = [record for record in records if record[1] != send[2][1]]


def skipped(events: Events, rng: random.Random) -> None:
    """One reader misses some records."""
    _, _, records = rng.choice(_polls(events))
    begin = rng.randrange(len(records))
    del records[begin : begin + rng.randint(1, 6)]


def many_skipped(events: Events, rng: random.Random) -> None:
    """One reader misses all that several polls returned."""
    polls = _polls(events)
    reader = rng.choice(polls)[0]["process"]
    mine = [records for event, _, records in polls if event["process"] == reader]
    begin = rng.randrange(len(mine))
    for records in mine[begin : begin + rng.randint(1, 8)]:
        records.clear()


def doubled(events: Events, rng: random.Random) -> None:
    _, _, source = rng.choice(_polls(events))
    _, _, target = rng.choice(_polls(events))
    place = rng.randrange(len(target))
    target.insert(place, [target[place][0] + rng.choice((0, 1)), rng.choice(source)[1]])


def phantom(events: Events, rng: random.Random) -> None:
    _, _, records = rng.choice(_polls(events))
    place = rng.randrange(len(records))
    record = [records[place][0], 10**9 + rng.randrange(3)]
    if rng.random() < 0.5:
        records[place] = record
    else:
        records.insert(place, record)


def reordered(events: Events, rng: random.Random) -> None:
    _, _, one = rng.choice(_polls(events))
    _, _, other = rng.choice([*_polls(events), (0, 0, one), (0, 0, one)])
    a, b = rng.randrange(len(one)), rng.randrange(len(other))
    one[a], other[b] = other[b], one[a]


def inconsistent(events: Events, rng: random.Random) -> None:
    """An acknowledgement names the offset of another record, or one far from it."""
    sends = _sends(events)
    _, send = rng.choice(sends)
    offset = rng.choice(sends)[1][2][0] if rng.random() < 0.7 else send[2][0] + rng.randint(-9, 9)
    send[2] = [max(offset, 0), send[2][1]]


def exchanged(events: Events, rng: random.Random) -> None:
    """Two operations sent each other's values, or two records are at each other's offsets."""
    sends = _sends(events)
    (one, a), (other, b) = rng.choice(sends), rng.choice(sends)
    x, y = a[2][1], b[2][1]
    if rng.random() < 0.5:
        a[2], b[2] = [b[2][0], x], [a[2][0], y]
        return
    _renamed(events, one, x, -7)
    _renamed(events, other, y, x)
    _renamed(events, one, -7, y)


def in_doubt(events: Events, rng: random.Random) -> None:
    for event, _ in rng.sample(_sends(events), rng.randint(1, 3)):
        event["type"] = "info"
        if rng.random() < 0.5:
            event["value"] = _invocation(events, event)["value"]
        for later in events[events.index(event) + 1 :]:  # a process in doubt does nothing more
            if later["process"] == event["process"]:
                later["process"] += 1000


def failed(events: Events, rng: random.Random) -> None:
    for event, _ in rng.sample(_sends(events), rng.randint(1, 3)):
        event["type"] = "fail"
        if rng.random() < 0.5:
            event["value"] = _invocation(events, event)["value"]


def aborted(events: Events, rng: random.Random) -> None:
    """Some operations fail, and their records are not read."""
    for event, _ in rng.sample(_sends(events), min(len(_sends(events)), 8)):
        event["type"] = "fail"
        gone = {s[2][1] for s in event["value"] if s[0] == "send" and isinstance(s[2], list)}
        if rng.random() < 0.3:
            event["value"] = _invocation(events, event)["value"]
        for _, _, records in _polls(events):
            records[:] = [record for record in records if record[1] not in gone]


def without_offsets(events: Events, rng: random.Random) -> None:
    for _, send in rng.sample(_sends(events), rng.randint(1, 4)):
        send[2] = send[2][1]


def read_again(events: Events, rng: random.Random) -> None:
    """A reader goes back to where it or another one was."""
    polls = _polls(events)
    _, key, records = rng.choice(polls)
    targets = [each for _, of, each in polls if of == key]
    source = rng.choice(targets)
    place = rng.randrange(len(records) + 1)
    records[place:place] = [[*record] for record in source[: rng.randint(1, 5)]]


def reassigned(events: Events, rng: random.Random) -> None:
    """A reader is assigned other partitions, or keeps its own."""
    event, key, _ = rng.choice(_polls(events))
    place = events.index(_invocation(events, event))
    what = rng.choice((["elsewhere-0"], [key], [key, "elsewhere-0"]))
    about = {"time_ns": events[place]["time_ns"], "process": event["process"], "f": "assign"}
    events[place:place] = [
        {"index": 0, **about, "type": kind, "value": what} for kind in ("invoke", "ok")
    ]


def not_finished(events: Events, rng: random.Random) -> None:
    """The history ends before the final reads do."""
    count = rng.randint(1, 40)
    del events[-count:]


def repeated(events: Events, rng: random.Random) -> None:
    """Two operations send the same value."""
    sends = _sends(events)
    (one, a), (_, b) = rng.choice(sends), rng.choice(sends)
    old, new = a[2][1], b[2][1]
    if old == new or a[1] != b[1]:
        return
    _renamed(events, one, old, new)
    if rng.random() < 0.7:
        for _, _, records in _polls(events):
            for record in records:
                record[1] = new if record[1] == old else record[1]


def late(events: Events, rng: random.Random) -> None:
    """Nothing happens for a while."""
    begin, wait = rng.randrange(len(events)), rng.choice((10, 31, 70)) * 10**9
    for event in events[begin:]:
        event["time_ns"] += wait


def failing_polls(events: Events, rng: random.Random) -> None:
    for event, _, _ in rng.sample(_polls(events), rng.randint(1, 3)):
        event["type"] = "fail"


DEFECTS: dict[str, Callable[[Events, random.Random], None]] = {
    each.__name__: each
    for each in (
        lost, skipped, many_skipped, doubled, phantom, reordered, inconsistent, exchanged, in_doubt,
        failed, aborted, without_offsets, read_again, reassigned, not_finished, repeated, late,
        failing_polls,
    )
}  # fmt: skip


def read_early(events: Events, rng: random.Random) -> None:
    """A transaction ends long after its record was read."""
    event, _ = rng.choice(_sends(events))
    place = events.index(event)
    limit = next(
        (n for n, e in enumerate(events) if n > place and e["process"] == event["process"]),
        len(events),
    )
    to = rng.randint(place, limit - 1)
    events.insert(to, events.pop(place))
    for each, time_ns in zip(events, sorted(e["time_ns"] for e in events), strict=True):
        each["time_ns"] = time_ns


def circle(events: Events, rng: random.Random) -> None:
    """Two transactions read records of each other, or one reads a record of its own."""
    sends = [(e, s) for e, s in _sends(events) if e["f"] == "txn"]
    if not sends:
        return
    place = rng.randrange(len(sends))
    near = sends[max(place - 4, 0) : place + 5]
    (one, a), (other, b) = sends[place], rng.choice(near)
    for event, send in ((one, b), (other, a)):
        event["value"] = [["poll", {send[1]: [[*send[2]]]}], *event["value"]]
        asked = _invocation(events, event)
        asked["value"] = [["poll"], *asked["value"]]


def zombie(events: Events, rng: random.Random) -> None:
    """Another process takes over a transactional id, which its former owner continues to use."""
    event, _ = rng.choice(_sends(events))
    place = events.index(_invocation(events, event))
    for process, at in ((event["process"], 0), (5000, place)):
        what = {"time_ns": events[at]["time_ns"], "process": process, "f": "init"}
        value = [["init", "id-1"]]
        events[at:at] = [
            {"index": 0, **what, "type": kind, "value": value} for kind in ("invoke", "ok")
        ]


OF_TRANSACTIONS: dict[str, Callable[[Events, random.Random], None]] = {
    each.__name__: each for each in (read_early, circle, zombie)
}
