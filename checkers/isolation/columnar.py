"""Transactions on lists in a Parquet file, with one row per micro-operation.

A read is stored as the length and the mark of what it returned, each element counted once. A whole
list is stored only for a longest read of each key, and for reads that contradict it. So a file of
long lists stays small, and is judged without reading them.

========= ==================================================================================
column    meaning
========= ==================================================================================
event     index of the event that ended the transaction
process   process of the client
outcome   0 ok, 1 fail or 2 info
invoked   position of the invocation in the history; -1 without one
completed position of the completion in the history; -1 without one
f         0 append or 1 read; 2 in the one row of a transaction without micro-operations
key       an integer: the key, or its place in the list of names
element   what was appended: the element, or its place in the list of names
length    number of elements that were read; -1 if the result is not known
mark      hash of the list that was read
elements  the list that was read, where it is stored, else null
repeats   whether the list that was read has an element more than once
========= ==================================================================================

Transactions are in the order of their completions, those that nothing completed last, and the rows
of each one follow each other. The metadata of the file has the names of keys and elements that are
no integers, as JSON.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from checkers import arrow, memory
from checkers.isolation import list_rows
from checkers.isolation.list_rows import NOTHING, UNNAMED, ListRows, Named
from checkers.isolation.transactions import WRITE, ListHistory, Lists, Transactions, begins_of
from checkers.kernels.arrays import I64, changes
from checkers.kernels.rows import FAIL, Bools
from checkers.threads import THREADS, mapped
from model.history import BadHistory

VERSION = "list-append 1"
ROWS = 1 << 18
"""Number of rows of a row group."""
_FORM, _KEYS, _ELEMENTS = b"faultline.form", b"faultline.keys", b"faultline.elements"
SCHEMA = pa.schema(
    [
        pa.field("event", pa.int64(), nullable=False),
        pa.field("process", pa.int64(), nullable=False),
        pa.field("outcome", pa.int8(), nullable=False),
        pa.field("invoked", pa.int64(), nullable=False),
        pa.field("completed", pa.int64(), nullable=False),
        pa.field("f", pa.int8(), nullable=False),
        pa.field("key", pa.int64(), nullable=False),
        pa.field("element", pa.int64(), nullable=False),
        pa.field("length", pa.int32(), nullable=False),
        pa.field("mark", pa.uint64(), nullable=False),
        pa.field("elements", pa.list_(pa.int64())),
        pa.field("repeats", pa.bool_(), nullable=False),
    ]
)


@dataclass(frozen=True)
class ListFile:
    """Transactions on lists in a Parquet file."""

    path: Path


def is_columnar(path: Path) -> bool:
    """Return whether a file has transactions on lists in this form."""
    with suppress(OSError, pa.ArrowException):
        return (pq.read_schema(path).metadata or {}).get(_FORM) == VERSION.encode()
    return False


def write(path: Path, tables: Iterable[pa.Table], named: Named = UNNAMED) -> None:
    """Write tables of :data:`SCHEMA`, each as row groups of its own."""
    metadata = {_FORM: VERSION.encode()}
    for name, names in ((_KEYS, named.keys), (_ELEMENTS, named.elements)):
        if names is not None:
            metadata[name] = msgspec.json.encode(names, enc_hook=str)
    schema = SCHEMA.with_metadata(metadata)
    dictionary = ["outcome", "f", "process", "length"]
    with pq.ParquetWriter(path, schema, compression="lz4", use_dictionary=dictionary) as file:
        for table in tables:
            file.write_table(table.cast(schema), row_group_size=ROWS)


def save(path: Path, history: ListHistory) -> None:
    """Write a history."""
    txns, ops, names = history.txns, history.ops, history.names
    is_number = all(type(key) is int and abs(key) < 1 << 63 for key in names.keys)
    keys = None if is_number else [*names.keys]
    empty = np.setdiff1d(np.arange(len(txns.event)), ops.txn)
    txn = np.concatenate((ops.txn, empty))
    order = np.argsort(txn, kind="stable")
    txn = txn[order]

    def padded(column: Any, value: int) -> Any:
        return np.concatenate((column, np.full(len(empty), value, column.dtype)))[order]

    row_of = np.empty(len(order), np.int64)
    row_of[order] = np.arange(len(order))
    at, lists = _stored(history)
    elements = _list_column(row_of[at], lists, len(order))
    repeats = np.zeros(len(order), np.bool_)
    repeats[row_of[history.repeating]] = True
    key = ops.key if keys is not None else np.array(names.keys, np.int64)[ops.key]
    element = np.where(ops.kind == WRITE, ops.element, 0)
    columns = [
        *(arrow.column(np.asarray(each[txn])) for each in txns),
        arrow.column(padded(ops.kind, NOTHING)),
        arrow.column(padded(key, 0)),
        arrow.column(padded(element, 0)),
        arrow.column(padded(ops.length, 0).astype(np.int32)),
        arrow.column(padded(ops.mark, 0)),
        elements,
        pa.array(repeats.tolist(), pa.bool_()),
    ]
    write(path, [pa.table(columns, schema=SCHEMA)], Named(keys, names.elements))


def _stored(history: ListHistory) -> tuple[I64, list[I64]]:
    """Return the rows of which the lists are stored, ascending, and the lists."""
    ops, longest = history.ops, history.longest
    full = np.flatnonzero(history.is_prefix & (ops.length > 0))
    full = full[ops.length[full] == longest.length[ops.key[full]]]
    _, first = np.unique(ops.key[full], return_index=True)
    stored = {int(row): longest.of(int(ops.key[row])) for row in full[first].tolist()}
    stored |= {int(row): history.others.of(at) for at, row in enumerate(history.other_rows)}
    rows = sorted(stored)
    return np.array(rows, np.int64), [stored[row] for row in rows]


def _list_column(rows: I64, lists: Sequence[I64], count: int) -> pa.Array:
    """Return a column of lists that is null but in these rows, which are ascending."""
    length = np.zeros(count, np.int64)
    length[rows] = [len(each) for each in lists]
    is_null = np.ones(count, np.bool_)
    is_null[rows] = False
    values = np.concatenate(lists) if lists else np.zeros(0, np.int64)
    return list_column(begins_of(length), values, is_null)


def list_column(begin: I64, values: I64, is_null: Bools) -> pa.Array:
    """Return a column of lists, given where each one begins and the last one ends."""
    bits = pa.py_buffer(np.packbits(~is_null, bitorder="little"))
    offsets = pa.py_buffer(begin.astype(np.int32))
    return pa.Array.from_buffers(
        SCHEMA.field("elements").type,
        len(is_null),
        [bits, offsets],
        children=[arrow.column(values)],
    )


def read(path: Path) -> tuple[ListRows, Named]:
    """Read a history. Raises :class:`~model.history.BadHistory` for a file that is none."""
    memory.reuse()
    named, sizes = names(path), group_rows(path)

    def parts() -> Iterator[ListRows]:
        numbers = range(len(sizes))
        for found, _ in mapped(lambda group: part(path, group, group + 1), numbers, THREADS):
            yield found
            del found

    return list_rows.joined(parts(), sum(sizes)), named


def names(path: Path) -> Named:
    """Return the names of keys and elements that a file has. Raises
    :class:`~model.history.BadHistory`."""
    try:
        with pq.ParquetFile(path) as file:
            found = file.schema_arrow
        for field in SCHEMA:
            if field.name not in found.names or found.field(field.name).type != field.type:
                raise BadHistory(f"{path} needs a column {field.name} of the type {field.type}")
        texts = ((found.metadata or {}).get(name) for name in (_KEYS, _ELEMENTS))
        return Named(*(None if text is None else msgspec.json.decode(text) for text in texts))
    except (OSError, pa.ArrowException, msgspec.DecodeError) as error:
        raise _unreadable(path, error) from error


def group_rows(path: Path) -> list[int]:
    """Return the number of rows of each row group of a file."""
    metadata = pq.read_metadata(path)
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]


def begins(path: Path, groups: Sequence[int]) -> list[int]:
    """Return the position of the first completion in each of some row groups; -1 without one."""
    with pq.ParquetFile(path) as file:
        columns = [_column(file, group, group + 1, "completed") for group in groups]
    return [int(column[0]) if len(column) else -1 for column in columns]


def all_invoked(path: Path) -> bool:
    """Return whether each transaction that did not fail has an invocation."""
    with pq.ParquetFile(path) as file:
        at = file.schema_arrow.names.index("invoked")
        for group in range(file.num_row_groups):
            known = file.metadata.row_group(group).column(at).statistics
            if known is not None and known.has_min_max and known.min >= 0:
                continue
            outcome, invoked = (
                _column(file, group, group + 1, name) for name in ("outcome", "invoked")
            )
            if (invoked[outcome != FAIL] < 0).any():
                return False
    return True


def part(path: Path, first: int, end: int) -> tuple[ListRows, I64]:
    """Read the transactions that begin in some row groups of a file.

    Returns also the row of the file at which each transaction begins. Raises
    :class:`~model.history.BadHistory`.
    """
    try:
        with pq.ParquetFile(path) as file:
            return _part(file, first, end)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error
    except BadHistory as error:
        raise BadHistory(f"{path}: {error}") from error


def _part(file: pq.ParquetFile, first: int, end: int) -> tuple[ListRows, I64]:
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    event = _column(file, first, end, "event")
    begin = 0
    if first > 0 and len(before := _column(file, first - 1, first, "event")):
        begin = int(np.argmax(np.append(event, before[-1] + 1) != before[-1]))
    until = len(event)
    while end < len(sizes) and until == len(event) > begin:
        following = _column(file, end, end + 1, "event")
        event, end = np.concatenate((event, following)), end + 1
        until += int(np.argmax(np.append(following, event[until - 1] + 1) != event[until - 1]))
    taken = slice(begin, until)
    event = event[taken]
    is_first = changes(event)
    begins = np.flatnonzero(is_first)

    def column(name: str, dtype: Any = None) -> Any:
        found = _column(file, first, end, name)[taken]
        return found if dtype is None else found.astype(dtype)

    txns = Transactions(
        event[begins],
        *(column(name)[begins] for name in ("process", "outcome", "invoked", "completed")),
    )
    txn = (np.cumsum(is_first) - 1).astype(np.int32)
    del event, is_first
    stored = _array(file, first, end, "elements").slice(begin, until - begin)
    listed = np.flatnonzero(arrow.is_valid(stored))
    lengths = np.diff(arrow.numbers(stored.offsets))[listed].astype(np.int64)
    repeats = _array(file, first, end, "repeats").slice(begin, until - begin)
    rows = ListRows(
        txns,
        txn,
        column("f"),
        column("key"),
        column("element"),
        column("length"),
        column("mark"),
        listed,
        Lists(begins_of(lengths), arrow.numbers(stored.flatten())),
        np.flatnonzero(repeats.to_numpy(zero_copy_only=False)),
    )
    for values, most, name in ((txns.outcome, 2, "outcome"), (rows.kind, NOTHING, "f")):
        if len(values) and not 0 <= values.min() <= values.max() <= most:
            raise BadHistory(f"the column {name} has a value that is not from 0 to {most}")
    return rows, sum(sizes[:first]) + begin + begins


def _column(file: pq.ParquetFile, first: int, end: int, name: str) -> Any:
    """Return a column of numbers of some row groups."""
    found = _array(file, first, end, name)
    if found.null_count:
        raise BadHistory(f"the column {name} has rows without a value")
    return arrow.numbers(found)


def _array(file: pq.ParquetFile, first: int, end: int, name: str) -> pa.Array:
    """Return a column of some row groups; the others are not read meanwhile, to save memory."""
    table = file.read_row_groups(range(first, end), columns=[name], use_threads=False)
    found = table.column(0).combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        return found.chunk(0) if found.num_chunks else pa.array([], found.type)
    return found


def _unreadable(path: Path, error: Exception) -> BadHistory:
    return BadHistory(f"{path} is not a history: {error}".replace("\n", " "))
