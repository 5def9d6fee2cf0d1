"""Necessary conditions refute only what no order explains, and they find the usual ones."""

from random import Random

import pytest

from bench.oracles import kinds
from checkers.linearizability import models, refutations
from checkers.linearizability.models import Model
from checkers.linearizability.operations import NEVER, Operation

KINDS = {
    name: kind
    for name, kind in kinds.KINDS.items()
    if name in ("register", "cas-register", "set", "counter", "fifo-queue", "stack")
} | {"unordered-queue": kinds.KINDS["unordered-queue"], "kv": kinds.UNIQUE["kv"]}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_refuted_has_no_order(name: str) -> None:
    """No history that a judge explains by an order is refuted, and invalid ones are."""
    kind, refuted = KINDS[name], 0
    for seed in range(2000):
        rng = Random(f"{name} {seed}")
        operations = kinds.draw(kind, rng, rng.randrange(1, 8))
        found = refutations.refute(kind.model, operations)
        if found is not None:
            refuted += 1
            assert not kinds.is_linearizable(kind.model, operations), (seed, operations, found)
            assert set(found.rows) <= set(range(len(operations)))
    assert refuted >= 30


@pytest.mark.parametrize(
    ("model", "operations", "rows"),
    [
        (
            models.Register(0),
            [("write", 1, 0, 1), ("write", 2, 2, 3), ("read", 1, 4, 5)],
            (0, 1, 2),
        ),
        (
            models.Stack(),
            [("push", 1, 0, 1), ("push", 2, 2, 3), ("pop", 1, 4, 5), ("pop", 2, 6, 7)],
            (0, 1, 2, 3),
        ),
        (models.Counting(), [("add", 2, 0, 1), ("read", 1, 2, 3)], (1,)),
        (models.UnorderedQueue(), [("enqueue", 1, 0, 1), ("dequeue", 2, 2, 3)], (1,)),
    ],
)
def test_a_refutation_names_its_operations(
    model: Model, operations: list[tuple[str, object, int, int]], rows: tuple[int, ...]
) -> None:
    """The rows are those of the operations that contradict each other."""
    found = refutations.refute(model, [Operation(*each) for each in operations])
    assert found is not None
    assert found.rows == rows


@pytest.mark.parametrize(
    ("model", "operations"),
    [
        (models.Register(0), [("write", 1, 0, 1), ("write", 2, 2, NEVER), ("read", 1, 4, 5)]),
        (
            models.Stack(),
            [
                ("push", 1, 0, 1),
                ("push", 2, 2, 3),
                ("pop", None, 3, NEVER),
                ("pop", 1, 4, 5),
            ],
        ),
        (models.Counting(), [("add", 2, 0, NEVER), ("read", 0, 2, 3)]),
    ],
)
def test_an_operation_without_an_end_may_explain_a_result(
    model: Model, operations: list[tuple[str, object, int, int]]
) -> None:
    """An update that was never completed took effect, or it did not."""
    assert refutations.refute(model, [Operation(*each) for each in operations]) is None
