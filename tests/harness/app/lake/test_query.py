"""A lake is asked with Spark SQL."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.app.lake import add, query
from harness.app.lake.query import Answer, written
from harness.app.lake.store import Lake
from harness.app.refused import Refused
from tests.harness.app.lake import made_runs


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with two runs, of which the second was not judged."""
    place = tmp_path_factory.mktemp("lake")
    made_runs.make(place / "20261120T161500Z-a")
    made_runs.make(place / "20261120T161600Z-b", judged=False, seed=8)
    add.add([place / "2026*"], place / "lake")
    return Lake.open(place / "lake")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("select seed, verdict from runs order by 1", [(7, "valid"), (8, None)]),
        ("select value, count(*) from plans where key = 'topics' group by 1", [("1", 2)]),
        ("select fault, proved, recovery_s, unrecovered from faults limit 1",
         [("kill", True, 0.5, 0)]),
        ("select kind, seconds from availability join runs using (run_id) where seed = 8"
         " order by 1", [("outage", 2.4), ("recovery", 0.5)]),
        ("select operation, p50_ms from latencies where phase = 'work' limit 1",
         [("send", 1205.0)]),
        ("select sum(acked) from throughput", [(4,)]),
        ("select count(*) from findings", [(0,)]),
        ("select count(*) from anomalies", [(0,)]),
    ],
)  # fmt: skip
def test_views_have_rows(
    statement: str, rows: list[tuple[object, ...]], lake: Lake, spark: Any
) -> None:
    """Every view has the data of the runs, and views are joined by the id of the run."""
    answer = query.ask(lake, statement, spark)
    found = [tuple(row.values()) for row in answer.rows]
    assert [tuple(_rounded(value) for value in row) for row in found] == rows


def _rounded(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value


@pytest.mark.spark
@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("selec 1", "Syntax error at or near 'selec'"),
        ("select nothing from runs", "UNRESOLVED_COLUMN"),
        ("select * from no_such_view", "TABLE_OR_VIEW_NOT_FOUND"),
        ("select 1 / 0", "DIVIDE_BY_ZERO"),
        ("select cast('x' as int) from runs", "CAST_INVALID_INPUT"),
    ],
)
def test_a_wrong_statement_is_refused(statement: str, why: str, lake: Lake, spark: Any) -> None:
    """The reason is one line without the statement, a plan or the JVM's stack."""
    with pytest.raises(Refused, match=why) as refused:
        query.ask(lake, statement, spark)
    text = str(refused.value)
    assert "\n" not in text
    assert "==" not in text
    assert "at org." not in text
    assert "SQLSTATE" not in text


@pytest.mark.spark
def test_a_file_of_version_0_is_asked(tmp_path: Path, spark: Any) -> None:
    """Spark reads a file that lacks columns, and fields of its lists, as null."""
    lake = Lake.create(tmp_path / "lake")
    fault = pa.struct([("fault_id", pa.int64()), ("fault", pa.string())])
    table = pa.table(
        {
            "id": pa.array(["old"]),
            "fault_list": pa.array([[{"fault_id": 1, "fault": "kill"}]], pa.list_(fault)),
        }
    )
    pq.write_table(table, lake.folder / "rows-00000001.parquet")
    lake.add([{"id": "new", "verdict": "valid"}])
    both = query.ask(lake, "select run_id, verdict, version from runs order by 1", spark)
    assert [tuple(row.values()) for row in both.rows] == [
        ("new", "valid", None),
        ("old", None, None),
    ]
    faults = query.ask(lake, "select fault, healed_s from faults", spark)
    assert [tuple(row.values()) for row in faults.rows] == [("kill", None)]


ROWS = Answer(["name", "n"], [{"name": "a,b\x1b", "n": 2.5}, {"name": None, "n": Decimal("10")}])


def test_formats() -> None:
    """A table is aligned, CSV is quoted, JSON keeps types; none has a control character."""
    assert written(ROWS, "table").splitlines() == [
        "name    n",
        "----  ---",
        "a,b\ufffd  2.5",
        "       10",
        "(2 rows)",
    ]
    assert written(ROWS, "csv") == 'name,n\n"a,b\x1b",2.5\n,10'
    text = written(ROWS, "json")
    assert '"n": 10' in text
    assert "\x1b" not in text


def test_no_rows() -> None:
    """A statement that returns nothing prints the names of its columns."""
    assert written(Answer(["a"], []), "table").splitlines() == ["a", "-", "(0 rows)"]
    assert written(Answer(["a"], []), "csv") == "a"
    assert written(Answer(["a"], []), "json") == "[]"
