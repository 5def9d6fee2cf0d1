"""Reads the row groups of a Parquet file into one table, whose columns grow in place.

Arrow would hold all groups, and then the table as well, and Arrow cannot read nested dictionaries
of several groups at once. Here a group is freed once it is appended, so that the next one uses its
memory. Several threads may read groups; the order of rows is that of the file.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from checkers import arrow
from checkers.pieces import Growing, Reserved
from checkers.threads import mapped

BATCH_ROWS = 1 << 18
"""Number of rows of a group above which it is read in batches of this size."""
_ENDS_MAX = (1 << 31) - 1
"""The largest end of a list."""

Convert = Callable[[pa.Table], pa.Table]
"""Converts a part of a file to the schema of the whole table."""


def opened(path: Path) -> pq.ParquetFile:
    """Open a file; ``read_table`` would import pandas, which takes half a second."""
    return pq.ParquetFile(path)


def joined(
    path: Path, groups: range, schema: pa.Schema, convert: Convert, threads: int
) -> pa.Table:
    """Return row groups of a file as one table, whose columns have one part each."""
    counts = _Counts(pq.read_metadata(path), groups)
    columns = [_column(field.type, counts, field.name) for field in schema]
    for part in _parts(path, groups, convert, threads):
        for column, chunked in zip(columns, part.columns, strict=True):
            for chunk in chunked.chunks:
                column.append(chunk)
        del part, chunked, chunk  # the next part uses their memory
    return pa.Table.from_arrays([column.finish() for column in columns], schema=schema)


def _parts(path: Path, groups: range, convert: Convert, threads: int) -> Iterator[pa.Table]:
    """Yield the converted parts of a file in their order."""
    file = opened(path)
    sizes = [file.metadata.row_group(group).num_rows for group in groups]

    def read(group: int) -> pa.Table:
        mine = pq.ParquetFile(path, metadata=file.metadata)  # a reader is used by one thread
        return convert(mine.read_row_group(group, use_threads=False))

    if max(sizes, default=0) <= BATCH_ROWS:
        yield from mapped(read, groups, min(threads, max(len(groups), 1)))
        return
    for group in groups:
        batches = file.iter_batches(BATCH_ROWS, row_groups=[group], use_threads=threads > 1)
        yield from (convert(pa.Table.from_batches([batch])) for batch in batches)


class _Column(Protocol):
    """A column of any type that grows."""

    def append(self, part: pa.Array) -> None:
        """Append values."""
        ...

    def finish(self) -> pa.Array:
        """Return all values; the column cannot grow any more."""
        ...


class _Counts:
    """How many values the columns of some row groups have at most, by their footer."""

    def __init__(self, footer: pq.FileMetaData, groups: range) -> None:
        self.rows, self._leaves = 0, Counter[str]()
        for group in (footer.row_group(number) for number in groups):
            self.rows += group.num_rows
            for column in (group.column(number) for number in range(group.num_columns)):
                self._leaves[column.path_in_schema] += column.num_values

    def within(self, path: str) -> int:
        """Return how many elements the lists in this column have together."""
        found = (count for leaf, count in self._leaves.items() if leaf.startswith(f"{path}."))
        return min(found, default=0)

    def element(self, path: str) -> str:
        """Return the path of the elements of the lists in this column."""
        leaf = next((leaf for leaf in self._leaves if leaf.startswith(f"{path}.")), "")
        return ".".join([path, *leaf.removeprefix(f"{path}.").split(".")[:2]])


def _column(kind: pa.DataType, counts: _Counts, path: str, count: int | None = None) -> _Column:
    """Return a column for the values at a path in the file, which has ``count`` of them, by default
    one in each row."""
    count = counts.rows if count is None else count
    if pa.types.is_list(kind):
        return _Lists(kind, counts, path, count)
    if pa.types.is_struct(kind):
        return _Structs(kind, counts, path, count)
    if pa.types.is_dictionary(kind):
        return _Nulls(kind, lambda: _Names(kind, count))
    if pa.types.is_string(kind):
        return _Nulls(kind, lambda: _Texts(count))
    return _Numbers(kind, count)


class _Nulls:
    """A column that has memory for its values from its first value on."""

    def __init__(self, kind: pa.DataType, column: Callable[[], _Column]) -> None:
        self._kind, self._make = kind, column
        self._column: _Column | None = None
        self._count = 0

    def append(self, part: pa.Array) -> None:
        if self._column is None:
            if part.null_count == len(part):
                self._count += len(part)
                return
            self._column = self._make()
            if self._count:
                self._column.append(pa.nulls(self._count, self._kind))
        self._column.append(part)

    def finish(self) -> pa.Array:
        if self._column is None:
            return pa.nulls(self._count, self._kind)
        return self._column.finish()


class _Validity:
    """Counts values, and says which of them are null."""

    def __init__(self) -> None:
        self.count = 0
        self._flags: Growing | None = None

    def append(self, part: pa.Array) -> None:
        if part.null_count and self._flags is None:
            self._flags = Growing(np.bool_)
            self._flags.extend(np.ones(self.count, dtype=np.bool_))
        if self._flags is not None:
            self._flags.extend(arrow.is_valid(part))
        self.count += len(part)

    def finish(self) -> pa.Buffer | None:
        """Return the bits of all values; ``None`` if none is null."""
        if self._flags is None:
            return None
        return pa.py_buffer(np.packbits(self._flags.array(), bitorder="little"))


class _Numbers:
    def __init__(self, kind: pa.DataType, count: int) -> None:
        self._kind, self._validity = kind, _Validity()
        self._data = Reserved(np.dtype(str(kind)).type, count)

    def append(self, part: pa.Array) -> None:
        self._validity.append(part)
        self._data.extend(arrow.numbers(part))

    def finish(self) -> pa.Array:
        buffers = [self._validity.finish(), pa.py_buffer(self._data.array())]
        return pa.Array.from_buffers(self._kind, self._validity.count, buffers)


class _Names:
    """Texts by their codes in a dictionary."""

    def __init__(self, kind: pa.DictionaryType, count: int) -> None:
        self._kind, self._codes = kind, _Numbers(kind.index_type, count)
        self._parts: list[pa.Array] = [_Texts(0).finish()]
        """The names that each part was the first to have."""
        self._number: dict[str | None, int] = {}
        self._last: pa.Array | None = None
        """The dictionary of the last part."""
        self._new: pa.Array | None = None
        """The code of each of its names, if it is not the name's place."""

    def append(self, part: pa.DictionaryArray) -> None:
        if self._last is None or not self._last.equals(part.dictionary):
            self._last, self._new = part.dictionary, self._added(part.dictionary)
        codes = part.indices
        self._codes.append(codes if self._new is None else self._new.take(codes))

    def _added(self, names: pa.Array) -> pa.Array | None:
        """Return the codes of names; ``None`` if they are 0, 1, 2 …"""
        new, codes = [], []
        for row, name in enumerate(names.to_pylist()):
            if name not in self._number:
                new.append(row)
                self._number[name] = len(self._number)
            codes.append(self._number[name])
        if new:
            self._parts.append(names.take(arrow.column(np.array(new))))
        if codes == list(range(len(codes))):
            return None
        return arrow.column(np.array(codes, dtype=str(self._kind.index_type)))

    def finish(self) -> pa.Array:
        # pa.array, for a list of texts, would import pandas.
        names = pa.concat_arrays(self._parts)
        return pa.DictionaryArray.from_arrays(self._codes.finish(), names)


