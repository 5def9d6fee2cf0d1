"""The Parquet form of a history of operations: one row per operation.

A large history is judged from its columns, without an object for each operation: see
:mod:`~checkers.linearizability.column_judging`. The columns, of which only the first three must
exist:

========== ========================== ==========================================================
column     type                       meaning
========== ========================== ==========================================================
f          string                     the name of the operation: ``read``, ``enqueue``, …
call       int64                      the place of the invocation in the order of all events
end        int64                      the place of the completion; null: it was never completed,
                                      or ended in doubt, and may have taken effect or not
value      int64 or string            what was written, added or enqueued; of a read or a dequeue
                                      the result; of ``cas`` the new value
expected   int64 or string            the value that ``cas`` expected; of the type of ``value``
elements   list of int64 or of string the result of a read of a set or of a log
other      string                     any other value, as JSON: ``"empty"`` of a dequeue
key        int64 or string            the object; each is judged alone
process    int64                      the client; needed where it matters which one it was
invoked    int64                      the index of the event of the invocation, by default ``call``;
                                      -1 if there is none
completed  int64                      the index of the last event, by default ``end``; -1 if there
                                      is none
========== ========================== ==========================================================

A value is in one of ``value``, ``elements`` and ``other``; where all are null, it is unknown.
Places are any increasing numbers, as those of events in their order. Rows are best in the order of
``call``. The metadata of the schema has the version of this form as ``faultline.objects``; a file
without it is read as version 1.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from checkers.linearizability.models import EMPTY
from checkers.linearizability.operations import NEVER, Operation
from model.history import BadHistory

VERSION = 1
SUFFIX = ".parquet"
GROUP_ROWS = 1 << 18
"""Number of rows of a row group."""

_VERSION = b"faultline.objects"
_NEEDED = ("f", "call", "end")
_NUMBERS = (*_NEEDED[1:], "process", "invoked", "completed")
_SCALARS = ("value", "expected", "key")
_COLUMNS = frozenset((*_NEEDED, *_NUMBERS, *_SCALARS, "elements", "other"))
_INT32_MAX = (1 << 31) - 1
_INT64 = range(-(1 << 63), 1 << 63)


def write(path: Path, operations: Sequence[Operation], *, keyed: bool = False) -> None:
    """Write operations; ``keyed`` says that their values are pairs of a key and the value.

    Raises :class:`~model.history.BadHistory` if keys are not all whole numbers, or all texts.
    """
    columns: dict[str, list[Any]] = {name: [] for name in ("value", "expected", "elements")}
    others: list[str | None] = []
    keys, values = _keys_and_values(operations) if keyed else ([], [o.value for o in operations])
    kind = _common_type(_scalars_within(values))
    for operation, value in zip(operations, values, strict=True):
        name, parts = _placed(operation.f, value, kind)
        for column, cells in columns.items():
            cells.append(parts.get(column))
        others.append(None if name or value is None else _json(value))
    arrow = pa.string() if kind is str else pa.int64()
    table: dict[str, Any] = {
        "f": pa.array([each.f for each in operations], pa.string()),
        "call": pa.array([each.call for each in operations], pa.int64()),
        "end": pa.array([None if each.is_pending else each.end for each in operations], pa.int64()),
        "value": pa.array(columns["value"], arrow),
        "expected": pa.array(columns["expected"], arrow),
        "elements": pa.array(columns["elements"], pa.list_(arrow)),
        "other": pa.array(others, pa.string()),
        "process": pa.array([each.process for each in operations], pa.int64()),
        "invoked": pa.array([each.invoked for each in operations], pa.int64()),
        "completed": pa.array([each.completed for each in operations], pa.int64()),
    }
    if keyed:
        table["key"] = pa.array(keys, pa.string() if _common_type(keys) is str else pa.int64())
    write_table(path, pa.table(table))


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table that has the columns of this form, with its version."""
    noted = table.replace_schema_metadata({_VERSION: str(VERSION).encode()})
    leaves = [
        (f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name, field.type)
        for field in noted.schema
    ]
    numbers = [leaf for leaf, kind in leaves if pa.types.is_integer(_inner(kind))]
    pq.write_table(
        noted,
        path,
        row_group_size=GROUP_ROWS,
        compression="snappy",
        use_dictionary=[leaf for leaf, _ in leaves if leaf not in numbers],
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
    )


