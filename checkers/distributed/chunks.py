"""A chunk is a range of adjacent events of a history's file, which one task reads."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from checkers import jsonl, parquet
from checkers.distributed import packing
from model.history import BadHistory

EVENTS = 1 << 20
"""About how many events a chunk of a Parquet file has."""
BYTES = 128 << 20
"""About how large a chunk of JSON lines is."""


class Chunk(NamedTuple):
    """A range of a file: of row groups in Parquet, else of bytes.

    The chunks of a file that only Spark reads have their number in place of a range.
    """

    path: str
    begin: int
    end: int
    data: bytes = b""
    """The events, packed, if a task has got them with the chunk."""

    @property
    def is_typed(self) -> bool:
        """Whether it has rows, and not lines."""
        return self.path.endswith(".parquet")


def of_file(path: Path, *, events: int = EVENTS, size: int = BYTES) -> list[Chunk]:
    """Cut a history's file into chunks of about so many events, or bytes.

    Raises :class:`~model.history.BadHistory` for Parquet that cannot be read.
    """
    cut = _groups(path, events) if path.suffix == ".parquet" else _lines(path, size)
    return [Chunk(str(path), begin, end) for begin, end in cut]


def _groups(path: Path, events: int) -> Iterator[tuple[int, int]]:
    try:
        metadata = pq.read_metadata(path)
    except (pa.ArrowException, OSError) as error:
        raise BadHistory(f"{path} is not a history: {error}".replace("\n", " ")) from error
    begin, rows = 0, 0
    for group in range(metadata.num_row_groups):
        rows += metadata.row_group(group).num_rows
        if rows >= events:
            yield begin, group + 1
            begin, rows = group + 1, 0
    if begin < metadata.num_row_groups:
        yield begin, metadata.num_row_groups


def _lines(path: Path, size: int) -> Iterator[tuple[int, int]]:
    end = path.stat().st_size
    begin = 0
    with path.open("rb") as file:
        while begin < end:
            file.seek(begin + size)
            file.readline()
            stop = min(file.tell(), end)
            yield begin, stop
            begin = stop


def rows(chunk: Chunk) -> pa.Table:
    """Return the events of a chunk of a Parquet file, or of a chunk with its data.

    What the reader of the whole file left out is noted in the first chunk alone. Raises
    :class:`~model.history.BadHistory`.
    """
    if chunk.data:
        return packing.unpacked([chunk.data])
    return parquet.read_groups(Path(chunk.path), chunk.begin, chunk.end)


def lines(chunk: Chunk) -> jsonl.Range:
    """Return the events of a chunk of JSON lines. Raises :class:`~checkers.jsonl.BadLine`."""
    return jsonl.read_range(Path(chunk.path), chunk.begin, chunk.end)
