"""Measures a history: latencies and throughput of operations, outages and recoveries."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from checkers import history_file, table_builder
from checkers.columns import INVOKE, Columns
from checkers.kernels import availability
from checkers.kernels.compact import Operations
from checkers.kernels.rows import FAIL, INFO, OK
from checkers.tables import Tables
from model.op import RECOVER

WORK, FINAL = "work", "final"
"""The phases of a run: the workload, and the final reads after all faults were healed."""
OUTAGE, RECOVERY = "outage", "recovery"
"""The kinds of spans."""
OUTCOMES = {OK: "ok", FAIL: "fail", INFO: "info"}
_QUANTILES = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "p999_ms": 0.999, "max_ms": 1.0}
_NS = 1e9

Mask = npt.NDArray[np.bool_]


class Measures(NamedTuple):
    """The figures of one history, as columns of a run's row; lists have one item for each row."""

    duration_s: float
    """The time of the last event, in seconds since the run began."""
    latency_list: list[dict[str, Any]]
    seconds: list[dict[str, Any]]
    spans: list[dict[str, Any]]


def of_history(path: Path) -> Measures:
    """Measure the history in this file; raises :class:`~model.history.BadHistory`."""
    columns = history_file.columns(history_file.read(path, lambda done: None), path)
    work_ns, end_ns = _work_ends_ns(columns), int(columns.time_ns[-1])
    tables = table_builder.build(columns)
    return Measures(
        duration_s=end_ns / _NS,
        latency_list=_latencies(tables.operations, work_ns),
        seconds=_seconds(tables),
        spans=_spans(tables),
    )


def _work_ends_ns(columns: Columns) -> int | None:
    """Return when the workload ended; ``None`` if the history ends before that."""
    recover = [code for code, name in enumerate(columns.f_names) if name == RECOVER]
    rows = np.flatnonzero(np.isin(columns.f, recover) & (columns.type == INVOKE))
    return int(columns.time_ns[rows[0]]) if len(rows) else None


def _latencies(operations: Operations, work_ns: int | None) -> list[dict[str, Any]]:
    """Return the quantiles of completion time minus invocation time of completed operations.

    There is a row for each operation function, phase and outcome that occurs.
    """
    took_ms = (operations.end_ns - operations.start_ns) / 1e6
    is_final = operations.start_ns >= (np.inf if work_ns is None else work_ns)
    found = []
    for code, name in enumerate(operations.f):
        for phase, in_phase in ((WORK, ~is_final), (FINAL, is_final)):
            for outcome, word in OUTCOMES.items():
                rows: Mask = (operations.f_code == code) & in_phase & operations.completed
                values = took_ms[rows & (operations.outcome == outcome)]
                if len(values):
                    at = np.quantile(values, list(_QUANTILES.values()))
                    measured = dict(zip(_QUANTILES, at.tolist(), strict=True))
                    place = {"operation": name, "phase": phase, "outcome": word}
                    found.append({**place, "count": len(values), **measured})
    return found


def _seconds(tables: Tables) -> list[dict[str, Any]]:
    """Return for each second with a completion how much was completed in it."""
    operations, sends = tables.operations, tables.sends
    done, outcome = operations.completed, operations.outcome
    acked_ns = operations.end_ns[sends.operation[sends.outcome == OK]]
    end_ns = operations.end_ns
    counted = {
        "acked": acked_ns,
        "completed": end_ns[done],
        "failed": end_ns[done & (outcome == FAIL)],
        "unknown": end_ns[done & (outcome == INFO)],
    }
    length = int(end_ns.max(initial=0)) // 1_000_000_000 + 1
    counts = {
        name: np.bincount(times // 1_000_000_000, minlength=length)
        for name, times in counted.items()
    }
    used = np.flatnonzero(counts["completed"])
    return [
        {"second": int(second), **{name: int(column[second]) for name, column in counts.items()}}
        for second in used
    ]


def _spans(tables: Tables) -> list[dict[str, Any]]:
    """Return the longest outage of each partition, and its recovery after each healed fault."""
    healed_s = {fault.id: fault.to_ns / _NS for fault in tables.faults if fault.to_ns is not None}
    found: list[dict[str, Any]] = []
    for log in tables.logs():
        if (outage := availability.longest_outage(log)) is not None:
            begin_s, end_s = outage.from_ns / _NS, outage.to_ns / _NS
            found.append(_span(OUTAGE, log.key, None, begin_s, end_s, end_s - begin_s))
        for recovery in availability.recoveries(log):
            at_s = healed_s.get(recovery.fault)
            found.append(_span(RECOVERY, log.key, recovery.fault, at_s, None, recovery.seconds))
    return found


def _span(
    kind: str,
    key: str,
    fault: int | None,
    from_s: float | None,
    to_s: float | None,
    seconds: float | None,
) -> dict[str, Any]:
    return {
        "kind": kind,
        "key": key,
        "fault_id": fault,
        "from_s": from_s,
        "to_s": to_s,
        "seconds": seconds,
    }
