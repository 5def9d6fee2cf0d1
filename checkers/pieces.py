"""Assembles the pieces of a history that was parsed into one Arrow table of ``SCHEMA``.

A large history is parsed by two processes, each of which produces pieces of some thousand events. A
piece has arrays of small integers. Its list ends count from the beginning of the piece, and names
are replaced by codes that are the same in all pieces of one process. Pieces are appended to columns
that grow in place, and the table uses the memory of these columns, so that a history is in memory
only once.
"""

import mmap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from checkers.kernels.rows import UNKNOWN

Progress = Callable[[float], None]
"""A callback that receives how much is read, from 0 to 1."""

TYPES = ("invoke", "ok", "fail", "info")

_TEXT = pa.dictionary(pa.int32(), pa.string())
_RECORD = pa.struct(
    [
        pa.field("key", _TEXT, nullable=False),
        pa.field("offset", pa.int64()),
        pa.field("value", pa.int64(), nullable=False),
    ]
)
_MICRO_OP = pa.struct(
    [
        pa.field("op", _TEXT, nullable=False),
        pa.field("key", _TEXT),
        pa.field("offset", pa.int64()),
        pa.field("value", pa.int64()),
        pa.field("records", pa.list_(_RECORD)),
        pa.field("name", _TEXT),
    ]
)
SCHEMA = pa.schema(
    [
        pa.field("index", pa.int64(), nullable=False),
        pa.field("time_ns", pa.int64(), nullable=False),
        pa.field("process", pa.int32(), nullable=False),
        pa.field("type", _TEXT, nullable=False),
        pa.field("f", _TEXT, nullable=False),
        pa.field("value", pa.list_(_MICRO_OP)),
        pa.field("detail", pa.string()),
        pa.field("error", _TEXT),
    ]
)

Names = Mapping[str, Sequence[str]]
"""The names for codes, by kind of name (the values of ``NAMED``)."""

NAMED = {
    "f": "names",
    "error": "errors",
    "op": "ops",
    "op_key": "keys",
    "record_key": "keys",
    "op_group": "groups",
}
"""The columns of codes, with the kind of names that each has codes for; -1 means no name."""
ENDS = {"op_end": "op", "op_records_end": "record_key"}
"""The columns of list ends, each with a column that has one row per list element."""
_WIDE = ("index", "time_ns", "op_offset", "op_value", "record_offset", "record_value")


@dataclass
class Piece:
    """A batch of events, with their micro-operations and the records of the micro-operations."""

    columns: dict[str, NDArray[Any]]
    """Arrays by name. ``op_end`` and ``op_records_end`` have list ends, and ``no_value`` marks the
    micro-operations without an ``op_value``."""
    details: dict[int, str]
    """The values of the nemesis's events as JSON, by row."""


def piece(columns: Mapping[str, Any], details: dict[int, str]) -> Piece:
    """Convert columns of 64 bits to a piece. Raises :class:`OverflowError` for a process number of
    more than 32 bits."""
    narrow: dict[str, NDArray[Any]] = {}
    for name, column in columns.items():
        numbers = np.frombuffer(column, dtype=np.int64)
        if name == "process" and (numbers != numbers.astype(np.int32)).any():
            raise OverflowError("a process must be a number of 32 bits")
        narrow[name] = numbers.copy() if name in _WIDE else numbers.astype(np.int32)
    count = len(narrow["op"])
    no_value = np.zeros(count, dtype=np.bool_)
    no_value[narrow["no_value"]] = True
    group = np.full(count, -1, dtype=np.int32)
    group[narrow.pop("named")] = narrow["op_group"]
    return Piece(narrow | {"no_value": no_value, "op_group": group}, details)


class Growing:
    """A column in its own memory mapping: it grows without a copy, and its memory is returned to
    the system."""

    def __init__(self, dtype: type[np.generic]) -> None:
        self._dtype = np.dtype(dtype)
        self._bytes = 0
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._memory = mmap.mmap(-1, mmap.ALLOCATIONGRANULARITY, flags=flags)

    def extend(self, numbers: NDArray[Any]) -> None:
        """Append numbers."""
        data = np.ascontiguousarray(numbers, dtype=self._dtype).view(np.uint8)
        end = self._bytes + len(data)
        if end > len(self._memory):
            self._memory.resize(max(2 * len(self._memory), end))
        np.frombuffer(self._memory, dtype=np.uint8)[self._bytes : end] = data
        self._bytes = end

    def array(self) -> NDArray[Any]:
        """Return all numbers without a copy; the column cannot grow any more."""
        count = self._bytes // self._dtype.itemsize
        return np.frombuffer(self._memory, dtype=self._dtype, count=count)


