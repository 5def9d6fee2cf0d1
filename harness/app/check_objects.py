"""Implements ``faultline check --model``: judges histories of any data type, file by file."""

import glob
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from checkers import objects, recorded
from checkers.linearizability.judging import Budget
from checkers.objects import ObjectVerdict
from harness.app.refused import Refused
from model.history import BadHistory

SUFFIXES = (".edn", ".json", ".jsonl", ".log", ".txt")
"""The files of a folder that are judged."""
_NAMES: dict[objects.Valid, str] = {True: "VALID", False: "INVALID", "unknown": "UNKNOWN"}


@dataclass(frozen=True)
class Request:
    """How histories are judged."""

    model: str
    initial: Any = objects.UNSET
    keyed: bool = False
    consistency: str = objects.LINEAR
    budget: Budget = field(default_factory=Budget)
    page: Path | None = None
    """Where the page about a single history is written."""


class FileVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict about a file."""

    path: str
    verdict: ObjectVerdict


def judge_all(
    given: Sequence[str], request: Request, found: Callable[[FileVerdict], None]
) -> list[FileVerdict]:
    """Judge files, the files of folders, and those that match a pattern; ``found`` receives each
    verdict as soon as it is reached.

    Of several files, one that cannot be read is unknown; a single one raises
    :class:`~harness.app.refused.Refused`, as an unknown model does.
    """
    if request.model not in objects.NAMES:
        raise Refused(f"--model {request.model}: it must be one of {', '.join(objects.NAMES)}")
    try:
        objects.check([], request.model, consistency=request.consistency)
    except ValueError as error:
        raise Refused(f"--consistency {request.consistency}: {error}") from None
    paths = [path for each in given for path in _files(each)]
    if request.page is not None and len(paths) != 1:
        raise Refused(f"--page is about one history, and these are {len(paths)}")
    verdicts = []
    for path in paths:
        try:
            verdict = _judged(path, request)
        except BadHistory as error:
            if len(paths) == 1:
                raise Refused(str(error)) from None
            verdict = ObjectVerdict(
                valid="unknown", model=request.model, operations=0, unknown_because=str(error)
            )
        verdicts.append(FileVerdict(path=str(path), verdict=verdict))
        found(verdicts[-1])
    return verdicts


def _files(given: str) -> Iterator[Path]:
    path = Path(given)
    if path.is_dir():
        found = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES)
        if not found:
            raise Refused(f"{path} has no file that ends in {', '.join(SUFFIXES)}")
        yield from found
    elif path.exists() or not glob.has_magic(given):
        yield path
    else:
        matches = sorted(glob.glob(given, recursive=True))  # noqa: PTH207 - may be absolute
        if not matches:
            raise Refused(f"{given} matches no file")
        yield from map(Path, matches)


def _judged(path: Path, request: Request) -> ObjectVerdict:
    history = recorded.read(path)
    initial = request.initial
    if initial is objects.UNSET and history.initial is not None:
        initial = history.initial
    judged = objects.judged(
        history.events,
        request.model,
        initial=initial,
        keyed=request.keyed,
        consistency=request.consistency,
        budget=request.budget,
    )
    notes = () if history.torn is None else (history.torn,)
    verdict = msgspec.structs.replace(judged.verdict, notes=(*judged.verdict.notes, *notes))
    if request.page is not None:
        from harness.app.objects_page import page  # a template engine, which few need

        page.render(request.page, str(path), judged._replace(verdict=verdict))
    return verdict


def lines(each: FileVerdict) -> Iterator[str]:
    """Yield the lines that show a verdict."""
    verdict = each.verdict
    found = ", ".join(f"{name}: {count}" for name, count in verdict.anomalies.items())
    what = f"{verdict.model}, {verdict.operations:,} operations"
    yield f"{_NAMES[verdict.valid]:<8} {each.path} ({what})" + (f": {found}" if found else "")
    reasons = () if verdict.unknown_because is None else (verdict.unknown_because,)
    yield from (f"  {line}" for line in (*reasons, *verdict.why, *verdict.notes))


def summary(verdicts: Sequence[FileVerdict]) -> str:
    """Return how many files have which verdict."""
    counts = Counter(_NAMES[each.verdict.valid] for each in verdicts)
    parts = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return f"{len(verdicts)} files: {parts}"
