"""The tables of histories have exactly their rows, and a run is replaced as a whole."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from harness.app.lake import query
from harness.app.refused import Refused
from harness.app.tables import add, rows, schema
from model import history
from model.op import NEMESIS, Op
from tests.harness.app.lake import made_runs

MS = 1_000_000


def written(folder: Path, events: Sequence[tuple[int, str, str, Any]], name: str = "a") -> Path:
    """Write a history with an event each millisecond."""
    path = folder / f"{name}.jsonl"
    ops = [
        Op(index=at, time_ns=at * MS, process=process, type=kind, f=f, value=value)  # type: ignore[arg-type]
        for at, (process, kind, f, value) in enumerate(events)
    ]
    history.write(path, ops)
    return path


def read(root: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of a table, without those of other programs' inference of types."""
    table = schema.TABLES[name]
    whole = table.whole
    folders = ds.partitioning(
        pa.schema([whole.field(column) for column in table.in_folders]), flavor="hive"
    )
    place = root / "v1" / name
    found = ds.dataset(place, schema=whole, partitioning=folders).to_table().to_pylist()
    return sorted(found, key=lambda row: (row["run"], row.get("op", row.get("id"))))


def generated(sends: int) -> list[tuple[int, str, str, Any]]:
    """Return sends to two partitions, each of another process, a third of each outcome."""
    events: list[tuple[int, str, str, Any]] = []
    for value in range(sends):
        process, key = value, f"x-{value % 2}"
        events.append((process, "invoke", "send", [["send", key, value]]))
        kind = ("ok", "fail", "info")[value // 3 % 3]
        done = [value // 2, value] if kind == "ok" else value
        events.append((process, kind, "send", [["send", key, done]]))
    return events


def test_the_records_are_those_of_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each send of the events is a row, in its partition, and chunks lose none."""
    monkeypatch.setattr(rows, "CHUNK", 7)
    events = generated(60)
    add.add([written(tmp_path, events)], tmp_path / "t")
    expected = [
        {
            "run": "a", "partition": micro[1], "op": at, "process": process,
            "value": micro[2][1] if kind == "ok" else micro[2],
            "offset": micro[2][0] if kind == "ok" else None, "outcome": kind,
            "in_transaction": False, "proven": False, "start_ns": (at - 1) * MS, "end_ns": at * MS,
        }
        for at, (process, kind, _, (micro,)) in enumerate(events) if kind != "invoke"
    ]  # fmt: skip
    assert read(tmp_path / "t", "sends") == expected
    assert [(row["invoked"], row["op"], row["type"]) for row in read(tmp_path / "t", "operations")
            ] == [(row["op"] - 1, row["op"], row["outcome"]) for row in expected]  # fmt: skip
    file = pq.ParquetFile(tmp_path / "t/v1/sends/run=a/partition=x-1/part-0.parquet")
    assert file.metadata.metadata[schema.MARK] == b"1"
    assert file.metadata.num_row_groups == 5


def test_transactions_groups_and_faults(tmp_path: Path) -> None:
    """Transactions have their id and the number of their records; commits and faults are rows."""
    kill = {"id": 3, "targets": ["broker-1"], "phase": "apply"}
    proved = {"proved": True, "how": "it is gone"}
    path = written(tmp_path, [
        (1, "invoke", "init", [["init", "tx-1"]]),
        (1, "ok", "init", [["init", "tx-1"]]),
        (NEMESIS, "invoke", "kill", kill),
        (NEMESIS, "info", "kill", {**kill, "effect": proved}),
        (1, "invoke", "txn", [["send", "x-0", 1], ["send", "x-1", 2]]),
        (1, "ok", "txn", [["send", "x-0", [0, 1]], ["send", "x-1", [5, 2]]]),
        (2, "invoke", "commit", [["commit", "g", {"x-0": 4}]]),
        (2, "ok", "commit", [["commit", "g", {"x-0": 4}]]),
        (2, "invoke", "poll", [["poll"]]),
    ])  # fmt: skip
    add.add([path], tmp_path / "t")
    assert read(tmp_path / "t", "transactions") == [
        {"run": "a", "op": 5, "process": 1, "transactional_id": "tx-1", "outcome": "ok",
         "sends": 2, "polls": 0, "start_ns": 4 * MS, "end_ns": 5 * MS}
    ]  # fmt: skip
    assert read(tmp_path / "t", "group_events") == [
        {"run": "a", "op": 7, "process": 2, "group": "g", "kind": "commit", "partition": "x-0",
         "generation": None, "offset": 4, "metadata": None, "outcome": "ok",
         "in_transaction": False, "start_ns": 6 * MS, "end_ns": 7 * MS}
    ]  # fmt: skip
    assert read(tmp_path / "t", "faults") == [
        {"run": "a", "id": 3, "fault": "kill", "targets": '["broker-1"]', "from_ns": 2 * MS,
         "to_ns": None, "proved": True, "how": "it is gone"}
    ]  # fmt: skip
    last = read(tmp_path / "t", "operations")[-1]
    assert (last["op"], last["invoked"], last["type"]) == (8, 8, "info")


def content(root: Path) -> dict[str, bytes]:
    """Return the files of tables."""
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_adding_twice_changes_nothing(tmp_path: Path) -> None:
    """A run is replaced by itself, other runs stay, and no temporary file is left."""
    first, root = written(tmp_path, generated(8)), tmp_path / "t"
    add.add([first], root)
    before = content(root)
    add.add([first], root)
    assert content(root) == before
    add.add([written(tmp_path, generated(4), "b")], root)
    assert {row["run"] for row in read(root, "sends")} == {"a", "b"}
    assert {name: content(root)[name] for name in before} == before
    written(tmp_path, generated(1))  # the run has changed, and lacks a partition
    add.add([first], root)
    assert [row["partition"] for row in read(root, "sends") if row["run"] == "a"] == ["x-0"]
    assert sorted(path.name for path in root.iterdir()) == ["tables.lock", "v1"]


def test_a_run_that_fails_leaves_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is replaced only when all of its tables are complete."""
    path, root = written(tmp_path, generated(8)), tmp_path / "t"
    add.add([path], root)
    before = content(root)

    def full(*_: object) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(rows, "_faults", full)
    with pytest.raises(OSError, match="No space"):
        add.add([path], root)
    assert content(root) == before


def test_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A history with more events than fit is refused in one sentence."""
    monkeypatch.setattr(add, "MOST_EVENTS", 3)
    with pytest.raises(Refused, match="has 16 events; tables are written of histories with up"):
        add.add([written(tmp_path, generated(8))], tmp_path / "t")


def test_two_histories_of_one_name(tmp_path: Path) -> None:
    """One would replace the other."""
    (tmp_path / "other").mkdir()
    both = [written(folder, generated(2)) for folder in (tmp_path, tmp_path / "other")]
    with pytest.raises(Refused, match="would both be the run a"):
        add.add(both, tmp_path / "t")


@pytest.mark.spark
def test_tables_are_asked(tmp_path: Path, spark: Any) -> None:
    """Spark has the views of all runs, with names as text, also such with special characters."""
    run = made_runs.make(tmp_path / "007", judged=False)
    odd = written(tmp_path, [(1, "invoke", "send", [["send", "1=%ü", 1]])], "b=c")
    add.add([run, odd], tmp_path / "t")
    statement = (
        "select run, partition, s.value, p.offset from sends s left join polls p"
        " using (run, partition, value) order by run, value"
    )
    answer = query.ask(None, statement, spark, tmp_path / "t")
    assert [tuple(row.values()) for row in answer.rows] == [
        ("007", "x-0", 1, 0),
        ("007", "x-0", 2, 1),
        ("b=c", "1=%ü", 1, None),
    ]
    for table in schema.TABLES.values():
        assert spark.table(table.view).columns == list(table.columns)
