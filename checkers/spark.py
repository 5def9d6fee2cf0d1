"""The executor on Spark: the same kernels, a key at a time, by ``applyInArrow``."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from checkers.kernels import key
from checkers.kernels.availability import Outage, Recovery
from checkers.kernels.key import Report
from checkers.kernels.receipts import Receipt
from checkers.kernels.rows import (
    I64,
    Band,
    Begins,
    CatchUp,
    Found,
    Group,
    Log,
    Polls,
    Resets,
    Sends,
    Steps,
)
from checkers.tables import Tables

_LONG, _BOOL = t.LongType(), t.BooleanType()
_BYTE = t.ByteType()
_COLUMN = {"kind": _BYTE, "outcome": _BYTE, "txn": _BOOL, "proven": _BOOL, "is_step": _BOOL}


def _schema(names: tuple[str, ...]) -> t.StructType:
    columns = ["key", "row", *names]
    return t.StructType([t.StructField(name, _COLUMN.get(name, _LONG)) for name in columns])


TOLD = _schema(("is_step", *dict.fromkeys((*Sends._fields, *Steps._fields))))
"""What processes sent, and what they did as members of groups: two tables in one, as Spark groups
no more than two together."""
POLLS = _schema(Polls._fields)

_FOUND = t.StructType(
    [
        t.StructField("anomaly", t.StringType()),
        t.StructField("key", t.StringType()),
        t.StructField("group", t.StringType()),
        t.StructField("offset", _LONG),
        t.StructField("value", _LONG),
        t.StructField("variant", t.StringType()),
        t.StructField("ops", t.ArrayType(_LONG)),
        t.StructField("also", t.ArrayType(_LONG)),
        t.StructField("why", t.StringType()),
        t.StructField("folded", _LONG),
    ]
)
_RECEIPT = t.StructType(
    [
        t.StructField("checker", t.StringType()),
        t.StructField("seconds", t.DoubleType()),
        t.StructField("crash", t.StringType()),
    ]
)
_OUTAGE = t.StructType(
    [
        t.StructField("key", t.StringType()),
        t.StructField("from_ns", _LONG),
        t.StructField("to_ns", _LONG),
    ]
)
_RECOVERY = t.StructType(
    [
        t.StructField("fault", _LONG),
        t.StructField("key", t.StringType()),
        t.StructField("seconds", t.DoubleType()),
    ]
)
REPORT = t.StructType(
    [
        t.StructField("number", _LONG),
        t.StructField("found", t.ArrayType(_FOUND)),
        t.StructField("receipts", t.ArrayType(_RECEIPT)),
        t.StructField("acked", _LONG),
        t.StructField("read", _LONG),
        t.StructField("outage", _OUTAGE),
        t.StructField("recoveries", t.ArrayType(_RECOVERY)),
    ]
)
"""One row per key, by its number: a :class:`~checkers.kernels.key.Report`."""


class _Around(NamedTuple):
    """What a key's log holds beside its rows."""

    history: int
    """Which one it is of."""
    key: str
    resets: Resets
    caught_up: CatchUp | None
    faults: tuple[Band, ...]
    groups: tuple[Group, ...]
    begins: Begins
    is_deleted: bool
    is_compacted: bool


def judge(
    tables: Tables, session: SparkSession, folder: Path, progress: Callable[[float], None]
) -> dict[str, Report]:
    """What the kernels find, by key; ``folder`` takes the tables while Spark reads them."""
    progress(0.0)
    [reports] = judge_together([tables], session, folder)
    progress(1.0)
    return reports


