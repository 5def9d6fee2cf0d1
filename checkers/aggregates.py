"""Compares what clients asked for with what the whole history shows: Jepsen's small checkers.

Each rule is a function from the events of a history to a :class:`Result`. Its figures have the
names of Jepsen's checkers, and its anomalies are those figures that must be empty.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from checkers.linearizability.models import frozen
from model.history import BadHistory
from model.op import NEMESIS, Op

Valid = bool | Literal["unknown"]


@dataclass(frozen=True)
class Result:
    """What a rule found."""

    valid: Valid
    figures: Mapping[str, Any]
    """Lists and counts by name."""
    anomalies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By name, a sentence for each anomaly."""
    unknown_because: str | None = None


_UPDATES = frozenset(("add", "enqueue", "write", "increment", "decrement"))
"""Operations that are asked for with a value, and confirm it. The value of others is a result."""


class _Asked(NamedTuple):
    """An operation: its invocation, and its completion if there is one."""

    invoke: Op
    end: Op | None


def _clients(events: Iterable[Op], *names: str) -> list[Op]:
    """Return the events of clients, so that each completion follows its invocation, and each update
    that succeeded has its value.

    As in :mod:`checkers.linearizability.operations`, a completion without a value confirms what was
    asked, and a completion without an invocation is an operation that began and ended there.
    """
    found = [event for event in events if event.process != NEMESIS]
    strange = next((event for event in found if event.f not in names), None)
    if strange is not None:
        raise BadHistory(
            f"event {strange.index}: {strange.f} is not an operation of this model, which has"
            f" {', '.join(names)}"
        )
    return list(_whole(found))


def _whole(events: Iterable[Op]) -> Iterator[Op]:
    is_open: dict[int, Op] = {}
    for event in events:
        if event.type == "invoke":
            is_open[event.process] = event
            yield event
            continue
        invoke = is_open.pop(event.process, None)
        if invoke is None:
            yield replace(event, type="invoke")
        elif event.type == "ok" and event.value is None and event.f in _UPDATES:
            event = replace(event, value=invoke.value)
        yield event


def _operations(events: Sequence[Op]) -> list[_Asked]:
    """Return the operations by the order of their completions, the others at the end."""
    is_open: dict[int, Op] = {}
    found = []
    for event in events:
        if event.type == "invoke":
            is_open[event.process] = event
        else:
            found.append(_Asked(is_open.pop(event.process), event))
    return [*found, *(_Asked(invoke, None) for invoke in is_open.values())]


def _values(events: Iterable[Op], f: str, kind: str) -> Counter[Hashable]:
    return Counter(frozen(e.value) for e in events if e.f == f and e.type == kind)


def _sorted(values: Iterable[Hashable]) -> list[Any]:
    return sorted(values, key=lambda each: (str(type(each)), each))


def _result(figures: Mapping[str, Any], wrong: Mapping[str, str]) -> Result:
    """Return a result that is valid if the figures that ``wrong`` describes are empty."""
    anomalies = {
        name: [f"{value} {what}" for value in figures[name]]
        for name, what in wrong.items()
        if figures[name]
    }
    return Result(not anomalies, figures, anomalies)


def elements_of_set(events: Sequence[Op]) -> Result:
    """Compare the last read of a set with what was added (Jepsen's ``set``)."""
    mine = _clients(events, "add", "read")
    attempts, acknowledged = set(_values(mine, "add", "invoke")), set(_values(mine, "add", "ok"))
    reads = [event.value for event in mine if event.f == "read" and event.type == "ok"]
    if not reads or reads[-1] is None:
        return Result("unknown", {}, unknown_because="the set was never read")
    final = set(map(frozen, reads[-1]))
    ok = final & attempts
    figures = {
        "attempt-count": len(attempts),
        "acknowledged-count": len(acknowledged),
        "ok": _sorted(ok),
        "lost": _sorted(acknowledged - final),
        "unexpected": _sorted(final - attempts),
        "recovered": _sorted(ok - acknowledged),
    }
    return _result(
        figures,
        {
            "lost": "was added, and the last read does not have it",
            "unexpected": "was never added, and the last read has it",
        },
    )


