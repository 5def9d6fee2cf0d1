"""The executor on Spark: the same kernels, by ``applyInArrow`` on buckets of partitions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

from checkers import logs
from checkers.kernels import key
from checkers.kernels.availability import Outage, Recovery
from checkers.kernels.checker_runs import CheckerRun
from checkers.kernels.consumption import Consumption, Lag, Unseen
from checkers.kernels.faults import FaultInterval
from checkers.kernels.found import Found
from checkers.kernels.key import Report
from checkers.kernels.rows import I64, Begins, CatchUp, Polls, Resets, Sends
from checkers.kernels.steps import Group, Steps
from checkers.logs import Key, Rows
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

SENDS, STEPS, RESETS, BEGINS, KEYS = range(5)
"""Values of the column ``part``, which says what a row holds."""

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


_KEY_FIELDS = ("history", "name", "is_deleted", "is_compacted")
EVENTS = _schema(
    (
        "part",
        *dict.fromkeys((*Sends._fields, *Steps._fields, *Resets._fields, *Begins._fields)),
        *_KEY_FIELDS,
    )
)
"""Rows of sends, events of groups, resets and begins of positions, and one row per partition.

They are in one table because Spark groups no more than two tables together. A partition's row has
its catch-up in ``op``, ``process``, ``offset`` and ``end_ns``.
"""
POLLS = _schema(Polls._fields)

_FOUND = t.StructType(
    [
        t.StructField("anomaly", t.StringType()),
        t.StructField("key", t.StringType()),
        t.StructField("group", t.StringType()),
        t.StructField("offset", _LONG),
        t.StructField("generation", _LONG),
        t.StructField("value", _LONG),
        t.StructField("variant", t.StringType()),
        t.StructField("ops", t.ArrayType(_LONG)),
        t.StructField("also", t.ArrayType(_LONG)),
        t.StructField("why", t.StringType()),
        t.StructField("folded", _LONG),
    ]
)
_CHECKER_RUN = t.StructType(
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
_LAG = t.StructType(
    [
        t.StructField("key", t.StringType()),
        *(t.StructField(name, _LONG) for name in ("process", "value", "op", "ns")),
    ]
)
_UNSEEN = t.StructType(
    [
        t.StructField("key", t.StringType()),
        *(t.StructField(name, _LONG) for name in ("most", "most_ns", "end")),
    ]
)
REPORT = t.StructType(
    [
        t.StructField("number", _LONG),
        t.StructField("found", t.ArrayType(_FOUND)),
        t.StructField("checker_runs", t.ArrayType(_CHECKER_RUN)),
        t.StructField("acked", _LONG),
        t.StructField("read", _LONG),
        t.StructField("outage", _OUTAGE),
        t.StructField("recoveries", t.ArrayType(_RECOVERY)),
        t.StructField("lag", _LAG),
        t.StructField("unseen", _UNSEEN),
        t.StructField("counts", t.ArrayType(t.ArrayType(_LONG))),
        t.StructField("changes", t.ArrayType(t.ArrayType(_LONG))),
    ]
)
"""A :class:`~checkers.kernels.key.Report` per row, for the partition of that number."""


class _Whole(NamedTuple):
    """What is the same for all partitions of a history."""

    faults: tuple[FaultInterval, ...]
    groups: tuple[Group, ...]


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
    wholes: list[_Whole] = []
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
            wholes.append(_Whole(tables.intervals, tables.groups))
            first += len(tables.keys)
    judged = (
        events.frame(session)
        .groupBy("bucket")
        .cogroup(polls.frame(session).groupBy("bucket"))
        .applyInArrow(_by_bucket(wholes), REPORT)
        .select(*REPORT.fieldNames())
        .toArrow()
    )
    found = sorted(judged.to_pylist(), key=lambda row: row["number"])
    reports: list[dict[str, Report]] = [{} for _ in wholes]
    for (history, name), row in zip(names, found, strict=True):
        reports[history][name] = _report(row)
    return reports


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
    for column, field in _END.items():
        columns[column] = [None if end is None else getattr(end, field) for end in ends]
    return first + np.array([key.number for key in keys], dtype=np.int64), columns


_END = {"op": "op", "process": "process", "offset": "position", "end_ns": "time_ns"}
"""The column of a partition's row that holds each field of its catch-up."""


