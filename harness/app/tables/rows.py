"""The rows of a history's tables, taken from the tables that checkers judge.

Nothing is interpreted here: each column is a column of :class:`~checkers.tables.Tables`, with names
in place of codes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from checkers import producers, table_builder
from checkers.columns import Columns
from checkers.kernels.rows import I64, UNKNOWN
from checkers.kernels.steps import (
    ASSIGNED,
    COMMIT,
    DELETE,
    FETCH,
    HIGH,
    LOST,
    NO_METADATA,
    REVOKED,
    STABLE,
    START,
)
from checkers.tables import Tables
from harness.app.tables.schema import TABLES

CHUNK = 1 << 20
"""So many rows are made at once; they are a row group of a file."""
OUTCOMES = ("ok", "fail", "info")
"""The names of the outcomes, by their codes."""
KINDS = {
    COMMIT: "commit",
    FETCH: "committed",
    ASSIGNED: "assigned",
    REVOKED: "revoked",
    LOST: "lost",
    START: "log_start",
    HIGH: "high_watermark",
    STABLE: "last_stable",
    DELETE: "delete_records",
}
"""The names of the events of groups and logs, by their codes."""

Made = tuple[str, str | None, Iterator[pa.Table]]
"""The name of a table, the partition of its rows (``None`` where it is a column), and the rows in
chunks."""
_Maker = Callable[[I64], Mapping[str, Any]]


def of_history(columns: Columns) -> Iterator[Made]:
    """Yield the rows of all tables; the columns of the history are used up."""
    tables = table_builder.build(columns)
    operations = tables.operations
    yield "operations", None, _chunks("operations", len(operations.last), _operations(
        columns, tables))  # fmt: skip
    records: tuple[tuple[str, Any, _Maker], ...] = (
        ("sends", tables.sends.key, _sends(tables)),
        ("polls", tables.polls.key, _polls(tables)),
    )
    for name, key, make in records:
        order = np.argsort(key, kind="stable")
        ends = np.cumsum(np.bincount(key, minlength=len(tables.keys)))
        for code, rows in enumerate(np.split(order, ends[:-1]) if len(ends) else ()):
            if len(rows):
                yield name, tables.keys[code], _chunks(name, rows, make)
    transactions = np.flatnonzero(operations.txn)
    ids = dict(producers.ids(columns, operations.last)) if len(transactions) else {}
    yield "transactions", None, _chunks("transactions", transactions, _transactions(tables, ids))
    yield "group_events", None, _chunks("group_events", len(tables.steps.op), _steps(tables))
    yield "faults", None, _chunks("faults", len(tables.faults), _faults(tables))


def _chunks(name: str, rows: int | I64, make: _Maker) -> Iterator[pa.Table]:
    """Yield the chunks of some rows, given their numbers, or how many there are."""
    schema = TABLES[name].of_files
    count = rows if isinstance(rows, int) else len(rows)
    for begin in range(0, count, CHUNK):
        end = min(begin + CHUNK, count)
        chosen = np.arange(begin, end) if isinstance(rows, int) else rows[begin:end]
        yield pa.table(dict(make(chosen)), schema=schema)


def _operations(columns: Columns, tables: Tables) -> _Maker:
    operations = tables.operations

    def make(rows: I64) -> Mapping[str, Any]:
        first, last = operations.first[rows], operations.last[rows]
        return {
            "op": operations.index_of(last),
            "invoked": operations.index_of(first),
            "process": operations.process[rows].astype(np.int64),
            "f": _named(operations.f_code[rows], operations.f),
            "type": _named(operations.outcome[rows], OUTCOMES),
            "start_ns": operations.event_ns[first],
            "end_ns": operations.event_ns[last],
            "error": _named(columns.error[last], columns.error_names),
        }

    return make


def _sends(tables: Tables) -> _Maker:
    def make(rows: I64) -> Mapping[str, Any]:
        sends = tables.sends.where(rows)
        return _record(sends) | {"proven": sends.proven, "start_ns": sends.start_ns}

    return make


def _polls(tables: Tables) -> _Maker:
    return lambda rows: _record(tables.polls.where(rows))


def _record(records: Any) -> dict[str, Any]:
    return {
        "op": records.op,
        "process": records.process,
        "value": records.value,
        "offset": _known(records.offset),
        "outcome": _named(records.outcome, OUTCOMES),
        "in_transaction": records.txn,
        "end_ns": records.end_ns,
    }


def _transactions(tables: Tables, ids: Mapping[int, str]) -> _Maker:
    operations = tables.operations
    count = len(operations.last)

    def make(rows: I64) -> Mapping[str, Any]:
        process = operations.process[rows].astype(np.int64)
        return {
            "op": operations.op[rows],
            "process": process,
            "transactional_id": pa.array([ids.get(each) for each in process.tolist()], pa.string()),
            "outcome": _named(operations.outcome[rows], OUTCOMES),
            "sends": np.bincount(tables.sends.operation, minlength=count)[rows],
            "polls": np.bincount(tables.polls.operation, minlength=count)[rows],
            "start_ns": operations.start_ns[rows],
            "end_ns": operations.end_ns[rows],
        }

    return make


def _steps(tables: Tables) -> _Maker:
    names = tuple(KINDS[code] for code in range(len(KINDS)))
    groups = tuple(group.name for group in tables.groups)

    def make(rows: I64) -> Mapping[str, Any]:
        steps = tables.steps.where(rows)
        return {
            "op": steps.op,
            "process": steps.process,
            "group": _named(steps.group, groups),
            "kind": _named(steps.kind, names),
            "partition": _named(tables.step_key[rows], tables.keys),
            "generation": _known(steps.generation),
            "offset": _known(steps.offset),
            "metadata": pa.array(steps.metadata, mask=steps.metadata == NO_METADATA),
            "outcome": _named(steps.outcome, OUTCOMES),
            "in_transaction": steps.txn,
            "start_ns": steps.start_ns,
            "end_ns": steps.end_ns,
        }

    return make


def _faults(tables: Tables) -> _Maker:
    def make(rows: I64) -> Mapping[str, Any]:
        faults = [tables.faults[row] for row in rows.tolist()]
        found: dict[str, Any] = {
            name: [getattr(fault, name) for fault in faults]
            for name in ("id", "fault", "from_ns", "to_ns", "proved", "how")
        }
        return found | {"targets": [msgspec.json.encode(f.targets).decode() for f in faults]}

    return make


def _known(column: I64) -> pa.Array:
    """Return numbers with null in place of UNKNOWN and of the other codes below 0."""
    return pa.array(column, mask=column <= UNKNOWN)


def _named(codes: Any, names: Sequence[str]) -> pa.Array:
    """Return the names of codes; a code below 0 stands for null."""
    codes = np.asarray(codes, dtype=np.int64)
    return pa.array(names, pa.string()).take(pa.array(codes, mask=codes < 0))