@dataclass
class _Element:
    """What reads showed of an element. Places are those of events."""

    known: int | None = None
    """When it was first known to be in the set: added, or read."""
    present: int = -1
    """The invocation of the last read that has it."""
    absent: int = -1
    """The invocation of the last read that does not have it."""


def every_read_of_set(events: Sequence[Op]) -> Result:
    """Follow each element of a set through all reads (Jepsen's ``set-full``, linearizable)."""
    mine = _clients(events, "add", "read")
    places = {id(event): place for place, event in enumerate(mine)}
    elements: dict[Hashable, _Element] = {}
    twice: dict[Hashable, int] = {}
    for invoke, end in _operations(mine):
        if invoke.f == "add":
            element = elements.setdefault(frozen(invoke.value), _Element())
            if end is not None and end.type == "ok" and element.known is None:
                element.known = places[id(end)]
    reads: list[tuple[int, Counter[Hashable]]] = []
    for invoke, end in _operations(mine):
        if invoke.f != "read" or end is None or end.type != "ok" or end.value is None:
            continue
        seen = Counter(map(frozen, end.value))
        twice |= {value: count for value, count in seen.items() if count > 1}
        begin, done = places[id(invoke)], places[id(end)]
        reads.append((begin, seen))
        for value in seen:
            element = elements.setdefault(value, _Element())
            element.known = done if element.known is None else min(element.known, done)
            element.present = max(element.present, begin)
    in_all = set(elements)
    for begin, seen in sorted(reads, key=lambda read: read[0], reverse=True):
        for value in in_all - seen.keys():
            elements[value].absent = begin
        in_all &= seen.keys()
    return _followed(elements, twice)


def _followed(elements: Mapping[Hashable, _Element], twice: Mapping[Hashable, int]) -> Result:
    stable = {v: e for v, e in elements.items() if e.present > e.absent}
    lost = [
        value
        for value, e in elements.items()
        if e.known is not None and e.absent > max(e.present, e.known)
    ]
    never = [value for value in elements if value not in stable and value not in lost]
    stale = [v for v, e in stable.items() if e.known is not None and e.absent > e.known]
    figures = {
        "attempt-count": len(elements),
        "stable-count": len(stable),
        "lost": _sorted(lost),
        "never-read": _sorted(never),
        "stale": _sorted(stale),
        "duplicated": _sorted(twice),
    }
    found = _result(
        figures,
        {
            "lost": "was in the set, and the last reads do not have it",
            "stale": "was in the set, and a later read does not have it",
            "duplicated": "occurs twice in a read",
        },
    )
    if found.valid is True and not stable:
        return Result("unknown", figures, unknown_because="no element was read")
    return found


def total_queue(events: Sequence[Op]) -> Result:
    """Compare what was enqueued with what was dequeued (Jepsen's ``total-queue``)."""
    mine = _clients(events, "enqueue", "dequeue", "drain")
    attempts, acknowledged = _values(mine, "enqueue", "invoke"), _values(mine, "enqueue", "ok")
    taken = _values(mine, "dequeue", "ok")
    for event in mine:
        if event.f == "drain" and event.type == "ok":
            taken.update(map(frozen, event.value or ()))
    taken.pop(None, None)
    unexpected = Counter({value: count for value, count in taken.items() if not attempts[value]})
    ok = taken & attempts
    figures = {
        "attempt-count": attempts.total(),
        "acknowledged-count": acknowledged.total(),
        "ok-count": ok.total(),
        "lost": _sorted((acknowledged - taken).elements()),
        "unexpected": _sorted(unexpected.elements()),
        "duplicated": _sorted(((taken - attempts) - unexpected).elements()),
        "recovered": _sorted((ok - acknowledged).elements()),
    }
    return _result(
        figures,
        {
            "lost": "was enqueued, and never dequeued",
            "unexpected": "was dequeued, and never enqueued",
        },
    )


