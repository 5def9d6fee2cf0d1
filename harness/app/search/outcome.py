"""The results of a search and of its runs, and the file ``search.json`` that stores them.

``search.json`` is replaced atomically, so that readers always see a whole file.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from harness.app import files
from harness.app.search.batch_check import BatchResult

Status = Literal["valid", "invalid", "unknown", "failed"]
"""The result of a run. ``failed``: an error of Faultline itself, or a deadlocked simulation."""
Stopped = Literal["done", "found", "time", "interrupted"]
"""Why a search ended.

All requested runs are done, enough was found, the time was over, or it was interrupted. A search
that still runs also counts as interrupted.
"""

FILE = "search.json"


class RunResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one run."""

    seed: int
    status: Status
    workload: str = ""
    plan: str = ""
    """A short description of the drawn plan."""
    parent: int | None = None
    """In a guided search, the seed of the run whose plan was changed for this one."""
    change: str = ""
    """How it was changed: ``strike``, ``continue`` or ``reseed``."""
    why: tuple[str, ...] = ()
    """One sentence each: the first finding of each illegal anomaly, missing evidence, failure."""
    anomalies: dict[str, int] = {}
    allowed: dict[str, int] = {}
    simulated_seconds: float = 0.0
    """Virtual time of the last event of the history."""
    acked: int = 0
    faults: int = 0
    faults_effective: int = 0
    snapshots: int = 0
    """The number of snapshots that the invariant checks judged."""
    zookeeper_leaders: int = 0
    """The number of epochs with a leader of a ZooKeeper ensemble."""
    cpu_seconds: float = 0.0
    witnessed_s: dict[str, tuple[float, float]] = {}
    """By illegal anomaly: first and last witness time of the finding that was complete first."""
    trace: str = ""
    """The hash of all steps and messages: runs with the same one did the same."""
    folder: str | None = None
    """The folder, if it was kept; otherwise the seed reproduces the run."""


class Guidance(msgspec.Struct, frozen=True, kw_only=True):
    """What a guided search has learnt from its runs."""

    changed: int
    """The number of runs with a changed plan of an earlier run."""
    plans: int
    """The number of plans in the corpus: they have reached states that were rare at that time."""
    states: int
    """The number of states that were reached: a branch of a rule in a phase of a run."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``search.json``, which ``--json`` also prints."""

    runs: int
    workloads: dict[str, tuple[int, ...]] = {}
    """The seeds of the runs, by their workload."""
    simulated_seconds: float
    acked: int
    faults_effective: int
    snapshots: int = 0
    """The number of snapshots of brokers and ZooKeeper that were judged during the runs."""
    zookeeper_leaders: int = 0
    """The number of epochs with a leader of a ZooKeeper ensemble, in all runs."""
    unknown: int
    failed: int
    findings: tuple[RunResult, ...]
    """The invalid runs, by seed."""
    doubtful: tuple[RunResult, ...]
    """The unknown and the failed runs, by seed."""
    anomalies: dict[str, int]
    """The number of runs in which each anomaly was found."""
    allowed: dict[str, int]
    """The number of runs with each anomaly that their contracts permit."""
    least: dict[str, float]
    """The minima over all runs of simulated seconds, acknowledged records and effective faults."""
    seconds: float
    cpu_seconds: float
    """The CPU time of all runs; the search itself takes little."""
    stopped: Stopped
    seed: int
    """The first seed."""
    pinned: dict[str, Any]
    """The fields that were not drawn."""
    folder: str
    guidance: Guidance | None = None
    """What a guided search has learnt; ``None`` for a search without guidance."""
    together: BatchResult | None = None
    """The result of judging all histories in one Spark job, if that was requested."""
    spark_failed: str | None = None
    """Why that failed, if it did."""


