"""The executor on Spark: the same kernels, by ``applyInArrow`` on buckets of partitions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from checkers import bucket_task
from checkers.bucket_task import END, KEY_FIELDS, KEYS, Whole
from checkers.kernels.key import Report
from checkers.kernels.rows import I64, Begins, Polls, Resets, Sends
from checkers.kernels.steps import Steps
from checkers.logs import Key
from checkers.session import is_remote
from checkers.tables import Tables

_LONG, _BOOL = t.LongType(), t.BooleanType()
_BYTE, _TEXT = t.ByteType(), t.StringType()
_COLUMN = {
    "part": _BYTE,
    "kind": _BYTE,
    "outcome": _BYTE,
    "txn": _BOOL,
    "proven": _BOOL,
    "name": _TEXT,
    "is_deleted": _BOOL,
    "is_compacted": _BOOL,
}

GROUPS_MIN = 64
"""Up to this number, each partition is a group of its own for Spark. More partitions share groups,
as a group takes longer than a small partition."""
WRITE_ROWS = 1 << 20
"""Number of rows that are written at once."""
GROUP_ROWS = 1 << 18
"""Number of rows that a group has at most, if its partitions are of one size."""


def _schema(names: tuple[str, ...]) -> t.StructType:
    columns = ["bucket", "key", "row", *names]
    return t.StructType([t.StructField(name, _COLUMN.get(name, _LONG)) for name in columns])


EVENTS = _schema(
    (
        "part",
        *dict.fromkeys((*Sends._fields, *Steps._fields, *Resets._fields, *Begins._fields)),
        *KEY_FIELDS,
    )
)
"""Rows of sends, events of groups, resets and begins of positions, and one row per partition.

They are in one table because Spark groups no more than two tables together. A partition's row has
its catch-up in ``op``, ``process``, ``offset`` and ``end_ns``.
"""
POLLS = _schema(Polls._fields)
_REPORT = from_arrow_schema(bucket_task.REPORT)


def judge(
    tables: Tables, session: SparkSession, folder: Path, progress: Callable[[float], None]
) -> dict[str, Report]:
    """Return the report of each partition, by name; ``folder`` holds the tables while Spark reads
    them."""
    progress(0.0)
    [reports] = judge_together([tables], session, folder)
    progress(1.0)
    return reports


def judge_together(
    histories: Iterable[Tables], session: SparkSession, folder: Path
) -> list[dict[str, Report]]:
    """Judge many histories in one job; only one of them needs to be in memory at a time."""
    wholes: list[Whole] = []
    names: list[tuple[int, str]] = []
    """History and name of each partition, in the order of their numbers."""
    with (
        _Rows(folder / "rows.parquet", EVENTS) as events,
        _Rows(folder / "polls.parquet", POLLS) as polls,
    ):
        first = 0
        for tables in histories:
            keys, rows = tables.active(), tables.key_rows()
            buckets = max(GROUPS_MIN, len(rows.polls[1]) // GROUP_ROWS)

            for part, table in enumerate((rows.sends, rows.steps, rows.resets, rows.begins)):
                events.write_table(table, first, buckets, part)
            polls.write_table(rows.polls, first, buckets)
            events.write(*_key_rows(keys, first, len(wholes)), buckets, KEYS)
            names += [(len(wholes), key.name) for key in keys]
            wholes.append(Whole(tables.intervals, tables.groups))
            first += len(tables.keys)
    judged = (_judged_remotely if is_remote(session) else _judged)(session, events, polls, wholes)
    found = sorted(judged.to_pylist(), key=lambda row: row["number"])
    reports: list[dict[str, Report]] = [{} for _ in wholes]
    for (history, name), row in zip(names, found, strict=True):
        reports[history][name] = bucket_task.report(row)
    return reports


def _judged(
    session: SparkSession, events: "_Rows", polls: "_Rows", wholes: list[Whole]
) -> pa.Table:
    return (
        events.frame(session)
        .groupBy("bucket")
        .cogroup(polls.frame(session).groupBy("bucket"))
        .applyInArrow(bucket_task.by_bucket(wholes), _REPORT)
        .select(*_REPORT.fieldNames())
        .toArrow()
    )


def _judged_remotely(
    session: SparkSession, events: "_Rows", polls: "_Rows", wholes: list[Whole]
) -> pa.Table:
    from checkers import connect  # imports grpc, which only these sessions need

    tables = {"rows": events.path, "polls": polls.path}

    def task(mark: str, shares: int) -> Any:
        return bucket_task.by_share(mark, shares, wholes)

    return connect.judged(session, tables, task, _REPORT)


def _key_rows(keys: Sequence[Key], first: int, history: int) -> tuple[I64, dict[str, Any]]:
    """Return the number of each partition, and the columns of their rows."""
    ends = [key.caught_up for key in keys]
    columns: dict[str, Any] = {
        "row": np.arange(len(keys)),
        "history": np.full(len(keys), history),
        "name": [key.name for key in keys],
        "is_deleted": np.array([key.is_deleted for key in keys], dtype=np.bool_),
        "is_compacted": np.array([key.is_compacted for key in keys], dtype=np.bool_),
    }
    for column, field in END.items():
        columns[column] = [None if end is None else getattr(end, field) for end in ends]
    return first + np.array([key.number for key in keys], dtype=np.int64), columns


class _Rows:
    """A file with the rows of all partitions of all histories. Rows are numbered, because Spark
    loses their order."""

    def __init__(self, path: Path, schema: t.StructType) -> None:
        self.path = path
        self._schema = schema
        self._writer = pq.ParquetWriter(path, to_arrow_schema(schema), compression="zstd")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()

    def write_table(
        self, table: tuple[Any, Any], first: int, buckets: int, part: int | None = None
    ) -> None:
        """Write the rows of one history, whose first partition has the number ``first``."""
        rows, key = table
        for begin in range(0, len(key), WRITE_ROWS):
            number = np.arange(begin, min(begin + WRITE_ROWS, len(key)))
            columns = rows.where(number)._asdict()
            self.write(
                first + key[number].astype(np.int64), {"row": number, **columns}, buckets, part
            )

    def write(
        self, key: I64, rows: Mapping[str, Any], buckets: int, part: int | None = None
    ) -> None:
        """Write some rows; columns that they do not have are null."""
        columns = {"bucket": key % buckets, "key": key, **rows}
        if part is not None:
            columns["part"] = np.full(len(key), part)
        arrays = [
            pa.array(columns[field.name], field.type)
            if field.name in columns
            else pa.nulls(len(key), field.type)
            for field in self._writer.schema
        ]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._writer.schema))

    def frame(self, session: SparkSession) -> DataFrame:
        """Return the whole file as a data frame."""
        read = session.read.schema(self._schema).parquet(self.path.resolve().as_uri())
        return read.select(*self._schema.fieldNames())
