"""Small random histories of each model, and a judge that tries every order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from checkers.linearizability import models
from checkers.linearizability.models import Inconsistent, Model, State
from checkers.linearizability.operations import NEVER, Operation

Asked = tuple[str, Any]
"""Name and value of an invocation."""


@dataclass(frozen=True)
class Kind:
    """A model with operations to draw from, and with what they may return."""

    model: Model
    ask: Callable[[Random, int], Asked]
    """Draws an invocation, given how many there were."""
    result: Callable[[State, Asked], Any]
    """What a correct system returns for an operation in a state."""
    wrong: Callable[[Random], Any]
    """Draws any result."""
    only_known: frozenset[str] = frozenset(("read", "get", "dequeue", "pop", "generate"))
    """The operations that have results."""


def _values(rng: Random) -> int:
    return rng.randrange(3)


def _register(rng: Random, number: int) -> Asked:
    return rng.choice([("read", None), ("write", _values(rng))])


def _cas(rng: Random, number: int) -> Asked:
    return rng.choice([_register(rng, number), ("cas", [_values(rng), _values(rng)])])


def _multi(rng: Random, number: int) -> Asked:
    return "txn", [
        [rng.choice(["read", "write"]), rng.choice("xy"), rng.choice([0, 0, 1])]
        for _ in range(rng.randrange(1, 3))
    ]


def _set(rng: Random, number: int) -> Asked:
    return rng.choice([("read", None), ("add", _values(rng)), ("remove", _values(rng))])


def _counter(rng: Random, number: int) -> Asked:
    return rng.choice([("read", None), ("add", rng.randrange(-1, 3))])


def _queue(rng: Random, number: int) -> Asked:
    return rng.choice([("dequeue", None), ("enqueue", rng.randrange(4))])


def _stack(rng: Random, number: int) -> Asked:
    return rng.choice([("pop", None), ("push", rng.randrange(4))])


def _lock(rng: Random, number: int) -> Asked:
    return rng.choice(["acquire", "release"]), None


def _kv(rng: Random, number: int) -> Asked:
    f = rng.choice(["get", "put", "append"])
    return f, [rng.choice("kl"), None if f == "get" else str(_values(rng))]


def _log(rng: Random, number: int) -> Asked:
    return rng.choice([("read", None), ("append", number)])


def _head(state: Any, asked: Asked) -> Any:
    return state[0] if state else models.EMPTY


def _top(state: Any, asked: Asked) -> Any:
    return state[-1] if state else models.EMPTY


def _state(state: Any, asked: Asked) -> Any:
    return sorted(state) if isinstance(state, frozenset) else state


def _some(rng: Random) -> Any:
    return rng.sample(range(3), rng.randrange(4))


def _elements(rng: Random) -> Any:
    return rng.choice([*range(4), models.EMPTY])


KINDS: dict[str, Kind] = {
    "register": Kind(models.Register(0), _register, _state, _values),
    "cas-register": Kind(models.CasRegister(0), _cas, _state, _values),
    "multi-register": Kind(models.MultiRegister(default=0), _multi, _state, _values),
    "set": Kind(models.Set(), _set, _state, _some),
    "counter": Kind(models.Counting(), _counter, _state, _values),
    "fifo-queue": Kind(models.FifoQueue(), _queue, _head, _elements),
    "stack": Kind(models.Stack(), _stack, _top, _elements),
    "unordered-queue": Kind(models.UnorderedQueue(), _queue, _head, _elements),
    "mutex": Kind(models.Mutex(), _lock, _state, _values),
    "owned-mutex": Kind(models.OwnedMutex(), _lock, _state, _values),
    "reentrant-mutex": Kind(models.OwnedMutex(depth=2), _lock, _state, _values),
    "log": Kind(models.Log(), _log, _state, _some),
}


def _unique(puts: str, takes: str, share: float = 0.5) -> Callable[[Random, int], Asked]:
    def ask(rng: Random, number: int) -> Asked:
        return (takes, None) if rng.random() < share else (puts, number + 1)

    return ask


def _listed(state: Any, asked: Asked) -> object:
    return sorted(state) if isinstance(state, frozenset) else list(state)


def _value(state: object, asked: Asked) -> object:
    return state


def _unique_cas(rng: Random, number: int) -> Asked:
    old = rng.randrange(number + 1)
    return rng.choice([("read", None), ("write", number + 1), ("cas", [old, number + 1])])


def _store(rng: Random, number: int) -> Asked:
    return rng.choice([("get", None), ("put", str(number))])


UNIQUE: dict[str, Kind] = {
    "cas-register": Kind(models.CasRegister(0), _unique_cas, _value, lambda r: r.randrange(6)),
    "kv": Kind(models.KeyValue(), _store, _value, lambda rng: str(rng.randrange(4))),
    "register": Kind(
        models.Register(0), _unique("write", "read"), _value, lambda r: r.randrange(6)
    ),
    "queue": Kind(
        models.FifoQueue(),
        _unique("enqueue", "dequeue"),
        _head,
        lambda rng: rng.choice([1, 2, 3, 4, models.EMPTY]),
    ),
    "log": Kind(
        models.Log(),
        _unique("append", "read"),
        _listed,
        lambda rng: [1, 2, 3, 4][: rng.randrange(4)],
    ),
    "set": Kind(
        models.Set(),
        _unique("add", "read"),
        _listed,
        lambda rng: sorted(rng.sample([1, 2, 3, 4], rng.randrange(4))),
    ),
}
"""Kinds of which each value is written once, so that a monitor decides."""


def draw(kind: Kind, rng: Random, count: int) -> list[Operation]:
    """Return operations that overlap at random; most results are those of a correct system."""
    state, moments = kind.model.initial, sorted(rng.sample(range(10 * count), count))
    lie = rng.choice((0.0, 0.15, 0.5))
    found = []
    for number, moment in enumerate(moments):
        f, value = kind.ask(rng, number)
        operation = Operation(f, value, 0, 1, process=rng.randrange(3), completed=number)
        if f in kind.only_known:
            result = kind.result(state, (f, value))
            operation = operation._replace(value=kind.wrong(rng) if rng.random() < lie else result)
        after = kind.model.step(state, operation)
        if not isinstance(after, Inconsistent):
            state = after
        call, end = moment - rng.randrange(25), moment + rng.randrange(25)
        if rng.random() < 0.15:
            end, operation = NEVER, operation._replace(value=value)
        found.append(operation._replace(call=call, end=end))
    return sorted(found, key=lambda each: each.call)


def is_linearizable(model: Model, operations: Sequence[Operation]) -> bool:
    """Try every order of the operations that completed, and of some of the others."""

    def explains(left: frozenset[int], state: State) -> bool:
        ends = [operations[row].end for row in left]
        if all(end == NEVER for end in ends):
            return True
        for row in left:
            if operations[row].call <= min(ends):
                after = model.step(state, operations[row])
                if not isinstance(after, Inconsistent) and explains(left - {row}, after):
                    return True
        return False

    return explains(frozenset(range(len(operations))), model.initial)


def is_explained(model: Model, operations: Sequence[Operation], order: Sequence[int]) -> bool:
    """Return whether an order keeps to the model and to real time, and leaves out nothing that
    completed."""
    state = model.initial
    for row in order:
        after = model.step(state, operations[row])
        if isinstance(after, Inconsistent):
            return False
        state = after
    place = {row: number for number, row in enumerate(order)}
    missing = [
        row for row, each in enumerate(operations) if not each.is_pending and row not in place
    ]
    inverted = [
        (a, b)
        for a in order
        for b in order
        if operations[a].end < operations[b].call and place[a] > place[b]
    ]
    return not missing and not inverted and len(place) == len(order)
