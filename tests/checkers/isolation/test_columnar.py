"""Histories of lists in Parquet: what is written is judged as the events were."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.isolation import Options, Result, columnar, judge, large, reading
from model.history import BadHistory
from model.op import Op
from tests.checkers.isolation.histories import history, one_by_one


def _saved(path: Path, events: list[Op]) -> Path:
    columnar.save(path, reading.lists(events))
    return path


def _judged(path: Path) -> Result:
    return large.judge(*columnar.read(path), Options())


@pytest.mark.parametrize(
    "lines",
    [
        ["x= y=", "x+1 y+2", "x=1 y=2"],
        ["x+a y+b", "x=a x+c", "x=a,c"],
        ["", "x+1", "x=1"],
        ["x+1", "x+2", "x=1,2", "x=2", "y+1 y=1", "y=1,2"],
        ["fail x+1", "info x+2 y=?", "x=1,2", "info y+3", "y="],
    ],
)
def test_a_history_stays_the_same(tmp_path: Path, lines: list[str]) -> None:
    """Texts as keys and elements, empty transactions, reads without a result, and reads that
    contradict each other are stored."""
    events = one_by_one(*lines)
    path = _saved(tmp_path / "history.parquet", events)
    assert columnar.is_columnar(path)
    assert _judged(path) == judge(events)


def test_numbers_as_keys_need_no_names(tmp_path: Path) -> None:
    """Keys and elements that are integers of 64 bits are stored as they are; others have names."""
    for key, named in ((7, False), (1 << 70, True), ("k", True)):
        value = [["append", key, 1], ["r", key, [1]]]
        events = [Op(index=0, time_ns=0, process=0, type="ok", f="txn", value=value)]
        path = _saved(tmp_path / "history.parquet", events)
        assert (columnar.names(path).keys is not None) == named
        assert _judged(path) == judge(events)


def test_lists_are_stored_once(tmp_path: Path) -> None:
    """Only a longest read of a key has its list in the file."""
    lines = [*(f"x+{n}" for n in range(5)), *(["x=0,1,2,3,4"] * 4), "x=0,1"]
    path = _saved(tmp_path / "history.parquet", history(*lines))
    lists = pq.read_table(path)["elements"].to_pylist()
    assert [each for each in lists if each is not None] == [[0, 1, 2, 3, 4]]


def test_repeated_elements_are_noted(tmp_path: Path) -> None:
    """A list has each element once, and the file says that it had one more than once."""
    path = _saved(tmp_path / "history.parquet", history("x+1", "x+2", "x=1,2,1"))
    [found] = _judged(path).anomalies["duplicate-elements"]
    assert found.descriptions == ("r x [1 2]",)


def _changed(path: Path, column: str, values: pa.Array) -> None:
    table = pq.read_table(path)
    at = table.schema.get_field_index(column)
    pq.write_table(table.set_column(at, pa.field(column, values.type), values), path)


@pytest.mark.parametrize(
    ("column", "values", "why"),
    [
        (
            "elements",
            pa.array([None] * 3, pa.list_(pa.int64())),
            "a list is missing that a transaction read of x",
        ),
        ("f", pa.array([0, 9, 1], pa.int8()), "the column f has a value that is not from 0 to 2"),
        ("key", pa.array([1, None, 1], pa.int64()), "the column key has rows without a value"),
        ("key", pa.array(["1", "2", "3"]), "needs a column key of the type int64"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, column: str, values: pa.Array, why: str) -> None:
    """A file that does not have the form is refused in one sentence."""
    path = _saved(tmp_path / "history.parquet", history("x+1", "x+2", "x=1,2"))
    _changed(path, column, values)
    with pytest.raises(BadHistory, match=why):
        _judged(path)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    """Text is no Parquet."""
    path = tmp_path / "history.parquet"
    path.write_text("x")
    assert not columnar.is_columnar(path)
    with pytest.raises(BadHistory, match="is not a history"):
        columnar.read(path)


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 100])
def test_transactions_may_be_in_several_row_groups(tmp_path: Path, rows: int) -> None:
    """A transaction is read with the row group where it begins, and none is lost or read twice."""
    events = one_by_one("x+1 y+1 z+1 x=1 y=1", "y=1 z=1", "z+2", "", "x=1 y=1 z=1,2")
    path = _saved(tmp_path / "whole.parquet", events)
    table = pq.read_table(path)
    cut = tmp_path / "cut.parquet"
    pq.write_table(table, cut, row_group_size=rows)
    groups = len(columnar.group_rows(cut))
    parts = [columnar.part(cut, group, group + 1) for group in range(groups)]
    begins = np.concatenate([begins for _, begins in parts])
    assert begins.tolist() == np.unique(table["event"].to_numpy(), return_index=True)[1].tolist()
    assert sum(len(part.txn) for part, _ in parts) == table.num_rows
    assert _judged(cut) == judge(events)


def test_invocations_are_looked_for(tmp_path: Path) -> None:
    """A history without invocations says so, unless only failed transactions have none."""
    path = tmp_path / "history.parquet"
    assert columnar.all_invoked(_saved(path, one_by_one("x+1", "x=1")))
    assert not columnar.all_invoked(_saved(path, history("x+1", "x=1")))
    events = [*history("fail y+1"), *one_by_one("x+1", "x=1")]
    numbered = [
        Op(index=at, time_ns=at, process=e.process, type=e.type, f=e.f, value=e.value)
        for at, e in enumerate(events)
    ]
    assert columnar.all_invoked(_saved(path, numbered))
