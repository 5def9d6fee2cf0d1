"""What each model allows, and why it rejects the rest."""

from typing import Any

import pytest

from checkers.linearizability import models
from checkers.linearizability.models import Inconsistent, Model
from checkers.linearizability.operations import NEVER, Operation
from model.history import BadHistory

Step = tuple[Any, ...]
"""Name, value, and perhaps the process."""


def run(model: Model, steps: list[Step]) -> Any:
    """Return the state after steps, or the reason why the last one is illegal."""
    state = model.initial
    for place, (f, value, *process) in enumerate(steps):
        after = model.step(state, Operation(f, value, place, place, *process[:1]))
        if isinstance(after, Inconsistent):
            assert place == len(steps) - 1
            return after.why
        state = after
    return state


BANK = {"from": 1, "to": 2, "amount": 3}

ALLOWED: list[tuple[Model, list[Step], Any]] = [
    (models.Register(), [("write", 1), ("read", 1), ("read", None)], 1),
    (models.CasRegister(0), [("cas", [0, 1]), ("read", 1)], 1),
    (
        models.MultiRegister(default=0),
        [("txn", [["w", "x", 1], ["r", "x", 1], ["r", "y", 0]])],
        (("x", 1),),
    ),
    (models.KeyValue(), [("put", "a"), ("append", "b"), ("get", "ab")], "ab"),
    (
        models.Set(),
        [("add", 1), ("add", 1), ("read", [1]), ("remove", 1), ("read", [])],
        frozenset(),
    ),
    (models.Counting(), [("add", 2), ("increment", None), ("decrement", 1), ("read", 2)], 2),
    (models.FifoQueue(), [("enq", 1), ("enq", 2), ("deq", 1), ("deq", 2), ("deq", "empty")], ()),
    (models.Stack(), [("push", 1), ("push", 2), ("pop", 2), ("pop", None), ("pop", "empty")], ()),
    (models.UnorderedQueue(), [("enqueue", 1), ("enqueue", 2), ("dequeue", 2)], (1,)),
    (models.Mutex(), [("acquire", None), ("release", None)], False),
    (models.OwnedMutex(), [("acquire", 3, 1), ("release", None, 1), ("acquire", 4, 2)], (2, 1, 4)),
    (
        models.OwnedMutex(depth=2),
        [("acquire", 3, 1), ("acquire", 3, 1), ("release", None, 1)],
        (1, 1, 3),
    ),
    (models.UniqueIds(), [("generate", 1), ("generate", 2)], frozenset((1, 2))),
    (
        models.Bank((("1", 3), ("2", 0))),
        [("transfer", BANK), ("read", {1: 0, 2: 3})],
        (("1", 0), ("2", 3)),
    ),
    (models.Log(), [("append", 1), ("append", 2), ("read", [1, 2])], (1, 2)),
]

