"""Each rule finds the anomaly that it is for, and accepts its near miss."""

from typing import Any

import pytest

from checkers import aggregates
from model.history import BadHistory
from model.op import NEMESIS, Op

Said = tuple[int, str, str, Any]
"""Process, type, name and value of an event."""


def events(*said: Said) -> list[Op]:
    return [
        Op(index=row, time_ns=row, process=process, type=kind, f=f, value=value)  # type: ignore[arg-type]
        for row, (process, kind, f, value) in enumerate(said)
    ]


def done(f: str, asked: Any, answer: Any = None, process: int = 0) -> tuple[Said, Said]:
    """Return an operation that succeeds before any other begins."""
    return (process, "invoke", f, asked), (process, "ok", f, asked if answer is None else answer)


def doubt(f: str, asked: Any, process: int) -> tuple[Said, Said]:
    return (process, "invoke", f, asked), (process, "info", f, asked)


READ_12 = done("read", None, [1, 2])
BALANCES = {"a": 5, "b": 5}

CASES: dict[str, tuple[str, list[Said], aggregates.Valid, dict[str, int]]] = {
    "a set": ("set", [*done("add", 1), *done("add", 2), *READ_12], True, {}),
    "a lost element": ("set", [*done("add", 3), *READ_12], False, {"lost": 1, "unexpected": 2}),
    "an element in doubt": ("set", [*doubt("add", 3, 1), *done("read", None, [])], True, {}),
    "a set that is never read": ("set", [*done("add", 1)], "unknown", {}),
    "a lost element of all reads": (
        "set-full",
        [*done("add", 1), *done("read", None, [1]), *done("read", None, [2])],
        False,
        {"lost": 1},
    ),
    "a stale read": (
        "set-full",
        [*done("add", 1), *done("read", None, [2]), *done("read", None, [1, 2])],
        False,
        {"stale": 1},
    ),
    "an element twice": (
        "set-full",
        [*done("add", 1), *done("read", None, [1, 1])],
        False,
        {"duplicated": 1},
    ),
    "a queue": ("total-queue", [*done("enqueue", 1), *done("dequeue", None, 1)], True, {}),
    "a lost message": ("total-queue", [*done("enqueue", 1)], False, {"lost": 1}),
    "a message in doubt": ("total-queue", [*doubt("enqueue", 1, 0)], True, {}),
    "a drained queue": ("total-queue", [*done("enqueue", 1), *done("drain", None, [1])], True, {}),
    "a foreign message": ("total-queue", [*done("dequeue", None, 1)], False, {"unexpected": 1}),
    "a dequeue before": (
        "queue",
        [*done("dequeue", None, 1), *done("enqueue", 1)],
        False,
        {"unexpected": 1},
    ),
    "a repeated message": (
        "queue",
        [*done("enqueue", 1), *done("dequeue", None, 1), *done("dequeue", None, 1)],
        False,
        {"unexpected": 1},
    ),
    "an id twice": (
        "unique-ids",
        [*done("generate", None, "x"), *done("generate", None, "x")],
        False,
        {"duplicated": 1},
    ),
    "ids": ("unique-ids", [*done("generate", None, "x"), *done("generate", None, "y")], True, {}),
    "a counter": (
        "counter",
        [(1, "invoke", "add", 2), *done("read", None, 2), *done("decrement", 1)],
        True,
        {},
    ),
    "a counter out of bounds": (
        "counter",
        [*done("add", 2), *done("read", None, 3)],
        False,
        {"errors": 1},
    ),
    "a negative amount in doubt": (
        "counter",
        [*doubt("add", -2, 1), *done("read", None, -2)],
        True,
        {},
    ),
    "a bank": (
        "bank",
        [*done("read", None, BALANCES), *done("read", None, {"a": 10, "b": 0})],
        True,
        {},
    ),
    "money from nowhere": (
        "bank",
        [*done("read", None, BALANCES), *done("read", None, {"a": 6, "b": 5})],
        False,
        {"wrong-total": 1},
    ),
    "a negative balance": (
        "bank",
        [*done("read", None, BALANCES), *done("read", None, {"a": 11, "b": -1})],
        False,
        {"negative-value": 1},
    ),
    "a bank that is never read": ("bank", [*done("transfer", {})], "unknown", {}),
    "a fork": (
        "long-fork",
        [
            *done("read", None, [["r", "x", 1], ["r", "y", None]]),
            *done("read", None, [["r", "y", 1], ["r", "x", None]]),
        ],
        False,
        {"forks": 1},
    ),
    "no fork": (
        "long-fork",
        [
            *done("read", None, [["r", "x", 1], ["r", "y", None]]),
            *done("read", None, [["r", "y", 1], ["r", "x", 1]]),
            *done("read", None, [["r", "z", 1], ["r", "x", None]]),
        ],
        True,
        {},
    ),
    "a reversed write": (
        "causal-reverse",
        [*done("write", 1), *done("write", 2), *done("read", None, [2])],
        False,
        {"errors": 1},
    ),
    "a comment without an earlier one": (
        "comments",
        [*done("write", 1), *done("write", 2), *done("read", None, [2])],
        False,
        {"errors": 1},
    ),
    "a subkey without an earlier one": (
        "sequential",
        [*done("write", 3), *done("read", 3, [3, ["3_1", None]])],
        False,
        {"bad": 1},
    ),
    "subkeys that are not inserted yet": (
        "sequential",
        [
            *done("write", 3),
            *done("read", 3, [3, [None, "3_0"]]),
            *done("read", 3, [3, ["3_1", "3_0"]]),
            *done("read", 4, [4, [None, None]]),
        ],
        True,
        {},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_anomalies_and_near_misses(name: str) -> None:
    """The verdict and the counts are those of the definition."""
    model, said, valid, anomalies = CASES[name]
    found = aggregates.RULES[model](events(*said))
    assert found.valid == valid
    assert {each: len(lines) for each, lines in found.anomalies.items()} == anomalies
    assert (found.unknown_because is not None) == (found.valid == "unknown")


def confirmed(f: str, asked: Any) -> tuple[Said, Said]:
    """Return an update whose completion has no value."""
    return (0, "invoke", f, asked), (0, "ok", f, None)


CONFIRMED: dict[str, tuple[str, list[Said], aggregates.Valid, dict[str, int]]] = {
    "a set": ("set", [*confirmed("add", 1), *done("read", None, [1])], True, {}),
    "a lost element": ("set", [*confirmed("add", 1), *done("read", None, [])], False, {"lost": 1}),
    "a lost message": ("total-queue", [*confirmed("enqueue", 1)], False, {"lost": 1}),
    "a queue": ("total-queue", [*confirmed("enqueue", 1), *done("dequeue", None, 1)], True, {}),
    "a counter below": (
        "counter",
        [*confirmed("add", 5), *done("read", None, 2)],
        False,
        {"errors": 1},
    ),
    "a counter": ("counter", [*confirmed("decrement", 5), *done("read", None, -5)], True, {}),
    "a counter by one": (
        "counter",
        [*confirmed("increment", None), *done("read", None, 1)],
        True,
        {},
    ),
    "a reversed write": (
        "causal-reverse",
        [*confirmed("write", 1), *confirmed("write", 2), *done("read", None, [2])],
        False,
        {"errors": 1},
    ),
    "an unknown result of a read": (
        "sequential",
        [(0, "invoke", "read", 3), (0, "ok", "read", None)],
        True,
        {},
    ),
}


@pytest.mark.parametrize("name", CONFIRMED)
def test_a_completion_without_a_value_confirms_what_was_asked(name: str) -> None:
    """An update that succeeded without a value did what was asked; a read returned nothing."""
    model, said, valid, anomalies = CONFIRMED[name]
    found = aggregates.RULES[model](events(*said))
    assert found.valid == valid
    assert {each: len(lines) for each, lines in found.anomalies.items()} == anomalies


@pytest.mark.parametrize(
    ("model", "said", "valid"),
    [
        ("set", [("ok", "add", 1), ("ok", "read", [1])], True),
        ("set", [("info", "add", 1), ("ok", "read", [1])], True),
        ("set", [("ok", "add", 1), ("ok", "read", [2])], False),
        ("set-full", [("ok", "add", 1), ("ok", "read", [1])], True),
        ("set-full", [("ok", "add", 1), ("ok", "read", [1]), ("ok", "read", [])], False),
        ("total-queue", [("ok", "enqueue", 1), ("ok", "dequeue", 1)], True),
        ("total-queue", [("ok", "enqueue", 1), ("ok", "dequeue", 2)], False),
        ("queue", [("ok", "enqueue", 1), ("ok", "dequeue", 1)], True),
        ("queue", [("ok", "dequeue", 1), ("ok", "enqueue", 1)], False),
        ("counter", [("ok", "add", 5), ("ok", "read", 5)], True),
        ("counter", [("info", "add", 5), ("ok", "read", 5)], True),
        ("counter", [("ok", "add", 5), ("ok", "read", 4)], False),
        ("causal-reverse", [("ok", "write", 1), ("ok", "write", 2), ("ok", "read", [1])], True),
        ("causal-reverse", [("ok", "write", 1), ("ok", "write", 2), ("ok", "read", [2])], False),
    ],
)
def test_a_completion_without_an_invocation_takes_no_time(
    model: str, said: list[tuple[str, str, Any]], valid: bool
) -> None:
    """Such an operation began and ended at its completion."""
    found = aggregates.RULES[model](events(*((0, *each) for each in said)))
    assert found.valid is valid


def test_an_operation_of_another_model_is_refused() -> None:
    """An operation that the model does not have is refused; the nemesis may do anything."""
    with pytest.raises(BadHistory, match="event 1: pop is not an operation of this model"):
        aggregates.elements_of_set(events((NEMESIS, "info", "kill", None), *done("pop", 1)))
