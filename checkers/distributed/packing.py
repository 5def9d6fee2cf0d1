"""Tables of events, and arrays, as bytes, which Spark moves between tasks."""

import pickle
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from checkers.columns import only
from checkers.pieces import SCHEMA

_CODEC = "lz4"
_OPTIONS = pa.ipc.IpcWriteOptions(compression=_CODEC)


def packed(events: pa.Table) -> bytes:
    """Return a table of events as bytes, without its metadata.

    The names of a table without rows are kept, too: what tables of names come first decides about
    the order of names when they are joined.
    """
    sink = pa.BufferOutputStream()
    events = events.replace_schema_metadata(None)
    with pa.ipc.new_stream(sink, events.schema, options=_OPTIONS) as stream:
        for batch in events.to_batches() or [_without_rows(events)]:
            stream.write_batch(batch)
    return bytes(sink.getvalue())


def _without_rows(events: pa.Table) -> pa.RecordBatch:
    columns = [only(column) for column in events.columns]
    return pa.RecordBatch.from_arrays(columns, schema=events.schema)


def unpacked(parts: Sequence[bytes]) -> pa.Table:
    """Return the events of packed tables, one after the other; none gives an empty table."""
    return joined([pa.ipc.open_stream(part).read_all() for part in parts])


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the events of several tables as one table, each column in one piece,
    without metadata."""
    plain = [table.replace_schema_metadata(None) for table in tables]
    whole = pa.concat_tables(plain) if plain else SCHEMA.empty_table()
    return whole.unify_dictionaries().combine_chunks()


def dumped(value: Any) -> bytes:
    """Return a value that has arrays as compressed bytes."""
    plain = pickle.dumps(value)
    compressed: bytes = pa.compress(plain, _CODEC, asbytes=True)
    return len(plain).to_bytes(8) + compressed


def loaded(data: bytes) -> Any:
    """Return the value that was dumped."""
    plain = pa.decompress(memoryview(data)[8:], int.from_bytes(data[:8]), _CODEC, asbytes=True)
    return pickle.loads(plain)
