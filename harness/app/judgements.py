"""The judgements of a run: which of them is the verdict, and where the others are stored.

``verdict.json``, ``findings.parquet`` and ``report.html`` in a run's folder are the judgement under
the plan's own contract. Every other judgement has a folder of its own, ``judgements/<n>/``, with
the same three files: a judgement under other settings, one that did not finish, one that is weaker
than the verdict, and a former verdict that another has replaced.
"""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow.parquet as pq

from checkers import findings as findings_
from checkers import verdict as verdict_
from checkers.verdict import Verdict
from harness.app import files, temporary
from model.finding import Finding

FOLDER = "judgements"
VERDICT = "verdict.json"
FINDINGS = "findings.parquet"
PAGE = "report.html"
NUMBERS = range(1, 100_000)
_WORDS = {True: "VALID", False: "INVALID", "unknown": "UNKNOWN"}


class Judged(NamedTuple):
    """A verdict, with the findings that it counts."""

    verdict: Verdict
    findings: Sequence[Finding]


class Kept(NamedTuple):
    """Where the files of a judgement are."""

    folder: Path | None
    """``None`` if neither the run's folder nor the results folder can be written."""
    is_verdict: bool
    """True if this judgement is the verdict of the run."""
    note: str | None = None
    """One line for the user: why the judgement is not the verdict, and where it is stored."""


def keep(folder: Path, judged: Judged, results: Path) -> Kept:
    """Write a judgement into a run's folder; under ``results`` if that cannot be written."""
    with _alone(folder):
        standing = read(folder)
        reason = _why_not(judged.verdict, standing)
        is_verdict = reason is None
        if is_verdict and standing is not None and _is_same(folder, standing, judged):
            with contextlib.suppress(OSError):  # the same judgement is stored already
                _write(folder, judged)
            return Kept(folder, is_verdict)
        try:
            if not is_verdict:
                kept = Kept(_beside(folder / FOLDER, judged), is_verdict)
            else:
                _set_aside(folder)
                _write(folder, judged)
                kept = Kept(folder, is_verdict)
        except OSError as error:
            why = f"{error.filename or folder} cannot be written ({error.strerror})."
            kept = _elsewhere(folder, judged, results, why)
            reason = " ".join(part for part in (reason, kept.note) if part)
    if kept.is_verdict:
        return kept
    return kept._replace(note=_note(judged.verdict, standing, reason, kept))


def keep_here(copy: Path, name: str, judged: Judged, results: Path) -> Kept:
    """Write a judgement of a run that is not on this machine under ``results``.

    ``copy`` has the run's former verdict, if there is one; ``name`` is what messages call the run.
    """
    standing = read(copy)
    kept = _elsewhere(copy, judged, results, f"Nothing is written to {name}.")
    reason = " ".join(part for part in (_why_not(judged.verdict, standing), kept.note) if part)
    return kept._replace(note=_note(judged.verdict, standing, reason, kept))


def read(folder: Path) -> Verdict | None:
    """Return the verdict in a folder; ``None`` if there is none or it cannot be read."""
    try:
        return msgspec.json.decode((folder / VERDICT).read_bytes(), type=Verdict)
    except (OSError, msgspec.MsgspecError):
        return None


def anomalies(folder: Path) -> set[str]:
    """Return the illegal anomalies of all judgements of a run."""
    places = [folder, *sorted((folder / FOLDER).glob("*"))]
    found = [verdict.anomalies for place in places if (verdict := read(place)) is not None]
    return {name for names in found for name in names}


def contract_of(verdict: Mapping[str, Any]) -> str:
    """Return, in a sentence, the contract of a ``verdict.json``.

    Returns an empty string if an older version did not record it.
    """
    contract = verdict.get("contract")
    if not isinstance(contract, Mapping) or not contract:
        return ""
    settings = verdict.get("settings") or {}
    promised = ", ".join(_promise(name, contract[name]) for name in contract)
    if not settings:
        return f"This judgement uses the plan's own contract: {promised}."
    changed = ", ".join(f"{name}={value}" for name, value in settings.items())
    return f"This judgement uses {changed} in place of the plan's settings: {promised}."


