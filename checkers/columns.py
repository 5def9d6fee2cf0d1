"""The columns of a history: its events, micro-operations and records as arrays."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from checkers import arrow, group_events, left_out, micro_ops, pieces
from checkers.kernels.arrays import BLOCK, I32, order_of_rows, stable_order
from checkers.kernels.rows import I8, I64, UNKNOWN, Bools
from model.op import NEMESIS

INVOKE = pieces.TYPES.index("invoke")

Rows = I32 | I64
"""Row numbers."""


class Columns:
    """The arrays of one history."""

    def __init__(self, history: pa.Table) -> None:
        columns = {name: only(history[name]) for name in history.column_names}
        self.index, self.time_ns = ints(columns["index"]), ints(columns["time_ns"])
        self.process = arrow.numbers(only(history["process"]))
        codes, names = _codes(columns["type"])
        known = [pieces.TYPES.index(name) if name in pieces.TYPES else -1 for name in names]
        self.type = np.array(known, dtype=np.int8)[codes]
        self.f, self.f_names = _codes(columns["f"])
        self.error, self.error_names = _codes(columns["error"])
        self.detail = columns["detail"]
        value = columns["value"]
        self.micro_op_end = arrow.numbers(value.offsets)
        micro_ops = value.values
        self.op, self.op_names = _codes(micro_ops.field("op"))
        key, group = micro_ops.field("key"), micro_ops.field("name")
        self.op_key, op_keys = Sparse(key.indices), tuple(key.dictionary.to_pylist())
        self.op_group, self.group_names = (
            Sparse(group.indices),
            tuple(group.dictionary.to_pylist()),
        )
        # clients have several values for "no offset"
        self.op_offset = Sparse(micro_ops.field("offset"), least=UNKNOWN)
        self.op_value = Sparse(micro_ops.field("value"))
        records = micro_ops.field("records")
        self.record_end = arrow.numbers(records.offsets)
        self.record_key, record_keys = _codes(records.values.field("key"))
        self.record_offset, self.record_value = (
            ints(records.values.field(name)) for name in ("offset", "value")
        )
        self.elsewhere = _elsewhere(columns, len(self.op))
        """For each micro-operation of a group, what a slice leaves out of it, as in
        :class:`~checkers.group_events.MicroOps`; 0 in a whole history."""
        self._places: tuple[Rows, I32] | None = None
        self.doubts: tuple[str, ...] = ()
        """The mismatches that :mod:`checkers.completions` found but accepts, one sentence each."""
        self.torn, self.unknown = left_out.torn(history), left_out.fields_of(history)
        self.keys = op_keys
        if record_keys != op_keys:  # another writer may use a dictionary per column
            self.keys = tuple(dict.fromkeys((*op_keys, *record_keys)))
            number = {key: code for code, key in enumerate(self.keys)}
            codes = np.array([number[key] for key in record_keys], dtype=np.int32)
            self.record_key = codes[self.record_key]

    def is_op(self, *names: str) -> Bools:
        """Return which micro-operations have one of these names."""
        return _is_named(self.op, self.op_names, names)

    def is_txn(self, events: Rows) -> Bools:
        """Return which of these events belong to transactions."""
        return _is_named(self.f[events], self.f_names, ("txn",))

    @cached_property
    def event(self) -> I32:
        """The row of each micro-operation's event."""
        events = np.arange(len(self.index), dtype=np.int32)
        return np.repeat(events, np.diff(self.micro_op_end))

    @cached_property
    def by_process(self) -> I32:
        """The rows of the events of clients, by process, those of one process in their order."""
        clients = np.flatnonzero(self.process != NEMESIS)
        if len(clients) == len(self.process):
            return stable_order(self.process).astype(np.int32)
        rows = clients.astype(np.int32)
        return rows.take(stable_order(self.process.take(rows)))

    @cached_property
    def pairs(self) -> tuple[I32, I32]:
        """The rows of invocations and of their completions, in the order of the completions."""
        order = self.by_process
        process, invokes = self.process.take(order), self.type.take(order) == INVOKE
        paired = np.flatnonzero((process[1:] == process[:-1]) & invokes[:-1] & ~invokes[1:])
        first, last = order.take(paired), order.take(paired + 1)
        by_last = order_of_rows(last, len(self.process))
        return first.take(by_last), last.take(by_last)

    def forget_order(self) -> None:
        """Drop the order of events."""
        for name in ("by_process", "pairs"):
            self.__dict__.pop(name, None)

    def micro_ops(self, events: Rows, wanted: Bools) -> tuple[I32, I32]:
        """Return the rows of the wanted micro-operations of these events, sorted by event.

        The second array holds, for each row, the index in ``events`` of its event.
        """
        rows = _rows_of(wanted)
        if not len(rows):
            return rows, rows
        place = self._places_of(events).take(self.event.take(rows))
        if (place < 0).any():
            rows, place = rows[place >= 0], place[place >= 0]
        if (place[1:] < place[:-1]).any():
            order = np.argsort(place, kind="stable")
            rows, place = rows[order], place[order]
        return rows, place

    def _places_of(self, events: Rows) -> I32:
        """Return for each event of the history its index in ``events``, or -1."""
        cached = self._places  # another thread may replace it
        if cached is not None and cached[0] is events:
            return cached[1]
        places = np.full(len(self.index), -1, dtype=np.int32)
        places[events] = np.arange(len(events), dtype=np.int32)
        self._places = events, places  # mostly the same events are asked for next
        return places

    def forget_groups(self) -> None:
        """Drop the arrays that hold the records and the groups of micro-operations."""
        del self.op_group, self.record_end, self.elsewhere

    def forget_micro_ops(self) -> None:
        """Drop the other arrays of micro-operations; those of events and of records stay."""
        self.__dict__.pop("event", None)
        self._places = None
        del self.op, self.op_key, self.op_offset, self.op_value, self.micro_op_end

    def setup(self, last: Rows) -> list[group_events.SetupEvent]:
        """Return the ``subscribe``, ``init`` and ``leave`` micro-operations of operations.

        ``last`` holds the rows of the operations' last events.
        """
        codes = [code for code, name in enumerate(self.f_names) if name in micro_ops.SETUP]
        found = []
        for operation in np.flatnonzero(np.isin(self.f[last], codes)).tolist():
            text = self.detail[int(last[operation])].as_py()
            value = msgspec.json.decode(text) if text else []
            found += [
                group_events.SetupEvent(operation, what) for what in value if isinstance(what, list)
            ]
        return found

    def of_nemesis(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the rows of the nemesis's events that hold a JSON object, with that object."""
        for row in np.flatnonzero(self.process == NEMESIS).tolist():
            text = self.detail[row].as_py()
            value = msgspec.json.decode(text) if text else None
            if isinstance(value, dict):
                yield row, value


class Sparse:
    """A column of numbers that is null in many rows. UNKNOWN stands for null, and only the rows
    that are indexed are materialized."""

    def __init__(self, column: Any, least: int | None = None) -> None:
        self._column = column
        self._least = least

    def __getitem__(self, rows: Any) -> Any:
        taken = self._column.take(arrow.column(np.atleast_1d(rows)))
        found = arrow.numbers(arrow.filled(taken, UNKNOWN))
        if self._least is not None:
            found = np.maximum(found, self._least)
        return found if isinstance(rows, np.ndarray) else found[0]


def _elsewhere(columns: Mapping[str, pa.Array], count: int) -> I8:
    if "elsewhere" not in columns:
        return np.zeros(count, dtype=np.int8)
    return arrow.numbers(columns["elsewhere"].values)


def _is_named(codes: I32, known: Sequence[str], names: Sequence[str]) -> Bools:
    """Return which codes stand for one of these names."""
    found = np.zeros(len(codes), dtype=np.bool_)
    for code, name in enumerate(known):
        if name in names:
            found |= codes == code
    return found


def _rows_of(mask: Bools) -> I32:
    """Return the row numbers that a mask selects, without an intermediate array of 64 bits."""
    found = [
        np.flatnonzero(mask[begin : begin + BLOCK]).astype(np.int32) + np.int32(begin)
        for begin in range(0, len(mask), BLOCK)
    ]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int32)


def spread(begin: Rows, end: Rows) -> tuple[I64, I64]:
    """Return all numbers of the ranges ``begin … end``, and the index of each one's range."""
    length = end - begin
    place = np.repeat(np.arange(len(begin), dtype=length.dtype), length)
    before = np.cumsum(length, dtype=length.dtype) - length
    numbers = np.repeat(begin - before, length)
    numbers += np.arange(len(numbers), dtype=length.dtype)
    return numbers, place


def ints(column: Any, unknown: int = UNKNOWN) -> I64:
    """Convert a column of integers to an array, with ``unknown`` in place of null."""
    return np.asarray(arrow.numbers(arrow.filled(column, unknown)), dtype=np.int64)


def _codes(column: Any) -> tuple[I32, tuple[str, ...]]:
    """Return the codes and the names of a text column; code -1 stands for null."""
    return arrow.numbers(arrow.filled(column.indices, -1)), tuple(column.dictionary.to_pylist())


def only(column: pa.ChunkedArray) -> pa.Array:
    """Return a chunked column as one array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
