"""Turns the folder of a run into its row of the lake, from the files that it has."""

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow.parquet as pq

from checkers import findings as findings_
from checkers.verdict import Verdict
from harness.app import judgements, plan_file, run_folder, run_start
from harness.app.lake import measures, schema
from harness.app.refused import Refused
from harness.app.report import faults as faults_
from harness.systems.catalogue import OURS
from model import cluster_facts
from model.plan import Plan

HISTORIES = ("history.parquet", "history.jsonl")
SCHEDULE = "schedule.jsonl"
CRASH = "crash.txt"
MARKERS = (plan_file.NAME, "history.jsonl", "history.parquet", judgements.VERDICT)
"""A folder with one of these files is the folder of a run."""
_WORDS = {True: "valid", False: "invalid", "unknown": "unknown"}
_UTC = re.compile(r"(\d{8}T\d{6}Z)-")
_NS = 1e9
_TABLES = ("broker", "producer", "consumer", "expect", "options")

T = TypeVar("T")


class NoRun(ValueError):
    """A folder is not that of a run; the message is one sentence."""


def of_folder(
    folder: Path, about: Mapping[str, str | None] | None = None, name: str | None = None
) -> dict[str, Any]:
    """Return the row of a run; files that are missing or cannot be read are named in ``missing``.

    ``about`` has what only the maker of the run knows: its ``suite`` and ``configuration``.
    ``name`` is that of a run in a temporary folder. Raises
    :class:`NoRun` for a folder without any file of a run, and for one with links or pipes.
    """
    if (refusal := run_folder.refusal(folder)) is not None:
        raise NoRun(refusal)
    if not any((folder / name).is_file() for name in MARKERS):
        raise NoRun(f"{folder} is not the folder of a run: it has no plan.json and no history")
    gaps: list[str] = []
    plan = _tried(lambda: plan_file.read(folder), folder / plan_file.NAME, gaps)
    verdict = _tried(lambda: _verdict(folder), folder / judgements.VERDICT, gaps)
    measured = _measured(folder, gaps)
    struck = _tried(lambda: _faults(folder), folder / SCHEDULE, gaps) or []
    found = _tried(lambda: _findings(folder), folder / judgements.FINDINGS, gaps) or []
    facts = _tried(lambda: cluster_facts.read(folder), folder / cluster_facts.FILE, gaps)
    name = name or name_of(folder)
    return {
        "version": schema.VERSION,
        "id": id_of(folder, name),
        "name": name,
        "time": _time(folder, name),
        "folder": str(folder.resolve()),
        "suite": None,
        "configuration": None,
        **(about or {}),
        **_of_plan(plan, None if facts is None else facts.release),
        **_of_verdict(verdict, plan, has_crashed=(folder / CRASH).exists()),
        **_of_measures(measured),
        "fault_list": struck,
        "finding_list": found,
        "missing": gaps,
    }