class _Ends:
    """Where each of the values ends that are in another column."""

    def __init__(self, count: int) -> None:
        self._ends, self._last = Reserved(np.int32, count + 1), 0
        self._ends.extend(np.zeros(1, dtype=np.int32))

    def append(self, offsets: NDArray[np.int32]) -> tuple[int, int]:
        """Append values, and return from where to where they are in the other column's part."""
        first, last = int(offsets[0]), int(offsets[-1])
        if self._last + last - first > _ENDS_MAX:
            raise pa.ArrowInvalid("the lists are too long for one column")
        self._ends.extend(offsets[1:] + np.int32(self._last - first))
        self._last += last - first
        return first, last

    def finish(self) -> pa.Buffer:
        return pa.py_buffer(self._ends.array())


class _Lists:
    def __init__(self, kind: pa.ListType, counts: _Counts, path: str, count: int) -> None:
        self._kind, self._validity, self._ends = kind, _Validity(), _Ends(count)
        inner = counts.element(path)
        self._inner = _column(kind.value_type, counts, inner, counts.within(inner))

    def append(self, part: pa.ListArray) -> None:
        if not len(part):
            return
        self._validity.append(part)
        first, last = self._ends.append(arrow.numbers(part.offsets))
        self._inner.append(part.values.slice(first, last - first))

    def finish(self) -> pa.Array:
        buffers, inner = [self._validity.finish(), self._ends.finish()], self._inner.finish()
        return pa.Array.from_buffers(self._kind, self._validity.count, buffers, children=[inner])


class _Structs:
    def __init__(self, kind: pa.StructType, counts: _Counts, path: str, count: int) -> None:
        self._kind, self._validity = kind, _Validity()
        self._fields = [
            _column(field.type, counts, f"{path}.{field.name}", count) for field in kind
        ]

    def append(self, part: pa.StructArray) -> None:
        self._validity.append(part)
        for number, field in enumerate(self._fields):
            field.append(part.field(number))

    def finish(self) -> pa.Array:
        buffers, fields = [self._validity.finish()], [field.finish() for field in self._fields]
        return pa.Array.from_buffers(self._kind, self._validity.count, buffers, children=fields)


class _Texts:
    def __init__(self, count: int) -> None:
        self._validity, self._ends = _Validity(), _Ends(count)
        self._bytes = Growing(np.uint8)

    def append(self, part: pa.StringArray) -> None:
        if not len(part):
            return
        self._validity.append(part)
        _, ends, data = part.buffers()
        offsets = np.frombuffer(ends, np.int32, part.offset + len(part) + 1)[part.offset :]
        first, last = self._ends.append(offsets)
        if last > first:
            self._bytes.extend(np.frombuffer(data, np.uint8, last)[first:])

    def finish(self) -> pa.Array:
        buffers = [self._validity.finish(), self._ends.finish(), pa.py_buffer(self._bytes.array())]
        return pa.Array.from_buffers(pa.string(), self._validity.count, buffers)
