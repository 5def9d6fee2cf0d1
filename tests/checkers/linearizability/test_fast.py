"""Monitors decide as the search does, where values are unique."""

from random import Random
from typing import Any

import pytest

from bench.oracles import kinds
from bench.oracles.kinds import UNIQUE
from checkers.linearizability import fast, models
from checkers.linearizability.models import Model
from checkers.linearizability.operations import NEVER, Operation

LOCK = {"owned-mutex": kinds.KINDS["owned-mutex"]}


@pytest.mark.parametrize("name", [*UNIQUE, *LOCK])
def test_monitors_agree_with_trying_every_order(name: str) -> None:
    """Where a monitor decides, it decides as a judge that tries every order."""
    kind, found = (UNIQUE | LOCK)[name], {True: 0, False: 0}
    for seed in range(2500):
        rng = Random(f"{name} {seed}")
        operations = kinds.draw(kind, rng, rng.randrange(1, 8))
        decision = fast.decide(kind.model, operations)
        if decision is not None:
            wanted = kinds.is_linearizable(kind.model, operations)
            assert (decision.conflict is None) is wanted, (seed, operations, decision)
            found[wanted] += 1
            if decision.conflict is not None:
                assert decision.conflict.rows
    assert min(found.values()) >= 30, found


def test_what_is_not_unique_is_left_to_the_search() -> None:
    """A value that is written twice is not decided, nor a queue where dequeues without a result do
    not simply take what was left."""
    twice = [Operation("write", 1, 0, 1), Operation("write", 1, 2, 3), Operation("read", 1, 4, 5)]
    assert fast.decide(models.Register(0), twice) is None
    unfinished = [Operation("enqueue", 1, 0, 1), Operation("dequeue", None, 2, NEVER)]
    empty = Operation("dequeue", models.EMPTY, 4, 5)
    assert fast.decide(models.FifoQueue(), [*unfinished, empty]) == fast.Decision(None)
    assert fast.decide(models.FifoQueue(), unfinished) == fast.Decision(None)
    second = Operation("enqueue", 2, 0, 1)
    assert fast.decide(models.FifoQueue(), [second, *unfinished, empty]) is None
    cas = [Operation("write", 1, 0, 1), Operation("cas", [1, 1], 2, 3)]
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
        (models.OwnedMutex(), [("acquire", None, 0, 1, 1), ("acquire", None, 2, 3, 2)], {0, 1}),
        (models.Log(), [("append", 1, 0, 1), ("read", [], 2, 3), ("read", [1], 4, 5)], {0, 1}),
        (models.Set(), [("add", 1, 0, 1), ("read", [], 2, 3), ("read", [1], 4, 5)], {0, 1}),
    ],
)
def test_a_conflict_names_its_operations(
    model: Model, operations: list[tuple[Any, ...]], rows: set[int]
) -> None:
    """The operations that no order explains are named."""
    decision = fast.decide(model, [Operation(*each) for each in operations])
    assert decision is not None
    assert decision.conflict is not None
    assert set(decision.conflict.rows) == rows
    assert decision.conflict.why


def test_a_process_with_two_operations_at_a_time_is_left_to_the_search() -> None:
    """A release that overlaps the acquire of its process does not end after it."""
    operations = [
        Operation("acquire", None, -4, 31, process=0),
        Operation("acquire", None, 14, 20, process=2),
        Operation("release", None, 25, 43, process=0),
    ]
    assert fast.decide(models.OwnedMutex(), operations) is None
    apart = [operations[0]._replace(end=10), operations[1], operations[2]]
    decision = fast.decide(models.OwnedMutex(), apart)
    assert decision is not None
    assert decision.conflict is not None


def test_reads_that_contradict_each_other() -> None:
    """Logs that differ, sets of which none has the other, and elements that were never added are
    conflicts, however large the states of a search would be."""
    appends = [Operation("append", number, 0, 9) for number in (1, 2)]
    logs = [*appends, Operation("read", [1, 2], 1, 2), Operation("read", [2], 3, 4)]
    decision = fast.decide(models.Log(), logs)
    assert decision is not None
    assert decision.conflict is not None
    assert (set(decision.conflict.rows), "begins with" in decision.conflict.why) == ({2, 3}, True)
    adds = [Operation("add", number, 0, 9) for number in (1, 2)]
    sets = [*adds, Operation("read", [2], 1, 2), Operation("read", [1], 3, 4)]
    decision = fast.decide(models.Set(), sets)
    assert decision is not None
    assert decision.conflict is not None
    assert (set(decision.conflict.rows), "each of the two" in decision.conflict.why) == (
        {2, 3},
        True,
    )
    for model, history in ((models.Log(), appends), (models.Set(), adds)):
        read = Operation("read", [1, 7], 1, 2)
        decision = fast.decide(model, [*history, Operation("read", [1], 1, 2), read])
        assert decision is not None
        assert decision.conflict is not None
        assert decision.conflict == ((3,), "it has an element that was never added")
