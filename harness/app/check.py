"""Judges a recorded history again: that of a run's folder, or a bare file from any harness."""

import dataclasses
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from checkers import engine, history_file, overview, table_builder, threads
from checkers import findings as findings_
from checkers import inline as inline_
from checkers import verdict as verdict_
from checkers.anomalies import INVARIANT, OF_ZOOKEEPER
from checkers.expectations import Contract
from checkers.overview import Whole
from checkers.tables import Tables
from checkers.verdict import Verdict
from checkers.zookeeper import judging as zookeeper
from harness.app import (
    catalogue,
    command_line,
    judgements,
    plan_file,
    run_folder,
    service,
    signals,
    spark_judge,
    terminal,
    typed_history,
    unpacking,
    versions,
)
from harness.app.judgements import Judged, Kept
from harness.app.refused import Refused
from model import cluster_facts, node_sign, violation
from model import history as history_
from model.finding import Finding
from model.history import BadHistory
from model.plan import Plan
from model.violation import Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[str, float], None]
"""A callback that receives a step, and how much of it is done, from 0 to 1."""


_TRACEBACK = "Traceback (most recent call last):"
RESULTS = Path("results")
"""The default folder of runs and their judgements."""


class Examined(NamedTuple):
    """A judgement, and where it is stored; ``None`` for a bare history."""

    judged: Judged
    kept: Kept | None


def judge(
    path: Path,
    *,
    inline: bool,
    settings: Mapping[str, str] | None = None,
    session: "SparkSession | None" = None,
    progress: Progress = lambda step, done: None,
) -> Verdict:
    """Return the verdict alone; see :func:`examine`."""
    return examine(
        path, inline=inline, settings=settings, session=session, progress=progress
    ).verdict


def examine(
    path: Path,
    *,
    inline: bool,
    settings: Mapping[str, str] | None = None,
    session: "SparkSession | None" = None,
    progress: Progress = lambda step, done: None,
) -> Judged:
    """Return the judgement alone; see :func:`examined`."""
    return examined(
        path, inline=inline, settings=settings, session=session, progress=progress
    ).judged


def examined(
    path: Path,
    *,
    inline: bool,
    settings: Mapping[str, str] | None = None,
    session: "SparkSession | None" = None,
    progress: Progress = lambda step, done: None,
    results: Path = RESULTS,
) -> Examined:
    """Judge a run's folder or a bare history: ``history.jsonl``, Parquet, Jepsen's ``history.edn``.

    A bare history is judged by the strictest contract. A test's folder in Jepsen's store stands for
    the history in it. ``settings`` (``producer.acks`` …) replace the plan's. Without ``session``,
    Spark is started and stopped. A run's folder receives ``history.parquet`` and the judgement,
    which :mod:`harness.app.judgements` stores under ``results`` if the folder cannot be written.
    Nothing is written next to a bare file. Raises :class:`~model.history.BadHistory` and
    :class:`~checkers.expectations.BadSetting`.
    """
    folder, file = located(path)

    is_of_zookeeper = folder is not None and tests_zookeeper(plan_of(folder))

    def find() -> Whole:
        with ExitStack() as stack:
            text = stack.enter_context(unpacking.plain(file))
            if is_of_zookeeper:
                return of_zookeeper(folder, text, progress)
            spark = None
            if not inline:
                spark = stack.enter_context(spark_judge.opened(folder, text, session))
            return whole(folder, text, spark, progress)

    executor = "inline" if inline or is_of_zookeeper else "spark"
    judged = concluded(folder, find, settings, executor)
    return Examined(judged, None if folder is None else judgements.keep(folder, judged, results))


def concluded(
    folder: Path | None,
    find: Callable[[], Whole],
    settings: Mapping[str, str] | None,
    executor: str,
) -> Judged:
    """Judge what ``find`` finds in a history, by the contract of the run in ``folder``.

    Raises what :func:`examined` raises.
    """
    plan = None if folder is None else plan_of(folder)
    facts = None if folder is None else cluster_facts.read(folder)
    contract = Contract.of(plan, settings, facts)
    changed = {} if contract == Contract.of(plan, cluster=facts) else dict(settings or {})
    try:
        found = find()
    except Crashed as crash:
        judged = Judged(verdict_.crashed(str(crash), _named(plan)), ())
    else:
        if plan is None and found.subscribes:
            contract = dataclasses.replace(contract, subscribes=True)
        judged = _concluded(folder, found, plan, contract)
    return _signed(judged, contract, changed, executor)


def of_zookeeper(folder: Path | None, file: Path, progress: Progress) -> Whole:
    """Return what checkers find in a history of a workload for ZooKeeper, in this process.

    Raises :class:`Crashed` and :class:`~model.history.BadHistory`.
    """
    if file.suffix == ".parquet":
        raise BadHistory(f"{file}: a history of ZooKeeper is judged from its history.jsonl only")
    history = typed_history.read(folder, file, lambda done: progress("reading", done))
    tables = table_builder.of_history(history, file)
    events = (op for part in history_.segments(file) for op in history_.read(part))
    with crashes():
        return zookeeper.whole(tables, events)


