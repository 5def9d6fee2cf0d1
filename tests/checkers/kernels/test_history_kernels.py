from collections.abc import Sequence
from typing import Any

import pytest

from checkers.kernels import cycles, history_kernels, key
from checkers.kernels.found import Found
from checkers.kernels.history import History

TORN = "t:+x=a@0,+y=b@0 s:y=c@1 p:x=a@0 p:y=c@1"


def of_keys(tables: Any) -> list[Found]:
    return [f for log in tables.logs() for f in key.judge(log).found]


def explode(history: History, found: Sequence[Found] = ()) -> list[Found]:
    raise ZeroDivisionError(f"in {len(history.keys)} keys")


def test_what_was_found_in_keys_is_told_anew(histories: Any) -> None:
    """Findings of partitions are renamed or folded by kernels that see all partitions, each with a
    receipt."""
    tables = histories.tables(TORN)
    told = history_kernels.judge(tables, of_keys(tables))
    assert [f.anomaly for f in told.found] == ["torn-transaction"]
    assert [r.checker for r in told.checker_runs] == [
        *history_kernels.KERNELS,
        *history_kernels.REWRITES,
    ]


def test_who_crashes_leaves_what_was_found(histories: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that crashes keeps the findings so far and does not affect the others."""
    monkeypatch.setitem(history_kernels.REWRITES, "torn", explode)
    monkeypatch.setitem(history_kernels.KERNELS, "cycles", explode)
    tables = histories.tables(TORN)
    told = history_kernels.judge(tables, of_keys(tables))
    assert [f.anomaly for f in told.found] == ["lost-write"]
    crashes = {r.checker: r.crash for r in told.checker_runs if r.crash}
    assert crashes == dict.fromkeys(("torn", "cycles"), "ZeroDivisionError: in 2 keys")


def test_a_budget_that_is_spent_is_told(histories: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spent budget is reported as such, and not as a crash."""
    monkeypatch.setattr(cycles, "EDGES_MAX", 0)
    told = history_kernels.judge(histories.tables("t0:+x=a@0,+y=b@1 t1:+x=c@1,+y=d@0"), [])
    (crash,) = [r.crash for r in told.checker_runs if r.crash]
    assert crash == "the checker stopped: the history has 2 dependencies, more than 0"
    assert told.found == []


def test_kernels_may_be_called_in_any_way(histories: Any) -> None:
    """Findings and checker runs are in the order of the kernels, and not in that of their calls."""

    def backwards(function: Any, names: Any) -> Any:
        return reversed([function(name) for name in reversed(list(names))])

    tables = histories.tables(TORN)
    one = history_kernels.judge(tables, of_keys(tables))
    other = history_kernels.judge(tables, of_keys(tables), mapped=backwards)
    assert other.found == one.found
    assert [run.checker for run in other.checker_runs] == [run.checker for run in one.checker_runs]
