"""Monitors decide as the search does, where values are unique."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from checkers.linearizability import fast, models
from checkers.linearizability.models import Model
from checkers.linearizability.operations import NEVER, Operation
from tests.checkers.linearizability import random_histories
from tests.checkers.linearizability.random_histories import Asked, Kind


def _unique(puts: str, takes: str, share: float = 0.5) -> Callable[[Random, int], Asked]:
    def ask(rng: Random, number: int) -> Asked:
        return (takes, None) if rng.random() < share else (puts, number + 1)

    return ask


def _state(state: Any, asked: Asked) -> object:
    return sorted(state) if isinstance(state, frozenset) else list(state)


def _value(state: object, asked: Asked) -> object:
    return state


def _head(state: Any, asked: Asked) -> object:
    return state[0] if state else models.EMPTY


KINDS: dict[str, Kind] = {
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
        _state,
        lambda rng: [1, 2, 3, 4][: rng.randrange(4)],
    ),
    "set": Kind(
        models.Set(),
        _unique("add", "read"),
        _state,
        lambda rng: sorted(rng.sample([1, 2, 3, 4], rng.randrange(4))),
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_monitors_agree_with_trying_every_order(name: str) -> None:
    """Where a monitor decides, it decides as a judge that tries every order."""
    kind, found = KINDS[name], {True: 0, False: 0}
    for seed in range(1500):
        rng = Random(f"{name} {seed}")
        operations = random_histories.draw(kind, rng, rng.randrange(1, 8))
        decision = fast.decide(kind.model, operations)
        if decision is not None:
            wanted = random_histories.is_linearizable(kind.model, operations)
            assert (decision.conflict is None) is wanted, (seed, operations, decision)
            found[wanted] += 1
            if decision.conflict is not None:
                assert decision.conflict.rows
    assert min(found.values()) >= 30, found


def test_what_is_not_unique_is_left_to_the_search() -> None:
    """A value that is written twice, and a dequeue that was not completed, are not decided."""
    twice = [Operation("write", 1, 0, 1), Operation("write", 1, 2, 3), Operation("read", 1, 4, 5)]
    assert fast.decide(models.Register(0), twice) is None
    unfinished = [Operation("enqueue", 1, 0, 1), Operation("dequeue", None, 2, NEVER)]
    assert fast.decide(models.FifoQueue(), unfinished) is None
    cas = [Operation("write", 1, 0, 1), Operation("cas", [1, 2], 2, 3)]
    assert fast.decide(models.CasRegister(0), cas) is None


@pytest.mark.parametrize(
    ("model", "operations", "rows"),
    [
        (
            models.Register(0),
            [("write", 1, 0, 1), ("write", 2, 2, 3), ("read", 1, 4, 5)],
            {1, 0, 2},
        ),
        (models.Register(0), [("write", 1, 0, 1), ("read", 7, 2, 3)], {1}),
        (models.Register(0), [("read", 1, 0, 1), ("write", 1, 2, 3)], {0, 1}),
        (
            models.FifoQueue(),
            [
                ("enqueue", 1, 0, 1),
                ("enqueue", 2, 2, 3),
                ("dequeue", 2, 4, 5),
                ("dequeue", 1, 6, 7),
            ],
            {0, 1, 2, 3},
        ),
        (models.FifoQueue(), [("enqueue", 1, 0, 1), ("dequeue", models.EMPTY, 2, 3)], {1}),
        (models.Log(), [("append", 1, 0, 1), ("read", [], 2, 3), ("read", [1], 4, 5)], {0, 1}),
        (models.Set(), [("add", 1, 0, 1), ("read", [], 2, 3), ("read", [1], 4, 5)], {0, 1}),
    ],
)
def test_a_conflict_names_its_operations(
    model: Model, operations: list[tuple[str, object, int, int]], rows: set[int]
) -> None:
    """The operations that no order explains are named."""
    decision = fast.decide(model, [Operation(*each) for each in operations])
    assert decision is not None
    assert decision.conflict is not None
    assert set(decision.conflict.rows) == rows
    assert decision.conflict.why
