"""Adds the histories that a user names to the tables, one after the other."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from checkers import history_file
from harness.app import check, check_many, typed_history, unpacking
from harness.app.lake import run_row
from harness.app.refused import Refused
from harness.app.tables import rows, store
from model.history import BadHistory

MOST_EVENTS = 1 << 24
"""The tables of a history with more events are not written: it must fit into memory."""


class Added(NamedTuple):
    """The result of an addition."""

    tables: str
    runs: list[str]


def add(
    paths: Sequence[Path],
    root: Path,
    say: Callable[[str], None] = lambda line: None,
    progress: Callable[[float, str], None] = lambda done, line: None,
) -> Added:
    """Write the tables of these histories into a folder; a run's earlier ones are replaced.

    Raises :class:`~harness.app.refused.Refused`, and :class:`OSError` if the folder cannot be
    written. Histories before a bad one are in the tables.
    """
    try:
        found = [each for path in paths for each in check_many.histories(path, say)]
        named = {each: name_of(*check.located(each)) for each in found}
        _refuse_same(named)
        store.create(root)
        for at, (path, run) in enumerate(named.items()):
            progress(at / len(named), run)
            _add(path, run, root)
    except BadHistory as error:
        raise Refused(str(error)) from None
    return Added(str(root), list(named.values()))


def name_of(folder: Path | None, file: Path) -> str:
    """Return the name of a run: that of its folder, as in a lake, or of a file without its endings.

    A file that is only called ``history`` has the name of the folder that it is in.
    """
    if folder is not None:
        return run_row.name_of(folder)
    name = file.name.partition(".")[0] or file.name
    return file.resolve().parent.name if name == "history" else name


def _refuse_same(named: dict[Path, str]) -> None:
    by_name: dict[str, Path] = {}
    for path, name in named.items():
        other = by_name.setdefault(name, path)
        if other.resolve() != path.resolve():
            raise Refused(f"{other} and {path} would both be the run {name}; rename one of them")


def _add(path: Path, run: str, root: Path) -> None:
    folder, file = check.located(path)
    with unpacking.plain(file) as text:
        history = typed_history.read(folder, text, lambda done: None)
        if history.num_rows > MOST_EVENTS:
            raise Refused(
                f"{path} has {history.num_rows:,} events; tables are written of histories with up"
                f" to {MOST_EVENTS:,}"
            )
        columns = history_file.columns(history, text)
    del history  # frees memory that the tables do not need
    store.replace(root, run, rows.of_history(columns))


def describe(added: Added) -> str:
    """Return the result as one line."""
    count = len(added.runs)
    return f"{added.tables}: the tables of {count:,} run{'' if count == 1 else 's'} were written"
