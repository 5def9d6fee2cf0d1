"""Reads the typed copy of a run's history in place of the text from which it was made.

The copy, ``history.parquet``, has a digest of the text, and one of the code that read it. If the
history was changed since, or if another version of that code made the copy, the text is read again.
"""

import contextlib
import functools
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

import checkers
import model
from checkers import history_file, left_out, parquet, segments
from checkers.overview import Overview
from checkers.pieces import SCHEMA, Progress
from harness.app import files
from model import history as history_
from model.history import BadHistory

NAME = "history.parquet"
_SOURCE = b"faultline.source"
"""The key of the metadata that names text and readers."""


def read(folder: Path | None, file: Path, progress: Progress) -> pa.Table:
    """Return the events of a history file; ``folder`` is the run's, ``None`` for a bare history.

    A run's folder gets the copy if it has none of this text. Raises
    :class:`~model.history.BadHistory`.
    """
    if folder is None or file.name == NAME:
        return history_file.read(file, progress)
    copy, source = folder / NAME, _source(file)
    if _is_copy(copy, source):
        with contextlib.suppress(BadHistory):  # damaged, perhaps; the text counts
            return _without_source(history_file.read(copy, progress))
    history = segments.read(file, progress)
    if source is not None:
        _write(copy, source, history.schema, [history])
    return history


def join(folder: Path, file: Path, chunks: Sequence[Path], overview: Overview) -> None:
    """Give a run's folder the copy of a text that was read in chunks, which are Parquet files.

    One row group is in memory at a time.
    """
    source = _source(file)
    if source is not None:
        noted = left_out.noted(SCHEMA.empty_table(), overview.torn, overview.unknown)
        _write(folder / NAME, source, noted.schema, _groups(chunks))


def _groups(chunks: Sequence[Path]) -> Iterator[pa.Table]:
    for chunk in chunks:
        with pq.ParquetFile(chunk) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group).replace_schema_metadata(None)


def _write(copy: Path, source: bytes, schema: pa.Schema, groups: Iterable[pa.Table]) -> None:
    marked = schema.with_metadata({**(schema.metadata or {}), _SOURCE: source})

    with contextlib.suppress(OSError):  # another user's folder, or a full disk
        files.write(copy, lambda path: parquet.write(path, marked, groups))


def copy_of(folder: Path | None, file: Path) -> Path:
    """Return the file to read in place of a history: its typed copy, or itself if it has none."""
    if folder is None or file.name == NAME or not _is_copy(folder / NAME, _source(file)):
        return file
    return folder / NAME


def _is_copy(copy: Path, source: bytes | None) -> bool:
    return source is not None and _source_of(copy) == source


def _source(file: Path) -> bytes | None:
    """Return what names this text and these readers; ``None`` if the text cannot be read."""
    found = hashlib.sha256()
    try:
        for segment in history_.segments(file):
            with segment.open("rb") as text:
                digest = hashlib.file_digest(text, "sha256")
            found.update(digest.digest())
    except OSError:
        return None
    return f"sha256:{found.hexdigest()} read by {_readers()}".encode()


def _source_of(copy: Path) -> bytes | None:
    if not copy.is_file():  # reading a pipe would not end
        return None
    try:
        metadata = pq.read_schema(copy).metadata or {}
    except (OSError, pa.ArrowException):
        return None
    source: bytes | None = metadata.get(_SOURCE)
    return source


def _without_source(history: pa.Table) -> pa.Table:
    metadata = {k: v for k, v in (history.schema.metadata or {}).items() if k != _SOURCE}
    return history.replace_schema_metadata(metadata or None)


@functools.cache
def _readers() -> str:
    """Return a digest of the code that makes tables of histories."""
    found = hashlib.sha256(f"msgspec {msgspec.__version__} pyarrow {pa.__version__}".encode())
    for package in (checkers, model):
        for module in sorted(Path(str(package.__file__)).parent.glob("*.py")):
            found.update(module.read_bytes())
    return found.hexdigest()
