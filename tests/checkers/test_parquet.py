"""Histories in Parquet files that other tools wrote."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers import left_out, parquet, parse, tables
from model.history import BadHistory

LINES = b"""\
{"index":0,"time_ns":1,"process":1,"type":"invoke","f":"send","value":[["send","x-0",7]]}
{"index":1,"time_ns":2,"process":1,"type":"ok","f":"send","value":[["send","x-0",[0,7]]]}
{"index":2,"time_ns":3,"process":2,"type":"invoke","f":"poll","value":[["poll"]]}
{"index":3,"time_ns":4,"process":2,"type":"ok","f":"poll","value":[["poll",{"x-0":[[0,7]]}]]}
"""


def history(folder: Path) -> pa.Table:
    lines = folder / "lines.jsonl"
    lines.write_bytes(LINES)
    return parse.read_jsonl(lines, lambda done: None)


def replaced(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)


def read(folder: Path, table: pa.Table) -> pa.Table:
    path = folder / "history.parquet"
    pq.write_table(table, path)
    return parquet.read(path, lambda done: None)


@pytest.mark.parametrize("name", ["index", "time_ns", "process", "type", "f"])
@pytest.mark.parametrize("row", [0, 3])
def test_a_null_where_none_may_be_is_refused(tmp_path: Path, name: str, row: int) -> None:
    """A null is rejected in a column that every event must have."""
    table = history(tmp_path)
    values = table[name].to_pylist()
    values[row] = None
    column = pa.array(values, table.schema.field(name).type)
    with pytest.raises(BadHistory, match="is not a history"):
        read(tmp_path, replaced(table, name, column))


@pytest.mark.parametrize("name", ["index", "time_ns", "process"])
@pytest.mark.parametrize("kind", [pa.bool_(), pa.float64(), pa.string()])
def test_numbers_of_another_type_are_refused(tmp_path: Path, name: str, kind: pa.DataType) -> None:
    """Numbers of another type are rejected: neither true nor 1.0 counts as 1."""
    table = history(tmp_path)
    with pytest.raises(BadHistory, match=f"{name} has type {kind}, not whole numbers"):
        read(tmp_path, replaced(table, name, table[name].cast(kind)))


@pytest.mark.parametrize("name", ["key", "value"])
def test_nulls_in_records_are_refused(tmp_path: Path, name: str) -> None:
    """Nulls in records are rejected, even if another writer's schema permits them."""
    table = history(tmp_path)
    values = table["value"].to_pylist()
    values[3][0]["records"][0][name] = None
    record = pa.struct([("key", pa.string()), ("offset", pa.int64()), ("value", pa.int64())])
    micro_op = pa.struct(
        [
            *(("op", pa.string()), ("key", pa.string()), ("offset", pa.int64())),
            *(("value", pa.int64()), ("records", pa.list_(record)), ("name", pa.string())),
        ]
    )
    column = pa.array(values, pa.list_(micro_op))
    with pytest.raises(BadHistory, match="is not a history"):
        read(tmp_path, replaced(table, "value", column))


@pytest.mark.parametrize("size", [1, 3])
def test_row_groups_and_plain_encoding(tmp_path: Path, size: int) -> None:
    """A file in another layout is the same history."""
    path = tmp_path / "history.parquet"
    table = history(tmp_path)
    pq.write_table(table, path, row_group_size=size, use_dictionary=False, store_schema=False)
    assert parquet.read(path, lambda done: None).to_pylist() == table.to_pylist()


def test_a_further_column_is_mentioned(tmp_path: Path) -> None:
    """A further column is mentioned, because it holds a value for every event."""
    table = history(tmp_path).append_column("node", pa.array(["n1"] * 4))
    assert left_out.fields_of(read(tmp_path, table)) == {"node": 4}


@pytest.mark.parametrize("where", ["value.surprise", "value.records.surprise"])
def test_a_further_field_within_a_column_is_mentioned(tmp_path: Path, where: str) -> None:
    """A further field of a micro-operation or of a record is mentioned."""
    fields = {"op": pa.string(), "key": pa.string(), "offset": pa.int64(), "value": pa.int64()}
    record = {name: fields[name] for name in ("key", "offset", "value")}
    more = record if where.startswith("value.records") else fields
    more["surprise"] = pa.int64()
    fields |= {"records": pa.list_(pa.struct(list(record.items()))), "name": pa.string()}
    kind = pa.list_(pa.struct(list(fields.items())))
    table = history(tmp_path)
    column = pa.array(table["value"].to_pylist(), kind)
    assert left_out.fields_of(read(tmp_path, replaced(table, "value", column))) == {where: 4}


@pytest.mark.parametrize("metadata", [b"\xff", b"[1]", b'{"a": "b"}', b"[" * 5000])
def test_metadata_of_another_writer_is_ignored(tmp_path: Path, metadata: bytes) -> None:
    """Metadata of another writer is ignored, even under the names that this project uses."""
    table = history(tmp_path).replace_schema_metadata(
        {b"unknown fields": metadata, b"torn": b"\xff"}
    )
    found = read(tmp_path, table)
    assert left_out.fields_of(found) == {}
    assert left_out.torn(found) == "\ufffd"


@pytest.mark.parametrize("row", [1, 3])
def test_a_detail_of_a_plain_operation_is_refused(tmp_path: Path, row: int) -> None:
    """A detail of any other operation is rejected, because no checker would read it."""
    table = history(tmp_path)
    details = pa.array(['[["init","z"]]' if n == row else None for n in range(4)], pa.string())
    with pytest.raises(BadHistory, match=f"event {row}: .* has a detail"):
        tables.tables(read(tmp_path, replaced(table, "detail", details)))


def test_micro_operations_of_the_nemesis_are_refused(tmp_path: Path) -> None:
    """Micro-operations of the nemesis are rejected: what a fault reports is its detail."""
    table = history(tmp_path)
    processes = pa.array([1, 1, -1, -1], pa.int32())
    with pytest.raises(BadHistory, match="event 2: the nemesis must not have micro-operations"):
        tables.tables(read(tmp_path, replaced(table, "process", processes)))
