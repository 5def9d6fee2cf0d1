"""Operations in Parquet files are those that were written."""

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.oracles import kinds
from bench.oracles.kinds import KINDS, UNIQUE
from checkers.linearizability import columnar
from checkers.linearizability.operations import NEVER, Operation
from model.history import BadHistory

OPERATIONS = [
    Operation("write", 1, 0, 2, process=3, invoked=10, completed=12),
    Operation("cas", [1, 2], 1, NEVER, process=4, invoked=11, completed=-1),
    Operation("read", [], 3, 4),
    Operation("read", [1, 2], 5, 6),
    Operation("dequeue", "empty", 7, 8),
    Operation("txn", [["r", "x", 1], ["w", "y", None]], 9, 10),
    Operation("transfer", {"from": 0, "to": 1, "amount": 5}, 11, 12),
    Operation("read", None, 13, NEVER),
    Operation("write", 1 << 70, 14, 15),
    Operation("write", True, 16, 17),
    Operation("cas", [1, "two"], 18, 19),
]


def as_lists(value: Any) -> Any:
    """Return a value with lists for tuples, as a history of events has it."""
    return [as_lists(each) for each in value] if isinstance(value, list | tuple) else value


def test_values_of_any_shape(tmp_path: Path) -> None:
    """Numbers, pairs, lists and other values are read as they were written."""
    path = tmp_path / "history.parquet"
    columnar.write(path, OPERATIONS)
    found = columnar.read(path)
    assert found == OPERATIONS
    assert found[9].value is True
    assert pq.read_schema(path).metadata == {b"faultline.objects": b"1"}


@pytest.mark.parametrize("name", [*KINDS, *(f"unique {name}" for name in UNIQUE)])
def test_generated_histories_are_read_as_written(name: str, tmp_path: Path) -> None:
    """The operations of each kind, also with keys, are read as they were written."""
    kind = UNIQUE[name.removeprefix("unique ")] if name.startswith("unique") else KINDS[name]
    path = tmp_path / "history.parquet"
    for seed in range(10):
        drawn = kinds.draw(kind, Random(f"{name} {seed}"), 12)
        operations = [each._replace(value=as_lists(each.value)) for each in drawn]
        columnar.write(path, operations)
        assert columnar.read(path) == operations
        keyed = [each._replace(value=["k", each.value]) for each in operations]
        columnar.write(path, keyed, keyed=True)
        assert columnar.read(path) == keyed


def test_rows_are_chosen_and_sorted(tmp_path: Path) -> None:
    """Operations come in the order of their invocations, whatever the order of the rows is."""
    path = tmp_path / "history.parquet"
    columnar.write(path, OPERATIONS[::-1])
    assert columnar.read(path) == OPERATIONS
    wanted = columnar.Columns(path).operations(pa.array([True] + [False] * 10).to_numpy(False))
    assert wanted == OPERATIONS[-1:]


def test_few_columns_are_enough(tmp_path: Path) -> None:
    """Without columns for processes and events, places stand for the events."""
    path = tmp_path / "history.parquet"
    table = {"f": ["write", "read"], "call": [4, 5], "end": [7, None], "value": ["a", None]}
    pq.write_table(pa.table(table), path)
    assert columnar.read(path) == [
        Operation("write", "a", 4, 7, 0, 4, 7),
        Operation("read", None, 5, NEVER, 0, 5, -1),
    ]


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"f": ["read"], "call": [1]}, "no column end"),
        ({"f": ["read"], "call": [1.5], "end": [2]}, "call has type double, not whole numbers"),
        ({"f": [1], "call": [1], "end": [2]}, "f has type int64, not texts"),
        (
            {"f": ["read"], "call": [1], "end": [2], "value": [1.5]},
            "value has type double, not int64 or string",
        ),
        (
            {"f": ["cas"], "call": [1], "end": [2], "value": [1], "expected": ["a"]},
            "value and expected have different types",
        ),
        ({"f": ["read"], "call": [1], "end": [2], "other": ["{"]}, "is not JSON"),
        ({"f": [None, "read"], "call": [1, 2], "end": [2, 3]}, "no name in f"),
        ({"f": ["read"], "call": [2], "end": [1]}, "an operation ends before its call"),
    ],
)
def test_a_file_of_another_form(table: dict[str, Any], why: str, tmp_path: Path) -> None:
    """A file that does not have this form is rejected with the reason."""
    path = tmp_path / "history.parquet"
    pq.write_table(pa.table(table), path)
    with pytest.raises(BadHistory, match=why):
        columnar.read(path)


def test_a_later_version(tmp_path: Path) -> None:
    """A file of a version that is not known is rejected."""
    path = tmp_path / "history.parquet"
    columnar.write(path, OPERATIONS)
    table = pq.read_table(path).replace_schema_metadata({"faultline.objects": "2"})
    pq.write_table(table, path)
    with pytest.raises(BadHistory, match="version 2, which is not known"):
        columnar.read(path)


def test_what_is_no_parquet_file(tmp_path: Path) -> None:
    """A file of another format, and a missing one, are rejected."""
    path = tmp_path / "history.parquet"
    with pytest.raises(BadHistory, match="cannot be read"):
        columnar.read(path)
    path.write_text("not a file of this format")
    with pytest.raises(BadHistory, match="cannot be read"):
        columnar.read(path)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    """Keys of two types, and a value that is no pair, are rejected."""
    path = tmp_path / "history.parquet"
    mixed = [Operation("write", [1, 1], 0, 1), Operation("write", ["a", 1], 2, 3)]
    with pytest.raises(BadHistory, match="keys must be"):
        columnar.write(path, mixed, keyed=True)
    with pytest.raises(BadHistory, match="is not a pair"):
        columnar.write(path, [Operation("write", 1, 0, 1)], keyed=True)
    with pytest.raises(BadHistory, match="no form in JSON"):
        columnar.write(path, [Operation("write", object(), 0, 1)])
