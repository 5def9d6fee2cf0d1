"""Findings by anomaly, each with the operations around its witnesses."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.app.report.columns import NO_KEY, SEVERAL_KEYS, Columns, keys_of
from harness.app.report.faults import Fault
from model.finding import Finding
from model.op import NEMESIS, Op

SHOWN = 20
"""Findings of one anomaly on the page; the rest is in ``findings.parquet``."""
WITNESSES = 6
AROUND = 3
"""Events of the same partition shown before and after a witness."""
SEARCHED = 4000
"""How far to look for them, in events."""
RECORDS = 6
"""Records of one poll that are written out."""

MEANING = {
    "lost-write": "An acknowledged record is missing from the log: a reader went past its offset.",
    "duplicate": "One record is in the log at more than one offset.",
    "inconsistent-offsets": "One offset of one partition holds different records.",
    "unseen": "An acknowledged record had not been read when the run ended.",
    "delayed": "An acknowledged record was read late: a reader had gone past its offset before.",
    "unchecked": "An acknowledged record lies behind the point that any reader reached.",
    "phantom": "A record was read that nobody had sent.",
    "aborted-read": "A record was read whose send is known to have failed.",
    "G1a": "A record was read that a transaction had aborted.",
    "nonmonotonic-send": "One producer's later record got an earlier offset.",
    "int-nonmonotonic-send": "Within one operation, a later record got an earlier offset.",
    "nonmonotonic-poll": "A consumer read an earlier offset after a later one.",
    "int-nonmonotonic-poll": "Within one poll, an earlier offset came after a later one.",
    "poll-skip": "A consumer went past a record that others could read.",
    "int-poll-skip": "Within one poll, a record was left out that others could read.",
    "send-skip": "One producer's records are not next to each other although nobody else wrote.",
    "realtime-order": "A record sent after another's acknowledgement got an earlier offset.",
    "unavailable": "A partition took no records for longer than the configuration allows.",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """An event as the page shows it."""

    index: int
    seconds: float
    process: int
    type: str
    f: str
    what: str
    error: str
    witness: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """A finding as the page shows it."""

    finding: Finding
    seconds: float | None
    """When its first witness was recorded."""
    blamed: list[Fault]
    lines: list[Line | None]
    """The events around the witnesses; ``None`` where some are left out."""


@dataclass(frozen=True, slots=True)
class Group:
    """The findings of one anomaly."""

    anomaly: str
    meaning: str
    legal: bool
    total: int
    shown: list[Shown]


def load(path: Path) -> pa.Table | None:
    """The table of ``findings.parquet``, ``None`` when there is none."""
    return pq.read_table(path) if path.exists() else None


def groups(table: pa.Table | None, columns: Columns, faults: Sequence[Fault]) -> list[Group]:
    """Illegal anomalies first, the most frequent of each kind before the others."""
    if table is None or not table.num_rows:
        return []
    by_id = {fault.id: fault for fault in faults}
    counted = table.group_by(["legal", "anomaly"]).aggregate([([], "count_all")]).to_pylist()
    counted.sort(key=lambda row: (row["legal"], -row["count_all"], row["anomaly"]))
    found = []
    for row in counted:
        legal, anomaly = row["legal"], row["anomaly"]
        mine = pc.and_(pc.equal(table["anomaly"], anomaly), pc.equal(table["legal"], legal))
        rows = table.filter(mine).slice(0, SHOWN).to_pylist()
        shown = [_shown(_finding(each), columns, by_id) for each in rows]
        meaning = MEANING.get(anomaly, "")
        found.append(Group(anomaly, meaning, legal, row["count_all"], shown))
    return found


def _finding(row: dict[str, Any]) -> Finding:
    given = {name: part for name, part in row.items() if part is not None}
    return msgspec.convert(given, Finding)


def _shown(finding: Finding, columns: Columns, faults: dict[int, Fault]) -> Shown:
    rows = [row for row in map(columns.row_of, finding.ops[:WITNESSES]) if row is not None]
    around = sorted({near for row in rows for near in neighbours(columns, row, finding.key)})
    lines: list[Line | None] = []
    for place, row in enumerate(around):
        if place and _left_out(columns, around[place - 1], row, finding.key):
            lines.append(None)
        lines.append(_line(columns.op(row), finding, witness=row in rows))
    return Shown(
        finding,
        min((columns.time_ns[row] / 1e9 for row in rows), default=None),
        [faults[number] for number in finding.faults if number in faults],
        lines,
    )


def _left_out(columns: Columns, before: int, after: int, key: str | None) -> bool:
    """Is there an event of the partition between two shown ones that is not shown?"""
    if key is None:
        return after - before > 1
    code = _code(columns, key)
    return any(_touches(columns, row, code, key) for row in range(before + 1, after))


def neighbours(columns: Columns, row: int, key: str | None) -> list[int]:
    """The row and some before and after it that touch the partition, the nemesis' among them."""
    if key is None:
        return list(range(max(0, row - AROUND), min(len(columns), row + AROUND + 1)))
    code = _code(columns, key)
    found = [row]
    for step in (-1, 1):
        taken = 0
        near = row + step
        while 0 <= near < len(columns) and abs(near - row) <= SEARCHED and taken < AROUND:
            if columns.process[near] == NEMESIS:
                found.append(near)
            elif _touches(columns, near, code, key):
                found.append(near)
                taken += 1
            near += step
    return sorted(found)


def _code(columns: Columns, key: str) -> int:
    return columns.key_names.index(key) if key in columns.key_names else NO_KEY


def _touches(columns: Columns, row: int, code: int, key: str) -> bool:
    kept = columns.key[row]
    if kept == SEVERAL_KEYS:
        return key in keys_of(columns.op(row).value)
    return bool(kept == code and kept != NO_KEY)


def _line(op: Op, finding: Finding, *, witness: bool) -> Line:
    what = described(op.value, finding.key, finding.offset)
    return Line(
        op.index, op.time_ns / 1e9, op.process, op.type, op.f, what, op.error or "", witness
    )


def described(value: Any, key: str | None, offset: int | None) -> str:
    """What an event did, as far as it touches the partition: long polls cut around the offset."""
    if not isinstance(value, list):
        return "" if value is None else _short(value)
    parts = []
    for micro in value:
        match micro:
            case ["send", where, [at, number]]:
                parts.append(f"{where} ← {number} at offset {at}")
            case ["send", where, number]:
                parts.append(f"{where} ← {number}")
            case ["poll", dict(polled)]:
                parts += [
                    f"{where}: {_records(rows, offset if where == key else None)}"
                    for where, rows in polled.items()
                    if key is None or where == key
                ]
            case ["poll"]:
                pass
            case _:
                parts.append(_short(micro))
    return "; ".join(parts)


def _records(rows: Sequence[Any], offset: int | None) -> str:
    """``offset=value`` of each record, those around the offset when there are many."""
    shown, first = list(rows), 0
    if len(shown) > RECORDS:
        near = [
            place
            for place, row in enumerate(shown)
            if offset is None or (isinstance(row, list) and row and row[0] >= offset)
        ]
        first = max(0, (near[0] if near else len(shown)) - RECORDS // 2)
        shown = shown[first : first + RECORDS]
    text = " ".join(f"{row[0]}={row[1]}" if isinstance(row, list) else _short(row) for row in shown)
    left = len(rows) - len(shown)
    before, after = "… " if first else "", " …" if first + len(shown) < len(rows) else ""
    return f"{before}{text}{after}" + (f" ({left} more records)" if left else "")


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 300 else text[:299] + "…"