class _Rows:
    """A file with the rows of all partitions of all histories. Rows are numbered, because Spark
    loses their order."""

    def __init__(self, path: Path, schema: t.StructType) -> None:
        self._path = path
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
        read = session.read.schema(self._schema).parquet(str(self._path))
        return read.select(*self._schema.fieldNames())


def _by_bucket(
    wholes: Sequence[_Whole],
) -> Callable[[tuple[Any, ...], pa.Table, pa.Table], pa.Table]:
    def judge_keys(group: tuple[Any, ...], events: pa.Table, polls: pa.Table) -> pa.Table:
        parts = {
            part: events.filter(pc.equal(events["part"], part))
            for part in (SENDS, STEPS, RESETS, BEGINS, KEYS)
        }
        numbers = np.sort(parts[KEYS]["key"].to_numpy())
        tables = Rows(
            _rows(Sends, parts[SENDS], numbers),
            _rows(Polls, polls, numbers),
            _rows(Steps, parts[STEPS], numbers),
            _rows(Resets, parts[RESETS], numbers),
            _rows(Begins, parts[BEGINS], numbers),
        )
        keys = sorted(_keys(parts[KEYS], numbers, wholes))
        judged = [key.judge(log) for log in logs.logs(tables, keys, len(numbers))]
        reports = zip(numbers.tolist(), judged, strict=True)
        return pa.Table.from_pylist([_row(*one) for one in reports], schema=_arrow())

    return judge_keys


def _rows(kind: Any, table: pa.Table, numbers: I64) -> tuple[Any, I64]:
    """Return the rows of some partitions, in order, and the index in ``numbers`` of each one's
    partition."""
    order = np.argsort(table["row"].to_numpy(), kind="stable")
    columns = [table[name].to_numpy()[order] for name in kind._fields]
    return kind(*columns), np.searchsorted(numbers, table["key"].to_numpy()[order])


def _keys(table: pa.Table, numbers: I64, wholes: Sequence[_Whole]) -> Iterator[Key]:
    for row in table.select(["key", *_KEY_FIELDS, *_END]).to_pylist():
        end = {field: row[column] for column, field in _END.items()}
        yield Key(
            number=int(np.searchsorted(numbers, row["key"])),
            name=row["name"],
            caught_up=None if end["op"] is None else CatchUp(**end),
            is_deleted=row["is_deleted"],
            is_compacted=row["is_compacted"],
            faults=wholes[row["history"]].faults,
            groups=wholes[row["history"]].groups,
        )


def _row(number: int, report: Report) -> dict[str, Any]:
    lag, unseen = report.consumption.lag, report.consumption.unseen
    return {
        "number": number,
        "found": [msgspec.structs.asdict(f) for f in report.found],
        "checker_runs": [checker_run._asdict() for checker_run in report.checker_runs],
        "acked": report.acked,
        "read": report.read,
        "outage": None if report.outage is None else msgspec.structs.asdict(report.outage),
        "recoveries": [msgspec.structs.asdict(recovery) for recovery in report.recoveries],
        "lag": None if lag is None else msgspec.structs.asdict(lag),
        "unseen": None if unseen is None else msgspec.structs.asdict(unseen),
        "counts": [list(pair) for pair in report.consumption.counts.items()],
        "changes": [list(pair) for pair in report.consumption.unseen_changes.items()],
    }


def _report(row: Mapping[str, Any]) -> Report:
    outage, lag, unseen = row["outage"], row["lag"], row["unseen"]
    return Report(
        found=[
            Found(**(f | {"ops": tuple(f["ops"]), "also": tuple(f["also"])})) for f in row["found"]
        ],
        checker_runs=[CheckerRun(**checker_run) for checker_run in row["checker_runs"]],
        acked=row["acked"],
        read=row["read"],
        outage=None if outage is None else Outage(**outage),
        recoveries=[Recovery(**recovery) for recovery in row["recoveries"]],
        consumption=Consumption(
            lag=None if lag is None else Lag(**lag),
            unseen=None if unseen is None else Unseen(**unseen),
            counts=dict(row["counts"]),
            unseen_changes=dict(row["changes"]),
        ),
    )


def _arrow() -> pa.Schema:
    return to_arrow_schema(REPORT)
