"""Reads histories from Parquet files: the table of :mod:`checkers.events`, written by any tool.

Another writer may have other types, nulls where a history has none, and further columns. A
JSON-lines file cannot hold such things, and what is read must not depend on the format.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from checkers import arrow, left_out, vocabulary
from checkers.columns import only
from checkers.pieces import SCHEMA, Progress
from model.history import BadHistory
from model.op import NEMESIS

_WHOLE = ("index", "time_ns", "process")
"""Columns of integers. Text, fractions and booleans are rejected, because a cast would convert some
of them."""

_STRUCT = pa.struct(list(SCHEMA))


def read(path: Path, progress: Progress) -> pa.Table:
    """Return the events of a ``history.parquet``, written by this project or by another tool to
    this schema. Raises :class:`BadHistory`."""
    table = read_groups(path, 0)
    progress(1.0)
    return table


def read_groups(path: Path, begin: int, end: int | None = None) -> pa.Table:
    """Return the events of a range of row groups, by default of all from ``begin`` on.

    The notes of the file's writer belong to the whole file, and come with the first group. Raises
    :class:`BadHistory`.
    """
    try:
        file = pq.ParquetFile(path)  # read_table would import pandas, which takes half a second
        # Arrow cannot read nested dictionaries of several groups at once.
        groups = range(file.num_row_groups)[begin:end]
        tables = [file.read_row_group(group) for group in groups]
        table = pa.concat_tables(tables) if tables else file.schema_arrow.empty_table()
        if begin:
            table = table.replace_schema_metadata(None)
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise _bad(path, error) from error
    return checked(path, table)


def checked(source: object, table: pa.Table) -> pa.Table:
    """Return the rows of a Parquet file by the schema of histories, if they are events.

    Raises :class:`BadHistory`, which names the ``source``.
    """
    try:
        unknown = dict.fromkeys(_unknown(pa.struct(list(table.schema)), _STRUCT), table.num_rows)
        for name in _WHOLE:
            kind = table.schema.field(name).type
            if not pa.types.is_integer(kind):
                raise BadHistory(
                    f"{source} is not a history: {name} has type {kind}, not whole numbers"
                )
        metadata = table.schema.metadata
        table = table.select(SCHEMA.names).cast(SCHEMA.with_metadata(metadata))
        table = _known_only(table.unify_dictionaries().combine_chunks())
        table.validate(full=True)
    except BadHistory:
        raise
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise _bad(source, error) from error
    if (missing := _null(table)) is not None:
        raise BadHistory(f"{source} is not a history: {missing} is null")
    return left_out.noted(table, None, unknown)


def _bad(source: object, error: Exception) -> BadHistory:
    return BadHistory(f"{source} is not a history: {error}".replace("\n", " "))


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
