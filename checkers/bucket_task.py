"""What an executor of Spark runs: all kernels on the partitions of one bucket.

It needs nothing but this project's kernels, numpy and pyarrow: the packages that a worker of a
cluster has.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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

SENDS, STEPS, RESETS, BEGINS, KEYS = range(5)
"""Values of the column ``part``, which says what a row holds."""

KEY_FIELDS = ("history", "name", "is_deleted", "is_compacted")
"""The columns of a partition's row, besides those of :data:`END`."""
END = {"op": "op", "process": "process", "offset": "position", "end_ns": "time_ns"}
"""The column of a partition's row that holds each field of its catch-up."""

_LONG, _TEXT = pa.int64(), pa.string()


def _struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field(name, kind) for name, kind in fields.items()])


_FOUND = _struct(
    anomaly=_TEXT,
    key=_TEXT,
    group=_TEXT,
    offset=_LONG,
    generation=_LONG,
    value=_LONG,
    variant=_TEXT,
    ops=pa.list_(_LONG),
    also=pa.list_(_LONG),
    why=_TEXT,
    folded=_LONG,
)
REPORT = pa.schema(
    [
        pa.field("number", _LONG),
        pa.field("found", pa.list_(_FOUND)),
        pa.field(
            "checker_runs", pa.list_(_struct(checker=_TEXT, seconds=pa.float64(), crash=_TEXT))
        ),
        pa.field("acked", _LONG),
        pa.field("read", _LONG),
        pa.field("outage", _struct(key=_TEXT, from_ns=_LONG, to_ns=_LONG)),
        pa.field("recoveries", pa.list_(_struct(fault=_LONG, key=_TEXT, seconds=pa.float64()))),
        pa.field("lag", _struct(key=_TEXT, process=_LONG, value=_LONG, op=_LONG, ns=_LONG)),
        pa.field("unseen", _struct(key=_TEXT, most=_LONG, most_ns=_LONG, end=_LONG)),
        pa.field("counts", pa.list_(pa.list_(_LONG))),
        pa.field("changes", pa.list_(pa.list_(_LONG))),
    ]
)
"""A :class:`~checkers.kernels.key.Report` per row, for the partition of that number."""


class Whole(NamedTuple):
    """What is the same for all partitions of a history."""

    faults: tuple[FaultInterval, ...]
    groups: tuple[Group, ...]


def by_bucket(
    wholes: Sequence[Whole],
) -> Callable[[tuple[Any, ...], pa.Table, pa.Table], pa.Table]:
    """Return the function that judges the partitions of a bucket, and returns their reports."""

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
        return pa.Table.from_pylist([_row(*one) for one in reports], schema=REPORT)

    return judge_keys


def by_share(
    mark: str, shares: int, wholes: Sequence[Whole]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that judges the partitions of some shares, whose tables are files that
    Spark has sent to the executor, and returns their reports.

    The function gets the numbers of the shares.
    """
    judge_keys = by_bucket(wholes)

    def judge_shares(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import SparkFiles  # only where Spark runs it

        for batch in batches:
            for number in batch.column("id").to_pylist():
                events, polls = (
                    _share(SparkFiles.get(f"{mark}-{name}.arrow"), number, shares)
                    for name in ("rows", "polls")
                )
                yield from judge_keys((number,), events, polls).to_batches()

    return judge_shares


def _share(path: str, number: int, shares: int) -> pa.Table:
    """Return the rows of a share: those of every batch whose number has it as its remainder."""
    with pa.memory_map(path) as source:
        file = pa.ipc.open_file(source)
        batches = [file.get_batch(at) for at in range(number, file.num_record_batches, shares)]
        return pa.Table.from_batches(batches, file.schema)


def _rows(kind: Any, table: pa.Table, numbers: I64) -> tuple[Any, I64]:
    """Return the rows of some partitions, in order, and the index in ``numbers`` of each one's
    partition. Rows of other partitions, which a client only assigned, are left out."""
    table = table.filter(pc.is_in(table["key"], pa.array(numbers)))
    order = np.argsort(table["row"].to_numpy(), kind="stable")
    columns = [table[name].to_numpy()[order] for name in kind._fields]
    return kind(*columns), np.searchsorted(numbers, table["key"].to_numpy()[order])


def _keys(table: pa.Table, numbers: I64, wholes: Sequence[Whole]) -> Iterator[Key]:
    for row in table.select(["key", *KEY_FIELDS, *END]).to_pylist():
        end = {field: row[column] for column, field in END.items()}
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
        "found": [asdict(f) for f in report.found],
        "checker_runs": [checker_run._asdict() for checker_run in report.checker_runs],
        "acked": report.acked,
        "read": report.read,
        "outage": None if report.outage is None else asdict(report.outage),
        "recoveries": [asdict(recovery) for recovery in report.recoveries],
        "lag": None if lag is None else asdict(lag),
        "unseen": None if unseen is None else asdict(unseen),
        "counts": [list(pair) for pair in report.consumption.counts.items()],
        "changes": [list(pair) for pair in report.consumption.unseen_changes.items()],
    }


def report(row: Mapping[str, Any]) -> Report:
    """Return the report that a row of :data:`REPORT` holds."""
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
