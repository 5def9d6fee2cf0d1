"""The chunks of a file at a URI, which only Spark can read.

Executors read and type each part of the file once. Spark keeps the typed chunks on their disks, and
makes those of a lost executor again, so later tasks need neither the file nor a shared folder.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from checkers import engine, left_out
from checkers.distributed import stream_task
from checkers.distributed.chunk_tasks import Prepared
from checkers.distributed.on_spark import OnSpark, Progress, streamed
from checkers.distributed.runner import Runner
from checkers.distributed.stream_task import BEGIN, FIELDS, LINE, About
from checkers.jsonl import torn_line
from checkers.pieces import SCHEMA
from model.history import BadHistory

BYTES = 32 << 20
"""About how many bytes of a file a task of Spark reads."""
ROWS = 1 << 18
"""About how many events a chunk of a Parquet file has."""
_SPLIT = "spark.sql.files.maxPartitionBytes"
_BEGIN = f"_metadata.file_block_start AS {BEGIN}"


class Lines(NamedTuple):
    """What is known of a file of lines before it is read."""

    size: int | None
    """The number of its bytes; ``None`` if it is compressed."""
    is_ended: bool | None
    """Whether its last line ends with a newline; ``None`` if it is compressed."""


class Incomplete(RuntimeError):
    """Spark has not read a file from its beginning to its end."""


class HeldSource(ABC):
    """The :class:`~checkers.distributed.source.Source` of such a file."""

    def __init__(
        self, session: Any, name: str, rows: Any, progress: Progress, *, split_bytes: int
    ) -> None:
        self._session, self._rows, self._split_bytes = session, rows, split_bytes
        self.name = name
        self.runner = OnSpark(session, progress, rows)
        self._known: list[About] = []

    def prepared(self, runner: Runner) -> list[Prepared]:
        """Read and type all chunks."""
        with _set(self._session, _SPLIT, f"{self._split_bytes}b"), self.runner.watched(1):
            rows = self._rows.select("id", "about").toArrow()
        known = [stream_task.about(data.as_py()) for data in rows.sort_by("id")["about"]]
        self._known = self.checked(known)
        for place, each in enumerate(self._known):
            bad = each.prepared.bad
            if isinstance(bad, str):
                raise BadHistory(bad)
            if bad is not None:
                raise BadHistory(f"{self.name}, line {self._lines_before(place) + bad.line}: {bad}")
        return [each.prepared for each in self._known]

    @abstractmethod
    def checked(self, known: list[About]) -> list[About]:
        """Return what is known of all chunks, given that there are no others.

        Raises :class:`Incomplete`.
        """

    def place(self, event: int, row: int) -> str:
        """Return where the event with this index and row is."""
        return f"{self.name}: event {event}: "

    def torn(self, prepared: Sequence[Prepared]) -> str | None:
        """Return what was left out at the end of the file."""
        for place, each in enumerate(prepared):
            if isinstance(each.torn, int):
                return torn_line(self._lines_before(place) + each.torn)
            if each.torn is not None:
                return each.torn
        return None

    def _lines_before(self, place: int) -> int:
        return sum(each.lines for each in self._known[:place])


class HeldLines(HeldSource):
    """The chunks of a file of JSON lines."""

    def __init__(self, *given: Any, lines: Lines, split_bytes: int) -> None:
        super().__init__(*given, split_bytes=split_bytes)
        self._lines = lines

    def checked(self, known: list[About]) -> list[About]:
        """Return what is known of all chunks: only the last line of the file can be torn.

        Raises :class:`Incomplete`.
        """
        size, is_ended = self._lines
        read = sum(each.size for each in known) - (0 if is_ended else 1)
        if size is not None and known and read != size:
            raise Incomplete(f"Spark has read {read:,} of {size:,} bytes of {self.name}")
        found = []
        for place, each in enumerate(known, start=1):
            if each.unless_last is not None and (is_ended is not False or place < len(known)):
                if is_ended is None and place == len(known):
                    raise Incomplete(f"it is not known whether {self.name} ends with a newline")
                changed = each.prepared._replace(bad=each.unless_last, torn=None)
                each = each._replace(prepared=changed)
            found.append(each)
        return found

    def place(self, event: int, row: int) -> str:
        """Return the line of the event with this index and row."""
        borders = [each.prepared.border for each in self._known]
        ends = list(accumulate(0 if border is None else border.rows for border in borders))
        place = int(np.searchsorted(ends, row, side="right"))
        known = self._known[place]
        wanted = self._rows.where(f"id = {known.prepared.chunk.begin}").select("blank").toArrow()
        blank = np.frombuffer(wanted["blank"][0].as_py(), dtype=np.int32)
        lines = np.setdiff1d(np.arange(1, known.lines + 1), blank)
        before = ends[place - 1] if place else 0
        line = self._lines_before(place) + int(lines[row - before])
        return f"{self.name}, line {line}: event {event}: "


class HeldRows(HeldSource):
    """The chunks of a Parquet file, given its footer's schema, with its notes, and its rows."""

    def __init__(self, *given: Any, schema: pa.Schema, num_rows: int, split_bytes: int) -> None:
        super().__init__(*given, split_bytes=split_bytes)
        self._notes, self._num_rows = schema.empty_table(), num_rows

    def checked(self, known: list[About]) -> list[About]:
        """Return what is known of all chunks; the notes come with the first one.

        Raises :class:`Incomplete`.
        """
        borders = [each.prepared.border for each in known]
        read = sum(border.rows for border in borders if border is not None)
        if read != self._num_rows and not any(each.prepared.bad for each in known):
            raise Incomplete(f"Spark has read {read:,} of {self._num_rows:,} rows of {self.name}")
        for each in known[:1]:
            noted = each.prepared._replace(
                torn=left_out.torn(self._notes), unknown=left_out.fields_of(self._notes)
            )
            known[0] = each._replace(prepared=noted)
        return known