def _promise(name: str, value: object) -> str:
    words, _, unit = name.rpartition("_")
    if unit in ("s", "ms") and isinstance(value, int | float):
        number = f"{value:,}".removesuffix(".0")
        return f"{_LABELS.get(words, words.replace('_', ' '))} {number} {unit}"
    plain = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
    return f"{name.replace('_', ' ')} {plain}"


_LABELS = {"hears": "a broker learns of a new leader within"}
"""The words for fields of a contract whose names do not explain themselves."""


def _why_not(verdict: Verdict, standing: Verdict | None) -> str | None:
    """Return why a judgement does not become the verdict of its run; ``None`` if it does."""
    if verdict.settings:
        changed = ", ".join(f"{name}={value}" for name, value in verdict.settings.items())
        return f"This judgement uses {changed} in place of the plan's settings."
    if standing is None or verdict_.replaces(verdict, standing):
        return None
    if not verdict_.is_complete(verdict):
        return "This judgement was not completed."
    return f"A later {_WORDS[verdict.valid]} does not replace an earlier {_WORDS[standing.valid]}."


def _note(verdict: Verdict, standing: Verdict | None, reason: str | None, kept: Kept) -> str:
    if standing is None:
        what = "The run still has no verdict"
    else:
        what = f"The verdict of the run stays {_WORDS[standing.valid]}"
    where = "not stored" if kept.folder is None else f"stored in {kept.folder}"
    return f"{reason} {what}; this judgement is {where}."


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Serialize the judgements of a folder, where the file system supports locks."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            held = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, held)
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _write(folder: Path, judged: Judged) -> None:
    """Write the findings, then the verdict that counts them, each file atomically."""
    files.write(folder / FINDINGS, lambda path: findings_.write(path, judged.findings))
    files.replace(folder / VERDICT, judged.verdict.to_json())


def _is_same(folder: Path, verdict: Verdict, judged: Judged) -> bool:
    """Return whether two judgements agree, apart from their duration and the code's version."""
    if verdict_.essence(verdict) != verdict_.essence(judged.verdict):
        return False
    with temporary.folder(None, "faultline-") as place:
        again = place / FINDINGS
        findings_.write(again, judged.findings)
        try:
            same: bool = pq.read_table(again).equals(pq.read_table(folder / FINDINGS))
        except (OSError, ValueError):  # it is missing, or was torn
            return False
        return same


def _beside(home: Path, judged: Judged) -> Path:
    """Write a judgement into a folder of its own, or return the folder of an equal one."""
    for place in sorted(home.glob("*")):
        verdict = read(place)
        if verdict is not None and _is_same(place, verdict, judged):
            return place
    place = _new(home)
    try:
        _write(place, judged)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return place


def _set_aside(folder: Path) -> None:
    """Move the files of the former verdict to a folder of their own."""
    if not (folder / VERDICT).exists():
        return
    place = _new(folder / FOLDER)
    for name in (VERDICT, FINDINGS, PAGE):  # the verdict first, as the others belong to it
        with contextlib.suppress(FileNotFoundError):
            (folder / name).rename(place / name)


def _new(home: Path) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    for number in NUMBERS:
        with contextlib.suppress(FileExistsError):
            (home / str(number)).mkdir()
            return home / str(number)
    raise FileExistsError(f"{home} has no free number for another judgement")


def _elsewhere(folder: Path, judged: Judged, results: Path, why: str) -> Kept:
    """Write a judgement under ``results``; ``why`` it is not in the run's folder.

    The folder belongs to another user, its disk is read-only or full, or it is not on this machine.
    """
    try:
        return Kept(_beside(results / FOLDER / folder.resolve().name, judged), False, why)
    except OSError as other:
        also = f"{other.filename or results} cannot be written ({other.strerror})."
        return Kept(None, False, f"{why} {also}")