class Reserved:
    """A column of about a known length, in memory that numpy has for all arrays: it can use what
    other arrays have freed, and they can use it afterwards."""

    def __init__(self, dtype: type[np.generic], count: int) -> None:
        self._count = 0
        try:
            self._array = np.empty(count, dtype)
        except (MemoryError, ValueError):  # a file may claim any length
            self._array = np.empty(0, dtype)

    def extend(self, numbers: NDArray[Any]) -> None:
        """Append numbers."""
        end = self._count + len(numbers)
        if end > len(self._array):
            larger = np.empty(max(2 * len(self._array), end), self._array.dtype)
            larger[: self._count] = self.array()
            self._array = larger
        self._array[self._count : end] = numbers
        self._count = end

    def array(self) -> NDArray[Any]:
        """Return all numbers without a copy."""
        return self._array[: self._count]


class Part:
    """The events of one part of a history file, as columns, appended piece by piece.

    Two processes parse a large history; each fills one part.
    """

    def __init__(self) -> None:
        self.columns: dict[str, Growing] = {}
        self.details: dict[int, str] = {}
        self.counts: dict[str, int] = dict.fromkeys(ENDS.values(), 0)
        """Number of rows of each column that list ends point into."""
        self.rows = 0
        self.names: Names = {}
        self.unknown: Counter[str] = Counter()
        """How often each unknown field of events was ignored."""

    def add(self, piece: Piece) -> None:
        """Append a piece."""
        for name, numbers in piece.columns.items():
            if name not in self.columns:
                self.columns[name] = Growing(numbers.dtype.type)
            base = self.counts.get(ENDS.get(name, ""), 0)
            self.columns[name].extend(numbers + numbers.dtype.type(base) if base else numbers)
        self.details |= {self.rows + row: text for row, text in piece.details.items()}
        self.rows += len(piece.columns["index"])
        for column in self.counts:
            self.counts[column] += len(piece.columns[column])


def table(part: Part, rest: Part | None = None) -> pa.Table:
    """Return the events of a part as a table, followed by those of ``rest``."""
    if rest is not None:
        _append(part, rest)
    columns = part.columns
    texts = {kind: pa.array(known, pa.string()) for kind, known in part.names.items()}

    def plain(name: str, *, is_sparse: bool = False) -> pa.Array:
        numbers = columns[name].array()
        return pa.array(numbers, mask=numbers == UNKNOWN if is_sparse else None)

    def named(name: str) -> pa.Array:
        return _text(columns[name].array(), texts[NAMED[name]])

    def ends(name: str) -> pa.Array:
        return pa.array(np.concatenate((np.zeros(1, dtype=np.int32), columns[name].array())))

    records = pa.StructArray.from_arrays(
        [named("record_key"), plain("record_offset", is_sparse=True), plain("record_value")],
        fields=list(_RECORD),
    )
    micro_ops = pa.StructArray.from_arrays(
        [
            named("op"),
            named("op_key"),
            plain("op_offset", is_sparse=True),
            pa.array(columns["op_value"].array(), mask=columns["no_value"].array()),
            pa.ListArray.from_arrays(ends("op_records_end"), records),
            named("op_group"),
        ],
        fields=list(_MICRO_OP),
    )
    return pa.Table.from_arrays(
        [
            plain("index"),
            plain("time_ns"),
            plain("process"),
            _text(columns["type"].array(), pa.array(TYPES, pa.string())),
            named("f"),
            pa.ListArray.from_arrays(ends("op_end"), micro_ops),
            _sparse_text(part.details, part.rows),
            named("error"),
        ],
        schema=SCHEMA,
    )


def _append(part: Part, rest: Part) -> None:
    """Move the events of ``rest`` to the end of ``part``, column by column."""
    number = {
        kind: {name: code for code, name in enumerate(dict.fromkeys((*known, *rest.names[kind])))}
        for kind, known in part.names.items()
    }
    for name in list(rest.columns):
        column = rest.columns.pop(name).array()
        if name in NAMED:
            codes = [number[NAMED[name]][text] for text in rest.names[NAMED[name]]]
            column = np.array([*codes, UNKNOWN], dtype=np.int32)[column]
        base = part.counts.get(ENDS.get(name, ""), 0)
        part.columns[name].extend(column + column.dtype.type(base) if base else column)
    part.details |= {part.rows + row: text for row, text in rest.details.items()}
    part.rows += rest.rows
    part.names = {kind: list(codes) for kind, codes in number.items()}


def _text(codes: NDArray[Any], names: pa.Array) -> pa.DictionaryArray:
    none = codes < 0
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=none if none.any() else None), names)


def _sparse_text(texts: Mapping[int, str], rows: int) -> pa.Array:
    """Return a column of texts by row; the other rows are null."""
    places = np.full(rows, UNKNOWN, dtype=np.int32)
    places[list(texts)] = np.arange(len(texts), dtype=np.int32)
    return pa.array(list(texts.values()), pa.string()).take(
        pa.array(places, mask=places == UNKNOWN)
    )
