"""Finds the folders of runs in what a user names: runs, gates and searches."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.app.check_many import matching
from harness.app.gate import outcome as gate_outcome
from harness.app.lake import run_row
from harness.app.refused import Refused
from harness.app.search import outcome as search_outcome

RUNS = "runs"
"""The folder of a gate with the folders of its runs."""


def find(paths: Sequence[Path]) -> list[Path]:
    """Return the folders of runs, each once; patterns are expanded.

    The folder of a gate or a search stands for all runs that are left in it. Raises
    :class:`~harness.app.refused.Refused` for any other path, and for a pattern that matches none of
    these; what else a pattern matches is left out.
    """
    named = [path for given in paths for path in _matching(given)]
    return list(dict.fromkeys(run for path in named for run in _runs(path)))


def _matching(path: Path) -> list[Path]:
    """Return the paths that a pattern such as ``results/2026*`` stands for, sorted."""
    found = matching(path)
    if found == [path]:
        return found
    kept = [each for each in found if is_run(each) or _has_runs(each)]
    if not kept:
        raise Refused(f"{path}: no folder of a run, a gate or a search has such a name")
    return kept


def _has_runs(path: Path) -> bool:
    return any((path / name).is_file() for name in (gate_outcome.FILE, search_outcome.FILE))


def _runs(path: Path) -> Iterator[Path]:
    try:
        path.stat()
    except FileNotFoundError:
        pass  # named below
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Refused(f"{path} cannot be read: {why}") from None
    if not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise Refused(f"{path} {what}; name the folders of runs or of gates")
    if is_run(path):
        yield path
    elif (path / gate_outcome.FILE).is_file():
        yield from filter(is_run, sorted((path / RUNS).glob("*")))
    elif (path / search_outcome.FILE).is_file():
        yield from filter(is_run, sorted(path.glob("seed*")))
    else:
        raise Refused(f"{path} is the folder of neither a run nor a gate nor a search")


def is_run(path: Path) -> bool:
    """Return whether a folder has a file of a run."""
    return path.is_dir() and any((path / name).is_file() for name in run_row.MARKERS)


def about(run: Path) -> dict[str, Any]:
    """Return the suite and the configuration of a run that is in the folder of its gate."""
    run = run.resolve()
    gate = gate_outcome.read(run.parent.parent) if run.parent.name == RUNS else None
    if gate is None:
        return {}
    place = run.relative_to(run.parent.parent).as_posix()
    named = [case.configuration for case in gate.cases if case.folder == place]
    return {"suite": gate.suite, **({"configuration": named[0]} if named else {})}
