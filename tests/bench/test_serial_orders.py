"""The judge that tries every order of transactions, on known anomalies and their near misses."""

from collections.abc import Sequence
from random import Random

import pytest

from bench.oracles import transactions
from bench.oracles.serial_orders import LEVELS, SESSIONS, Level, is_explained
from bench.oracles.transactions import (
    LIST,
    NEVER,
    PREDICATE,
    REGISTER,
    SET,
    Drawn,
    MicroOp,
    Outcome,
    Txn,
)


def drawn(*values: Sequence[MicroOp], outcomes: str = "", processes: str = "") -> Drawn:
    """Return transactions that run one after the other, of which each has its own process."""
    kinds: dict[str, Outcome] = {"f": "fail", "i": "info"}
    txns = []
    for number, value in enumerate(values):
        kind = kinds.get(outcomes[number : number + 1], "ok")
        process = int(processes[number]) if processes else number
        end = 2 * number + 1 if kind == "ok" else NEVER
        txns.append(Txn(process, kind, value, 2 * number, end))
    return Drawn([], txns, {}, is_complete=False)


WRITE_SKEW = drawn([["r", "x", None], ["w", "y", 1]], [["r", "y", None], ["w", "x", 2]])
LOST_UPDATE = drawn([["r", "x", None], ["w", "x", 1]], [["r", "x", None], ["w", "x", 2]])
LONG_FORK = drawn(
    [["w", "x", 1]],
    [["w", "y", 2]],
    [["r", "x", 1], ["r", "y", None]],
    [["r", "x", None], ["r", "y", 2]],
)
STALE = drawn([["w", "x", 1]], [["r", "x", None]])
STALE_OF_ONE = drawn([["w", "x", 1]], [["r", "x", None]], processes="00")
SET_CHANGES = drawn(
    [["r", "x", []], ["add", "x", 1]], [["r", "x", []], ["add", "x", 2]], [["r", "x", [2, 1]]]
)


@pytest.mark.parametrize(
    ("model", "history", "level", "wanted"),
    [
        (REGISTER, WRITE_SKEW, LEVELS["serializable"], False),
        (REGISTER, WRITE_SKEW, LEVELS["snapshot-isolation"], True),
        (REGISTER, WRITE_SKEW, LEVELS["strong-snapshot-isolation"], False),
        (REGISTER, LOST_UPDATE, LEVELS["snapshot-isolation"], False),
        (REGISTER, LOST_UPDATE, SESSIONS["prefix"], True),
        (REGISTER, LONG_FORK, LEVELS["snapshot-isolation"], False),
        (REGISTER, LONG_FORK, SESSIONS["prefix"], False),
        (REGISTER, STALE, LEVELS["serializable"], True),
        (REGISTER, STALE, LEVELS["strict-serializable"], False),
        (REGISTER, STALE, LEVELS["strong-session-serializable"], True),
        (REGISTER, STALE_OF_ONE, LEVELS["strong-session-serializable"], False),
        (REGISTER, STALE_OF_ONE, LEVELS["strong-session-snapshot-isolation"], False),
        (SET, SET_CHANGES, LEVELS["snapshot-isolation"], True),
        (SET, SET_CHANGES, LEVELS["serializable"], False),
    ],
)
def test_levels(model: str, history: Drawn, level: Level, wanted: bool) -> None:
    """Each level allows what its definition allows."""
    assert is_explained(model, history, level) is wanted


@pytest.mark.parametrize(("outcome", "wanted"), [("f", False), ("i", True), ("o", True)])
@pytest.mark.parametrize("read", [[], [1]])
def test_outcomes(outcome: str, wanted: bool, read: list[int]) -> None:
    """A transaction in doubt may be left out, a failed one must, and an ok one must not."""
    history = drawn([["append", "x", 1]], [["r", "x", read]], outcomes=outcome)
    wanted = (outcome != "o") if not read else wanted
    assert is_explained(LIST, history, LEVELS["strict-serializable"]) is wanted


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([[["insert", "x", 1]], [["rp", ["=", 1], {"x": 1}]], [["rp", "true", {}]]], True),
        ([[["insert", "x", 1]], [["rp", ["=", 2], {"x": 1}]]], False),
        ([[["insert", "x", 1]], [["rp", ["mod", 2, 1], {"x": 1}], ["delete", "x"]]], True),
        ([[["delete", "x"]]], False),
        ([[["insert", "x", 1], ["delete", "x"], ["r", "x", None], ["rp", "true", {}]]], True),
        ([[["insert", "x", 1]], [["delete", "x"]], [["insert", "x", 2]]], False),
    ],
)
def test_predicates(values: list[list[MicroOp]], wanted: bool) -> None:
    """A key is inserted and deleted once, and predicates match it in between."""
    assert is_explained(PREDICATE, drawn(*values), LEVELS["serializable"]) is wanted


@pytest.mark.parametrize("model", [LIST, SET, REGISTER, PREDICATE])
@pytest.mark.parametrize(("mode", "all_explained"), [("right", True), ("stale", False)])
def test_stores(
    monkeypatch: pytest.MonkeyPatch, model: str, mode: str, all_explained: bool
) -> None:
    """What a right store returns has an order at the strongest level, and what a store returns that
    executes transactions on old states does not always have one."""
    monkeypatch.setattr(transactions, "_lie", lambda *asked: None)
    monkeypatch.setattr(transactions, "MODES", (mode,))
    monkeypatch.setattr(transactions, "LEAKS", 0.0)
    histories = [transactions.draw(model, Random(seed)) for seed in range(80)]
    strict = LEVELS["strict-serializable"]
    explained = [is_explained(model, history, strict) for history in histories]
    assert all(explained) is all_explained
    assert histories[7] == transactions.draw(model, Random(7))


def test_what_is_complete() -> None:
    """A history is complete if the last transaction read every element of every ok transaction."""
    found = set()
    for seed in range(60):
        history = transactions.draw(LIST, Random(seed), final=True)
        seen = {key: value for _, key, value in history.txns[-1].micro_ops}
        added = {
            (micro_op[1], micro_op[2])
            for txn in history.txns
            if txn.outcome == "ok"
            for micro_op in txn.micro_ops
            if not transactions.is_read(micro_op)
        }
        assert history.is_complete is all(each in seen[key] for key, each in added)
        found.add(history.is_complete)
    assert found == {True, False}
