"""Turns what kernels found into findings: legal or not, with the faults that were active."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from checkers import anomalies
from checkers.anomalies import INVARIANT, Anomaly
from checkers.expectations import Contract
from checkers.invariants.table import STUCK, VIOLATIONS
from checkers.kernels.found import Found, at
from checkers.overview import Overview
from model.finding import Finding
from model.violation import BadRecord, Violation

KILLED = -9
"""The status of SIGKILL, which comes from outside (the out-of-memory killer, a user) and says
nothing about a node."""


UNRESPONSIVE = "unresponsive"
CRASH = "crash"
"""The anomaly of a node of the cluster that exited by itself."""

SCHEMA = pa.schema(
    [
        pa.field("anomaly", pa.string(), nullable=False),
        pa.field("legal", pa.bool_(), nullable=False),
        pa.field("key", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("value", pa.int64()),
        pa.field("ops", pa.list_(pa.int64()), nullable=False),
        pa.field("faults", pa.list_(pa.int64()), nullable=False),
        pa.field("why", pa.string(), nullable=False),
        pa.field("folded", pa.int64(), nullable=False),
        pa.field("group", pa.string()),
        pa.field("generation", pa.int64()),
    ]
)


def findings(
    found: Sequence[Found],
    history: Overview,
    contract: Contract,
    violations: Sequence[Violation] = (),
) -> list[Finding]:
    """Return the findings in the order to read them: illegal first, then by anomaly and place.

    ``violations`` are what white-box checks saw while the history was made.
    """
    results = [
        Finding(
            anomaly=f.anomaly,
            legal=anomalies.is_legal(f, contract),
            key=f.key,
            group=f.group,
            partition=None if f.key is None else _partition(f.key),
            offset=f.offset,
            generation=f.generation,
            value=f.value,
            ops=f.ops,
            faults=overlapping_faults(f.ops, history),
            why=f.why,
            folded=f.folded,
        )
        for f in found
    ]
    results += crashes(history)
    results += unresponsive(history)
    results += [_of_violation(violation, history) for violation in violations]
    return sorted(results, key=_reading_order)


def _reading_order(f: Finding) -> tuple[bool, str, str, int, int, int]:
    return f.legal, f.anomaly, f.key or "", f.offset or 0, f.generation or 0, f.value or 0


def anomaly_of(violation: Violation) -> str:
    """Return the id of the anomaly that a violation is."""
    name = violation.invariant
    return name if name == STUCK else INVARIANT + name


def _of_violation(violation: Violation, history: Overview) -> Finding:
    """Convert a violation. It is never legal: invariants that the run's settings excuse are not
    checked."""
    if violation.invariant not in VIOLATIONS:
        raise BadRecord(f"{violation.invariant!r} is not an invariant of this version")
    time_ns = violation.time_ns
    return Finding(
        anomaly=anomaly_of(violation),
        legal=False,
        key=violation.key,
        partition=None if violation.key is None else _partition(violation.key),
        offset=violation.offset,
        faults=active(time_ns, time_ns, history),
        why=f"{violation.why} (seen at {at(time_ns)})",
    )


def crashes(history: Overview) -> list[Finding]:
    """Return a finding for each node of the cluster that exited by itself: no contract permits
    that."""
    return [
        Finding(
            anomaly=CRASH,
            legal=False,
            ops=(crash.op,),
            faults=overlapping_faults((crash.op,), history),
            why=f"{crash.node} exited unexpectedly with {_status(crash.status)} at "
            f"{at(crash.time_ns)}; its last line: {crash.last_line or 'none'}",
        )
        for crash in history.crashes
        if crash.serves and crash.status != KILLED
    ]


def unresponsive(history: Overview) -> list[Finding]:
    """Return a finding for each node that ran and answered nothing when all faults were healed.

    There is none where something else may be the reason: a fault that was not healed by then, a
    SIGKILL from outside, or the end of a process such as Toxiproxy, through which probes may lead.
    """
    if any(crash.status == KILLED or not crash.serves for crash in history.crashes):
        return []
    healed_ns = [fault.to_ns for fault in history.faults]
    last_ns = max((ns for ns in healed_ns if ns is not None), default=0)
    if None in healed_ns or any(silence.time_ns < last_ns for silence in history.silences):
        return []
    return [
        Finding(
            anomaly=UNRESPONSIVE,
            legal=False,
            ops=(silence.op,),
            faults=(),
            why=f"{silence.node} runs, and answered no probe for {silence.for_s:g} s, until"
            f" {at(silence.time_ns)}, although all faults were healed",
        )
        for silence in history.silences
    ]


def _status(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def overlapping_faults(ops: Sequence[int], history: Overview) -> tuple[int, ...]:
    """Return the faults that were active between the first and the last event of the evidence. An
    operation counts from its invocation, as its answer may have waited until a fault was healed."""
    if not ops:
        return ()
    return active(*history.times.span(ops), history)


def active(begin: int, end: int, history: Overview) -> tuple[int, ...]:
    """Return the faults that were active at some time between these two."""
    return tuple(
        fault.id
        for fault in history.faults
        if fault.from_ns <= end and (fault.to_ns is None or fault.to_ns >= begin)
    )


def counts(results: Iterable[Finding], *, legal: bool) -> dict[str, int]:
    """Count the distinct findings by anomaly, and those that one finding stands for.

    Raises :class:`~checkers.anomalies.UnknownAnomaly`.
    """
    places: dict[str, set[tuple[str | int | None, ...]]] = {}
    folded: Counter[str] = Counter()
    for f in results:
        if f.legal == legal:
            anomaly = anomalies.of(f.anomaly)
            places.setdefault(f.anomaly, set()).add(_place(f, anomaly))
            if anomaly.is_information:
                folded[f.anomaly] += f.folded
    return {anomaly: len(found) + folded[anomaly] for anomaly, found in sorted(places.items())}


def _place(f: Finding, anomaly: Anomaly) -> tuple[str | int | None, ...]:
    """Return what distinguishes a finding from others of the same anomaly."""
    match anomaly.counted_by:
        case "witnesses":
            return f.group, f.key, *f.ops
        case "offset":
            return f.key, f.offset
        case "value":
            return f.key, f.value


def write(path: Path, results: Sequence[Finding]) -> None:
    """Write ``findings.parquet``."""
    columns = {name: [getattr(f, name) for f in results] for name in SCHEMA.names}
    pq.write_table(pa.table(columns, schema=SCHEMA), path)


def _partition(key: str) -> int | None:
    number = key.rpartition("-")[2]
    return int(number) if number.isdecimal() else None
