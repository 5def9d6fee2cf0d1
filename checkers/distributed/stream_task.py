"""What an executor does with the rows that Spark reads from a file: it makes typed chunks of them.

The rows of one split of the file come one after the other. A split has the lines that begin in it,
or its row groups. It becomes one chunk, or several ones if it is large.
"""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers import jsonl, parquet
from checkers.distributed import chunk_tasks, packing
from checkers.distributed.chunk_tasks import Prepared
from checkers.distributed.chunks import Chunk
from checkers.kernels.arrays import I32
from checkers.pieces import SCHEMA
from model.history import BadHistory

BEGIN = "begin"
"""The column with the position of a row's split in the file."""
LINE = "line"
"""The column with a line, without the newline at its end."""
TYPED = pa.schema(
    [("id", pa.int64()), ("about", pa.binary()), ("data", pa.binary()), ("blank", pa.binary())]
)
"""A chunk: its number, what is known of it, its packed events, and its blank lines."""
FIELDS = "id bigint, about binary, data binary, blank binary"
"""The same for Spark."""
_PARTS_BITS = 17
"""A chunk's number is the position of its split, and within these bits its place in the split."""

Batches = Iterator[pa.RecordBatch]


class About(NamedTuple):
    """What is known of a chunk."""

    prepared: Prepared
    lines: int = 0
    size: int = 0
    """The number of its bytes, with a newline at the end of each line."""
    unless_last: jsonl.BadLine | None = None
    """Why its last line is not an event, which counts unless that line ends the file without a
    newline; it is left out of the events."""


def typed_lines(name: str, size: int, batches: Batches) -> Batches:
    """Yield the chunks of lines, each of about ``size`` bytes; ``name`` is that of the file."""
    for number, rows in _pieces(batches, lambda rows: rows.column(LINE).nbytes, size):
        values = pa.concat_arrays([each.column(LINE) for each in rows])
        as_list = pa.ListArray.from_arrays([0, len(values)], values)
        text = pc.binary_join(as_list, b"\n")[0].as_py()
        yield _of_lines(Chunk(name, number, number + 1), text, values)


def typed_rows(name: str, rows_max: int, batches: Batches) -> Batches:
    """Yield the chunks of rows of Parquet, each of about ``rows_max`` rows."""
    for number, rows in _pieces(batches, lambda rows: rows.num_rows, rows_max):
        chunk = Chunk(name, number, number + 1)
        try:
            table = pa.Table.from_batches(rows).select(SCHEMA.names)
            table = parquet.checked(name, table)
        except BadHistory as error:
            yield _row(chunk, About(Prepared(chunk, bad=str(error))), SCHEMA.empty_table())
            continue
        yield _row(chunk, About(chunk_tasks.described(chunk, table, None)), table)


def about(data: bytes) -> About:
    """Return what a chunk's column ``about`` says."""
    found: About = pickle.loads(data)
    return found


@dataclass
class _Held:
    """The rows of the chunk that is being read."""

    split: int | None = None
    part: int = 0
    rows: list[pa.RecordBatch] = field(default_factory=list)
    weight: int = 0

    def taken(self) -> tuple[int, list[pa.RecordBatch]]:
        assert self.split is not None, "there are rows"
        found = (self.split << _PARTS_BITS) + self.part, self.rows
        self.part, self.rows, self.weight = self.part + 1, [], 0
        return found


def _pieces(
    batches: Batches, weight_of: Callable[[pa.RecordBatch], int], weight_max: int
) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
    """Yield the rows of each chunk, with its number."""
    held = _Held()
    for batch in batches:
        for split, rows in _splits(batch):
            if split != held.split:
                if held.rows:
                    yield held.taken()
                held = _Held(split)
            held.rows.append(rows)
            held.weight += weight_of(rows)
            if held.weight >= weight_max:
                yield held.taken()
    if held.rows:
        yield held.taken()


def _splits(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each split in a batch, with the position of the split."""
    begin = batch.column(BEGIN).to_numpy()
    ends = [*(np.flatnonzero(np.diff(begin)) + 1).tolist(), len(begin)]
    first = 0
    for end in ends:
        if end > first:
            yield int(begin[first]), batch.slice(first, end - first)
        first = end


def _of_lines(chunk: Chunk, text: bytes, values: pa.Array) -> pa.RecordBatch:
    lines = len(values)
    size = len(text) + 1
    is_first = chunk.begin == 0
    unless_last = None
    try:
        events, torn = jsonl.read_bytes(text, has_events_before=not is_first)
        if torn is not None:
            unless_last = _error(text + b"\n")
    except jsonl.BadLine as error:
        about = About(Prepared(chunk, bad=error), lines, size)
        return _row(chunk, about, SCHEMA.empty_table())
    prepared = chunk_tasks.described(chunk, events, torn)
    return _row(chunk, About(prepared, lines, size, unless_last), events, _blank(values))


def _error(text: bytes) -> jsonl.BadLine:
    """Return why a text with a newline at its end is not events."""
    try:
        jsonl.read_bytes(text, has_events_before=True)
    except jsonl.BadLine as error:
        return error
    raise AssertionError("the last line is not an event")


def _blank(values: pa.Array) -> I32:
    """Return the numbers, from 1, of the lines that have nothing but blanks."""
    is_blank = pc.match_substring_regex(values, r"^[\t\n\v\f\r ]*$")
    return (np.flatnonzero(is_blank.to_numpy(zero_copy_only=False)) + 1).astype(np.int32)


def _row(chunk: Chunk, about: About, events: pa.Table, blank: I32 | None = None) -> pa.RecordBatch:
    lines = b"" if blank is None else blank.tobytes()
    row = [[chunk.begin], [pickle.dumps(about)], [packing.packed(events)], [lines]]
    return pa.record_batch(row, schema=TYPED)
