"""A long history in several files: its segments are read one after the other, as one table."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from checkers import history_file, left_out
from checkers.pieces import Progress
from model import history
from model.history import BadHistory


def read(first: Path, progress: Progress) -> pa.Table:
    """Return the events of a history whose first segment is this file.

    Raises :class:`~model.history.BadHistory`, also if a segment before the last one has an
    incomplete line.
    """
    paths = [path for path in history.segments(first) if path == first or path.stat().st_size]
    if len(paths) == 1:
        return history_file.read(first, progress)
    tables = []
    for number, path in enumerate(paths, start=1):
        tables.append(history_file.read(path, lambda done: None))
        progress(number / len(paths))
    for (path, following), table in zip(pairwise(paths), tables, strict=False):
        if (torn := left_out.torn(table)) is not None:
            raise BadHistory(incomplete(path, following, torn))
    whole = pa.concat_tables([table.replace_schema_metadata(None) for table in tables])
    unknown = sum((left_out.fields_of(table) for table in tables), Counter[str]())
    joined = whole.unify_dictionaries().combine_chunks()
    return left_out.noted(joined, left_out.torn(tables[-1]), unknown)


def incomplete(path: Path, following: Path, torn: str) -> str:
    """Return why a history is refused that has an incomplete line before its last segment."""
    return f"{path}: {torn}, but the history goes on in {following.name}"
