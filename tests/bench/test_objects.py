"""The benchmark of large histories names what is missed, and notices a verdict that is wrong."""

from pathlib import Path

import numpy as np
import pytest

from bench.objects import __main__ as bench
from bench.objects import histories, judge
from bench.objects.judge import Judged
from checkers.object_verdict import ObjectVerdict

VALID = ObjectVerdict(valid=True, model="register", operations=100)


def _row(kind: str, count: int, seconds: float) -> bench.Row:
    return bench.Row(kind, count, 1, 1.0, Judged([seconds] * 3, VALID, 1.0, 1.0))


def test_bars_are_about_the_largest_histories() -> None:
    """The rate of registers and queues and the growth of every kind have bars."""
    rows = [
        _row("register", 10**5, 0.01),
        _row("register", 10**7, 1.5),
        _row("log", 10**5, 0.02),
        _row("log", 10**7, 2.4),
    ]
    found = {bar.what: (round(bar.figure, 2), bar.is_met) for bar in bench.bars(rows)}
    assert found == {
        "register, one key": (6666666.67, True),
        "register, one key: time per operation, large to small": (1.5, False),
        "log, one key: time per operation, large to small": (1.2, True),
    }


@pytest.mark.prove
def test_a_wrong_result_that_is_not_found_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted results are found by the checker, and missed by one that finds nothing."""
    monkeypatch.setattr(bench, "run", judge.judge)
    found = list(bench.planted(tmp_path, histories.KINDS, 600))
    assert len(found) == 2 * len(histories.KINDS)
    assert [what for what, is_found, _ in found if not is_found] == []
    monkeypatch.setattr(bench, "run", lambda *_: Judged([1.0], VALID, 1.0, 1.0))
    assert not any(is_found for _, is_found, _ in bench.planted(tmp_path, ["log"], 600))


def test_the_search_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The history that needs a search enters a configuration for each set of its additions."""
    monkeypatch.setattr(bench, "run", judge.judge)
    found = bench.searched(tmp_path, 9)
    assert found.verdict.valid is False
    assert found.steps >= 1 << 9


@pytest.mark.parametrize("kind", histories.KINDS)
def test_histories_are_what_they_say(kind: str) -> None:
    """A history has all kinds of operations, each of which overlaps others, and its calls rise."""
    history = histories.generate(kind, 3000, 5, seed=1)
    assert len(np.unique(history.f)) == (3 if kind == "cas-register" else 2)
    assert (np.diff(history.call) > 0).all()
    assert (history.end > history.call).all()
    assert (history.end[:-1] > history.call[1:]).mean() > 0.5
    assert 0 < history.is_pending.sum() < 30