class Crashed(Exception):
    """An executor crashed, and so has found nothing; the message says how."""


def whole(
    folder: Path | None, file: Path, spark: spark_judge.SparkJudge | None, progress: Progress
) -> Whole:
    """Return what checkers find in a history. Raises :class:`Crashed`."""
    if spark is not None:
        with crashes():
            found = spark.whole(folder, file, lambda done: progress("judging", done))
        if found is not None:
            return found
    history = typed_history.read(folder, file, lambda done: progress("reading", done))
    tables = table_builder.of_history(history, file, threads.count(history.num_rows))
    del history  # frees memory that the tables do not need
    judge = inline_.judge if spark is None else spark.reports
    with crashes():
        reports = judge(tables, lambda done: progress("judging", done))
    return overview.concluded(tables, reports)


@contextmanager
def crashes() -> Iterator[None]:
    """Turn any error but that of a bad history, or of a request, into :class:`Crashed`."""
    try:
        yield
    except (BadHistory, Refused):
        raise
    except Exception as error:
        if signals.is_interrupt(error):  # Spark reports the end of a cancelled job instead
            raise KeyboardInterrupt from error
        reason = f"the checkers crashed: {type(error).__name__}: {_said(error)}"
        raise Crashed(engine.redacted(reason)) from error


def _said(error: Exception) -> str:
    """Return the first line of an error that has text; of one with the traceback of a worker, the
    line that says what was raised there."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    header = next((at for at, line in enumerate(lines) if line.endswith(_TRACEBACK)), None)
    if header is not None:
        lines = [line for line in lines[header + 1 :] if not line.startswith(" ")] or lines
    return next(iter(lines), "").strip()


def _signed(
    judged: Judged, contract: Contract, settings: Mapping[str, str], executor: str
) -> Judged:
    """Add to the verdict by which contract, settings, version and executor it was reached."""
    is_of_kafka = service.of(judged.verdict.plan.get("workload")) == "kafka"
    verdict = msgspec.structs.replace(
        judged.verdict,
        contract=dataclasses.asdict(contract) if is_of_kafka else {},
        settings=dict(settings),
        judged_by={
            "faultline": versions.faultline(),
            "commit": versions.commit(),
            "executor": executor,
        },
    )
    return judged._replace(verdict=verdict)


def examine_together(
    folders: Sequence[Path], session: "SparkSession", scratch: Path
) -> list[Judged]:
    """Judge many runs' folders in one Spark job, with its temporary files in ``scratch``.

    Runs that tested ZooKeeper are judged in this process. Nothing is written into the folders.
    Raises what :func:`examine` raises, and the error of a job that crashes.
    """
    from checkers import spark

    plans = {folder: plan_of(folder) for folder in folders}
    of_brokers = [folder for folder in folders if not tests_zookeeper(plans[folder])]

    def tables_of(folder: Path) -> Tables:
        file = located(folder)[1]
        return table_builder.of_history(history_file.read(file, lambda done: None), file)

    reports = spark.judge_together(map(tables_of, of_brokers), session, scratch)
    found = dict(zip(of_brokers, reports, strict=True))
    judged = []
    for folder, plan in plans.items():
        contract = Contract.of(plan, cluster=cluster_facts.read(folder))
        if folder in found:
            whole = overview.concluded(tables_of(folder), found[folder])
        else:
            whole = of_zookeeper(None, located(folder)[1], lambda step, done: None)
        executor = "spark" if folder in found else "inline"
        judged.append(_signed(_concluded(folder, whole, plan, contract), contract, {}, executor))
    return judged


def _concluded(folder: Path | None, whole: Whole, plan: Plan | None, contract: Contract) -> Judged:
    """Combine what checkers found with the other files of a run into a judgement."""
    watched = _watched(folder)
    violations = () if watched is None else watched.violations
    results = findings_.findings(whole.found.found, whole.overview, contract, violations)
    verdict = verdict_.conclude(
        whole.overview,
        whole.reports,
        results,
        run=plan,
        plan=_named(plan),
        watched=watched,
        must_be_watched=_must_be_watched(plan),
        of_history=whole.found.checker_runs,
        signs=() if folder is None else node_sign.read(folder / node_sign.FILE),
    )
    return Judged(verdict, results)


def _named(plan: Plan | None) -> dict[str, Any]:
    """Return the fields of the plan that a verdict repeats."""
    return {} if plan is None else {k: getattr(plan, k) for k in ("workload", "target", "seed")}


def _must_be_watched(plan: Plan | None) -> bool:
    """Return whether white-box checks watch every run of the plan's target from its beginning to
    its end."""
    target = None if plan is None else catalogue.TARGETS.get(plan.target)
    return target is not None and target.is_virtual


def tests_zookeeper(plan: Plan | None) -> bool:
    """Return whether a run tested ZooKeeper itself."""
    return plan is not None and service.of(plan.workload) == "zookeeper"


def _watched(folder: Path | None) -> Record | None:
    """Return what the run's invariant checks recorded; ``None`` if there were none."""
    if folder is None or not (folder / violation.FILE).is_file():
        return None
    return violation.read(folder / violation.FILE)