def summary(
    ran: Sequence[RunResult],
    *,
    seconds: float,
    stopped: Stopped,
    seed: int,
    pinned: Mapping[str, Any],
    folder: Path,
    reached: tuple[int, int] | None = None,
    together: BatchResult | None = None,
    spark_failed: str | None = None,
) -> Summary:
    """Return the summary of these runs, which may be in any order.

    ``reached``: in a guided search, the numbers of plans in the corpus and of states.
    """
    ran = sorted(ran, key=lambda run: run.seed)
    completed = [run for run in ran if run.status != "failed"]
    return Summary(
        runs=len(ran),
        workloads=_by_workload(ran),
        simulated_seconds=round(sum(run.simulated_seconds for run in ran), 1),
        acked=sum(run.acked for run in ran),
        faults_effective=sum(run.faults_effective for run in ran),
        snapshots=sum(run.snapshots for run in ran),
        zookeeper_leaders=sum(run.zookeeper_leaders for run in ran),
        unknown=sum(run.status == "unknown" for run in ran),
        failed=sum(run.status == "failed" for run in ran),
        findings=tuple(run for run in ran if run.status == "invalid"),
        doubtful=tuple(run for run in ran if run.status in ("unknown", "failed")),
        anomalies=_in_runs([run.anomalies for run in ran]),
        allowed=_in_runs([run.allowed for run in ran]),
        least={
            name: min((getattr(run, name) for run in completed), default=0)
            for name in ("simulated_seconds", "acked", "faults_effective")
        },
        seconds=round(seconds, 1),
        cpu_seconds=round(sum(run.cpu_seconds for run in ran), 1),
        stopped=stopped,
        seed=seed,
        pinned=dict(pinned),
        folder=str(folder),
        guidance=reached
        and Guidance(
            changed=sum(bool(run.change) for run in ran), plans=reached[0], states=reached[1]
        ),
        together=together,
        spark_failed=spark_failed,
    )


def _in_runs(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return dict(sorted(Counter(name for found in counts for name in found).items()))


def _by_workload(ran: Sequence[RunResult]) -> dict[str, tuple[int, ...]]:
    names = sorted({run.workload for run in ran})
    return {name: tuple(run.seed for run in ran if run.workload == name) for name in names}


def exit_status(summary: Summary) -> int:
    """Return the exit status of the search.

    1 if an anomaly was found, else 70 if a run or the Spark job failed, two judgements differ or
    the search was interrupted, else 2 if a run is unknown, else 0.
    """
    if summary.findings:
        return 1
    differ = summary.together is not None and summary.together.differ
    failed = summary.failed or summary.spark_failed is not None
    if failed or differ or summary.stopped == "interrupted":
        return 70
    return 2 if summary.unknown or not summary.runs else 0


def write(summary: Summary) -> None:
    """Write ``search.json`` into its folder."""
    document = msgspec.json.format(msgspec.json.encode(summary), indent=2)
    files.replace(Path(summary.folder) / FILE, document + b"\n")


def describe(summary: Summary, again: str) -> str:
    """Return the summary for a terminal; ``again`` begins a command that repeats a folder."""
    hours = summary.simulated_seconds / 3600
    leaders = summary.zookeeper_leaders
    elected = f" {leaders:,} leaders of ensembles ·" if leaders else ""
    lines = [
        f"{summary.runs:,} runs, {hours:.1f} simulated hours · {summary.acked:,} acknowledged ·"
        f" {summary.faults_effective:,} effective faults · {summary.snapshots:,} snapshots ·"
        f"{elected} {len(summary.findings)} invalid,"
        f" {summary.unknown} unknown, {summary.failed} failed · {summary.seconds:.0f} s",
    ]
    if len(summary.workloads) > 1:
        counts = [f"{len(seeds):,} {name}" for name, seeds in summary.workloads.items()]
        lines.append(f"workloads: {', '.join(counts)}")
    if summary.guidance is not None:
        learnt = summary.guidance
        lines.append(
            f"guided: {learnt.changed:,} runs changed an earlier plan; {learnt.plans:,} plans in"
            f" the corpus, {learnt.states:,} states reached"
        )
    if summary.stopped == "interrupted":
        lines.append("the search was interrupted; runs that had not finished are not counted")
    if summary.together is not None:
        lines.append(_of_together(summary.together))
    for run in (*summary.findings, *summary.doubtful):
        of = f" {run.workload}" if run.workload else ""
        lines.append(f"seed {run.seed}{of} {run.status.upper()}: {run.why[0] if run.why else ''}")
        if run.folder is not None:
            lines.append(f"    repeat: {again} {run.folder}")
    for anomaly, count in summary.allowed.items():
        lines.append(f"allowed: {anomaly} in {count} runs")
    return "\n".join(lines)


def _of_together(together: BatchResult) -> str:
    headline = f"{together.histories:,} histories judged together in {together.seconds:.0f} s"
    if not together.differ:
        return f"{headline}: all verdicts and findings are the same"
    return f"{headline}: verdicts or findings DIFFER for {', '.join(together.differ)}"