def _tried(read: Callable[[], T | None], path: Path, gaps: list[str]) -> T | None:
    """Return what a file has; note in ``gaps`` why it cannot be read."""
    try:
        return read()
    except FileNotFoundError:
        gaps.append(f"{path.name}: there is no such file")
    except (OSError, Refused, ValueError, LookupError, msgspec.MsgspecError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        gaps.append(f"{path.name}: {first.replace(str(path), 'it')}")
    return None


def _measured(folder: Path, gaps: list[str]) -> measures.Measures | None:
    """Measure the first file with the history that can be read."""
    there = [folder / name for name in HISTORIES if (folder / name).is_file()]
    failed: list[str] = []
    for path in there:
        found = _tried(lambda path=path: measures.of_history(path), path, failed)  # type: ignore[misc]
        if found is not None:
            return found
    gaps += failed or ["history.jsonl: there is no such file"]
    return None


def _verdict(folder: Path) -> Verdict:
    return msgspec.json.decode((folder / judgements.VERDICT).read_bytes(), type=Verdict)


def _faults(folder: Path) -> list[dict[str, Any]]:
    if not (folder / SCHEDULE).exists():
        raise FileNotFoundError(SCHEDULE)
    return [
        {
            "fault_id": fault.id,
            "fault": fault.fault,
            "targets": faults_.spoken(fault.targets),
            "asked_s": _s(fault.asked_ns),
            "applied_s": _s(fault.applied_ns),
            "healed_s": _s(fault.healed_ns),
            "proved": fault.effect.proved,
            "how": fault.effect.how,
            "late_s": _s(fault.late_ns),
            "overran_s": _s(fault.overran_ns),
        }
        for fault in faults_.load(folder / SCHEDULE)
    ]


def _findings(folder: Path) -> list[dict[str, Any]]:
    """Return the findings; columns that an earlier version did not write are null."""
    table = pq.read_table(folder / judgements.FINDINGS)
    names = [name for name in findings_.SCHEMA.names if name in table.column_names]
    return [dict.fromkeys(findings_.SCHEMA.names) | row for row in table.select(names).to_pylist()]


def _of_plan(plan: Plan | None, release: str | None) -> dict[str, Any]:
    if plan is None:
        return {"release": release, "settings": []}
    system, _, version = plan.system.partition(":")
    return {
        "commit": plan.commit or None,
        "system": system,
        "release": release or version or (None if system == OURS else plan.system),
        "workload": plan.workload,
        "target": plan.target,
        "nemesis": ",".join(plan.nemesis),
        "mutants": ",".join(plan.mutants),
        "seed": plan.seed,
        "time_limit_s": plan.time_limit_s,
        "settings": list(_settings(plan)),
    }


def _settings(plan: Plan) -> Iterable[dict[str, str]]:
    """Yield the settings of a plan: those of its tables, and its numbers as component ``plan``."""
    for table in _TABLES:
        for key, value in getattr(plan, table).items():
            yield {"component": table, "key": key, "value": _text(value)}
    for key in ("time_limit_s", "rate_hz", "concurrency", "brokers"):
        yield {"component": "plan", "key": key, "value": _text(getattr(plan, key))}
    for key, value in plan.versions.items():
        yield {"component": "versions", "key": key, "value": value}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _of_verdict(verdict: Verdict | None, plan: Plan | None, *, has_crashed: bool) -> dict[str, Any]:
    if verdict is None:
        return {"verdict": "failed" if has_crashed else None, "anomaly_counts": []}
    evidence = verdict.evidence
    acked, limit_s = evidence.get("acked"), None if plan is None else plan.time_limit_s
    counts = [
        {"anomaly": anomaly, "legal": legal, "count": count}
        for legal, kinds in ((False, verdict.anomalies), (True, verdict.allowed))
        for anomaly, count in kinds.items()
    ]
    return {
        "verdict": _WORDS[verdict.valid],
        **{name: evidence.get(name) for name in schema.COUNTS},
        "throughput_hz": acked / limit_s if acked is not None and limit_s else None,
        "anomaly_counts": counts,
    }


def _of_measures(measured: measures.Measures | None) -> dict[str, Any]:
    if measured is None:
        return {"latency_list": [], "seconds": [], "spans": []}
    outages = [span["seconds"] for span in measured.spans if span["kind"] == measures.OUTAGE]
    again = [span["seconds"] for span in measured.spans if span["kind"] == measures.RECOVERY]
    return {
        "duration_s": measured.duration_s,
        "outage_s": max(outages, default=None),
        "recovery_s": None if None in again else max(again, default=None),
        "latency_list": measured.latency_list,
        "seconds": measured.seconds,
        "spans": measured.spans,
    }


def _s(ns: int | None) -> float | None:
    return None if ns is None else ns / _NS


def id_of(folder: Path, name: str) -> str:
    """Return the id of a run: its name, and a digest of what never changes in its folder."""
    digest = hashlib.sha256(name.encode())
    for file in (plan_file.NAME, run_start.FILE):
        path = folder / file
        digest.update(path.read_bytes() if path.is_file() else b"-")
    return f"{name}-{digest.hexdigest()[:12]}"


def name_of(folder: Path) -> str:
    """Return the name of a run's folder, with that of its search where it is only a seed's."""
    folder = folder.resolve()
    if _UTC.match(folder.name) or not _UTC.match(folder.parent.name):
        return folder.name
    return f"{folder.parent.name}/{folder.name}"


def _time(folder: Path, name: str) -> datetime:
    """Return the time of day at which a run began: that in its name.

    A simulated run's own clock shows the same time in every run. Without such a name it is the time
    at which the plan, else the folder, was written.
    """
    with contextlib.suppress(ValueError):
        if found := _UTC.match(name):
            return datetime.strptime(found[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    plan = folder / plan_file.NAME
    written = (plan if plan.is_file() else folder).stat()
    return datetime.fromtimestamp(written.st_mtime, UTC)
