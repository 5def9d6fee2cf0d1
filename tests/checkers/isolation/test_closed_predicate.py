"""Predicate reads over a closed universe of keys, with near misses."""

from typing import Any

import pytest

from checkers.isolation import Options, judge
from checkers.isolation.closed_predicate import matches
from checkers.isolation.reading import NotUnderstood
from model.op import Op

INIT = {"x": 0, "y": 0}


def history(*values: Any, kinds: str = "") -> list[Op]:
    """Return completions: of ``init`` for a dictionary, otherwise of transactions."""
    types = {"f": "fail", "i": "info"}
    return [
        Op(
            index=n,
            time_ns=n,
            process=n,
            type=types.get(kinds[n : n + 1], "ok"),  # type: ignore[arg-type]
            f="init" if isinstance(value, dict) else "txn",
            value=value,
        )
        for n, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("values", "anomalies"),
    [
        # Each one's predicate misses what the other one inserted.
        (
            [[["insert", "x", 1], ["rp", "true", {}]], [["insert", "y", 2], ["rp", "true", {}]]],
            ["G2"],
        ),
        ([[["insert", "x", 1]], [["insert", "y", 2], ["rp", "true", {}]]], []),
        # A predicate sees one write of a transaction, but not the other one.
        ([INIT, [["w", "x", 1], ["w", "y", 1]], [["rp", ["=", 1], {"x": 1}]]], ["G-single"]),
        ([INIT, [["w", "x", 1], ["w", "y", 1]], [["rp", ["=", 1], {"x": 1, "y": 1}]]], []),
        ([INIT, [["w", "x", 1], ["w", "y", 1]], [["rp", ["=", 1], {}]]], []),
        # A key that is missing was deleted, if it existed from the start.
        (
            [INIT, [["delete", "x"], ["r", "y", 1]], [["w", "y", 1], ["rp", "true", {"y": 1}]]],
            ["G1c"],
        ),
        ([INIT, [["delete", "x"]], [["w", "y", 1], ["rp", "true", {"y": 1}]]], []),
        # All versions match, but the key is missing.
        ([INIT, [["rp", ["mod", 2, 0], {"x": 0}]]], ["predicate-read-miss"]),
        ([INIT, [["w", "y", 3]], [["rp", ["mod", 2, 0], {"x": 0}]]], []),
        # Reads of single keys are not by a predicate.
        ([INIT, [["w", "x", 1], ["w", "y", 1]], [["r", "x", 1], ["r", "y", 0]]], ["G-single-item"]),
        ([INIT, [["w", "x", 1], ["w", "y", 1]], [["r", "x", 1], ["r", "y", 1]]], []),
        # A read of nothing shows that the key was not inserted yet, or was deleted.
        (
            [[["insert", "x", 1], ["insert", "y", 1]], [["r", "x", 1], ["r", "y", None]]],
            ["G-single-item"],
        ),
        (
            [INIT, [["delete", "x"], ["w", "y", 1]], [["r", "x", None], ["r", "y", 0]]],
            ["G-single-item"],
        ),
        # A result that depends on an own write is no evidence about other transactions.
        ([[["insert", "x", 1]], [["w", "x", 2], ["rp", ["mod", 2, 1], {}], ["w", "x", 3]]], []),
        (
            [
                [["insert", "x", 1]],
                [["r", "x", 1], ["w", "x", 2], ["rp", "true", {"x": 2}], ["w", "x", 3]],
            ],
            [],
        ),
        # A transaction sees its own writes of single keys, up to the last one before the read.
        ([INIT, [["w", "x", 1], ["r", "x", 0]]], ["internal"]),
        ([INIT, [["w", "x", 1], ["r", "x", 1], ["w", "x", 2], ["r", "x", 2]]], []),
        ([INIT, [["delete", "x"], ["r", "x", None]]], []),
        # A result that does not match its predicate is wrong, also an own write.
        ([INIT, [["w", "x", 2]], [["rp", ["=", 1], {"x": 2}]]], ["internal"]),
        ([INIT, [["w", "x", 2]], [["rp", ["=", 2], {"x": 2}]]], []),
        ([INIT, [["w", "x", 2], ["rp", ["mod", 2, 1], {"x": 2}]]], ["internal"]),
        ([INIT, [["w", "x", 2], ["rp", ["mod", 2, 0], {"x": 2, "y": 0}]]], []),
        ([INIT, [["w", "x", 2]], [["rp", "true", {"x": 2, "y": 0}]]], []),
        # Values that are no versions: intermediate ones, and own ones from the future.
        ([[["insert", "x", 1], ["w", "x", 2]], [["r", "x", 1]]], ["G1b"]),
        ([[["insert", "x", 1], ["w", "x", 2]], [["rp", "true", {"x": 1}]]], ["G1b"]),
        ([[["insert", "x", 1], ["w", "x", 2]], [["rp", "true", {"x": 2}]]], []),
        ([INIT, [["r", "x", 1], ["w", "x", 1]]], ["future-read"]),
        ([INIT, [["r", "x", 1], ["w", "x", 1], ["w", "x", 2]]], ["future-read"]),
    ],
)
def test_anomalies(values: list[Any], anomalies: list[str]) -> None:
    """What a result contains and what it lacks are both evidence."""
    found = judge(history(*values), "closed-predicate", Options(("serializable",)))
    assert sorted({*found.anomaly_types} - {"empty-transaction-graph"}) == anomalies


