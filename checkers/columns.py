"""The columns of a history: its events, micro-operations and records as arrays."""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from checkers import parse, steps
from checkers.kernels.rows import I64, UNKNOWN, Bools
from model.op import NEMESIS

INVOKE = parse.TYPES.index("invoke")


class Columns:
    """The arrays of one history."""

    def __init__(self, history: pa.Table) -> None:
        columns = {name: only(history[name]) for name in history.column_names}
        self.index, self.time_ns = ints(columns["index"]), ints(columns["time_ns"])
        self.process = ints(columns["process"])
        codes, names = _codes(columns["type"])
        known = [parse.TYPES.index(name) if name in parse.TYPES else -1 for name in names]
        self.type = np.array(known, dtype=np.int8)[codes]
        self.f, self.f_names = _codes(columns["f"])
        self.error, self.error_names = _codes(columns["error"])
        self.detail = columns["detail"]
        value = columns["value"]
        self.micro_op_end = ints(value.offsets)
        micro_ops = value.values
        self.op, self.op_names = _codes(micro_ops.field("op"))
        self.op_key, op_keys = _codes(micro_ops.field("key"))
        self.op_group, self.group_names = _codes(micro_ops.field("name"))
        self.op_offset, self.op_value = (
            ints(micro_ops.field(name)) for name in ("offset", "value")
        )
        self.op_offset = np.maximum(self.op_offset, UNKNOWN)  # clients have several "no offset"
        records = micro_ops.field("records")
        self.record_end = ints(records.offsets)
        self.record_key, record_keys = _codes(records.values.field("key"))
        self.record_offset, self.record_value = (
            ints(records.values.field(name)) for name in ("offset", "value")
        )
        self.keys = op_keys
        if record_keys != op_keys:  # another writer may use a dictionary per column
            self.keys = tuple(dict.fromkeys((*op_keys, *record_keys)))
            number = {key: code for code, key in enumerate(self.keys)}
            codes = np.array([number[key] for key in record_keys], dtype=np.int64)
            self.record_key = codes[self.record_key]

    def is_op(self, *names: str) -> Bools:
        """Which micro-operations have one of these names."""
        codes = [code for code, known in enumerate(self.op_names) if known in names]
        return np.isin(self.op, codes)

    def is_txn(self, events: I64) -> Bools:
        """Which of these events are of transactions."""
        codes = [code for code, name in enumerate(self.f_names) if name == "txn"]
        return np.isin(self.f[events], codes)

    def micro_ops(self, events: I64, wanted: Bools) -> tuple[I64, I64]:
        """Rows of the wanted micro-operations of events, and which of the events each is of."""
        rows, place = spread(self.micro_op_end[events], self.micro_op_end[events + 1])
        keep = wanted[rows]
        return rows[keep], place[keep]

    def once(self, last: I64) -> list[steps.Once]:
        """What processes did once, each as far as it was told."""
        codes = [code for code, name in enumerate(self.f_names) if name in parse.ONCE]
        found = []
        for operation in np.flatnonzero(np.isin(self.f[last], codes)).tolist():
            text = self.detail[int(last[operation])].as_py()
            value = msgspec.json.decode(text) if text else []
            found += [steps.Once(operation, what) for what in value if isinstance(what, list)]
        return found

    def of_nemesis(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Rows of the nemesis's events that say something, and what."""
        for row in np.flatnonzero(self.process == NEMESIS).tolist():
            text = self.detail[row].as_py()
            value = msgspec.json.decode(text) if text else None
            if isinstance(value, dict):
                yield row, value


def spread(begin: I64, end: I64) -> tuple[I64, I64]:
    """All numbers of the ranges ``begin … end``, and which range each is of."""
    length = end - begin
    place = np.repeat(np.arange(len(begin)), length)
    inside = np.arange(len(place)) - np.repeat(np.cumsum(length) - length, length)
    return begin[place] + inside, place


def ints(column: Any, unknown: int = UNKNOWN) -> I64:
    """A column of whole numbers, with a number for null."""
    if column.null_count:
        column = column.fill_null(unknown)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)


def _codes(column: Any) -> tuple[I64, tuple[str, ...]]:
    """Codes and names of a text column; -1 stands for null."""
    codes = ints(column.indices)
    return codes, tuple(column.dictionary.to_pylist())


def only(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
