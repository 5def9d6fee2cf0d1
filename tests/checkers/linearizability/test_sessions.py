"""Promises about sessions are judged as by trying every order."""

from collections.abc import Sequence
from random import Random

import pytest

from checkers.linearizability import models, sessions
from checkers.linearizability.models import Inconsistent, Model, State
from checkers.linearizability.operations import NEVER, Operation
from checkers.linearizability.search import Illegal, Linearized
from tests.checkers.linearizability.random_histories import Asked, Kind, draw


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
    most."""
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
        free[session] = end + 1
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
    mine = operations[row].process
    return {other for other in range(row) if operations[other].process == mine}


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


def test_zookeepers_promise() -> None:
    """The search agrees with trying every order."""
    counts = {True: 0, False: 0}
    for seed in range(1500):
        operations = history(Random(seed), 1 + seed % 6)
        search = sessions.of_zookeeper(KIND.model, operations)
        outcome = search.run(100_000)
        wanted = is_explained(KIND.model, operations, zookeeper(operations))
        assert isinstance(outcome, Linearized if wanted else Illegal), (seed, operations)
        counts[wanted] += 1
    assert min(counts.values()) > 100


def test_sequential_consistency() -> None:
    """The search agrees with trying every order, and the order that it finds is one."""
    counts = {True: 0, False: 0}
    for seed in range(1500):
        operations = history(Random(seed), 1 + seed % 6)
        search = sessions.SequentialSearch(KIND.model, operations)
        outcome = search.run(100_000)
        wanted = is_explained(KIND.model, operations, sequential(operations))
        assert isinstance(outcome, Linearized if wanted else Illegal), (seed, operations)
        counts[wanted] += 1
        if isinstance(outcome, Illegal):
            assert outcome.refusals[0].why
    assert min(counts.values()) > 100


PUT, GET = "put", "get"


@pytest.mark.parametrize(
    ("operations", "is_zookeeper", "is_sequential"),
    [
        # A stale read of another session.
        ([(PUT, "a", 0, 1, 1), (GET, "", 2, 3, 2)], True, True),
        # The session's own update is not visible to it.
        ([(PUT, "a", 0, 1, 1), (GET, "", 2, 3, 1)], False, False),
        # Reads go back.
        ([(PUT, "a", 0, 1, 1), (GET, "a", 2, 3, 2), (GET, "", 4, 5, 2)], False, False),
        # A read sees an update of the future.
        ([(GET, "a", 0, 1, 2), (PUT, "a", 2, 3, 1)], False, True),
        # Updates that do not overlap seem to be reversed.
        (
            [(PUT, "a", 0, 1, 1), (PUT, "b", 2, 3, 2), (GET, "b", 4, 5, 3), (GET, "a", 6, 7, 3)],
            False,
            True,
        ),
    ],
)
def test_what_each_promises(
    operations: list[tuple[str, str, int, int, int]], is_zookeeper: bool, is_sequential: bool
) -> None:
    """The promises differ in real time, and agree on what a session sees."""
    asked = [Operation(f, ["k", value], *rest) for f, value, *rest in operations]
    model = KIND.model
    zk = sessions.of_zookeeper(model, asked).run(1000)
    assert isinstance(zk, Linearized) is is_zookeeper
    sc = sessions.SequentialSearch(model, asked).run(1000)
    assert isinstance(sc, Linearized) is is_sequential