def unordered_queue(events: Sequence[Op]) -> Result:
    """Check that each element that is dequeued was enqueued before (Jepsen's ``queue``).

    An enqueue counts from its invocation on, even if it fails.
    """
    there: Counter[Hashable] = Counter()
    wrong = []
    for event in _clients(events, "enqueue", "dequeue"):
        value = frozen(event.value)
        if event.f == "enqueue":
            there[value] += event.type == "invoke"
        elif value is not None and event.type == "ok":
            if not there[value]:
                wrong.append(value)
            there[value] -= 1
    return _result({"unexpected": wrong}, {"unexpected": "was dequeued, and was not in the queue"})


def unique_ids(events: Sequence[Op]) -> Result:
    """Check that no id was generated twice (Jepsen's ``unique-ids``)."""
    mine = _clients(events, "generate")
    ids = _values(mine, "generate", "ok")
    repeated = {value: count for value, count in ids.items() if count > 1 and value is not None}
    attempts = sum(event.type == "invoke" for event in mine)
    figures = {
        "attempted-count": attempts,
        "acknowledged-count": ids.total(),
        "duplicated": {str(value): repeated[value] for value in _sorted(repeated)},
        "range": [_sorted(ids)[0], _sorted(ids)[-1]] if ids else [],
    }
    return _result(figures, {"duplicated": "was generated more than once"})


def counter(events: Sequence[Op]) -> Result:
    """Check that each read is between what was certainly and what was possibly added.

    These bounds are necessary, and not sufficient (Jepsen's ``counter``).
    """
    mine = _clients(events, "add", "read", "increment", "decrement")
    failed = {id(a.invoke) for a in _operations(mine) if a.end is not None and a.end.type == "fail"}
    low = high = 0
    lowest: dict[int, int] = {}
    reads = []
    for event in mine:
        if event.type == "invoke" and id(event) not in failed:
            amount = _amount(event)
            low, high = low + min(amount, 0), high + max(amount, 0)
            if event.f == "read":
                lowest[event.process] = low
        elif event.type == "ok" and event.f != "read":
            amount = _amount(event)
            low, high = low + max(amount, 0), high + min(amount, 0)
        elif event.type == "ok" and event.value is not None:
            reads.append([lowest.pop(event.process, low), event.value, high])
    errors = [read for read in reads if not read[0] <= read[1] <= read[2]]
    figures = {"reads": reads, "errors": errors}
    return _result(figures, {"errors": "(least, read, greatest): the read is out of bounds"})


def _amount(event: Op) -> int:
    """Return how much an event adds; 0 for a read."""
    sign = {"add": 1, "increment": 1, "decrement": -1}.get(event.f, 0)
    return sign * (1 if event.value is None or not sign else int(event.value))


def bank(events: Sequence[Op]) -> Result:
    """Check that the balances of all accounts have the same total in each read, and that none is
    negative (Jepsen's ``bank``). The first read says what the total is."""
    mine = _clients(events, "transfer", "read")
    reads = [e for e in mine if e.f == "read" and e.type == "ok" and e.value is not None]
    if not reads:
        return Result("unknown", {}, unknown_because="no balance was read")
    total, accounts = sum(reads[0].value.values()), reads[0].value.keys()
    kinds: dict[str, Callable[[Op], bool]] = {
        "wrong-total": lambda read: sum(read.value.values()) != total,
        "negative-value": lambda read: min(read.value.values(), default=0) < 0,
        "unexpected-key": lambda read: bool(read.value.keys() - accounts),
    }
    figures = {
        "read-count": len(reads),
        "total": total,
        **{name: [f"event {r.index}" for r in reads if rule(r)] for name, rule in kinds.items()},
    }
    return _result(
        figures,
        {
            "wrong-total": f"has another total than {total}",
            "negative-value": "has a negative balance",
            "unexpected-key": "has an account that the first read does not have",
        },
    )