def session_for(paths: Sequence[Path]) -> "AbstractContextManager[SparkSession | None]":
    """Start one session for many histories, as :func:`harness.app.spark_judge.for_many` does.

    Raises :class:`~model.history.BadHistory`.
    """
    return spark_judge.for_many([located(path)[1] for path in paths])


def folder_of(path: Path) -> Path | None:
    """Return the run's folder at this path, ``None`` for a bare history.

    Raises :class:`~model.history.BadHistory`.
    """
    return located(path)[0]


def located(path: Path) -> tuple[Path | None, Path]:
    """Return the run's folder (``None`` for a bare history) and the file with the events.

    Raises :class:`~model.history.BadHistory`.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise BadHistory(f"{path} does not exist") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadHistory(f"{path} cannot be read: {why}") from None
    if stat.S_ISREG(mode):
        return None, path
    if not stat.S_ISDIR(mode):  # a pipe would block the reader, and can be read only once
        raise BadHistory(f"{path} is neither a file nor a folder: write the history to a file")
    if (refusal := run_folder.refusal(path)) is not None:
        raise BadHistory(refusal)
    for name in ("history.jsonl", "history.parquet"):
        if (path / name).is_file():
            return path, path / name
    if (path / "history.edn").is_file():
        return None, path / "history.edn"
    raise BadHistory(f"{path} is not a run's folder: it has no history.jsonl")


def plan_of(folder: Path) -> Plan | None:
    """Return the plan of a run; ``None`` without one, so that it is judged like a bare history."""
    try:
        return plan_file.read(folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadHistory(f"{folder / plan_file.NAME} cannot be read: {error.strerror}") from None
    except Refused as error:
        raise BadHistory(str(error)) from None


def describe(
    verdict: Verdict,
    findings: Sequence[Finding],
    folder: Path | None,
    kept: Kept | None = None,
    *,
    can_repeat: bool = True,
) -> str:
    """Return the verdict as a few lines for a terminal.

    ``can_repeat`` is False for a run whose folder is not on this machine.
    """
    word = {True: "VALID", False: "INVALID", "unknown": "UNKNOWN"}[verdict.valid]
    lines = reasons(verdict, findings)
    if verdict.valid is True:
        places = service.PLACES[service.of(verdict.plan.get("workload"))]
        lines.append(_evidence(verdict.evidence, places))
    if late := verdict_.lateness(verdict.evidence.get("faults_late_ms", 0)):
        lines.append(late)
    if verdict.allowed:
        lines.append("allowed: " + ", ".join(f"{a} {n:,}" for a, n in verdict.allowed.items()))
    lines += [terminal.sentence(f"note: {note}") for note in verdict.notes]
    if kept is not None and kept.note is not None:
        lines.append(kept.note)
    place = folder if kept is None else kept.folder
    if folder is not None and place is not None:
        again = f"     (repeat: {command_line.command('replay', folder)})" if can_repeat else ""
        lines.append(f"{place / judgements.PAGE}{again}")
    width = max(len(word) + 2, 9)
    return "\n".join((word if n == 0 else "").ljust(width) + line for n, line in enumerate(lines))


def reasons(verdict: Verdict, findings: Sequence[Finding]) -> list[str]:
    """Return why a verdict is not valid, one sentence each.

    Every illegal anomaly comes with its count and its first finding: first what clients observed,
    then what the brokers' state shows. The missing evidence follows.
    """
    lines = []
    anomalies = verdict.anomalies
    for anomaly in sorted(anomalies, key=lambda name: name.startswith(INVARIANT)):
        count = anomalies[anomaly]
        first = next(f for f in findings if f.anomaly == anomaly and not f.legal)
        place = _place(first)
        lines.append(f"{anomaly} {count:,} · {place}{': ' if place else ''}{first.why}")
    return [terminal.sentence(reason) for reason in (*lines, *verdict.unknown_because)]


def _place(f: Finding) -> str:
    """Return a finding's partition, offset, generation and faults, if known; a crash has no
    partition. One about ZooKeeper has the path and the version of a znode."""
    is_of_kafka = f.anomaly not in OF_ZOOKEEPER
    parts = [] if f.key is None else [f"{'partition' if is_of_kafka else 'znode'} {f.key}"]
    parts += [] if f.offset is None else [f"{'offset' if is_of_kafka else 'version'} {f.offset}"]
    parts += [] if f.generation is None else [f"generation {f.generation}"]
    parts += [f"fault {', '.join(map(str, f.faults))}"] if f.faults else []
    return ", ".join(parts)


def _evidence(evidence: Mapping[str, int], places: str) -> str:
    return (
        f"{evidence['acked']:,} acknowledged, {evidence['read']:,} read ·"
        f" {evidence['keys_caught_up']} of {evidence['keys']} {places} read to the end ·"
        f" {evidence['faults_effective']} of {evidence['faults']} faults effective"
    )
