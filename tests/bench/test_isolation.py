"""The benchmark of transactions on lists names what is missed, and notices a wrong verdict."""

from pathlib import Path

import pytest

from bench.isolation import __main__ as bench
from bench.isolation import generate, judge
from bench.isolation.judge import Judged
from bench.spark.memory import Peaks
from checkers.isolation import Options, columnar, large
from checkers.object_verdict import ObjectVerdict

VALID = ObjectVerdict(valid=True, model="list-append", operations=100)


def _row(executor: str, count: int, seconds: float, *, planted: bool = False) -> bench.Row:
    return bench.Row(executor, count, planted, Judged([seconds] * 3, VALID, 500.0), Peaks(1.0))


def test_bars() -> None:
    """Rate and memory have bars for a million, the time on Spark for ten million."""
    rows = [
        _row("inline", 10**5, 0.1),
        _row("inline", 10**6, 4.0),
        _row("inline", 10**7, 12.0),
        _row("spark", 10**7, 50.0),
    ]
    assert {bar.what: (round(bar.figure, 2), bar.is_met) for bar in bench.bars(rows)} == {
        "inline, 1,000,000 transactions": (250_000.0, False),
        "inline, 1,000,000 transactions: memory": (500.0, True),
        "spark, 10,000,000 transactions: time": (50.0, True),
        "inline: time per transaction, large to small": (1.2, True),
    }
    assert not _row("inline", 10**6, 1.0, planted=True).is_right


@pytest.mark.parametrize("blocks", [1, 3])
def test_planted_anomalies_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int
) -> None:
    """A history is valid without them, and with them shows exactly these."""
    monkeypatch.setattr(generate, "BLOCK", 3 * generate.USERS // blocks)
    monkeypatch.setattr(
        bench, "run", lambda executor, path, rounds: (judge.judge(executor, path, 1), Peaks(0.0))
    )
    found = list(bench.measured(tmp_path, [("inline", [3000])], 1))
    assert [(row.planted, row.is_right) for row in found] == [(False, True), (True, True)]


def test_histories_have_all_outcomes_and_sizes(tmp_path: Path) -> None:
    """Transactions overlap, and some fail or are in doubt; the same seed gives the same file."""
    path, again = tmp_path / "a.parquet", tmp_path / "b.parquet"
    generate.write(path, 2000, seed=3)
    generate.write(again, 2000, seed=3)
    assert path.read_bytes() == again.read_bytes()
    rows, named = columnar.read(path)
    assert {*rows.txns.outcome.tolist()} == {0, 1, 2}
    assert (rows.txns.invoked[1:] < rows.txns.completed[:-1]).mean() > 0.5
    assert large.judge(rows, named, Options()).valid is True