def judge_together(
    histories: Iterable[Tables], session: SparkSession, folder: Path
) -> list[dict[str, Report]]:
    """The same of many histories, in one job; they are needed one after the other."""
    around: dict[int, _Around] = {}
    with (
        _Rows(folder / "told.parquet", TOLD) as told,
        _Rows(folder / "polls.parquet", POLLS) as polls,
    ):
        first = count = 0
        for count, tables in enumerate(histories, start=1):
            told.write(first + tables.send_key, tables.sends, is_step=False)
            told.write(first + tables.step_key, tables.steps, is_step=True)
            polls.write(first + tables.poll_key, tables.polls)
            caught_up = tables.caught_up()
            for number in tables.active_keys:
                around[first + number] = _Around(
                    history=count - 1,
                    key=tables.keys[number],
                    resets=tables.resets(number),
                    caught_up=caught_up.get(number),
                    faults=tables.bands,
                    groups=tables.groups,
                    begins=tables.begins(number),
                    is_deleted=number in tables.deleted,
                    is_compacted=number in tables.compacted,
                )
            first += len(tables.keys)
    judged = (
        told.frame(session)
        .groupBy("key")
        .cogroup(polls.frame(session).groupBy("key"))
        .applyInArrow(_by_key(around), REPORT)
        .select(*REPORT.fieldNames())
        .toArrow()
    )
    by_number = {row["number"]: _report(row) for row in judged.to_pylist()}
    reports: list[dict[str, Report]] = [{} for _ in range(count)]
    for number, mine in around.items():
        reports[mine.history][mine.key] = by_number[number]
    return reports


class _Rows:
    """A table of all keys of all histories. Rows get numbers, because their order is lost on the
    way."""

    def __init__(self, path: Path, schema: t.StructType) -> None:
        self._path = path
        self._schema = schema
        self._writer = pq.ParquetWriter(path, to_arrow_schema(schema), compression="zstd")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()

    def write(self, key: I64, rows: Sends | Polls | Steps, *, is_step: bool | None = None) -> None:
        """Those of one history; columns that they have not are null."""
        columns = {"key": key, "row": np.arange(len(key)), **rows._asdict()}
        if is_step is not None:
            columns["is_step"] = np.full(len(key), is_step)
        arrays = [
            pa.array(columns[field.name], field.type)
            if field.name in columns
            else pa.nulls(len(key), field.type)
            for field in self._writer.schema
        ]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._writer.schema))

    def frame(self, session: SparkSession) -> DataFrame:
        """All of them."""
        read = session.read.schema(self._schema).parquet(str(self._path))
        return read.select(*self._schema.fieldNames())


def _by_key(
    around: Mapping[int, _Around],
) -> Callable[[tuple[Any, ...], pa.Table, pa.Table], pa.Table]:
    def judge_key(group: tuple[Any, ...], told: pa.Table, polls: pa.Table) -> pa.Table:
        number = group[0].as_py()
        mine = around[number]
        log = Log(
            key=mine.key,
            sends=Sends(*_columns(told.filter(pc.invert(told["is_step"])), Sends._fields)),
            polls=Polls(*_columns(polls, Polls._fields)),
            resets=mine.resets,
            caught_up=mine.caught_up,
            faults=mine.faults,
            steps=Steps(*_columns(told.filter(told["is_step"]), Steps._fields)),
            groups=mine.groups,
            begins=mine.begins,
            is_deleted=mine.is_deleted,
            is_compacted=mine.is_compacted,
        )
        return pa.Table.from_pylist([_row(number, key.judge(log))], schema=_arrow())

    return judge_key


def _columns(table: pa.Table, names: tuple[str, ...]) -> list[Any]:
    order = np.argsort(table["row"].to_numpy())
    return [table[name].to_numpy()[order] for name in names]


def _row(number: int, report: Report) -> dict[str, Any]:
    return {
        "number": number,
        "found": [msgspec.structs.asdict(f) for f in report.found],
        "receipts": [receipt._asdict() for receipt in report.receipts],
        "acked": report.acked,
        "read": report.read,
        "outage": None if report.outage is None else msgspec.structs.asdict(report.outage),
        "recoveries": [msgspec.structs.asdict(recovery) for recovery in report.recoveries],
    }


def _report(row: Mapping[str, Any]) -> Report:
    outage = row["outage"]
    return Report(
        found=[
            Found(**(f | {"ops": tuple(f["ops"]), "also": tuple(f["also"])})) for f in row["found"]
        ],
        receipts=[Receipt(**receipt) for receipt in row["receipts"]],
        acked=row["acked"],
        read=row["read"],
        outage=None if outage is None else Outage(**outage),
        recoveries=[Recovery(**recovery) for recovery in row["recoveries"]],
    )


def _arrow() -> pa.Schema:
    return to_arrow_schema(REPORT)
