"""Objects that clients use in generated executions: what is asked of them, and what they answer.

They share no code with the models of the checkers, which are tested with their executions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

Asked = tuple[str, Any]
"""Name and value of an invocation."""
FAILED = object()
"""The answer of an operation that had no effect because it was refused."""
EMPTY = "empty"


class Draw(NamedTuple):
    """What an invocation is drawn from."""

    rng: Random
    number: int
    """How many operations were invoked before."""
    values: int
    """How many different values there are; 0 if every value is written once."""
    state: Any

    @property
    def value(self) -> int:
        """A value to write."""
        return self.rng.randrange(1, self.values + 1) if self.values else self.number + 1


@dataclass(frozen=True)
class Kind:
    """An object."""

    model: str
    """The model that judges it."""
    initial: Any
    ask: Callable[[Draw], Asked]
    answer: Callable[[Any, Asked], tuple[Any, Any]]
    """Returns the next state and the result of an operation."""
    updates: frozenset[str]
    """The operations that may crash."""
    impossible: Asked
    """A read, and a result that it has in no execution."""
    wrong_order: tuple[Asked, ...]
    """Operations of one client, one after the other, with results that contradict each other,
    whatever other clients do."""


def _register(draw: Draw) -> Asked:
    return ("read", None) if draw.rng.random() < 0.5 else ("write", draw.value)


def _cas(draw: Draw) -> Asked:
    if draw.rng.random() < 0.6:
        return _register(draw)
    guess = draw.rng.randrange(1, draw.values + 1) if draw.values else draw.state
    return "cas", [draw.state if draw.rng.random() < 0.7 else guess, draw.value]


def _of_register(state: Any, asked: Asked) -> tuple[Any, Any]:
    f, value = asked
    if f == "write":
        return value, value
    if f == "cas":
        return (value[1], value) if state == value[0] else (state, FAILED)
    return state, state


def _queue(draw: Draw) -> Asked:
    full = 0.5 if len(draw.state) < 12 else 0.2
    return ("enqueue", draw.value) if draw.rng.random() < full else ("dequeue", None)


def _of_queue(state: Any, asked: Asked) -> tuple[Any, Any]:
    f, value = asked
    if f == "enqueue":
        return (*state, value), value
    return (state[1:], state[0]) if state else (state, EMPTY)


def _stack(draw: Draw) -> Asked:
    f, value = _queue(draw)
    return ("push" if f == "enqueue" else "pop"), value


def _of_stack(state: Any, asked: Asked) -> tuple[Any, Any]:
    f, value = asked
    if f == "push":
        return (*state, value), value
    return (state[:-1], state[-1]) if state else (state, EMPTY)


def _set(draw: Draw) -> Asked:
    chance = draw.rng.random()
    if chance < 0.4:
        return "read", None
    return ("remove" if chance > 0.8 and draw.values else "add"), draw.value


def _of_set(state: Any, asked: Asked) -> tuple[Any, Any]:
    f, value = asked
    if f == "read":
        return state, sorted(state)
    return (state | {value} if f == "add" else state - {value}), value


def _counter(draw: Draw) -> Asked:
    return ("read", None) if draw.rng.random() < 0.4 else ("add", draw.rng.randrange(1, 4))


def _of_counter(state: Any, asked: Asked) -> tuple[Any, Any]:
    f, value = asked
    return (state, state) if f == "read" else (state + value, value)


def _store(draw: Draw) -> Asked:
    key, chance = str(draw.rng.randrange(3)), draw.rng.random()
    if chance < 0.5:
        return "get", [key, None]
    return ("put" if chance < 0.8 else "append"), [key, f"{draw.value};"]


def _of_store(state: Any, asked: Asked) -> tuple[Any, Any]:
    f, (key, text) = asked
    held = state.get(key, "")
    if f == "get":
        return state, [key, held]
    return {**state, key: text if f == "put" else held + text}, [key, text]


_LATE, _LATER = -101, -102
"""Values that no client writes in an execution."""


_STALE = (("write", _LATE), ("write", _LATER), ("read", _LATE))

KINDS: dict[str, Kind] = {
    "register": Kind(
        "register", 0, _register, _of_register, frozenset(("write",)), ("read", -100), _STALE
    ),
    "cas-register": Kind(
        "cas-register", 0, _cas, _of_register, frozenset(("write", "cas")), ("read", -100), _STALE
    ),
    "queue": Kind(
        "fifo-queue",
        (),
        _queue,
        _of_queue,
        frozenset(("enqueue",)),
        ("dequeue", -100),
        (("enqueue", _LATE), ("enqueue", _LATER), ("dequeue", _LATER), ("dequeue", _LATE)),
    ),
    "stack": Kind(
        "stack",
        (),
        _stack,
        _of_stack,
        frozenset(("push",)),
        ("pop", -100),
        (("push", _LATE), ("push", _LATER), ("pop", _LATE), ("pop", _LATER)),
    ),
    "set": Kind(
        "linearizable-set",
        frozenset(),
        _set,
        _of_set,
        frozenset(("add", "remove")),
        ("read", [-100]),
        (("add", _LATE), ("read", [])),
    ),
    "counter": Kind(
        "linearizable-counter",
        0,
        _counter,
        _of_counter,
        frozenset(("add",)),
        ("read", -100),
        (("add", 1), ("read", 0)),
    ),
    "kv": Kind(
        "kv",
        {},
        _store,
        _of_store,
        frozenset(("put", "append")),
        ("get", ["0", "none"]),
        (("put", ["0", "late"]), ("put", ["0", "later"]), ("get", ["0", "late"])),
    ),
}
"""Objects by name."""
