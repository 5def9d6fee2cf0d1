"""Histories with one anomaly of a known class, among transactions that are right.

A script names the events: ``1(`` invokes the first transaction, ``1)`` completes it. Where a class
does not depend on the order of processes or on realtime, the transactions overlap at random.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from bench.oracles.transactions import LIST, PREDICATE, REGISTER, SET, events_of
from model.op import Op

OPTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "": ("serializable", ("wfr-keys",)),
    "process": ("strong-session-serializable", ()),
    "realtime": ("strict-serializable", ()),
}
"""The consistency that is asked for, and the assumptions about registers, by variant."""


@dataclass(frozen=True)
class Anomaly:
    """A history that has an anomaly.

    A transaction is text: an optional process, ``!`` if it failed, and micro-operations; ``init``
    makes it the initial state of a predicate's keys. ``x+1`` adds 1 to x, which is a write for
    registers and an insertion for predicates; ``x=1,2`` reads; ``x:1`` writes to a key that exists;
    ``*=x1,y2`` reads all keys, ``2=x2`` those whose value is 2.
    """

    name: str
    models: Sequence[str]
    txns: Sequence[str]
    script: str = ""

    @property
    def variant(self) -> str:
        """The order that the anomaly depends on."""
        return next((v for v in ("process", "realtime") if self.name.endswith(v)), "")


_ALL = (LIST, SET, REGISTER, PREDICATE)
_LISTS = (LIST,)
_P = (PREDICATE,)


def _ordered(
    name: str, models: Sequence[str], txns: Sequence[str], same: str, script: str = ""
) -> Iterator[Anomaly]:
    """Yield the variants by process and realtime: ``same`` are the transactions in their order."""
    by_process = [
        f"@{0 if str(number) in same else number} {txn}" for number, txn in enumerate(txns, 1)
    ]
    rest = [str(number) for number in range(1, len(txns) + 1) if str(number) not in same]
    script = script or " ".join(f"{each}( {each})" for each in (*same, *rest))
    yield Anomaly(f"{name}-process", models, by_process, script)
    yield Anomaly(f"{name}-realtime", models, txns, script)


ANOMALIES: tuple[Anomaly, ...] = (
    Anomaly("G0", _LISTS, ("x+1 y+1", "x+2 y+2", "x=1,2", "y=2,1")),
    Anomaly("G1a", _ALL, ("! x+1", "x=1")),
    Anomaly("G1b", (LIST, REGISTER), ("x+1 y+3 x+2", "x=1")),
    Anomaly("G1b", _P, ("x+1 x:2 y+3", "*=x1,y3")),
    Anomaly("G1c", _ALL, ("x+1 y=2", "y+2 x=1")),
    Anomaly("G-single-item", _ALL, ("x+1 y+2", "x=1 y=")),
    Anomaly("G-single-item", _LISTS, ("x+1 y+2", "x+3 y=", "x=1,3")),
    Anomaly("G-nonadjacent-item", _ALL, ("x+1", "y+2", "x=1 y=", "x= y=2")),
    Anomaly("G2-item", _ALL, ("x= y+1", "y= x+2")),
    Anomaly("G2-item", _ALL, ("x= y+1", "y= z+2", "z= x+3")),
    Anomaly("lost-update", (LIST, REGISTER), ("x= x+1", "x= x+2")),
    Anomaly("incompatible-order", _LISTS, ("x+1", "x+2", "x=1,2", "x=2,1")),
    Anomaly("dirty-update", _LISTS, ("! x+1", "x+2", "x=1,2")),
    Anomaly("internal", _ALL, ("y+1 x+2 x=", "y=1")),
    Anomaly("internal", (LIST, REGISTER), ("x= x=1", "x+1")),
    Anomaly("G-single-item", (SET,), ("x= x=1", "x+1")),
    Anomaly("future-read", _ALL, ("x=1 x+1 y+2", "y=2")),
    Anomaly("duplicate-elements", _LISTS, ("x+1", "x=1,1")),
    Anomaly("cyclic-versions", (REGISTER,), ("x=1 x+2", "x=2 x+1")),
    Anomaly("predicate-read-miss", _P, ("init x1 y2", "x:3", "*=y2"), "1) 2( 3( 3) 2)"),
    Anomaly("G1a", _P, ("! x+1", "*=x1")),
    Anomaly("G1c", _P, ("x+1 *=x1,y2", "y+2 *=x1,y2")),
    Anomaly("G-single", _P, ("x+1 y+2", "*=x1")),
    Anomaly("G-nonadjacent", _P, ("x+1", "y+2", "*=x1", "*=y2")),
    Anomaly("G2", _P, ("*= x+1", "*= y+2")),
    Anomaly("G2", _P, ("1= x+2", "2= y+1")),
    *_ordered("G0", _LISTS, ("x+1", "x+2", "x=2,1"), "12"),
    *_ordered("G1c", _ALL, ("x=1", "x+1"), "12"),
    *_ordered("G1c", _ALL, ("x=1", "y=2 x+1", "y+2"), "13", "2( 1( 1) 3( 3) 2)"),
    *_ordered("G-single-item", _ALL, ("x+1", "x=", "x=1"), "12"),
    *_ordered(
        "G-nonadjacent-item", _ALL, ("y+1", "x=", "x+2", "x=2 y="), "12", "3( 4( 1( 1) 2( 2) 3) 4)"
    ),
    *_ordered("G2-item", _ALL, ("y+1", "x=", "x+2 y="), "12", "3( 1( 1) 2( 2) 3)"),
    *_ordered("G-single", _P, ("x+1", "*="), "12"),
    *_ordered("G-nonadjacent", _P, ("y+1", "2=", "x+2", "x=2 1="), "12", "3( 4( 1( 1) 2( 2) 3) 4)"),
    *_ordered("G2", _P, ("y+1", "2=", "x+2 1="), "12", "3( 1( 1) 2( 2) 3)"),
)


def of_model(model: str) -> Sequence[Anomaly]:
    """Return the anomalies that are planted in histories of a data type."""
    return [each for each in ANOMALIES if model in each.models]


def history(anomaly: Anomaly, model: str, rng: Random) -> list[Op]:
    """Return the events of an anomaly, with other names, among other transactions."""
    keys = dict(zip("xyz", rng.sample("abcdefg", 3), strict=True))
    offset = 2 * rng.randrange(50)  # predicates by parity still hold
    txns: list[tuple[int, str, Any]] = []
    for number, text in enumerate(anomaly.txns, 1):
        words = text.split()
        process = int(words.pop(0)[1:]) if words[0][0] == "@" else number
        kind = "fail" if words[0] == "!" else "ok"
        if words[0] == "init":
            txns.append((process, kind, _pairs(words[1:], keys, offset)))
            continue
        parsed = [_micro_op(word, model, keys, offset) for word in words if word != "!"]
        txns.append((process, kind, parsed))
    steps = anomaly.script.split() or _overlapping(len(txns), rng)
    if anomaly.models != _P:  # a predicate would read what these insert
        for number in range(rng.randrange(4)):
            txns.append((50, "ok", _right(model, number)))
            at = rng.randrange(len(steps) + 1) if not number else steps.index(f"{len(txns) - 1})")
            steps[at + (number > 0) : at + (number > 0)] = [f"{len(txns)}(", f"{len(txns)})"]
    rows = []
    for place, step in enumerate(steps):
        process, kind, micro_ops = txns[int(step[:-1]) - 1]
        rows.append((place, process, "invoke" if step[-1] == "(" else kind, micro_ops))
    return events_of(rows)


def _overlapping(count: int, rng: Random) -> list[str]:
    steps = [f"{number}(" for number in range(1, count + 1)]
    rng.shuffle(steps)
    for number in range(1, count + 1):
        at = steps.index(f"{number}(")
        steps.insert(rng.randrange(at, len(steps)) + 1, f"{number})")
    return steps


def _right(model: str, number: int) -> list[Any]:
    """Return a transaction of a process that alone uses a key."""
    elements = [*range(1000, 1000 + number)]
    read: Any = elements
    if model in (REGISTER, PREDICATE):
        read = elements[-1] if elements else None
    write = {LIST: "append", SET: "add", PREDICATE: "w" if number else "insert"}.get(model, "w")
    return [["r", "k", read], [write, "k", 1000 + number]]


def _pairs(words: Sequence[str], keys: dict[str, str], offset: int) -> dict[str, int]:
    return {keys[word[0]]: int(word[1:]) + offset for word in words}


def _micro_op(word: str, model: str, keys: dict[str, str], offset: int) -> list[Any]:
    key, sign, value = word[0], word[1], word[2:]
    if sign == "+":
        name = {LIST: "append", SET: "add", REGISTER: "w", PREDICATE: "insert"}[model]
        return [name, keys[key], int(value) + offset]
    if sign == ":":
        return ["w", keys[key], int(value) + offset]
    if key not in keys:
        predicate = "true" if key == "*" else ["=", int(key) + offset]
        return ["rp", predicate, _pairs(value.split(",") if value else [], keys, offset)]
    read = [int(each) + offset for each in value.split(",")] if value else []
    if model in (LIST, SET):
        return ["r", keys[key], read]
    return ["r", keys[key], read[-1] if read else None]
