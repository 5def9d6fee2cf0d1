"""Implements ``faultline check`` for several histories: judges each, stores and prints it."""

import contextlib
import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from checkers.expectations import KNOWN, BadSetting
from checkers.stores import Store
from checkers.verdict import Verdict
from harness.app import check_names, names, remote, remote_check, report
from harness.app.check import Examined, describe, examined, folder_of, session_for
from harness.app.judgements import Kept
from harness.app.progress import Screen
from harness.app.refused import Refused
from harness.app.remote import Remote
from harness.app.uris import Uri
from model.history import BadHistory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    paths: Sequence[Path | Uri], request: Request, screen: Screen, say: Callable[[str], None]
) -> list[Verdict]:
    """Judge all histories with one Spark session; raises :class:`~harness.app.refused.Refused`."""
    verdicts: list[Verdict] = []
    with contextlib.ExitStack() as stack:
        try:
            store, session = None, None
            if uris := [each for each in paths if isinstance(each, Uri)]:
                if request.inline:
                    raise Refused(f"--inline: {uris[0]} can be read by Spark only")
                session = stack.enter_context(remote_check.opened_session())
                store = Store(session)
            found = [each for given in paths for each in _histories(given, store, screen.say)]
            local = [each for each in found if isinstance(each, Path)]
            for path in local:  # fail before the first long judgement
                folder_of(path)
            is_one = request.inline or len(found) == 1  # starts its own session while it reads
            if session is None and not is_one:
                session = stack.enter_context(session_for(local))
            for each in found:
                with _examined(each, request, store, session, screen) as (folder, (judged, kept)):
                    if folder is not None and kept is not None:
                        _render(folder, kept, screen)
                    if request.describes:
                        can_repeat = isinstance(each, Path)
                        say(describe(*judged, folder, kept, can_repeat=can_repeat))
                    elif kept is not None and kept.note is not None:
                        say(kept.note)
                verdicts.append(judged.verdict)
        except BadSetting as error:
            raise Refused(f"{error}{_hint(request.settings)}") from None
        except BadHistory as error:
            raise Refused(str(error)) from None
    return verdicts


def _histories(
    given: Path | Uri, store: Store | None, say: Callable[[str], None]
) -> Sequence[Path | Remote]:
    if isinstance(given, Path):
        return histories(given, say)
    assert store is not None, "there is a session for URIs"
    return remote.histories(store, given, say)


@contextlib.contextmanager
def _examined(
    of: Path | Remote,
    request: Request,
    store: Store | None,
    session: "SparkSession | None",
    screen: Screen,
) -> Iterator[tuple[Path | None, Examined]]:
    """Yield the run's folder, or a copy of it that ends with the block, and the judgement."""
    if isinstance(of, Path):
        with screen.steps() as progress:
            found = examined(
                of,
                inline=request.inline,
                settings=request.settings,
                session=session,
                progress=progress,
                results=request.results,
            )
        yield folder_of(of), found
        return
    assert store is not None, "there is a session for URIs"
    assert session is not None
    with remote.copied_run(store, of) as folder:
        with screen.steps() as progress:
            found = remote_check.examined(
                of,
                folder,
                store,
                session,
                settings=request.settings,
                progress=progress,
                results=request.results,
            )
        yield folder, found


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
        return not is_open or any(os.path.lexists(path / name) for name in check_names.OF_RUNS)
    return check_names.may_be_history(path.name)


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
