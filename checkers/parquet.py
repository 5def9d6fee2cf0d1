"""Reads and writes histories as Parquet files: the table of :mod:`checkers.events`.

Any other tool may have written what is read. Its file may have other types, nulls where a
history has none, and further columns. A JSON-lines file cannot hold such things, and what is read
must not depend on the format.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from checkers import arrow, left_out, row_groups, vocabulary
from checkers.columns import only
from checkers.pieces import SCHEMA, Progress
from checkers.threads import THREADS
from model.history import BadHistory
from model.op import NEMESIS

_WHOLE = ("index", "time_ns", "process")
"""Columns of integers. Text, fractions and booleans are rejected, because a cast would convert some
of them."""

_STRUCT = pa.struct(list(SCHEMA))


def read(path: Path, progress: Progress) -> pa.Table:
    """Return the events of a ``history.parquet``, written by this project or by another tool to
    this schema. Raises :class:`BadHistory`."""
    table = read_groups(path, 0, threads=THREADS)
    progress(1.0)
    return table


def write(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """Write rows of a history, so that they can be read fast and row group by row group.

    Most numbers of a history differ little from those before them. As differences
    (``DELTA_BINARY_PACKED``) they take half the space, and less time to decode, than in the
    dictionaries that Arrow tries first. ``schema`` is that of histories, with any metadata.
    """
    leaves = dict(_leaves(pa.struct(list(schema))))
    names = [leaf for leaf, kind in leaves.items() if not pa.types.is_integer(kind)]
    numbers = {leaf: "DELTA_BINARY_PACKED" for leaf in leaves if leaf not in names}
    with pq.ParquetWriter(
        path, schema, compression="snappy", use_dictionary=names, column_encoding=numbers
    ) as file:
        for table in tables:
            file.write_table(table.cast(schema), row_group_size=row_groups.BATCH_ROWS)


def _leaves(kind: pa.DataType, within: str = "") -> Iterator[tuple[str, pa.DataType]]:
    """Yield the columns of a Parquet file in which these fields are stored, with their types."""
    for field in kind:
        name, inner = f"{within}{field.name}", field.type
        if pa.types.is_list(inner):
            name, inner = f"{name}.list.element", inner.value_type
        if pa.types.is_struct(inner):
            yield from _leaves(inner, f"{name}.")
        else:
            yield name, inner


def read_groups(path: Path, begin: int, end: int | None = None, *, threads: int = 1) -> pa.Table:
    """Return the events of a range of row groups, by default of all from ``begin`` on, which are
    read by this number of threads.

    The notes of the file's writer belong to the whole file, and come with the first group. Raises
    :class:`BadHistory`.
    """
    with _of(path):
        file = row_groups.opened(path)
        groups, found = range(file.num_row_groups)[begin:end], file.schema_arrow
        _check_integers(path, found)
        schema = SCHEMA.with_metadata(None if begin else found.metadata)
        table = row_groups.joined(path, groups, schema, _to_schema, threads)
        return _checked(path, table, found)


def checked(source: object, table: pa.Table) -> pa.Table:
    """Return the rows of a Parquet file by the schema of histories, if they are events.

    Raises :class:`BadHistory`, which names the ``source``.
    """
    with _of(source):
        _check_integers(source, table.schema)
        return _checked(
            source, _to_schema(table).unify_dictionaries().combine_chunks(), table.schema
        )


@contextmanager
def _of(source: object) -> Iterator[None]:
    """Turn errors of Arrow into :class:`BadHistory` about this source."""
    try:
        yield
    except BadHistory:
        raise
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise BadHistory(f"{source} is not a history: {error}".replace("\n", " ")) from error


def _check_integers(source: object, found: pa.Schema) -> None:
    for name in _WHOLE:
        kind = found.field(name).type
        if not pa.types.is_integer(kind):
            raise BadHistory(
                f"{source} is not a history: {name} has type {kind}, not whole numbers"
            )


def _checked(source: object, table: pa.Table, found: pa.Schema) -> pa.Table:
    """Return rows of the schema of histories, which were read from columns of ``found``."""
    unknown = dict.fromkeys(_unknown(pa.struct(list(found)), _STRUCT), table.num_rows)
    table = _known_only(table)
    if (missing := _null(table)) is not None:
        raise BadHistory(f"{source} is not a history: {missing} is null")
    return left_out.noted(table, None, unknown)


def _to_schema(part: pa.Table) -> pa.Table:
    """Return a part of a file with the columns of a history."""
    part = part.select(SCHEMA.names).cast(SCHEMA.with_metadata(part.schema.metadata))
    part.validate(full=True)
    return part


def _unknown(found: pa.DataType, known: pa.DataType, within: str = "") -> Iterator[str]:
    """Yield the columns, and the fields within them, that the schema of a history does not have."""
    names = [field.name for field in known]
    for field in found:
        name = f"{within}{field.name}"
        if field.name not in names:
            yield name
            continue
        inner, theirs = known.field(field.name).type, field.type
        if pa.types.is_list(inner) and pa.types.is_list(theirs):
            inner, theirs = inner.value_type, theirs.value_type
        if pa.types.is_struct(inner) and pa.types.is_struct(theirs):
            yield from _unknown(theirs, inner, f"{name}.")


def _null(table: pa.Table) -> str | None:
    """Return what is null and must not be; neither Parquet nor Arrow checks all of it."""
    micro_ops = only(table["value"]).flatten()
    records = micro_ops.field("records").flatten()
    columns: tuple[tuple[str, Any], ...] = (
        *((field.name, table[field.name]) for field in SCHEMA if not field.nullable),
        ("a micro-operation", micro_ops),
        ("the name of a micro-operation", micro_ops.field("op")),
        ("a record", records),
        ("the key of a record", records.field("key")),
        ("the value of a record", records.field("value")),
    )
    return next((what for what, column in columns if column.null_count), None)


def _known_only(table: pa.Table) -> pa.Table:
    """Drop the values of operations that no checker knows, as the reader of JSON lines does."""
    names = only(table["f"]).dictionary
    if vocabulary.OPERATIONS.issuperset(names.to_pylist()):
        return table
    is_known = np.array([name in vocabulary.OPERATIONS for name in names.to_pylist()])
    keep = is_known[arrow.numbers(only(table["f"]).indices)]
    keep |= arrow.numbers(only(table["process"])) == NEMESIS
    if keep.all():
        return table
    for name in ("value", "detail"):
        column = pc.if_else(pa.array(keep), table[name], pa.scalar(None, table[name].type))
        table = table.set_column(table.schema.get_field_index(name), SCHEMA.field(name), column)
    return table
