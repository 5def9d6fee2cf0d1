"""Histories of transactions are judged by the names of models, and reported as objects are."""

from pathlib import Path

import msgspec
import pytest

from checkers import objects, transaction_models
from checkers.distributed.here import Here
from checkers.isolation import columnar, reading
from checkers.isolation.columnar import ListFile
from model.history import BadHistory
from tests.checkers.isolation.histories import history, one_by_one

WRITE_SKEW = history("0 invoke x= y+1", "1 invoke y= x+1", "0 x= y+1", "1 y= x+1", "2 x=1 y=1")
"""Both read what the other one appends to; they are concurrent."""


def test_what_is_illegal_depends_on_the_consistency() -> None:
    """An anomaly that the model allows is counted, and still rules out stronger models."""
    found = objects.check(WRITE_SKEW, "list-append")
    assert (found.valid, found.operations, found.anomalies) == (False, 3, {"G2-item": 1})
    assert (found.ruled_out, "serializable" in found.also_ruled_out) == (("repeatable-read",), True)
    [why] = found.why
    assert why.startswith("G2-item: Let T1 = r x nil, append y 1 (event 2), T2 = ")
    assert "did not see T2's append of 1 to x. However, T2 precedes T1" in why
    allowed = objects.check(WRITE_SKEW, "list-append", consistency="snapshot-isolation")
    assert (allowed.valid, allowed.anomalies, allowed.allowed) == (True, {}, {"G2-item": 1})
    assert allowed.ruled_out == ("repeatable-read",)
    both = ("snapshot-isolation", "repeatable-read")
    assert objects.check(WRITE_SKEW, "list-append", consistency=both).valid is False
    asked = objects.judged(
        WRITE_SKEW, "list-append", consistency="snapshot-isolation", anomalies=["G2-item"]
    )
    assert (asked.verdict.valid, asked.consistency) == (False, "snapshot-isolation, G2-item")


def test_lists_in_a_file(tmp_path: Path) -> None:
    """A file of lists has the verdict of its events, wherever it is judged; an empty list is never
    nil in it."""
    path = tmp_path / "history.parquet"
    columnar.save(path, reading.lists(WRITE_SKEW))
    whole = objects.check(WRITE_SKEW, "list-append")
    why = tuple(line.replace(" nil", " []") for line in whole.why)
    whole = msgspec.structs.replace(whole, why=why)
    for runner in (None, Here()):
        assert objects.check(ListFile(path), "list-append", runner=runner) == whole
    with pytest.raises(BadHistory, match="these are transactions on lists, not of register"):
        objects.check(ListFile(path), "register")
    path.write_bytes(b"PAR1")
    with pytest.raises(BadHistory, match=f"{path} is not a history"):
        objects.check(ListFile(path), "list-append")


def test_assumptions_about_registers() -> None:
    """Without an order of versions a stale read cannot be seen; linearizable keys have one."""
    said = one_by_one("x:1", "x:2", "x=1", registers=True)
    assert objects.check(said, "rw-register").valid is True
    found = objects.check(said, "rw-register", assume=["linearizable-keys"])
    assert (found.valid, list(found.anomalies)) == (False, ["cyclic-versions"])


def test_sessions_have_levels() -> None:
    """Sessions need no order of versions: their levels are axioms, or a search."""
    said = history("0 x:1", "0 y:1", "1 y=1", "1 x=", registers=True)
    assert objects.check(said, "sessions", consistency="read-committed").valid is True
    found = objects.check(said, "sessions", consistency="causal")
    assert (found.valid, found.anomalies) == (False, {"not-causal": 1})
    assert objects.check(said, "sessions").anomalies == {"not-serializable": 1}
    hard = history(*(f"{n} x:{n + 1}" for n in range(6)), "7 x=3", "8 x=5", registers=True)
    starved = transaction_models.Asked("sessions", steps=1)
    verdict, _ = transaction_models.judge(hard, starved)
    assert (verdict.valid, verdict.unknown_because) == (
        "unknown",
        "The search for an order of snapshots and commits ended at its budget.",
    )


def test_a_history_that_shows_nothing_is_unknown() -> None:
    """Nor is one of another data type understood."""
    found = objects.check(history("x+1"), "list-append")
    assert found.valid == "unknown"
    assert found.anomalies == {"empty-transaction-graph": 1}
    assert "no transaction depends on another one" in (found.unknown_because or "")
    found = objects.check(history("x:1", registers=True), "list-append")
    assert found.unknown_because == "event 0 has the unexpected micro-operation ['w', 'x', 1]"


def test_names_that_do_not_exist_are_refused() -> None:
    """Each error names what can be asked for."""
    for wrong, message in (
        ({"model": "list-append", "consistency": "x"}, "'x' is not a consistency model"),
        ({"model": "list-append", "anomalies": ["x"]}, "'x' is not an anomaly"),
        ({"model": "rw-register", "assume": ["x"]}, "the assumptions are linearizable-keys, "),
        ({"model": "list-append", "assume": ["wfr-keys"]}, "needs no assumptions"),
        ({"model": "sessions", "consistency": "x"}, "the consistency of sessions is one of read-c"),
        ({"model": "sessions", "anomalies": ["G0"]}, "takes neither anomalies nor assumptions"),
        ({"model": "list-append", "keyed": True}, "has its keys in its micro-operations"),
        ({"model": "register", "anomalies": ["G0"]}, "only models of transactions take anomalies"),
    ):
        with pytest.raises(ValueError, match=message):
            objects.check([], **wrong)
