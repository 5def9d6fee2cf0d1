"""The plan for transactions on lists finds what a judgement in one process finds."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.distributed import list_plan, list_windows
from checkers.distributed.here import Here
from checkers.isolation import Options, columnar, large, reading
from model.history import BadHistory
from tests.checkers.isolation.histories import history, one_by_one
from tests.checkers.isolation.test_large import drawn


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small histories have several chunks, windows and buckets."""
    monkeypatch.setattr(columnar, "ROWS", 4)
    monkeypatch.setattr(list_plan, "CHUNK_ROWS", 5)
    monkeypatch.setattr(list_plan, "BUCKET_ROWS", 7)


def test_random_histories(tmp_path: Path) -> None:
    """All results are the same, with the same texts."""
    path = tmp_path / "history.parquet"
    seen = set()
    for number in range(120):
        events, options = drawn(number)
        columnar.save(path, reading.lists(events))
        found = list_plan.judge(path, Here(), options)
        assert found == large.judge(*columnar.read(path), options), f"history {number}"
        seen.add(found.valid)
    assert seen == {True, False, "unknown"}


def _over_windows(path: Path) -> None:
    """Write a history in which the first transaction reads what the last one appends, while those
    between are complete."""
    between = [f"{n % 5 + 1} y{n}+1 y{n}=1" for n in range(20)]
    lines = ["0 z+9 x=1", *between, "6 x+1 z=9", "7 z=9"]
    columnar.save(path, reading.lists(history(*lines)))


def test_a_cycle_over_all_windows(tmp_path: Path) -> None:
    """It is found where windows are joined."""
    path = tmp_path / "history.parquet"
    _over_windows(path)
    found = list_plan.judge(path, Here(), Options(("serializable",)))
    assert (found.valid, dict(found.counts)) == (False, {"G1c": 1})
    assert found == large.judge(*columnar.read(path), Options(("serializable",)))


def test_too_many_open_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the dependencies over borders are too many, the result is unknown."""
    path = tmp_path / "history.parquet"
    _over_windows(path)
    monkeypatch.setattr(list_windows, "LEFT_MAX", 0)
    found = list_plan.judge(path, Here(), Options(("serializable",)))
    assert (found.valid, dict(found.counts)) == ("unknown", {})
    assert "open at the same time" in found.unknown_because[0]


def test_too_many_transactions_on_cycles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anomalies are searched among some of them, and the result says so."""
    lines = [each for n in range(9) for each in (f"x{n}= y{n}+1", f"y{n}= x{n}+1")]
    lines += [f"x{n}=1 y{n}=1" for n in range(9)]
    path = tmp_path / "history.parquet"
    columnar.save(path, reading.lists(history(*lines)))
    monkeypatch.setattr(list_windows, "MEMBERS_MAX", 4)
    found = list_plan.judge(path, Here(), Options(("serializable",)))
    assert any("are on cycles" in why for why in found.unknown_because)
    assert found.counts.get("G2-item", 0) < 9
    assert found.valid is (False if found.counts else "unknown")


def test_refusals(tmp_path: Path) -> None:
    """A bad file is refused, and a history that cannot be understood is unknown."""
    path = tmp_path / "history.parquet"
    columnar.save(path, reading.lists(one_by_one("x+1", "y+1", "x+1")))
    found = list_plan.judge(path, Here(), Options())
    assert found.unknown_because == ("1 is appended to x more than once",)
    columnar.save(path, reading.lists(one_by_one("x+1", "x+2", "x=1,2")))
    table = pq.read_table(path)
    for column, values, why in (
        ("elements", pa.nulls(3, pa.list_(pa.int64())), "a list is missing"),
        ("outcome", pa.array([0, 7, 0], pa.int8()), "the column outcome"),
    ):
        at = table.schema.get_field_index(column)
        pq.write_table(table.set_column(at, pa.field(column, values.type), values), path)
        with pytest.raises(BadHistory, match=f"{path}: {why}"):
            list_plan.judge(path, Here(), Options())


def test_a_history_without_dependencies(tmp_path: Path) -> None:
    """It shows nothing, unless transactions follow each other in an order that counts."""
    path = tmp_path / "history.parquet"
    columnar.save(path, reading.lists(history(*(f"{n} x{n}+1" for n in range(30)))))
    models = ("serializable", "strong-session-serializable", "strict-serializable")
    found = [list_plan.judge(path, Here(), Options((model,))).anomaly_types for model in models]
    assert found == [("empty-transaction-graph",)] * 3
    columnar.save(path, reading.lists(one_by_one(*(f"{n} x{n}+1" for n in range(30)))))
    found = [list_plan.judge(path, Here(), Options((model,))).anomaly_types for model in models]
    assert found == [("empty-transaction-graph",), ("empty-transaction-graph",), ()]


def test_windows_with_nothing_are_searched() -> None:
    """A window that has no transaction has no member."""
    members, why = list_windows.joined([], frozenset())
    assert (members.tolist(), why) == ([], "")
    found = list_windows.search(frozenset({"realtime"}), 0, [])
    assert (found.members.tolist(), found.transactions, found.has_edges) == ([], 0, False)
    assert len(found.left.source) == 0
