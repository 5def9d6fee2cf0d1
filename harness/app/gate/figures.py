"""Computes the few figures of a case that are worth comparing over months, from its folder."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from checkers.verdict import Verdict
from harness.app.gate.outcome import FaultProof
from harness.app.report import faults
from model import history
from model.op import NEMESIS, RECOVER
from model.plan import Plan


def of_run(folder: Path, verdict: Verdict, plan: Plan) -> dict[str, Any]:
    """Return all figures of a run as fields of a case.

    The throughput counts the main phase only, because the final phase acknowledges nothing: it
    reads.
    """
    outage = verdict.availability.longest
    again = [recovery.seconds for recovery in verdict.availability.recoveries]
    return {
        "throughput_hz": round(verdict.evidence.get("acked", 0) / plan.time_limit_s, 1),
        "unavailable_s": None if outage is None else _seconds(outage.to_ns - outage.from_ns),
        "recovery_s": _slowest([*again, _whole_s(folder / "history.jsonl")]),
        **of_remains(folder),
    }


def of_remains(folder: Path) -> dict[str, Any]:
    """Return the figures of a run that did not reach its end."""
    struck = faults.load(folder / "schedule.jsonl")
    return {"faults": tuple(FaultProof(fault.fault, fault.effect.proved) for fault in struck)}


def _slowest(seconds: Sequence[float | None]) -> float | None:
    """Return the longest time; ``None`` if any of them is ``None``, which stands for "never"."""
    there = [value for value in seconds if value is not None]
    return round(max(there), 3) if len(there) == len(seconds) else None


def _whole_s(path: Path) -> float | None:
    """Return the time from the end of the work until the cluster was whole; ``None`` for never.

    By the end of the work all faults are healed.
    """
    began_ns = None
    for line in _lines(path):
        if RECOVER.encode() not in line:
            continue  # most lines need not be decoded
        op = history.decode(line)
        if op.process != NEMESIS or op.f != RECOVER:
            continue
        if op.type == "invoke":
            began_ns = op.time_ns
        elif began_ns is not None and op.value["recovered"]:
            return _seconds(op.time_ns - began_ns)
    return None


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a history, which may have several segments."""
    for segment in history.segments(path):
        with segment.open("rb") as lines:
            yield from lines


def _seconds(ns: int) -> float:
    return round(ns / 1e9, 3)
