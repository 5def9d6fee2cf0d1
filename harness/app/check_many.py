"""Implements ``faultline check`` for several histories: judges each, stores and prints it."""

import contextlib
import glob
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from checkers.expectations import KNOWN, BadSetting
from checkers.verdict import Verdict
from harness.app import names, plan_file, report
from harness.app.check import describe, examined, folder_of, session_for
from harness.app.judgements import Kept
from harness.app.progress import Screen
from harness.app.refused import Refused
from model.history import BadHistory

OF_RUNS = ("history.jsonl", "history.parquet", "history.edn", plan_file.NAME)
"""A folder with one of these is a run."""
OTHER_FILES = (".html", ".json", ".log", ".md", ".png", ".txt", ".xml")
"""How the names of files end that are no histories."""


@dataclass(frozen=True)
class Request:
    """How histories are judged."""

    inline: bool
    settings: Mapping[str, str]
    """Settings that replace the plan's."""
    results: Path
    """The folder for judgements of runs whose own folder cannot be written."""
    describes: bool = True
    """Print each verdict as soon as it is reached; otherwise print only notes about it."""


def judge_all(
    paths: Sequence[Path], request: Request, screen: Screen, say: Callable[[str], None]
) -> list[Verdict]:
    """Judge all histories with one Spark session; raises :class:`~harness.app.refused.Refused`."""
    verdicts: list[Verdict] = []
    with contextlib.ExitStack() as stack:
        try:
            paths = [path for given in paths for path in histories(given, screen.say)]
            for path in paths:  # fail before the first long judgement
                folder_of(path)
            is_one = request.inline or len(paths) == 1  # starts its own session while it reads
            session = None if is_one else stack.enter_context(session_for(paths))
            for path in paths:
                with screen.steps() as progress:
                    judged, kept = examined(
                        path,
                        inline=request.inline,
                        settings=request.settings,
                        session=session,
                        progress=progress,
                        results=request.results,
                    )
                folder = folder_of(path)
                if folder is not None and kept is not None:
                    _render(folder, kept, screen)
                if request.describes:
                    say(describe(*judged, folder, kept))
                elif kept is not None and kept.note is not None:
                    say(kept.note)
                verdicts.append(judged.verdict)
        except BadSetting as error:
            raise Refused(f"{error}{_hint(request.settings)}") from None
        except BadHistory as error:
            raise Refused(str(error)) from None
    return verdicts


def matching(path: Path) -> list[Path]:
    """Return the paths that a pattern such as ``results/*-seed7`` stands for, sorted.

    A path that exists stands for itself. Raises :class:`~harness.app.refused.Refused` for a pattern
    without a match.
    """
    if os.path.lexists(path) or not glob.has_magic(str(path)):
        return [path]
    here = Path(path.anchor or ".")
    found = sorted(here.glob(str(path.relative_to(path.anchor))))
    if not found:
        raise Refused(f"{path}: no file or folder has such a name")
    return found


def histories(path: Path, say: Callable[[str], None]) -> list[Path]:
    """Return the histories and folders of runs that a pattern stands for; see :func:`matching`.

    What holds no history is left out and named by ``say``, unless nothing would be left.
    """
    found = matching(path)
    if found == [path]:  # not a pattern: whatever it is, its reader reports it
        return found
    kept = [each for each in found if _may_hold_history(each)]
    if not kept:
        return found
    for each in found:
        if each not in kept:
            say(f"{each} holds no history and is left out")
    return kept


def _may_hold_history(path: Path) -> bool:
    """Return whether a path must be judged, or refused with the reason.

    A folder with a plan is a run, even one that has lost its history.
    """
    if path.is_dir():
        is_open = os.access(path, os.R_OK | os.X_OK)
        return not is_open or any(os.path.lexists(path / name) for name in OF_RUNS)
    return path.suffix not in OTHER_FILES and not path.name.startswith(".")


def _render(folder: Path, kept: Kept, screen: Screen) -> None:
    """Write a judgement's report; on a read-only or full disk there is only the verdict."""
    if kept.folder is None:
        return
    try:
        report.render(folder, kept.folder)
    except OSError as error:
        screen.say(f"{kept.folder / 'report.html'} cannot be written ({error.strerror})")


def _hint(settings: Mapping[str, str]) -> str:
    """Return the settings that a misspelt setting resembles."""
    like = [each for name in settings if name not in KNOWN for each in names.close_to(name, KNOWN)]
    return f"; did you mean {' or '.join(like)}?" if like else ""
