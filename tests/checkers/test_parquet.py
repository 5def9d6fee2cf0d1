"""Histories in Parquet files, of other tools or written by this project and read again."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers import history_file, jsonl, left_out, parquet, row_groups, table_builder
from checkers.tables import Tables
from model.history import BadHistory, encode
from model.op import Op

LINES = b"""\
{"index":0,"time_ns":1,"process":1,"type":"invoke","f":"send","value":[["send","x-0",7]]}
{"index":1,"time_ns":2,"process":1,"type":"ok","f":"send","value":[["send","x-0",[0,7]]]}
{"index":2,"time_ns":3,"process":2,"type":"invoke","f":"poll","value":[["poll"]]}
{"index":3,"time_ns":4,"process":2,"type":"ok","f":"poll","value":[["poll",{"x-0":[[0,7]]}]]}
"""


def history(folder: Path) -> pa.Table:
    lines = folder / "lines.jsonl"
    lines.write_bytes(LINES)
    return jsonl.read(lines, lambda done: None)


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
        table_builder.of_history(read(tmp_path, replaced(table, "detail", details)))


def test_micro_operations_of_the_nemesis_are_refused(tmp_path: Path) -> None:
    """Micro-operations of the nemesis are rejected: what a fault reports is its detail."""
    table = history(tmp_path)
    processes = pa.array([1, 1, -1, -1], pa.int32())
    with pytest.raises(BadHistory, match="event 2: the nemesis must not have micro-operations"):
        table_builder.of_history(read(tmp_path, replaced(table, "process", processes)))


def silent(done: float) -> None:
    """A progress callback that does nothing."""


def fault(index: int, kind: Any, id_: int, phase: str, **more: Any) -> Op:
    value = {"id": id_, "phase": phase, "targets": ["broker-1"], **more}
    return Op(index=index, time_ns=index * 10, process=-1, type=kind, f="pause", value=value)


EVERYTHING = "a:x,y s:x=a@0,x=b s1?:y=c p:x=a@0,x=b@1|y=c@0 s2!:x=d p8?: c:x@2 >s3:x=e"


def everything(histories: Any, tmp_path: Path) -> pa.Table:
    path = tmp_path / "history.jsonl"
    proof = {"effect": {"proved": True, "how": "state T"}}
    ops = histories.events(EVERYTHING)
    end = ops[-1].time_ns
    for phase in (
        fault(len(ops), "invoke", 1, "apply"),
        fault(len(ops) + 1, "info", 1, "apply", **proof),
    ):
        ops.append(msgspec.structs.replace(phase, time_ns=end))
    path.write_bytes(b"".join(map(encode, ops)))
    return history_file.read(path, silent)


def same(a: Tables, b: Tables) -> bool:
    columns: list[tuple[Any, Any]] = [
        *zip(*(each.sends.where(np.arange(len(each.sends))) for each in (a, b)), strict=True),
        *zip(*(each.polls.where(np.arange(len(each.polls))) for each in (a, b)), strict=True),
    ]
    return all(np.array_equal(one, other) for one, other in columns) and (
        a.faults,
        a.catch_ups,
        a.keys,
    ) == (b.faults, b.catch_ups, b.keys)


def test_parquet_holds_the_same_history(histories: Any, tmp_path: Path) -> None:
    """The tables are the same after a history was written to Parquet and read again."""
    table = everything(histories, tmp_path)
    pq.write_table(table, tmp_path / "history.parquet")
    again = history_file.read(tmp_path / "history.parquet", silent)
    assert again.equals(table)
    assert same(table_builder.of_history(again), table_builder.of_history(table))


def test_parquet_has_a_column_for_every_field(histories: Any, tmp_path: Path) -> None:
    """Parquet has a column for every field: micro-operations are structs, and other values are
    JSON."""
    rows = everything(histories, tmp_path).to_pylist()
    assert rows[1]["value"][0] == {
        "op": "assign",
        "key": "x",
        "offset": None,
        "value": None,
        "records": [],
        "name": None,
    }
    assert rows[3]["value"] == [
        {"op": "send", "key": "x", "offset": 0, "value": 1, "records": [], "name": None},
        {"op": "send", "key": "x", "offset": None, "value": 2, "records": [], "name": None},
    ]
    assert rows[7]["value"][1]["records"] == [{"key": "y", "offset": 0, "value": 3}]
    assert rows[-1]["detail"].startswith('{"id":1,"phase":"apply"')


@pytest.mark.spark
def test_other_tools_can_read_and_write_it(histories: Any, spark: Any, tmp_path: Path) -> None:
    """Spark can read ``history.parquet``, and what it writes is the same history."""
    table = everything(histories, tmp_path)
    pq.write_table(table, tmp_path / "history.parquet")
    frame = spark.read.parquet(str(tmp_path / "history.parquet"))
    assert frame.filter("f = 'send' and type = 'ok'").select("value.value").collect() == [([1, 2],)]
    frame.coalesce(1).write.parquet(str(tmp_path / "again"))
    (part,) = (tmp_path / "again").glob("*.parquet")
    assert same(
        table_builder.of_history(history_file.read(part, silent)), table_builder.of_history(table)
    )


def test_a_parquet_file_of_something_else_is_refused(tmp_path: Path) -> None:
    """A Parquet file that is not a history is rejected in one sentence."""
    path = tmp_path / "history.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(BadHistory, match=r"history\.parquet is not a history"):
        history_file.read(path, silent)
    path.write_bytes(b"nonsense")
    with pytest.raises(BadHistory, match=r"history\.parquet is not a history"):
        history_file.read(path, silent)


def test_written_rows_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written is read as it was, with its metadata, and has row groups of bounded size."""
    monkeypatch.setattr(row_groups, "BATCH_ROWS", 3)
    path, table = tmp_path / "history.parquet", history(tmp_path)
    noted = left_out.noted(table, "line 5", {"colour": 2})
    parquet.write(path, noted.schema, [noted, noted.slice(0, 2)])
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    assert [group.num_rows for group in groups] == [3, 1, 2]
    again = parquet.read_groups(path, 0, 2)
    assert again.to_pylist() == table.to_pylist()
    assert left_out.torn(again) == "line 5"


def test_numbers_are_written_as_differences(tmp_path: Path) -> None:
    """Numbers have no dictionary, and names have one."""
    path, table = tmp_path / "history.parquet", history(tmp_path)
    parquet.write(path, table.schema, [table])
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    differences = {
        c.path_in_schema.rpartition(".")[2] for c in columns if "DELTA" in str(c.encodings)
    }
    assert differences == {"index", "time_ns", "process", "offset", "value"}
    assert all("DICTIONARY" not in str(c.encodings) for c in columns if "DELTA" in str(c.encodings))
    assert all("DICTIONARY" in str(c.encodings) for c in columns if "DELTA" not in str(c.encodings))
