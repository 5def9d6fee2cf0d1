"""Shows findings as marks on the time axis, at the time of each finding's first witness."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from harness.app.report.columns import Columns, Ints

LOST = "lost records (when they were acknowledged)"
FOUND = "other illegal findings (first witness)"
LOSSES = ("lost-write", "torn-transaction", "stale-key")
"""Anomalies whose first witness is the write of a record that was lost."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The findings of one anomaly within one bin of the time axis."""

    seconds: float
    """The time of the first of them."""
    anomaly: str
    meaning: str
    count: int
    first: str
    """Partition and offset of the first of them."""


def of(table: pa.Table | None, columns: Columns, edges: npt.NDArray[np.float64]) -> list[Mark]:
    """Return a mark for each anomaly and bin with an illegal finding or a permitted loss."""
    if table is None or not table.num_rows or not len(columns):
        return []
    wanted = pc.or_(pc.invert(table["legal"]), pc.is_in(table["anomaly"], pa.array(LOSSES)))
    table = table.filter(pc.and_(wanted, pc.greater(pc.list_value_length(table["ops"]), 0)))
    if not table.num_rows:
        return []
    first_ops = np.asarray(pc.list_element(table["ops"], 0), dtype=np.int64)
    times_s, known = _times_s(columns, first_ops)
    bins = np.clip(np.searchsorted(edges, times_s, side="right") - 1, 0, len(edges) - 2)
    names = table["anomaly"].to_pylist()
    legal = table["legal"].to_pylist()
    found: dict[tuple[int, str, bool], list[int]] = {}
    for row in np.flatnonzero(known).tolist():
        found.setdefault((int(bins[row]), names[row], legal[row]), []).append(row)
    return [
        _mark(table, anomaly, is_legal, rows, times_s)
        for (_, anomaly, is_legal), rows in sorted(found.items())
    ]


def _times_s(columns: Columns, ops: Ints) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return when these events were recorded, and which of them exist in the history."""
    order = np.argsort(columns.index, kind="stable")
    rows = np.minimum(np.searchsorted(columns.index[order], ops), len(order) - 1)
    known = columns.index[order][rows] == ops
    return columns.time_ns[order][rows] / 1e9, known


def _mark(
    table: pa.Table,
    anomaly: str,
    is_legal: bool,
    rows: Sequence[int],
    times_s: npt.NDArray[np.float64],
) -> Mark:
    first = min(rows, key=lambda row: (float(times_s[row]), row))
    key, offset = table["key"][first].as_py(), table["offset"][first].as_py()
    place = ([] if key is None else [key]) + ([] if offset is None else [f"offset {offset}"])
    return Mark(
        seconds=float(times_s[first]),
        anomaly=f"{anomaly} (allowed)" if is_legal else anomaly,
        meaning=LOST if anomaly in LOSSES else FOUND,
        count=len(rows),
        first=", ".join(place) or "no partition or offset",
    )
