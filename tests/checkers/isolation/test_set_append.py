"""Transactions on sets, with near misses, and compared with a search for a serial order."""

from itertools import permutations
from random import Random
from typing import Any

import pytest

from checkers.isolation import Options, judge
from model.op import Op

Txn = list[list[Any]]


def history(*values: Any, kinds: str = "") -> list[Op]:
    """Return completions, each of a process of its own; ``f`` and ``i`` are fail and info."""
    types = {"f": "fail", "i": "info"}
    return [
        Op(
            index=n,
            time_ns=n,
            process=n,
            type=types.get(kinds[n : n + 1], "ok"),  # type: ignore[arg-type]
            f="txn",
            value=value,
        )
        for n, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("values", "kinds", "anomalies"),
    [
        # Write skew: each one adds what the other one did not read.
        ([[["r", "x", []], ["add", "y", 1]], [["r", "y", []], ["add", "x", 1]]], "", ["G2-item"]),
        ([[["r", "x", []], ["add", "y", 1]], [["r", "y", [1]], ["add", "x", 1]]], "", []),
        # A long fork: two readers see two writers in different orders.
        (
            [[["add", "x", 1]], [["add", "x", 2]], [["r", "x", [1]]], [["r", "x", [2]]]],
            "",
            ["G-nonadjacent-item"],
        ),
        ([[["add", "x", 1]], [["add", "x", 2]], [["r", "x", [1]]], [["r", "x", [2, 1]]]], "", []),
        # A reader sees one of two elements that a transaction added.
        ([[["add", "x", 1], ["add", "x", 2]], [["r", "x", [2]]]], "", ["G-single-item"]),
        ([[["add", "x", 1], ["add", "x", 2]], [["r", "x", [2, 1]]]], "", []),
        # Each one reads what the other one added.
        ([[["add", "x", 1], ["r", "y", [1]]], [["add", "y", 1], ["r", "x", [1]]]], "", ["G1c"]),
        # An aborted write; in doubt it may have happened.
        ([[["add", "x", 1]], [["r", "x", [1]]], [["r", "x", []]]], "f", ["G1a"]),
        ([[["add", "x", 1]], [["r", "x", [1]]]], "i", []),
        (
            [[["add", "x", 1], ["add", "y", 1]], [["r", "x", [1]], ["r", "y", []]]],
            "i",
            ["G-single-item"],
        ),
        # Contradictions inside a transaction.
        ([[["add", "x", 1], ["r", "x", []]], [["r", "x", [1]]]], "", ["internal"]),
        ([[["add", "x", 1], ["r", "x", [1]]], [["r", "x", [1]]]], "", []),
        ([[["r", "x", [1]], ["add", "x", 1]], [["r", "x", [1]]]], "", ["future-read"]),
    ],
)
def test_anomalies(values: list[Txn], kinds: str, anomalies: list[str]) -> None:
    """Each anomaly is found by its name, and its near miss is valid."""
    found = judge(history(*values, kinds=kinds), "set-append", Options(("serializable",)))
    assert list(found.anomaly_types) == [
        *anomalies,
        *(["empty-transaction-graph"] if "empty-transaction-graph" in found.anomaly_types else []),
    ]
    assert found.valid is (not anomalies)


def test_garbage_is_found_on_request() -> None:
    """An element that nothing added is no anomaly of Elle's."""
    events = history([["add", "x", 1]], [["r", "x", [1, 2]]])
    assert judge(events, "set-append").valid is True
    found = judge(events, "set-append", Options(anomalies=("garbage-read",)))
    assert found.anomaly_types == ("garbage-read",)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([["w", "x", 1]], "unexpected micro-operation"),
        ([["add", "x", 1], ["add", "x", 1]], "1 is added to x more than once"),
        ([["add", "x", {}]], "a map stands where"),
        ("x", "is no list of micro-operations"),
    ],
)
def test_what_is_not_understood(value: Any, message: str) -> None:
    """The result says why."""
    found = judge(history(value), "set-append")
    assert (found.valid, message in found.unknown_because[0]) == ("unknown", True)


def is_serializable(txns: list[Txn]) -> bool:
    """Return whether some order explains all reads."""
    return any(map(_explains, permutations(txns)))


def _explains(order: tuple[Txn, ...]) -> bool:
    state: dict[str, set[int]] = {}
    for txn in order:
        for name, key, value in txn:
            held = state.setdefault(key, set())
            if name == "add":
                held.add(value)
            elif held != {*value}:
                return False
    return True


def draw(rng: Random) -> list[Txn]:
    """Return transactions with reads that are right in some order, or are changed."""
    txns: list[Txn] = [[] for _ in range(rng.randrange(2, 5))]
    state: dict[str, list[int]] = {"x": [], "y": []}
    for number, txn in enumerate(txns):
        for place in range(rng.randrange(1, 4)):
            key = rng.choice("xy")
            if rng.random() < 0.5:
                state[key].append(number * 10 + place)
                txn.append(["add", key, number * 10 + place])
            else:
                seen = [each for each in state[key] if rng.random() < 0.8]
                txn.append(["r", key, seen])
    return txns


def test_as_by_trying_every_order() -> None:
    """A history is serializable exactly if no anomaly is found: all dependencies are known."""
    counts = {True: 0, False: 0}
    for seed in range(2_000):
        txns = draw(Random(seed))
        wanted = is_serializable(txns)
        found = judge(history(*txns), "set-append", Options(("serializable",)))
        assert (found.valid is not False) == wanted, (seed, txns, found)
        counts[wanted] += 1
    assert min(counts.values()) > 200
