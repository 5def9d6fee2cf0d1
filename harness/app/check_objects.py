"""Implements ``faultline check --model``: judges histories of any data type, file by file."""

import glob
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from checkers import objects, recorded, transaction_models
from checkers.distributed.runner import Runner
from checkers.isolation import columnar as list_columns
from checkers.isolation import reading
from checkers.isolation.columnar import ListFile
from checkers.linearizability import columnar, models, operations
from checkers.linearizability.columnar import Columns
from checkers.linearizability.judging import Budget
from checkers.object_verdict import ObjectVerdict, Valid
from checkers.objects import Judged
from harness.app import large_lists
from harness.app.large_lists import Where
from harness.app.refused import Refused
from model.history import BadHistory
from model.op import Op

SUFFIXES = (".edn", ".hist", ".json", ".jsonl", ".log", ".txt", columnar.SUFFIX)
"""The files of a folder that are judged."""
_STORED = (*objects.LINEARIZABLE, transaction_models.LISTS)
"""The models whose histories have a form in Parquet."""
_AMBIGUOUS = "0 is also written to a key, so that it is not known what reads of 0 saw"
_NAMES: dict[Valid, str] = {True: "VALID", False: "INVALID", "unknown": "UNKNOWN"}


@dataclass(frozen=True)
class Request:
    """How histories are judged."""

    model: str
    initial: Any = objects.UNSET
    keyed: bool = False
    consistency: tuple[str, ...] = ()
    anomalies: tuple[str, ...] = ()
    assume: tuple[str, ...] = ()
    budget: Budget | None = None
    """How long to search; the models know how long if nothing is said."""
    page: Path | None = None
    """Where the page about a single history is written."""
    parquet: Path | None = None
    """Where the operations of a single history are written as a Parquet file."""
    pictures: Path | None = None
    """The folder for the drawings of a single history."""
    where: Where | None = None
    """Where transactions in a Parquet file are judged; by default on Spark if they are too many for
    this machine's memory."""

    def judged(
        self,
        history: Sequence[Op] | Columns | ListFile,
        initial: Any = objects.UNSET,
        runner: Runner | None = None,
    ) -> Judged:
        """Judge a history, with an initial value of its own unless one was asked for."""
        return objects.judged(
            history,
            self.model,
            initial=initial if self.initial is objects.UNSET else self.initial,
            keyed=self.keyed,
            consistency=self.consistency,
            anomalies=self.anomalies,
            assume=self.assume,
            budget=self.budget,
            runner=runner,
        )


class FileVerdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The verdict about a file."""

    path: str
    verdict: ObjectVerdict
    pictures: tuple[str, ...] = ()
    """The files with drawings that were written."""


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
        request.judged([])
    except ValueError as error:
        raise Refused(str(error)) from None
    paths = [path for each in given for path in _files(each)]
    for option, path in (
        ("page", request.page),
        ("parquet", request.parquet),
        ("pictures", request.pictures),
    ):
        if path is not None and len(paths) != 1:
            raise Refused(f"--{option} is about one history, and these are {len(paths)}")
    if request.parquet is not None and request.model not in _STORED:
        raise Refused(f"--parquet is for models of linearizability and {transaction_models.LISTS}")
    if request.pictures is not None:
        _make(request.pictures)
    verdicts = []
    for path in paths:
        try:
            verdict = _judged(path, request)
        except BadHistory as error:
            if len(paths) == 1:
                raise Refused(str(error)) from None
            unknown = ObjectVerdict(
                valid="unknown", model=request.model, operations=0, unknown_because=str(error)
            )
            verdict = FileVerdict(path=str(path), verdict=unknown)
        verdicts.append(verdict)
        found(verdict)
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


def _make(folder: Path) -> None:
    """Make the folder for drawings, before a judgement that may take long."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"--pictures {folder}: {error.strerror}") from None


def _judged(path: Path, request: Request) -> FileVerdict:
    if path.suffix == columnar.SUFFIX:
        if request.parquet is not None:
            raise Refused(f"--parquet has no effect: {path} is a Parquet file already")
        if list_columns.is_columnar(path):
            judged = large_lists.judged(path, request.model, request.where, request.judged)
            return _shown(path, request, judged)
        return _shown(path, request, request.judged(Columns(path)))
    history = recorded.read(path)
    if request.parquet is not None:
        _convert(history.events, request, request.parquet)
    is_known = history.initial is not None and request.model in objects.REGISTERS
    judged = request.judged(history.events, history.initial if is_known else objects.UNSET)
    if judged.verdict.valid is False and history.certain is not None:
        judged = request.judged(history.certain)
        if judged.verdict.valid is not False:
            unknown = msgspec.structs.replace(
                judged.verdict, valid="unknown", unknown_because=_AMBIGUOUS
            )
            judged = judged._replace(verdict=unknown)
    notes = () if history.torn is None else (history.torn,)
    verdict = msgspec.structs.replace(judged.verdict, notes=(*judged.verdict.notes, *notes))
    return _shown(path, request, judged._replace(verdict=verdict))


def _shown(path: Path, request: Request, judged: Judged) -> FileVerdict:
    """Write the page and the drawings of a judgement, if asked for; return the verdict."""
    pictures: list[Path] = []
    if request.page is not None:
        from harness.app.objects_page import page  # a template engine, which few need

        page.render(request.page, str(path), judged)
    if request.pictures is not None:
        from harness.app.objects_page import drawings

        pictures = drawings.write(request.pictures, path.stem, judged)
    return FileVerdict(path=str(path), verdict=judged.verdict, pictures=tuple(map(str, pictures)))


def _convert(events: Sequence[Op], request: Request, target: Path) -> None:
    """Write the operations of a history as a Parquet file."""
    if request.model == transaction_models.LISTS:
        _convert_lists(events, target)
        return
    is_store = isinstance(objects.model_of(request.model), models.KeyValue)
    try:
        columnar.write(target, operations.of_events(events), keyed=request.keyed or is_store)
    except OSError as error:
        raise Refused(f"--parquet {target}: {error.strerror}") from None


def _convert_lists(events: Sequence[Op], target: Path) -> None:
    try:
        list_columns.save(target, reading.lists(events))
    except reading.NotUnderstood as error:
        raise Refused(f"--parquet: {error}") from None
    except OSError as error:
        raise Refused(f"--parquet {target}: {error.strerror}") from None


def lines(each: FileVerdict) -> Iterator[str]:
    """Yield the lines that show a verdict."""
    verdict = each.verdict
    found = ", ".join(f"{name}: {count:,}" for name, count in verdict.anomalies.items())
    what = f"{verdict.model}, {verdict.operations:,} operations"
    yield f"{_NAMES[verdict.valid]:<8} {each.path} ({what})" + (f": {found}" if found else "")
    reasons = () if verdict.unknown_because is None else (verdict.unknown_because,)
    lines = [*reasons, *verdict.why]
    if verdict.ruled_out:
        also = verdict.also_ruled_out
        stronger = f", and {len(also)} stronger model{'s' * (len(also) > 1)}" if also else ""
        lines.append(f"this rules out {', '.join(verdict.ruled_out)}{stronger}")
    if verdict.allowed:
        allowed = ", ".join(f"{name}: {count:,}" for name, count in verdict.allowed.items())
        lines.append(f"found, and allowed: {allowed}")
    yield from (f"  {line}" for line in (*lines, *verdict.notes))


def summary(verdicts: Sequence[FileVerdict]) -> str:
    """Return how many files have which verdict."""
    counts = Counter(_NAMES[each.verdict.valid] for each in verdicts)
    parts = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return f"{len(verdicts)} files: {parts}"