class Columns:
    """A history in a Parquet file, of which only the columns are read that are needed."""

    def __init__(self, path: Path) -> None:
        """Raises :class:`~model.history.BadHistory` if the file does not have this form."""
        self.path = path
        try:
            self._footer = pq.read_metadata(path)
        except (OSError, pa.ArrowException) as error:
            raise BadHistory(f"{path} cannot be read: {error}".replace("\n", " ")) from error
        self.schema = self._footer.schema.to_arrow_schema()
        self._check()

    def __len__(self) -> int:
        return int(self._footer.num_rows)

    @property
    def has_keys(self) -> bool:
        """Whether each operation belongs to a key."""
        return "key" in self.schema.names

    @property
    def has_processes(self) -> bool:
        """Whether it is known which client did each operation."""
        return "process" in self.schema.names

    @property
    def groups(self) -> range:
        """The row groups."""
        return range(self._footer.num_row_groups)

    def rows_of(self, group: int) -> int:
        """Return how many rows a row group has."""
        return int(self._footer.row_group(group).num_rows)

    def is_text(self, name: str) -> bool:
        """Return whether a column, or its lists, have texts."""
        return _is_text(_inner(self.schema.field(name).type))

    def narrow(self, name: str) -> np.dtype[Any]:
        """Return the smallest type of numbers that holds a column, by the footer of the file."""
        if name not in self.schema.names or self.is_text(name):
            return np.dtype(np.int32)
        leaves = [self._footer.schema.column(at).path for at in range(self._footer.num_columns)]
        at = next(at for at, leaf in enumerate(leaves) if leaf.split(".")[0] == name)
        for group in self.groups:
            found = self._footer.row_group(group).column(at).statistics
            if found is None or not found.has_min_max:
                return np.dtype(np.int64)
            if found.min < -_INT32_MAX or found.max >= _INT32_MAX:
                return np.dtype(np.int64)
        return np.dtype(np.int32)

    def group(self, group: int, names: Sequence[str]) -> pa.Table:
        """Read columns of a row group; names and JSON texts as dictionaries."""
        try:
            texts = [name for name in ("f", "other") if name in names]
            file = pq.ParquetFile(self.path, metadata=self._footer, read_dictionary=texts)
            return file.read_row_group(group, columns=list(names), use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise BadHistory(f"{self.path} cannot be read: {error}".replace("\n", " ")) from error

    def operations(self, is_wanted: NDArray[np.bool_] | None = None) -> list[Operation]:
        """Return operations by the order of their invocations, by default all; values of a history
        with keys are pairs of the key and the value.

        Raises :class:`~model.history.BadHistory`, also if an operation ends before its call.
        """
        found: list[Operation] = []
        begin = 0
        names = [name for name in self.schema.names if name in _COLUMNS]
        for group in self.groups:
            end = begin + self.rows_of(group)
            wanted = None if is_wanted is None else np.flatnonzero(is_wanted[begin:end])
            if wanted is None or len(wanted):
                table = self.group(group, names)
                found += _operations(table if wanted is None else table.take(pa.array(wanted)))
            begin = end
        if any(each.end < each.call for each in found):
            raise BadHistory(f"{self.path}: an operation ends before its call")
        found.sort(key=lambda each: each.call)
        return found

    def _check(self) -> None:
        missing = [name for name in _NEEDED if name not in self.schema.names]
        if missing:
            raise BadHistory(f"{self.path} has no column {missing[0]}: see docs/objects.md")
        version = (self.schema.metadata or {}).get(_VERSION, str(VERSION).encode())
        if version != str(VERSION).encode():
            raise BadHistory(f"{self.path} has version {version.decode()}, which is not known")
        kinds = {field.name: field.type for field in self.schema}
        for name in _NUMBERS:
            self._expect(name, kinds, "whole numbers", pa.types.is_int64)
        for name in ("f", "other"):
            self._expect(name, kinds, "texts", _is_text)
        for name in _SCALARS:
            self._expect(name, kinds, "int64 or string", _is_scalar)
        self._expect("elements", kinds, "lists of int64 or string", _is_list)
        if "expected" in kinds and kinds.get("value") != kinds["expected"]:
            raise BadHistory(f"{self.path}: value and expected have different types")

    def _expect(self, name: str, kinds: dict[str, pa.DataType], what: str, fits: Any) -> None:
        if name in kinds and not fits(kinds[name]):
            raise BadHistory(f"{self.path}: {name} has type {kinds[name]}, not {what}")


def read(path: Path) -> list[Operation]:
    """Return all operations of a file. Raises :class:`~model.history.BadHistory`."""
    return Columns(path).operations()


def _inner(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_list(kind) else kind


def _is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(inner))


def _is_scalar(kind: pa.DataType) -> bool:
    return bool(pa.types.is_int64(kind) or pa.types.is_string(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind)) and _is_scalar(kind.value_type)


def _operations(table: pa.Table) -> Iterator[Operation]:
    cells = {name: table[name].to_pylist() for name in table.column_names}
    count = table.num_rows
    if cells["f"].count(None) or cells["call"].count(None):
        raise BadHistory("an operation has no name in f, or no place in call")
    nothing = [None] * count
    columns = [cells.get(name, nothing) for name in ("value", "expected", "elements", "other")]
    values: Iterable[Any] = map(_value, cells["f"], *columns)
    if "key" in cells:
        values = ([key, value] for key, value in zip(cells["key"], values, strict=True))
    end = [NEVER if place is None else place for place in cells["end"]]
    invoked = cells.get("invoked", cells["call"])
    completed = cells.get("completed") or [-1 if each is None else each for each in cells["end"]]
    process = cells.get("process", [0] * count)
    return map(Operation, cells["f"], values, cells["call"], end, process, invoked, completed)


def _value(f: str, value: Any, expected: Any, elements: Any, other: str | None) -> Any:
    if other is not None:
        try:
            return msgspec.json.decode(other)
        except msgspec.DecodeError as error:
            raise BadHistory(f"a value in the column other is not JSON: {error}") from error
    if elements is not None:
        return elements
    return [expected, value] if f == "cas" else value


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except TypeError as error:
        raise BadHistory(f"a value has no form in JSON: {error}") from error


def _keys_and_values(operations: Sequence[Operation]) -> tuple[list[Any], list[Any]]:
    keys, values = list[Any](), list[Any]()
    for each in operations:
        if not isinstance(each.value, list | tuple) or len(each.value) != 2:
            raise BadHistory(f"event {each.event}: the value of {each.f} is not a pair")
        keys.append(each.value[0])
        values.append(each.value[1])
    if any(type(key) is not _common_type(keys) for key in keys):
        raise BadHistory("keys must be all whole numbers, or all texts")
    return keys, values


def _scalars_within(values: Sequence[Any]) -> Iterator[Any]:
    """Yield what a column of scalars would hold."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from value
        elif value != EMPTY:
            yield value


def _common_type(values: Iterable[Any]) -> type:
    """Return ``str`` if the first text or number is a text, and otherwise ``int``."""
    return next((type(value) for value in values if type(value) in (int, str)), int)


def _fits(value: Any, kind: type) -> bool:
    return type(value) is kind and (kind is str or value in _INT64)


def _placed(f: str, value: Any, kind: type) -> tuple[str | None, dict[str, Any]]:
    """Return the column of a value, and what it and its companions hold; ``None`` for JSON."""
    if value == EMPTY:
        return None, {}
    if _fits(value, kind):
        return ("value", {"value": value}) if f != "cas" else (None, {})
    if not isinstance(value, list | tuple) or not all(_fits(each, kind) for each in value):
        return None, {}
    if f == "cas":
        is_pair = len(value) == 2
        return ("value", {"expected": value[0], "value": value[1]}) if is_pair else (None, {})
    return "elements", {"elements": value}
