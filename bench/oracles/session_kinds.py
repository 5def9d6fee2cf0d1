"""Small random histories of sessions, and a judge that tries every order that a promise allows."""

from collections.abc import Callable, Sequence
from random import Random

from bench.oracles.kinds import Asked, Kind, draw
from checkers.linearizability import models, sessions
from checkers.linearizability.models import Inconsistent, Model, State
from checkers.linearizability.operations import NEVER, Operation


def _ask(rng: Random, number: int) -> Asked:
    f = rng.choice(["get", "get", "put"])
    return f, [rng.choice("kl"), None if f == "get" else str(number)]


KIND = Kind(
    sessions.Together(models.KeyValue()),
    _ask,
    lambda state, asked: None,
    lambda rng: None,
    frozenset(),
)


def history(rng: Random, count: int) -> list[Operation]:
    """Return the operations of sessions, one after the other in each; most reads are stale at
    most. A session goes on after an operation in doubt."""
    written: dict[str, list[str]] = {"k": [""], "l": [""]}
    free: dict[int, int] = {}
    found = []
    for operation in draw(KIND, rng, count):
        key, value = operation.value
        session = rng.randrange(3)
        call = max(operation.call, free.get(session, operation.call))
        end = max(operation.end, call + 1)
        if operation.f == "put":
            written[key].append(value)
        else:
            value = rng.choice(written[key][-2:]) if rng.random() < 0.9 else "none"
        free[session] = (end if end < NEVER else call) + 1
        if call < NEVER:
            asked = operation._replace(value=[key, value], call=call, end=end, process=session)
            found.append(asked)
    return sorted(found, key=lambda each: each.call)


def is_explained(
    model: Model, operations: Sequence[Operation], precedes: dict[int, frozenset[int]]
) -> bool:
    """Try every order of what completed, and of some of the rest, that keeps to ``precedes``."""

    def explains(left: frozenset[int], state: State) -> bool:
        if all(operations[row].end >= NEVER for row in left):
            return True
        for row in left:
            if not precedes[row] & left:
                after = model.step(state, operations[row])
                if not isinstance(after, Inconsistent) and explains(left - {row}, after):
                    return True
        return False

    return explains(frozenset(range(len(operations))), model.initial)


def _of_session(operations: Sequence[Operation], row: int) -> set[int]:
    """Return what completed before an operation in its session."""
    mine = operations[row].process
    return {
        other
        for other in range(row)
        if operations[other].process == mine and operations[other].end < NEVER
    }


def zookeeper(operations: Sequence[Operation]) -> dict[int, frozenset[int]]:
    """Return what must come before each operation, by ZooKeeper's promise."""
    return {
        row: frozenset(
            _of_session(operations, row)
            | {
                other
                for other, each in enumerate(operations)
                if operation.f != "get" and each.end < operation.call
            }
        )
        for row, operation in enumerate(operations)
    }


def sequential(operations: Sequence[Operation]) -> dict[int, frozenset[int]]:
    """Return what must come before each operation by the order of its session."""
    return {row: frozenset(_of_session(operations, row)) for row in range(len(operations))}


PROMISES: dict[str, Callable[[Sequence[Operation]], dict[int, frozenset[int]]]] = {
    "sequential": sequential,
    "zookeeper": zookeeper,
}
"""What must come before each operation, by the name of the promise."""
