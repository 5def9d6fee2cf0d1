"""Columns and arrays of integers are converted without pandas."""

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import arrow

TYPES = [pa.int8(), pa.int32(), pa.int64()]


@given(st.lists(st.one_of(st.none(), st.integers(-100, 100))), st.sampled_from(TYPES), st.data())
def test_columns_become_arrays(values: list[Any], kind: pa.DataType, data: Any) -> None:
    """Any part of a column has its numbers, with one number in place of null."""
    begin = data.draw(st.integers(0, len(values)))
    column = pa.array(values, kind)[begin:]
    expected = [-7 if value is None else value for value in values[begin:]]
    found = arrow.numbers(arrow.filled(column, -7))
    assert found.tolist() == expected
    assert arrow.column(found).to_pylist() == expected
    assert arrow.column(found[::2]).to_pylist() == expected[::2]
    assert arrow.column(found).type == kind
    assert arrow.is_valid(column).tolist() == [value is not None for value in values[begin:]]


def test_an_array_without_memory() -> None:
    """An empty column may have no buffer."""
    empty = pa.Array.from_buffers(pa.int64(), 0, [None, None])
    assert arrow.numbers(empty).tolist() == []


SCRIPT = """
import sys
from pathlib import Path
from checkers import history_file, inline, overview, table_builder
events = history_file.read(Path(sys.argv[1]), lambda done: None)
tables = table_builder.build(history_file.columns(events))
overview.concluded(tables, inline.judge(tables, lambda done: None))
print("pandas" in sys.modules)
"""


@pytest.mark.parametrize("kind", ["idempotent", "transactions"])
def test_a_typed_history_is_judged_without_pandas(tmp_path: Any, kind: str) -> None:
    """Neither reading nor judging imports it."""
    from bench.spark import generate
    from bench.spark.histories import Spec

    path = tmp_path / "history.parquet"
    generate.write(Spec(kind, 500), path)
    command = [sys.executable, "-c", SCRIPT, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
