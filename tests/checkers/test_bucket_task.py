"""What an executor runs, without Spark: each partition is judged by its own rows."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from checkers import bucket_task, connect, history_file, inline, spark, table_builder
from checkers.tables import Tables
from model import history
from model.op import Op

KEYS = 70


class Written:
    """A history that is written operation by operation."""

    def __init__(self) -> None:
        self.events: list[Op] = []

    def did(self, process: int, f: str, asked: Any, answered: Any) -> None:
        """Add an operation that succeeds."""
        at = len(self.events)
        self.events += [
            Op(index=at, time_ns=at, process=process, type="invoke", f=f, value=asked),
            Op(index=at + 1, time_ns=at + 1, process=process, type="ok", f=f, value=answered),
        ]

    def assigned(self, process: int, keys: list[str]) -> None:
        self.did(process, "assign", keys, keys)

    def polled(self, process: int, records: dict[str, list[list[int]]]) -> None:
        self.did(process, "poll", [["poll"]], [["poll", records]])

    def caught_up(self, process: int, key: str, end: int) -> None:
        self.did(process, "catch-up", [["catch-up", key]], [["catch-up", key, end, end]])


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """Process 5 skips records of several partitions, and assigns empty ones afterwards.

    An assignment of other partitions resets a position, so that nothing after it is skipped. Empty
    partitions have such resets between the two polls of another one, and are not judged.
    """
    made, values = Written(), itertools.count(1)
    keys = [f"t-{number}" for number in range(KEYS)]
    empty, used = keys[: KEYS // 2], keys[KEYS // 2 :]
    logs: dict[str, list[list[int]]] = {key: [] for key in keys}
    for key in empty:
        made.assigned(8, [key])
        made.caught_up(8, key, 0)
    for key in used:
        for offset in range(6):
            value = next(values)
            logs[key].append([offset, value])
            made.did(0, "send", [["send", key, value]], [["send", key, [offset, value]]])
    for number, key in enumerate(used, start=len(empty)):
        made.assigned(5, [key])
        made.polled(5, {key: logs[key][:2]})
        made.assigned(5, [key])
        made.polled(5, {key: logs[key][4:]})
        # The first two numbers have the same share as this one, the third has the same bucket.
        for other in {number - 32, number - 48, number - 64} & set(range(len(empty))):
            made.assigned(5, [empty[other]])
            made.caught_up(5, empty[other], 0)
            break
    made.assigned(9, keys)
    made.polled(9, {key: log for key, log in logs.items() if log})
    for key in used:
        made.caught_up(9, key, len(logs[key]))
    path = tmp_path / "history.jsonl"
    history.write(path, made.events)
    built = table_builder.of_history(history_file.read(path, lambda _: None), path)
    assert len(built.active_keys) == KEYS // 2
    return built


def buckets(_: Any, events: Any, polls: Any, wholes: Any) -> pa.Table:
    """Judge bucket by bucket, as Spark does."""
    rows = [pq.read_table(file.path) for file in (events, polls)]
    return pa.concat_tables(
        bucket_task.by_bucket(wholes)(
            (bucket,), *(table.filter(pc.equal(table["bucket"], bucket)) for table in rows)
        )
        for bucket in pc.unique(rows[0]["bucket"]).to_pylist()
    )


@pytest.fixture
def shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Judge share by share, as a server of Spark Connect does."""

    def judged(_: Any, events: Any, polls: Any, wholes: Any) -> pa.Table:
        for name, file in (("rows", events), ("polls", polls)):
            connect.write_shares(file.path, tmp_path / f"job-{name}.arrow", connect.SHARES)
        files = SimpleNamespace(get=lambda name: str(tmp_path / name))
        monkeypatch.setattr("pyspark.SparkFiles", files)
        numbers = [pa.RecordBatch.from_pydict({"id": [n]}) for n in range(connect.SHARES)]
        task = bucket_task.by_share("job", connect.SHARES, wholes)
        return pa.Table.from_batches(task(iter(numbers)), bucket_task.REPORT)

    return judged


@pytest.mark.parametrize("is_remote", [False, True])
def test_rows_of_partitions_that_are_not_judged_change_nothing(
    tables: Tables, is_remote: bool, shares: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each partition has the findings that it has when it is judged in this process."""
    monkeypatch.setattr(spark, "is_remote", lambda _: is_remote)
    monkeypatch.setattr(spark, "_judged", buckets)
    monkeypatch.setattr(spark, "_judged_remotely", shares)
    here = {key: report.found for key, report in inline.judge(tables, lambda _: None).items()}
    assert sum(found[0].anomaly == "poll-skip" for found in here.values() if found) == KEYS // 2
    for reports in spark.judge_together([tables] * 3, None, tmp_path):  # type: ignore[arg-type]
        assert {key: report.found for key, report in reports.items()} == here
