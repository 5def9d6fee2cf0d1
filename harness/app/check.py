"""Check: judges a recorded history again; a run's folder, or a bare file from anywhere."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pyarrow.parquet as pq

from checkers import findings as findings_
from checkers import inline as inline_
from checkers import tables as tables_
from checkers import verdict as verdict_
from checkers.expectations import Contract
from checkers.verdict import Verdict
from model.finding import Finding
from model.history import BadHistory
from model.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[str, float], None]
"""Told a step, and how much of it is done, from 0 to 1."""


class Judged(NamedTuple):
    """A verdict, with the findings that it counts."""

    verdict: Verdict
    findings: Sequence[Finding]


def judge(
    path: Path,
    *,
    inline: bool,
    settings: Mapping[str, str] | None = None,
    session: "SparkSession | None" = None,
    progress: Progress = lambda step, done: None,
) -> Verdict:
    """The verdict alone; see :func:`examine`."""
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
    """Judge a run's folder, or a bare ``history.jsonl`` or Parquet file by the strictest contract.

    ``settings`` (``producer.acks`` …) take the place of the plan's. Without ``session``, Spark is
    started and stopped. A run's folder gets ``verdict.json``, ``findings.parquet`` and
    ``history.parquet``; beside a bare file nothing is written. Raises
    :class:`~model.history.BadHistory` and :class:`~checkers.expectations.BadSetting`.
    """
    folder, file = _located(path)
    plan = None if folder is None else _plan(folder)
    contract = Contract.of(plan, settings)
    history = tables_.read(file, lambda done: progress("reading", done))
    tables = tables_.tables(history)
    reports = inline_.judge(tables, lambda done: progress("judging", done))
    found = [f for report in reports.values() for f in report.found]
    results = findings_.findings(found, tables, contract)
    verdict = verdict_.conclude(
        tables,
        reports,
        results,
        has_final_phase=plan is not None,
        plan={} if plan is None else {k: getattr(plan, k) for k in ("workload", "target", "seed")},
    )
    if folder is not None:
        progress("writing", 0.0)
        if file.suffix != ".parquet":
            pq.write_table(history, folder / "history.parquet")
        findings_.write(folder / "findings.parquet", results)
        (folder / "verdict.json").write_bytes(verdict.to_json())
        progress("writing", 1.0)
    return Judged(verdict, results)


def _located(path: Path) -> tuple[Path | None, Path]:
    """The run's folder, if it is one, and the file with the events."""
    if not path.exists():
        raise BadHistory(f"{path} does not exist")
    if not path.is_dir():
        return None, path
    for name in ("history.jsonl", "history.parquet"):
        if (path / name).is_file():
            return path, path / name
    raise BadHistory(f"{path} is not a run's folder: it holds no history.jsonl")


def _plan(folder: Path) -> Plan | None:
    """The plan of a run; a folder without one is judged like a bare history."""
    try:
        text = (folder / "plan.json").read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(text, type=Plan)
    except msgspec.MsgspecError as error:
        raise BadHistory(f"{folder / 'plan.json'} is no plan: {error}") from error


def describe(verdict: Verdict, findings: Sequence[Finding], folder: Path | None) -> str:
    """The verdict in a few lines for a terminal."""
    word = {True: "VALID", False: "INVALID", "unknown": "UNKNOWN"}[verdict.valid]
    lines = []
    for anomaly, count in verdict.anomalies.items():
        first = next(f for f in findings if f.anomaly == anomaly and not f.legal)
        lines.append(f"{anomaly} {count:,} · {_place(first)}: {first.why}")
    lines += verdict.unknown_because
    if verdict.valid is True:
        lines.append(_evidence(verdict.evidence))
    if verdict.allowed:
        lines.append("allowed: " + ", ".join(f"{a} {n:,}" for a, n in verdict.allowed.items()))
    if folder is not None:
        lines.append(f"{folder / 'report.html'}     (again: faultline replay {folder})")
    width = max(len(word) + 2, 9)
    return "\n".join((word if n == 0 else "").ljust(width) + line for n, line in enumerate(lines))


def _place(f: Finding) -> str:
    offset = "" if f.offset is None else f", offset {f.offset}"
    faults = "" if not f.faults else f", fault {', '.join(map(str, f.faults))}"
    return f"key {f.key}{offset}{faults}"


def _evidence(evidence: Mapping[str, int]) -> str:
    return (
        f"{evidence['acked']:,} acknowledged, {evidence['read']:,} read ·"
        f" {evidence['keys_caught_up']} of {evidence['keys']} keys read to the end ·"
        f" {evidence['faults_effective']} of {evidence['faults']} faults effective"
    )
