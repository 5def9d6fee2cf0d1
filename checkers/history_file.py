"""Reads a history file of any format, and rejects histories that cannot be judged."""

from pathlib import Path

import pyarrow as pa

from checkers import completions, jepsen, jsonl, memory, parquet, wellformed
from checkers.columns import Columns
from checkers.pieces import Progress
from checkers.threads import THREADS
from model.history import BadHistory, segments


def read(path: Path, progress: Progress) -> pa.Table:
    """Return the events of a ``.parquet``, a Jepsen ``.edn`` or a JSON-lines file. Raises
    :class:`BadHistory` if it holds none."""
    memory.reuse()
    readers = {".parquet": parquet.read, ".edn": jepsen.read}
    try:
        history = readers.get(path.suffix, jsonl.read)(path, progress)
    except RecursionError as error:
        raise BadHistory(f"{path} is nested too deeply") from error
    except OSError as error:
        raise BadHistory(f"{path} cannot be read: {error.strerror}") from error
    if not history.num_rows:
        raise BadHistory(f"{path} has no events")
    memory.release()
    return history


def columns(history: pa.Table, source: Path | None = None) -> Columns:
    """Return the columns of a history that can be judged. Raises what :func:`checked` raises."""
    columns = Columns(history)
    columns.doubts = checked(history, columns, source, THREADS)
    return columns


def checked(
    history: pa.Table, columns: Columns, source: Path | None, threads: int = 1
) -> tuple[str, ...]:
    """Return the doubts about a history that can be judged, one sentence each.

    Raises :class:`BadHistory` when its events break a rule of :mod:`checkers.wellformed` or
    :mod:`checkers.completions`, with the line in ``source``, the file that it was read from.
    """
    if (broken := wellformed.broken(history, columns)) is not None:
        raise BadHistory(_place(columns, broken.row, source) + broken.why)
    doubts = []
    for misfit in completions.misfits(columns, threads):
        if not misfit.is_doubt:
            raise BadHistory(_place(columns, misfit.row, source) + misfit.why)
        doubts.append(_place(columns, misfit.row, None) + misfit.why)
    return tuple(doubts)


def _place(columns: Columns, row: int, source: Path | None) -> str:
    return place(int(columns.index[row]), row, source)


def place(index: int, row: int, source: Path | None) -> str:
    """Return where the event with this index and row is, as the beginning of a message."""
    event = f"event {index}: "
    if source is None:
        return event
    is_edn = source.suffix == ".edn"
    file, line = (source, jepsen.line_of(source, row)) if is_edn else _line_of(source, row)
    return f"{file}, line {line}: {event}" if line else f"{file}: {event}"


def _line_of(path: Path, row: int) -> tuple[Path, int | None]:
    """Return the segment and the line of an event, given its row from 0; no line for a file without
    lines."""
    if path.suffix == ".parquet":
        return path, None
    for each in segments(path):
        with each.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    if not row:
                        return each, number
                    row -= 1
    return path, None