FORBIDDEN: list[tuple[Model, list[Step], str]] = [
    (models.Register(), [("write", 1), ("read", 2)], "it read 2, and the register held 1"),
    (models.CasRegister(0), [("cas", [1, 2])], "it replaced 1 by 2, and the register held 0"),
    (models.MultiRegister(default=0), [("txn", [["r", "y", 1]])], "it read 1 of y, which held 0"),
    (models.KeyValue(), [("get", "a")], "it got 'a', and the key held ''"),
    (models.Set(), [("add", 1), ("read", [])], "it read the set without 1"),
    (models.Set(), [("read", [1, 2])], "it read the set with 1 and 1 more elements"),
    (models.Set(), [("add", 1), ("read", [1, 1])], "it read 1 twice"),
    (models.Counting(), [("read", 1)], "it read 1, and the counter was 0"),
    (models.FifoQueue(), [("deq", 1)], "it took 1, and there was no element"),
    (
        models.FifoQueue(),
        [("enq", 1), ("deq", "empty")],
        "it found no element, and 1 was to be taken",
    ),
    (models.FifoQueue(), [("enq", 1), ("enq", 2), ("deq", 2)], "it took 2, and 1 was to be taken"),
    (models.Stack(), [("push", 1), ("push", 2), ("pop", 1)], "it took 1, and 2 was to be taken"),
    (models.UnorderedQueue(), [("dequeue", 1)], "it took 1, which was not there"),
    (models.UnorderedQueue(), [("enqueue", 1), ("dequeue", "empty")], "it found no element"),
    (models.Mutex(), [("acquire", None), ("acquire", None)], "the lock was held"),
    (models.Mutex(), [("release", None)], "the lock was not held"),
    (models.OwnedMutex(), [("acquire", None, 1), ("release", None, 2)], "process 1 held the lock"),
    (models.OwnedMutex(), [("acquire", None, 1), ("acquire", None, 2)], "process 1 held the lock"),
    (
        models.OwnedMutex(),
        [("acquire", None, 1), ("acquire", None, 1)],
        "its owner had acquired the lock 1 times",
    ),
    (
        models.OwnedMutex(),
        [("acquire", 3, 1), ("release", None, 1), ("acquire", 3, 2)],
        "it got the fencing token 3 after 3",
    ),
    (models.UniqueIds(), [("generate", 1), ("generate", 1)], "1 was generated before"),
    (models.Bank(), [("transfer", BANK)], "account 1 would have -3"),
    (models.Bank((("1", 3),)), [("read", {1: 2})], "it read 2 in account 1, which had 3"),
    (models.Log(), [("append", 1), ("read", [])], "it read 0 elements of 1, or others"),
]


@pytest.mark.parametrize(("model", "steps", "state"), ALLOWED)
def test_legal_steps(model: Model, steps: list[Step], state: Any) -> None:
    """Legal steps lead to a state."""
    assert run(model, steps) == state


@pytest.mark.parametrize(("model", "steps", "why"), FORBIDDEN)
def test_illegal_steps(model: Model, steps: list[Step], why: str) -> None:
    """An illegal step has a reason that names the values."""
    assert run(model, steps) == why


@pytest.mark.parametrize("model", {type(each): each for each, *_ in ALLOWED}.values())
def test_operations_of_other_models_are_refused(model: Model) -> None:
    """An operation that a model does not have is refused with those that it has."""
    value = [["jump", "x", 1]]
    f = "txn" if isinstance(model, models.MultiRegister) else "jump"
    with pytest.raises(BadHistory, match=f"event 7: {f} is not an operation of this model"):
        model.step(model.initial, Operation(f, value, 0, 1, completed=7))


@pytest.mark.parametrize(
    ("model", "f"),
    [
        (models.Register(1), "read"),
        (models.KeyValue(), "get"),
        (models.Set(), "read"),
        (models.FifoQueue(), "dequeue"),
        (models.UnorderedQueue(), "dequeue"),
        (models.Counting(), "read"),
        (models.Log(), "read"),
        (models.UniqueIds(), "generate"),
        (models.Bank(), "read"),
    ],
)
def test_what_was_never_completed_may_have_any_result(model: Model, f: str) -> None:
    """A result of an operation that was not completed is not compared."""
    asked = Operation(f, None, 0, NEVER)
    assert not isinstance(model.step(model.initial, asked), Inconsistent)


def test_keys_are_parts() -> None:
    """The values of keyed models are pairs; anything else is refused."""
    keyed = models.Keyed(models.KeyValue())
    key, alone = keyed.part(Operation("get", ["a", ["b", "c"]], 0, 1))
    assert (key, alone.value) == (("a", "b"), "c")
    assert isinstance(keyed.inner, models.KeyValue)
    with pytest.raises(BadHistory, match="the value of get is not a pair"):
        keyed.part(Operation("get", "a", 0, 1))


def test_values_are_frozen() -> None:
    """Lists and maps become values that can be compared and stored in sets."""
    assert models.frozen([1, {"b": [2], "a": None}]) == (1, (("a", None), ("b", (2,))))
