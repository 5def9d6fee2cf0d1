"""Turns what kernels found into findings: legal or not, with the faults that were active."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from checkers.expectations import INFORMATION, Contract
from checkers.kernels.rows import Found, at
from checkers.tables import Tables
from model.finding import Finding
from model.violation import Violation

KILLED = -9
"""The status of SIGKILL, which comes from outside (the out-of-memory killer, a user) and says
nothing about a node."""

INVARIANT = "invariant:"
"""Prefix of the anomalies of white-box checks, which no client need have noticed."""
STUCK = "stuck"
"""The one anomaly of white-box checks that has the name that the black-box checks use."""

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
    ]
)


def findings(
    found: Sequence[Found],
    tables: Tables,
    contract: Contract,
    violations: Sequence[Violation] = (),
) -> list[Finding]:
    """Return the findings in the order to read them: illegal first, then by anomaly and place.

    ``violations`` are what white-box checks saw while the history was made.
    """
    results = [
        Finding(
            anomaly=f.anomaly,
            legal=contract.allows(f),
            key=f.key,
            group=f.group,
            partition=None if f.key is None else _partition(f.key),
            offset=f.offset,
            value=f.value,
            ops=f.ops,
            faults=blamed(f.ops, tables),
            why=f.why,
            folded=f.folded,
        )
        for f in found
    ]
    results += crashes(tables)
    results += [_of_violation(violation, tables) for violation in violations]
    return sorted(
        results, key=lambda f: (f.legal, f.anomaly, f.key or "", f.offset or 0, f.value or 0)
    )


def called(violation: Violation) -> str:
    """Return the name of the anomaly that a violation is."""
    name = violation.invariant
    return name if name == STUCK else INVARIANT + name


def _of_violation(violation: Violation, tables: Tables) -> Finding:
    """Convert a violation. It is never legal: invariants that the run's settings excuse are not
    checked."""
    time_ns = violation.time_ns
    return Finding(
        anomaly=called(violation),
        legal=False,
        key=violation.key,
        partition=None if violation.key is None else _partition(violation.key),
        offset=violation.offset,
        faults=active(time_ns, time_ns, tables),
        why=f"{violation.why} (seen at {at(time_ns)})",
    )


def crashes(tables: Tables) -> list[Finding]:
    """Return a finding for each node of the cluster that exited by itself: no contract permits
    that."""
    return [
        Finding(
            anomaly="crash",
            legal=False,
            ops=(crash.op,),
            faults=blamed((crash.op,), tables),
            why=f"{crash.node} exited unexpectedly with {_status(crash.status)} at "
            f"{at(crash.time_ns)}; its last line: {crash.last_line or 'none'}",
        )
        for crash in tables.crashes
        if crash.serves and crash.status != KILLED
    ]


def _status(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def blamed(ops: Sequence[int], tables: Tables) -> tuple[int, ...]:
    """Return the faults that were active between the first and the last event of the evidence. An
    operation counts from its invocation, as its answer may have waited until a fault was healed."""
    if not ops:
        return ()
    begin, end = tables.began(list(ops)), tables.when(list(ops))
    return active(int(begin.min()), int(end.max()), tables)


def active(begin: int, end: int, tables: Tables) -> tuple[int, ...]:
    """Return the faults that were active at some time between these two."""
    return tuple(
        fault.id
        for fault in tables.faults
        if fault.from_ns <= end and (fault.to_ns is None or fault.to_ns >= begin)
    )


def counts(results: Iterable[Finding], *, legal: bool) -> dict[str, int]:
    """Count the findings by anomaly: distinct (partition, value) or (partition, offset), and
    distinct findings where no single partition is concerned."""
    places: dict[str, set[tuple[str | int | None, ...]]] = {}
    information: Counter[str] = Counter()
    for f in results:
        if f.legal == legal:
            if f.anomaly in INFORMATION:
                information[f.anomaly] += f.folded  # others of the same kind
            if f.key is None and f.ops:  # has no place in a log
                places.setdefault(f.anomaly, set()).add(f.ops)
                continue
            by_offset = f.anomaly.startswith((INVARIANT, "inconsistent-offsets")) or (
                f.anomaly.endswith(("poll-skip", "nonmonotonic-poll"))
            )
            if f.group is not None:  # each contradicts another commit, or another assignment
                places.setdefault(f.anomaly, set()).add((f.group, f.key, *f.ops))
                continue
            places.setdefault(f.anomaly, set()).add((f.key, f.offset if by_offset else f.value))
    return {anomaly: len(found) + information[anomaly] for anomaly, found in sorted(places.items())}


def write(path: Path, results: Sequence[Finding]) -> None:
    """Write ``findings.parquet``."""
    columns = {name: [getattr(f, name) for f in results] for name in SCHEMA.names}
    pq.write_table(pa.table(columns, schema=SCHEMA), path)


def _partition(key: str) -> int | None:
    number = key.rpartition("-")[2]
    return int(number) if number.isdecimal() else None
