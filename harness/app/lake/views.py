"""The views that a user's SQL can name: their columns, and the query that makes each."""

from typing import NamedTuple

ROWS = "lake_rows"
"""The name of the table with the rows as they are stored."""


class View(NamedTuple):
    """A view of the lake."""

    meaning: str
    query: str
    columns: dict[str, tuple[str, str]]
    """By name: Spark's type, and the meaning."""


_RUN = {"run_id": ("string", "the run; each view has this column")}


def _of_list(column: str) -> str:
    return f"SELECT id AS run_id, inline({column}) FROM {ROWS}"


VIEWS = {
    "runs": View(
        "one row for each run",
        f"""SELECT id AS run_id, name, time, `commit`, suite, configuration, system, release,
            workload, target, nemesis, mutants, seed, verdict, time_limit_s, duration_s, ops, ok,
            fail, info, acked, read, keys, keys_caught_up, faults, faults_effective, faults_late_ms,
            snapshots, ignored, throughput_hz, outage_s, recovery_s, missing, folder, version
            FROM {ROWS}""",
        _RUN
        | {
            "name": ("string", "the name of the run's folder"),
            "time": ("timestamp", "when the run began, UTC, by the name of its folder"),
            "commit": ("string", "Faultline's commit, with `-dirty` for local changes"),
            "suite": ("string", "the suite of the gate that made the run; null outside of a gate"),
            "configuration": ("string", "the configuration in the suite file"),
            "system": ("string", "`kafka` or `apache-kafka`"),
            "release": ("string", "the release of the system; null for this project's broker"),
            "workload": ("string", "the workload"),
            "target": ("string", "where the cluster ran"),
            "nemesis": ("string", "the nemeses, separated by commas"),
            "mutants": ("string", "the planted bugs, separated by commas"),
            "seed": ("bigint", "the seed of all random choices"),
            "verdict": (
                "string",
                "`valid`, `invalid`, `unknown`; `failed` if Faultline failed before there was a"
                " verdict; null if the run was ended from outside",
            ),
            "time_limit_s": ("double", "how long the workload was planned to run"),
            "duration_s": ("double", "the time of the last event of the history"),
            "ops": ("bigint", "completed operations"),
            "ok": ("bigint", "operations that succeeded"),
            "fail": ("bigint", "operations that certainly did not happen"),
            "info": ("bigint", "operations that may have happened"),
            "acked": ("bigint", "records acknowledged"),
            "read": ("bigint", "records read at least once"),
            "keys": ("bigint", "partitions used"),
            "keys_caught_up": ("bigint", "partitions read up to the high watermark"),
            "faults": ("bigint", "faults requested"),
            "faults_effective": ("bigint", "faults that were measured to have taken effect"),
            "faults_late_ms": ("bigint", "by how much the most delayed fault was late"),
            "snapshots": ("bigint", "simulated runs: snapshots of the state that were judged"),
            "ignored": ("bigint", "operations that no checker knows"),
            "throughput_hz": ("double", "records acknowledged per second of the time limit"),
            "outage_s": ("double", "the longest time in which a partition acknowledged nothing"
                                   " although writes were pending"),
            "recovery_s": ("double", "the slowest recovery of a partition after a heal; null if"
                                     " there was none, or if one never ended"),
            "missing": ("array<string>", "files that the run's folder does not have or that cannot"
                                         " be read, each with the reason"),
            "folder": ("string", "where the run's folder was; null if it was not kept"),
            "version": ("int", "the version of the row's schema"),
        },
    ),
    "plans": View(
        "one row for each setting of a run's plan",
        _of_list("settings"),
        _RUN
        | {
            "component": (
                "string",
                "`broker`, `producer`, `consumer`, `expect`, `options`, `versions`, or `plan` for"
                " the numbers of the plan itself",
            ),
            "key": ("string", "the name of the setting"),
            "value": ("string", "its value; values that are not text are JSON"),
        },
    ),
    "faults": View(
        "one row for each fault of a run",
        f"""WITH slowest AS (
              SELECT id, span.fault_id, max(span.seconds) AS recovery_s,
                     count(*) - count(span.seconds) AS unrecovered
              FROM (SELECT id, explode(spans) AS span FROM {ROWS})
              WHERE span.kind = 'recovery' GROUP BY id, span.fault_id)
            SELECT f.*, slowest.recovery_s, coalesce(slowest.unrecovered, 0) AS unrecovered
            FROM ({_of_list("fault_list")}) f
            LEFT JOIN slowest ON f.run_id = slowest.id AND f.fault_id = slowest.fault_id""",
        _RUN
        | {
            "fault_id": ("bigint", "the number of the fault in its run"),
            "fault": ("string", "the kind of the fault"),
            "targets": ("string", "what it affected"),
            "asked_s": ("double", "when it was requested, in seconds since the run began"),
            "applied_s": ("double", "when it was applied"),
            "healed_s": ("double", "when its heal was complete; null if it was not healed"),
            "proved": ("boolean", "whether it was measured to have taken effect"),
            "how": ("string", "how the effect was measured"),
            "late_s": ("double", "how much later than planned it was requested"),
            "overran_s": ("double", "how much longer than planned it lasted"),
            "recovery_s": ("double", "how long the slowest partition that recovered took after the"
                                     " heal; the view `availability` has each partition"),
            "unrecovered": ("bigint", "partitions that acknowledged nothing after the heal although"
                                      " a write was pending"),
        },
    ),
    "anomalies": View(
        "one row for each kind of anomaly of a run",
        _of_list("anomaly_counts"),
        _RUN
        | {
            "anomaly": ("string", "the anomaly"),
            "legal": ("boolean", "whether the configuration permits it"),
            "count": ("bigint", "how often it occurred, counted as in `verdict.json`"),
        },
    ),
    "findings": View(
        "one row for each finding of a run",
        _of_list("finding_list"),
        _RUN
        | {
            "anomaly": ("string", "the anomaly"),
            "legal": ("boolean", "whether the configuration permits it"),
            "key": ("string", "the partition, as `topic-partition`"),
            "partition": ("int", "the number of the partition"),
            "offset": ("bigint", "the offset"),
            "value": ("bigint", "the value of the record"),
            "ops": ("array<bigint>", "the indices of the events that are its witnesses"),
            "faults": ("array<bigint>", "the faults that were active between the witnesses"),
            "why": ("string", "the argument, in one sentence"),
            "folded": ("bigint", "how many further findings this row stands for"),
            "group": ("string", "the consumer group"),
            "generation": ("bigint", "the generation of the group"),
        },
    ),
    "availability": View(
        "one row for the longest outage of each partition, and for each of its recoveries",
        _of_list("spans"),
        _RUN
        | {
            "kind": ("string", "`outage`: writes were pending and none was acknowledged;"
                               " `recovery`: from a heal, or the first write after it, to the next"
                               " acknowledgement"),
            "key": ("string", "the partition, as `topic-partition`"),
            "fault_id": ("bigint", "`recovery`: the fault that was healed"),
            "from_s": ("double", "begin, in seconds since the run began; `recovery`: the heal"),
            "to_s": ("double", "`outage`: its end"),
            "seconds": ("double", "how long it lasted; null for a recovery that never ended"),
        },
    ),
    "latencies": View(
        "one row for each operation function, phase and outcome of a run",
        _of_list("latency_list"),
        _RUN
        | {
            "operation": ("string", "the operation function, such as `send` or `poll`"),
            "phase": ("string", "`work`, or `final` for operations that began when all faults had"
                                " been healed"),
            "outcome": ("string", "`ok`, `fail` or `info`"),
            "count": ("bigint", "completed operations"),
            "p50_ms": ("double", "the median of completion time minus invocation time"),
            "p90_ms": ("double", "the quantile 0.9"),
            "p99_ms": ("double", "the quantile 0.99"),
            "p999_ms": ("double", "the quantile 0.999"),
            "max_ms": ("double", "the maximum"),
        },
    ),
    "throughput": View(
        "one row for each second of a run in which an operation completed",
        _of_list("seconds"),
        _RUN
        | {
            "second": ("bigint", "the second since the run began, from 0"),
            "acked": ("bigint", "records acknowledged"),
            "completed": ("bigint", "completed operations of all kinds"),
            "failed": ("bigint", "operations that certainly did not happen"),
            "unknown": ("bigint", "operations that may have happened"),
        },
    ),
}  # fmt: skip
"""The views by name."""


def named(statement: str) -> list[str]:
    """Return the views that a statement may use; each costs time to create.

    A statement that names none, such as ``show views``, may ask about all of them.
    """
    text = statement.lower()
    return [name for name in VIEWS if name in text] or list(VIEWS)


def page() -> str:
    """Return the tables of ``docs/lake.md``."""
    parts = []
    for name, view in VIEWS.items():
        rows = [f"| `{column}` | {kind} | {text} |" for column, (kind, text) in
                view.columns.items()]  # fmt: skip
        head = f"### {name}\n\nThis view has {view.meaning}.\n\n| column | type | meaning |"
        parts.append("\n".join((head, "|---|---|---|", *rows)))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    print(page(), end="")
