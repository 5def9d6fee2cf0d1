"""The schema of the lake: one row for each run, whose parts are lists of structures.

A whole run is one row, so that a run is added completely or not at all. Columns are only ever
added: a row of an older version has no value in the columns that came later.
"""

import pyarrow as pa

VERSION = 1
"""The version of this schema; each row has the version that it was written with."""

_TEXT, _COUNT, _SECONDS, _FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()

COUNTS = (
    *("ops", "ok", "fail", "info", "acked", "read", "keys", "keys_caught_up"),
    *("faults", "faults_effective", "faults_late_ms", "snapshots", "ignored"),
)
"""The evidence counts of a verdict (``docs/results-folder.md``), each a column of a run."""

ANOMALY = pa.struct([("anomaly", _TEXT), ("legal", _FLAG), ("count", _COUNT)])
SETTING = pa.struct([("component", _TEXT), ("key", _TEXT), ("value", _TEXT)])
FAULT = pa.struct(
    [
        ("fault_id", _COUNT),
        ("fault", _TEXT),
        ("targets", _TEXT),
        ("asked_s", _SECONDS),
        ("applied_s", _SECONDS),
        ("healed_s", _SECONDS),
        ("proved", _FLAG),
        ("how", _TEXT),
        ("late_s", _SECONDS),
        ("overran_s", _SECONDS),
    ]
)
FINDING = pa.struct(
    [
        ("anomaly", _TEXT),
        ("legal", _FLAG),
        ("key", _TEXT),
        ("partition", pa.int32()),
        ("offset", _COUNT),
        ("value", _COUNT),
        ("ops", pa.list_(_COUNT)),
        ("faults", pa.list_(_COUNT)),
        ("why", _TEXT),
        ("folded", _COUNT),
        ("group", _TEXT),
        ("generation", _COUNT),
    ]
)
SPAN = pa.struct(
    [
        ("kind", _TEXT),
        ("key", _TEXT),
        ("fault_id", _COUNT),
        ("from_s", _SECONDS),
        ("to_s", _SECONDS),
        ("seconds", _SECONDS),
    ]
)
LATENCY = pa.struct(
    [
        ("operation", _TEXT),
        ("phase", _TEXT),
        ("outcome", _TEXT),
        ("count", _COUNT),
        *((f"{name}_ms", _SECONDS) for name in ("p50", "p90", "p99", "p999", "max")),
    ]
)
SECOND = pa.struct(
    [
        ("second", _COUNT),
        ("acked", _COUNT),
        ("completed", _COUNT),
        ("failed", _COUNT),
        ("unknown", _COUNT),
    ]
)

ROW = pa.schema(
    [
        ("version", pa.int32()),
        ("id", _TEXT),
        ("name", _TEXT),
        ("time", pa.timestamp("us", tz="UTC")),
        ("commit", _TEXT),
        ("suite", _TEXT),
        ("configuration", _TEXT),
        ("system", _TEXT),
        ("release", _TEXT),
        ("workload", _TEXT),
        ("target", _TEXT),
        ("nemesis", _TEXT),
        ("mutants", _TEXT),
        ("seed", _COUNT),
        ("verdict", _TEXT),
        ("time_limit_s", _SECONDS),
        ("duration_s", _SECONDS),
        *((name, _COUNT) for name in COUNTS),
        ("throughput_hz", _SECONDS),
        ("outage_s", _SECONDS),
        ("recovery_s", _SECONDS),
        ("missing", pa.list_(_TEXT)),
        ("folder", _TEXT),
        ("anomaly_counts", pa.list_(ANOMALY)),
        ("settings", pa.list_(SETTING)),
        ("fault_list", pa.list_(FAULT)),
        ("finding_list", pa.list_(FINDING)),
        ("spans", pa.list_(SPAN)),
        ("latency_list", pa.list_(LATENCY)),
        ("seconds", pa.list_(SECOND)),
    ]
)
"""The columns of a run's row."""
