"""Series of runs that are comparable over time: of one suite, on one system, by version."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.app.lake import measures, store

SENDING = ("send", "txn")
"""The operations whose latencies are compared: those that write."""
NONE = "no suite"
_COLUMNS = (
    *("time", "commit", "suite", "configuration", "system", "release", "workload", "target"),
    *("nemesis", "mutants", "verdict", "duration_s", "throughput_hz", "outage_s"),
    *("spans", "latency_list"),
)
_SCENARIO = ("workload", "nemesis", "configuration", "target", "mutants")


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of a run that may become better or worse."""

    name: str
    title: str
    unit: str
    least: float
    """Smaller differences, in the figure's unit, are never reported."""
    is_better_higher: bool = False
    is_share: bool = False
    """True if it is 0 or 1 for a run, and the mean is that of interest."""


MEASURES = (
    Measure("invalid", "Runs with an illegal anomaly", "", 0.01, is_share=True),
    Measure("outage_s", "Longest time without an acknowledgement", "s", 0.1),
    Measure("recovery_s", "Slowest recovery after a heal", "s", 0.1),
    Measure("throughput_hz", "Records acknowledged per second", "/s", 1.0, is_better_higher=True),
    Measure("p50_ms", "Median latency of writes", "ms", 0.5),
    Measure("p99_ms", "Latency of writes, quantile 0.99", "ms", 5.0),
)


@dataclass(frozen=True, slots=True)
class Run:
    """A run with its figures."""

    time: datetime
    version: str
    """The commit or the release by which runs are compared."""
    scenario: tuple[str, ...]
    """Workload, nemeses, configuration, target and planted bugs: only runs that agree in them are
    compared."""
    values: Mapping[str, float]
    """By the name of the measure; a run may lack some."""


@dataclass(slots=True)
class Series:
    """Runs of one suite on one system."""

    suite: str
    system: str
    runs: list[Run] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.suite} · {self.system}"

    @property
    def versions(self) -> list[str]:
        """The versions, by the time of their first run."""
        return list(dict.fromkeys(run.version for run in sorted(self.runs, key=_by_time)))

    def began(self, version: str) -> datetime:
        """Return when the first run of a version began."""
        return min(run.time for run in self.runs if run.version == version)


def _by_time(run: Run) -> tuple[datetime, str]:
    return run.time, run.version


def load(paths: Sequence[Path], suite: str | None, *, by_release: bool = False) -> list[Series]:
    """Return the series of a lake, by name; ``suite`` selects those of one suite.

    Runs are compared by the commit of Faultline, which is also that of its broker, and of other
    systems each release is a series. With ``by_release`` the releases of a system are compared.
    """
    found: dict[tuple[str, str], Series] = {}
    for row in store.read(paths, _COLUMNS).to_pylist():
        system, release = row["system"] or "?", row["release"]
        version = release if by_release else row["commit"]
        if version is None or (suite is not None and row["suite"] != suite):
            continue
        if release is not None and not by_release:
            system = f"{system}:{release}"
        name = (row["suite"] or NONE, system)
        scenario = tuple(str(row[column] or "") for column in _SCENARIO)
        run = Run(row["time"], version, scenario, _values(row))
        found.setdefault(name, Series(*name)).runs.append(run)
    return [found[name] for name in sorted(found)]


def _values(row: Mapping[str, Any]) -> dict[str, float]:
    verdict = row["verdict"]
    values = {
        "invalid": None if verdict in (None, "failed") else float(verdict == "invalid"),
        "outage_s": row["outage_s"],
        "recovery_s": _recovery_s(row),
        "throughput_hz": row["throughput_hz"],
        **_latencies(row["latency_list"] or ()),
    }
    return {
        name: float(value)
        for name, value in values.items()
        if value is not None and math.isfinite(value)
    }


def _recovery_s(row: Mapping[str, Any]) -> float | None:
    """Return the slowest recovery; one that never ended counts until the end of the run."""
    end_s = row["duration_s"] or 0.0
    times = [
        max(0.0, end_s - (span["from_s"] or 0.0)) if span["seconds"] is None else span["seconds"]
        for span in row["spans"] or ()
        if span["kind"] == measures.RECOVERY
    ]
    return max(times, default=None)


def _latencies(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the quantiles of the writes that succeeded during the workload."""
    writes = [
        row
        for row in rows
        if row["operation"] in SENDING and (row["phase"], row["outcome"]) == (measures.WORK, "ok")
    ]
    if not writes:
        return {}
    most = max(writes, key=lambda row: int(row["count"]))
    return {"p50_ms": most["p50_ms"], "p99_ms": most["p99_ms"]}
