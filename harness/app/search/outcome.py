"""What came of a search and of each of its runs: values, and the file that holds them.

``search.json`` is replaced in one step, so that whoever reads it finds a whole one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from harness.app import files
from harness.app.search.together import Together

Status = Literal["valid", "invalid", "unknown", "failed"]
"""``failed``: Faultline's own doing, or a world in which nothing could happen any more."""
Stopped = Literal["done", "found", "time", "interrupted"]
"""All runs that were asked for; enough was found; the minutes were over; somebody ended it,
or it still goes on."""

FILE = "search.json"


class Ran(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run."""

    seed: int
    status: Status
    plan: str = ""
    """What was drawn, in a few words."""
    why: tuple[str, ...] = ()
    """A sentence each: the first finding of each illegal anomaly, what evidence is missing, or how
    it failed."""
    anomalies: dict[str, int] = {}
    allowed: dict[str, int] = {}
    simulated_seconds: float = 0.0
    """Until the last event of its history."""
    acked: int = 0
    faults: int = 0
    faults_effective: int = 0
    snapshots: int = 0
    """That white-box checks judged."""
    cpu_seconds: float = 0.0
    witnessed_s: dict[str, tuple[float, float]] = {}
    """Of each illegal anomaly, the finding that was complete first: when its first witness was, and
    its last."""
    folder: str | None = None
    """Where it was kept; without one, its seed makes it again."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What ``search.json`` holds, and ``--json`` prints."""

    runs: int
    simulated_seconds: float
    acked: int
    faults_effective: int
    snapshots: int = 0
    """Of the brokers' state and ZooKeeper's, judged while they ran."""
    unknown: int
    failed: int
    findings: tuple[Ran, ...]
    """The invalid runs, by seed."""
    doubtful: tuple[Ran, ...]
    """The unknown and the failed runs, by seed."""
    anomalies: dict[str, int]
    """In how many runs each was found."""
    allowed: dict[str, int]
    """The same of what their contracts permit."""
    least: dict[str, float]
    """The smallest that any run has of simulated seconds, acknowledged records, effective
    faults."""
    seconds: float
    cpu_seconds: float
    """Of all runs; the search itself takes little."""
    stopped: Stopped
    seed: int
    """The first one."""
    pinned: dict[str, Any]
    """What was not drawn."""
    folder: str
    together: Together | None = None
    """How all histories were judged in one Spark job, where that was asked for."""


def summary(
    ran: Sequence[Ran],
    *,
    seconds: float,
    stopped: Stopped,
    seed: int,
    pinned: Mapping[str, Any],
    folder: Path,
    together: Together | None = None,
) -> Summary:
    """Of these runs, in any order."""
    ran = sorted(ran, key=lambda run: run.seed)
    told = [run for run in ran if run.status != "failed"]
    return Summary(
        runs=len(ran),
        simulated_seconds=round(sum(run.simulated_seconds for run in ran), 1),
        acked=sum(run.acked for run in ran),
        faults_effective=sum(run.faults_effective for run in ran),
        snapshots=sum(run.snapshots for run in ran),
        unknown=sum(run.status == "unknown" for run in ran),
        failed=sum(run.status == "failed" for run in ran),
        findings=tuple(run for run in ran if run.status == "invalid"),
        doubtful=tuple(run for run in ran if run.status in ("unknown", "failed")),
        anomalies=_in_runs([run.anomalies for run in ran]),
        allowed=_in_runs([run.allowed for run in ran]),
        least={
            name: min((getattr(run, name) for run in told), default=0)
            for name in ("simulated_seconds", "acked", "faults_effective")
        },
        seconds=round(seconds, 1),
        cpu_seconds=round(sum(run.cpu_seconds for run in ran), 1),
        stopped=stopped,
        seed=seed,
        pinned=dict(pinned),
        folder=str(folder),
        together=together,
    )


def _in_runs(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return dict(sorted(Counter(name for found in counts for name in found).items()))


def exit_status(summary: Summary) -> int:
    """1 when anything was found, else 70 when a run failed, two judgements differ or somebody
    interrupted, else 2 when a run is unknown, else 0."""
    if summary.findings:
        return 1
    differ = summary.together is not None and summary.together.differ
    if summary.failed or differ or summary.stopped == "interrupted":
        return 70
    return 2 if summary.unknown or not summary.runs else 0


def write(summary: Summary) -> None:
    """``search.json`` in its folder."""
    document = msgspec.json.format(msgspec.json.encode(summary), indent=2)
    files.replace(Path(summary.folder) / FILE, document + b"\n")


def describe(summary: Summary, again: str) -> str:
    """For a terminal; ``again`` begins a command that repeats a folder."""
    hours = summary.simulated_seconds / 3600
    lines = [
        f"{summary.runs:,} runs, {hours:.1f} simulated hours · {summary.acked:,} acknowledged ·"
        f" {summary.faults_effective:,} effective faults · {summary.snapshots:,} snapshots ·"
        f" {len(summary.findings)} invalid,"
        f" {summary.unknown} unknown, {summary.failed} failed · {summary.seconds:.0f} s",
    ]
    if summary.stopped == "interrupted":
        lines.append("interrupted: runs under way are not counted, and none was begun after them")
    if summary.together is not None:
        lines.append(_of_together(summary.together))
    for run in (*summary.findings, *summary.doubtful):
        lines.append(f"seed {run.seed} {run.status.upper()}: {run.why[0] if run.why else ''}")
        if run.folder is not None:
            lines.append(f"    again: {again} {run.folder}")
    for anomaly, count in summary.allowed.items():
        lines.append(f"allowed: {anomaly} in {count} runs")
    return "\n".join(lines)


def _of_together(together: Together) -> str:
    told = f"{together.histories:,} histories judged together in {together.seconds:.0f} s"
    if not together.differ:
        return f"{told}: the same verdicts, the same findings"
    return f"{told}: DIFFERENT for {', '.join(together.differ)}"