def long_fork(events: Sequence[Op]) -> Result:
    """Find two reads of the same keys, each of which has a write that the other one does not have.

    Each key is written once (Jepsen's ``long-fork``).
    """
    by_keys: dict[frozenset[Hashable], dict[frozenset[Hashable], int]] = {}
    sizes = []
    for event in _clients(events, "read", "write", "txn"):
        micro_ops = event.value if isinstance(event.value, list) else []
        if event.type == "ok" and micro_ops and all(op[0] == "r" for op in micro_ops):
            keys = frozenset(frozen(key) for _, key, _ in micro_ops)
            seen = frozenset(frozen(key) for _, key, value in micro_ops if value is not None)
            sizes.append((len(seen), len(keys)))
            by_keys.setdefault(keys, {}).setdefault(seen, event.index)
    forks = [
        [index, other]
        for reads in by_keys.values()
        for (seen, index), (theirs, other) in combinations(reads.items(), 2)
        if seen - theirs and theirs - seen
    ]
    figures = {
        "reads-count": len(sizes),
        "early-read-count": sum(not seen for seen, _ in sizes),
        "late-read-count": sum(seen == keys for seen, keys in sizes),
        "forks": forks,
    }
    return _result(
        figures, {"forks": "(events): each has a write that the other one does not have"}
    )


def causal_reverse(events: Sequence[Op]) -> Result:
    """Find reads that have a write, and not another one that ended before it began (Jepsen's
    ``causal-reverse``, and ``comments`` of its tests of CockroachDB)."""
    ended: set[Hashable] = set()
    before: dict[Hashable, frozenset[Hashable]] = {}
    errors = []
    for event in _clients(events, "write", "read"):
        if event.f == "write":
            value = frozen(event.value)
            if event.type == "invoke":
                before[value] = frozenset(ended)
            elif event.type == "ok":
                ended.add(value)
        elif event.type == "ok" and event.value is not None:
            seen = set(map(frozen, event.value))
            missing = set().union(*(before.get(value, frozenset()) for value in seen)) - seen
            if missing:
                errors.append(f"event {event.index} without {_sorted(missing)}")
    what = "has a write, and not one that ended before it began"
    return _result({"errors": errors}, {"errors": what})


def sequential(events: Sequence[Op]) -> Result:
    """Find reads that miss the earlier one of two writes of one process (``sequential`` of
    Jepsen's tests of CockroachDB, TiDB and Dgraph).

    A client inserts the subkeys ``k_0``, ``k_1``, … of a key in this order. A read returns
    ``[k, values]``: it looked for the subkeys one by one, the last one first. If it found one, it
    must have found all that were inserted before.
    """
    reads: list[tuple[int, Any, Sequence[Any]]] = [
        (event.index, *_subkeys(event))
        for event in _clients(events, "write", "read")
        if event.f == "read" and event.type == "ok" and event.value is not None
    ]
    bad = [f"event {index}" for index, _, found in reads if _has_gap(found)]
    figures = {
        "all-count": sum(
            [*found] == [f"{key}_{at}" for at in reversed(range(len(found)))]
            for _, key, found in reads
        ),
        "some-count": sum(None in found for _, _, found in reads),
        "none-count": sum(all(each is None for each in found) for _, _, found in reads),
        "bad-count": len(bad),
        "bad": bad,
    }
    what = "found a subkey, and not one that the same process had inserted before"
    return _result(figures, {"bad": what})


def _subkeys(event: Op) -> tuple[Any, Sequence[Any]]:
    value: Any = event.value
    if isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[1], list | tuple):
        return value[0], value[1]
    raise BadHistory(f"event {event.index}: a read returns a key and what its subkeys hold")


def _has_gap(found: Sequence[Any]) -> bool:
    """Return whether there is nothing after something."""
    is_there = [each is not None for each in found]
    return any(before and not after for before, after in pairwise(is_there))


RULES: dict[str, Callable[[Sequence[Op]], Result]] = {
    "set": elements_of_set,
    "set-full": every_read_of_set,
    "total-queue": total_queue,
    "queue": unordered_queue,
    "unique-ids": unique_ids,
    "counter": counter,
    "bank": bank,
    "long-fork": long_fork,
    "causal-reverse": causal_reverse,
    "comments": causal_reverse,
    "sequential": sequential,
}
"""By the name of the model."""