def test_doubtful_and_failed_writes() -> None:
    """A write in doubt may explain why a key is missing; a failed one does not."""
    values = (INIT, [["delete", "x"]], [["rp", "true", {"y": 0}]])
    for kinds, anomalies in (("oio", []), ("ofo", ["predicate-read-miss"])):
        found = judge(history(*values, kinds=kinds), "closed-predicate", Options(("serializable",)))
        assert [*found.anomaly_types] == anomalies


def test_aborted_reads() -> None:
    """A value of a failed transaction was read, unless another transaction wrote it as well."""
    serializable = Options(("serializable",))
    values: list[Any] = [INIT, [["w", "x", 1]], [["r", "x", 1]]]
    events = history(*values, kinds="ofo")
    found = judge(events, "closed-predicate", serializable)
    assert found.anomalies["G1a"][0].events == (2, 1)
    assert found.anomalies["G1a"][0].why == (
        "T1 read x as 1, but T2, which wrote that, failed: T1 read an aborted write."
    )
    again = judge(history(*values, [["w", "x", 1]], kinds="ofoo"), "closed-predicate", serializable)
    assert again.valid is True


def test_results_that_do_not_match() -> None:
    """The argument names the row and the predicate. What a failed transaction returned is ignored,
    and weaker models allow it."""
    values = (INIT, [["w", "x", 2]], [["rp", ["=", 1], {"x": 2}]])
    found = judge(history(*values), "closed-predicate", Options(("serializable",)))
    assert found.anomalies["internal"][0].why == (
        "A predicate read of T1 returns x as 2, which does not match the predicate [= 1]."
    )
    failed = judge(history(*values, kinds="oof"), "closed-predicate", Options(("serializable",)))
    assert "internal" not in failed.anomaly_types
    allowed = judge(history(*values), "closed-predicate", Options(("read-committed",)))
    assert (allowed.valid, dict(allowed.allowed)) == (True, {"internal": 1})


def test_argument() -> None:
    """The edges are by predicates, and a deletion is called so."""
    events = history(INIT, [["delete", "x"], ["w", "y", 1]], [["rp", "true", {"y": 0}]])
    (found,) = judge(events, "closed-predicate").anomalies["G-single"]
    assert [step.kind for step in found.steps] == ["wrp", "rwp"]
    assert found.why == (
        "T1 precedes T2, because the result of a predicate in T2 depends on T1's deletion of x."
        " However, T2 precedes T1, because the result of a predicate in T2 would be another one"
        " after T1's write of 1 to y: a contradiction."
    )


def test_what_is_not_understood() -> None:
    """Unknown predicates, micro-operations and repeated values are refused."""
    for value, why in (
        ([["rp", ["<", 1], {}], ["w", "x", 1]], "the predicate ['<', 1] is not known"),
        ([["rp", ["mod", 0, 0], {"x": 1}]], "the predicate ['mod', 0, 0] is not known"),
        ([["append", "x", 1]], "event 0 has the unexpected micro-operation ['append', 'x', 1]"),
    ):
        found = judge(history(value), "closed-predicate")
        assert (found.valid, found.unknown_because) == ("unknown", (why,))
    twice = judge(history([["w", "x", 1]], [["w", "x", 1]]), "closed-predicate")
    assert twice.unknown_because == ("1 is written to x more than once",)


def test_predicates() -> None:
    """The three predicates match as their names say."""
    assert matches("true", None) is True
    assert [matches(["=", 3], value) for value in (3, 4)] == [True, False]
    assert [matches(["mod", 2, 1], value) for value in (3, 4)] == [True, False]
    with pytest.raises(NotUnderstood, match="is not known"):
        matches(["like", "a%"], "a")
