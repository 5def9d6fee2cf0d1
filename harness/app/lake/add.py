"""Adds the runs of a user's folders to a lake."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.app.lake import folders, run_row
from harness.app.lake.store import Lake
from harness.app.refused import Refused

VARIABLE = "FAULTLINE_LAKE"
"""The environment variable that names the lake where no option and no file does."""
BATCH = 64
"""So many runs are written at once: a killed command loses the work on no more than these."""


class Added(NamedTuple):
    """The result of an addition."""

    lake: str
    runs: int
    """The folders of runs that were found."""
    added: int
    """How many of these are new in the lake, or have a verdict that the lake did not have."""
    incomplete: int
    """How many of those that were read lack a file, or have one that cannot be read."""


def chosen(option: Path | None, in_file: str | None = None) -> Path | None:
    """Return the lake of a request: that of the option, of the file, or of the environment."""
    if option is not None:
        return option
    named = in_file or os.environ.get(VARIABLE)
    return Path(named) if named else None


def opened(option: Path | None, in_file: str | None = None) -> Lake | None:
    """Return the chosen lake of a command that adds its own runs, created if it is missing.

    ``None`` if no lake is named. Raises :class:`~harness.app.refused.Refused`.
    """
    found = chosen(option, in_file)
    return None if found is None else Lake.create(found)


def required(option: Path | None) -> Path:
    """Return the lake of a request that needs one; raises Refused."""
    found = chosen(option)
    if found is None:
        raise Refused(f"no lake is named: use --lake DIR or set {VARIABLE}")
    return found


def add(
    paths: Sequence[Path],
    lake: Path,
    suite: str | None = None,
    progress: Callable[[float, str], None] = lambda done, line: None,
) -> Added:
    """Add the runs in these folders; ``suite`` is that of runs outside of a gate's folder.

    Raises :class:`~harness.app.refused.Refused` before anything is added if a path is not a run,
    a gate or a search, and :class:`OSError` if the lake cannot be written.
    """
    runs = folders.find(paths)
    into = Lake.create(lake)
    judged = into.judged()
    new = [run for run in runs if run_row.id_of(run, run_row.name_of(run)) not in judged]
    added = incomplete = 0
    for begin in range(0, len(new), BATCH):
        rows = [_row(run, suite) for run in new[begin : begin + BATCH]]
        added += into.add(rows)
        incomplete += sum(bool(row["missing"]) for row in rows)
        progress((begin + len(rows)) / len(new), f"{begin + len(rows):,} of {len(new):,} runs")
    return Added(str(lake), len(runs), added, incomplete)


def add_run(
    lake: Lake,
    folder: Path,
    *,
    kept: Path | None,
    about: Mapping[str, str | None] | None = None,
    name: str | None = None,
) -> str | None:
    """Add the run of a command that has just made it; return why it was not added, if so.

    ``kept`` is where the folder stays; ``None`` if it will be removed. ``about`` and ``name`` are
    those of :func:`~harness.app.lake.run_row.of_folder`.
    """
    try:
        row = run_row.of_folder(folder, about, name)
        lake.add([{**row, "folder": None if kept is None else str(kept.resolve())}])
    except (OSError, Refused, run_row.NoRun) as error:
        return str(error)
    return None


def _row(run: Path, suite: str | None) -> dict[str, Any]:
    try:
        return run_row.of_folder(run, {"suite": suite} | folders.about(run))
    except run_row.NoRun as error:
        raise Refused(str(error)) from None


def describe(added: Added) -> str:
    """Return the result as one line."""
    known = added.runs - added.added
    parts = [f"{added.lake}: {added.added:,} runs added"]
    parts += [f"{known:,} were there already"] if known else []
    parts += [f"{added.incomplete:,} lack a file"] if added.incomplete else []
    return ", ".join(parts)