@contextmanager
def lines(
    session: Any, uri: str, progress: Progress, known: Lines, *, size: int = BYTES
) -> Iterator[HeldLines]:
    """Yield the chunks of a file of JSON lines, perhaps compressed as Spark can read it."""
    name = engine.redacted(uri)
    text = session.read.option("lineSep", "\n").text(uri)
    rows = text.selectExpr(f"CAST(value AS BINARY) AS {LINE}", _BEGIN)
    with _kept(rows, partial(stream_task.typed_lines, name, size)) as kept:
        yield HeldLines(session, name, kept, progress, lines=known, split_bytes=size)


@contextmanager
def rows(
    session: Any,
    uri: str,
    progress: Progress,
    schema: pa.Schema,
    num_rows: int,
    *,
    size: int = BYTES,
    rows_max: int = ROWS,
) -> Iterator[HeldRows]:
    """Yield the chunks of a Parquet file whose schema is that of histories.

    A row group is not divided between tasks.
    """
    name = engine.redacted(uri)
    table = session.read.parquet(uri)
    rows = table.selectExpr(*(f"`{name}`" for name in SCHEMA.names), _BEGIN)
    with _kept(rows, partial(stream_task.typed_rows, name, rows_max)) as kept:
        yield HeldRows(
            session, name, kept, progress, schema=schema, num_rows=num_rows, split_bytes=size
        )


@contextmanager
def _kept(rows: Any, task: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield the typed chunks of rows, which Spark keeps on disk until the end of the block."""
    from pyspark import StorageLevel

    kept = rows.mapInArrow(streamed(task), FIELDS).persist(StorageLevel.DISK_ONLY)
    try:
        yield kept
    finally:
        kept.unpersist()


@contextmanager
def _set(session: Any, name: str, value: str) -> Iterator[None]:
    before = session.conf.get(name)
    session.conf.set(name, value)
    try:
        yield
    finally:
        session.conf.set(name, before)
