"""Holds some events as columns, and merges the events of two batches."""

from dataclasses import dataclass

import numpy as np

from checkers.columns import spread
from checkers.events import EventColumns
from checkers.kernels.rows import I64, Bools

_EVENTS = ("index", "time_ns", "process", "type", "f", "error")
_OPS = ("op", "op_key", "op_offset", "op_value")
_RECORDS = ("record_key", "record_offset", "record_value")
_NO_GROUP = -1


@dataclass(slots=True)
class Batch:
    """Events, their micro-operations and the records of these, with columns by name."""

    events: dict[str, I64]
    op_counts: I64
    """Number of micro-operations of each event."""
    ops: dict[str, I64]
    has_value: Bools
    """Which micro-operations have an ``op_value``."""
    group: I64 | None
    """The group of each micro-operation, or -1; ``None`` if none has one."""
    record_counts: I64
    """Number of records of each micro-operation."""
    records: dict[str, I64]
    details: dict[int, str]

    @classmethod
    def of(cls, columns: EventColumns) -> "Batch":
        """Return the events of a piece that has just begun."""

        def column(name: str) -> I64:
            return np.frombuffer(getattr(columns, name), dtype=np.int64)

        ops = {name: column(name) for name in _OPS}
        has_value = np.ones(len(ops["op"]), dtype=np.bool_)
        has_value[column("no_value")] = False
        group = None
        if len(columns.named):
            group = np.full(len(has_value), _NO_GROUP, dtype=np.int64)
            group[column("named")] = column("op_group")
        return cls(
            events={name: column(name) for name in _EVENTS},
            op_counts=np.diff(column("op_end"), prepend=0),
            ops=ops,
            has_value=has_value,
            group=group,
            record_counts=np.diff(column("op_records_end"), prepend=0),
            records={name: column(name) for name in _RECORDS},
            details=columns.details,
        )

    def append_to(self, columns: EventColumns) -> None:
        """Append these events to columns."""
        first, first_op = len(columns.op_end), len(columns.op)
        first_record = len(columns.record_key)
        columns.details |= {first + row: text for row, text in self.details.items()}
        added = self.events | self.ops | self.records
        added["op_end"] = np.cumsum(self.op_counts) + first_op
        added["op_records_end"] = np.cumsum(self.record_counts) + first_record
        added["no_value"] = np.flatnonzero(~self.has_value) + first_op
        if self.group is not None:
            named = np.flatnonzero(self.group >= 0)
            added |= {"named": named + first_op, "op_group": self.group[named]}
        for name, numbers in added.items():
            whole = np.ascontiguousarray(numbers, dtype=np.int64)
            getattr(columns, name).frombytes(whole.view(np.uint8))


def merged(some: Batch, others: Batch, is_of_some: Bools) -> Batch:
    """Return the events of two batches in one order, which says which event is of the first one.

    Raises :class:`ValueError` if their number is not that of the order.
    """
    if len(is_of_some) != len(some.op_counts) + len(others.op_counts):
        raise ValueError("a line must have exactly one event")
    events = np.empty(len(is_of_some), dtype=np.int64)
    events[is_of_some] = np.arange(len(some.op_counts))
    events[~is_of_some] = np.arange(len(some.op_counts), len(events))
    op_counts = np.concatenate((some.op_counts, others.op_counts))
    ops = _inner(op_counts, events)
    record_counts = np.concatenate((some.record_counts, others.record_counts))
    records = _inner(record_counts, ops)
    group = None
    if others.group is not None:
        no_group = np.full(len(some.has_value), _NO_GROUP, dtype=np.int64)
        group = np.concatenate((no_group, others.group))[ops]
    rows = np.flatnonzero(~is_of_some).tolist()
    return Batch(
        events=_joined(some.events, others.events, events),
        op_counts=op_counts[events],
        ops=_joined(some.ops, others.ops, ops),
        has_value=np.concatenate((some.has_value, others.has_value))[ops],
        group=group,
        record_counts=record_counts[ops],
        records=_joined(some.records, others.records, records),
        details={rows[row]: text for row, text in others.details.items()},
    )


def _inner(counts: I64, rows: I64) -> I64:
    """Return the list elements of rows, in the order of the rows."""
    ends = np.cumsum(counts)
    return spread((ends - counts)[rows], ends[rows])[0]


def _joined(some: dict[str, I64], others: dict[str, I64], rows: I64) -> dict[str, I64]:
    return {name: np.concatenate((some[name], others[name]))[rows] for name in some}
