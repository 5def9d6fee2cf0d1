"""Runs one simulation of a search in a folder of its own, and judges it in this process."""

import contextlib
import io
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as _pandas  # noqa: F401 - pyarrow wants it: once, and not in every child

from checkers import findings as findings_
from harness.app import files, plan_resolution, report
from harness.app.check import examine, reasons
from harness.app.progress import Screen
from harness.app.run import Meanwhile, drive, settle_data, settled
from harness.app.search import draw
from harness.app.search.outcome import RunResult, Status
from harness.engine.recorder import Observer
from model import history as history_
from model import violation
from model.capabilities.cluster import Cluster, HasTrace
from model.finding import Finding
from model.plan import Plan

_STATUS: Mapping[bool | str, Status] = {True: "valid", False: "invalid", "unknown": "unknown"}


def of_seed(seed: int, pinned: Mapping[str, Any], folder: Path) -> RunResult:
    """Run the plan that is drawn from the seed; see :func:`of_plan`."""
    return of_plan(draw.plan_of(seed, pinned), folder)


def of_plan(plan: Plan, folder: Path, observe: Observer | None = None) -> RunResult:
    """Run a resolved plan in this folder, which exists, and judge its history.

    ``observe`` is called with each event of the history.
    The folder then contains everything but the report, and the nodes' data if the run is not valid.
    """
    began_s = time.process_time()
    document = msgspec.json.format(msgspec.json.encode(plan_resolution.masked(plan)), indent=2)
    (folder / "plan.json").write_bytes(document + b"\n")
    drawn = draw.described(plan)
    cluster: Cluster | None = None
    try:
        cluster = drive(plan, folder, Screen(io.StringIO()), meanwhile=Meanwhile(observe=observe))
        verdict, findings = examine(folder, inline=True)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this run's
        text = "".join(traceback.format_exception(error))
        with contextlib.suppress(OSError):  # the disk may be full
            (folder / "crash.txt").write_text(text)
            settle_data(cluster, keep=True)
        return RunResult(
            seed=plan.seed,
            status="failed",
            workload=plan.workload,
            plan=drawn,
            why=(files.described(error, folder),),
            simulated_seconds=_until_s(folder / "history.jsonl"),
            cpu_seconds=round(time.process_time() - began_s, 3),
        )
    left = settled(folder, cluster, keep=verdict.valid is not True)
    return RunResult(
        seed=plan.seed,
        status=_STATUS[verdict.valid],
        workload=plan.workload,
        plan=drawn,
        why=(*reasons(verdict, findings), *([] if left is None else [left])),
        anomalies=verdict.anomalies,
        allowed=verdict.allowed,
        witnessed_s=_seen_s(folder / violation.FILE)
        | _witnessed_s(findings, folder / "history.jsonl"),
        simulated_seconds=_until_s(folder / "history.jsonl"),
        acked=verdict.evidence.get("acked", 0),
        faults=verdict.evidence.get("faults", 0),
        faults_effective=verdict.evidence.get("faults_effective", 0),
        snapshots=verdict.evidence.get("snapshots", 0),
        zookeeper_leaders=verdict.evidence.get("zookeeper_leaders", 0),
        trace=cluster.trace() if isinstance(cluster, HasTrace) else "",
        cpu_seconds=round(time.process_time() - began_s, 3),
    )


def finish(folder: Path) -> None:
    """Write the report of a run that is kept."""
    report.render(folder)


def _seen_s(record: Path) -> dict[str, tuple[float, float]]:
    """Return, by anomaly, when an invariant check first saw it; a single snapshot witnesses it."""
    found: dict[str, tuple[float, float]] = {}
    for seen in violation.read(record).violations:
        found.setdefault(findings_.anomaly_of(seen), (seen.time_ns / 1e9, seen.time_ns / 1e9))
    return found


class _Stamp(msgspec.Struct):
    time_ns: int


def _witnessed_s(findings: Sequence[Finding], history: Path) -> dict[str, tuple[float, float]]:
    """Return, by illegal anomaly, the witness times of the finding that was complete first.

    Witnesses are events, and an event's index is its line in all segments of the history.
    """
    illegal = [finding for finding in findings if not finding.legal and finding.ops]
    if not illegal:
        return {}
    segments = history_.segments(history)
    lines = [line for segment in segments for line in segment.read_bytes().splitlines()]
    found: dict[str, tuple[float, float]] = {}
    for finding in illegal:
        times = [_at_s(lines[op]) for op in finding.ops]
        when = min(times), max(times)
        best = found.setdefault(finding.anomaly, when)
        if when[1] < best[1]:
            found[finding.anomaly] = when
    return found


def _at_s(line: bytes) -> float:
    return msgspec.json.decode(line, type=_Stamp).time_ns / 1e9


def _until_s(history: Path) -> float:
    """Return the time of the last event."""
    if not history.exists():
        return 0.0
    for segment in reversed(history_.segments(history)):
        if lines := segment.read_bytes().splitlines():
            return _at_s(lines[-1])
    return 0.0
