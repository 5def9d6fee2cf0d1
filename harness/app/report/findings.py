"""Findings by anomaly, each with the operations around its witnesses."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from checkers import invariants
from checkers.findings import INVARIANT
from harness.app.report.columns import INFO, NO_KEY, SEVERAL_KEYS, Columns, keys_of
from harness.app.report.faults import Fault, spoken
from model.finding import Finding
from model.op import NEMESIS, Op

SHOWN = 20
"""Rows of one anomaly on the page, each a finding or several in a row."""
WITNESSES = 6
AROUND = 3
"""Events of the same partition shown before and after a witness; so many faults, too."""
SEARCHED = 4000
"""How far to look for them, in events."""
RANGES = 6
"""Stretches of one operation's records that are written out."""

MEANING = {
    "lost-write": "An acknowledged record is missing from the log: a reader went past its offset.",
    "duplicate": "One record is in the log at more than one offset.",
    "inconsistent-offsets": "One offset of one partition holds different records.",
    "unseen-delayed": "An acknowledged record was read late: a reader had been past it before.",
    "unseen-unchecked": "An acknowledged record lies behind the point that any reader reached.",
    "phantom": "A record was read that nobody had sent.",
    "misrouted": "A record was read from another partition than it was sent to.",
    "G1a": "A record was read whose send is known to have failed.",
    "torn-transaction": "Some records of one transaction can be read, others of it are missing.",
    "precommitted-read": "A transaction read what it had sent itself and not committed yet.",
    "dirty-read": "A record was read while the transaction that had sent it was still open.",
    "zombie-write": "A transaction of a producer took effect after another had replaced it.",
    "lso-ahead": "The last stable offset was told to be above an open transaction.",
    "wr-cycle": "Transactions read each other's records in a circle: none can have been first.",
    "G0": "Records of transactions stand among each other: each comes before the other.",
    "G1c": "Transactions depend on each other in a circle of what they read and wrote.",
    "nonmonotonic-send": "One producer's later record got an earlier offset.",
    "int-nonmonotonic-send": "Within one operation, a later record got an earlier offset.",
    "nonmonotonic-poll": "A consumer read an earlier offset after a later one.",
    "int-nonmonotonic-poll": "Within one poll, an earlier offset came after a later one.",
    "poll-skip": "A consumer went past a record that others could read.",
    "int-poll-skip": "Within one poll, a record was left out that others could read.",
    "realtime-order": "A record sent after another's acknowledgement got an earlier offset.",
    "commit-regression": "A committed offset went back to what it had been before.",
    "lost-commit": "A committed offset is gone.",
    "commit-mismatch": "An offset is there, with other metadata than it was committed with.",
    "commit-ahead": "An offset is committed beyond anything that the group was given.",
    "resume-gap": "A member began behind the committed offset, and left records out.",
    "resume-overlap": "A member began before the committed offset.",
    "double-owner": "Two members of a group owned one partition.",
    "subscribed-deletion": "What a group had committed was deleted while a member read on.",
    "eos-mismatch": "An input became committed output more than once, or never.",
    "stale-key": "A reader came past the last record of a key, and was given an older one or none.",
    "resurrected-key": "A reader came past the tombstone of a key, and kept what it deleted.",
    "hw-regress": "A high watermark went back.",
    "lso-regress": "A last stable offset went back.",
    "log-start-regress": "The start of a log went back.",
    "acked-above-end": "An acknowledged record lies beyond the end that a leader told later.",
    "stuck-lso": "A transaction that nobody ends holds the readers of its partition up.",
    "stuck-producer": "A transactional producer that no fault touches any more gets nothing done.",
    "stuck-group": "A group that no fault touches any more reads nothing of a partition.",
    "stuck": "A partition that no fault touches any more takes no records.",
    "crash": "A broker or ZooKeeper ended although nobody had asked it to.",
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
    """A finding as the page shows it, with those at the offsets right behind it."""

    finding: Finding
    count: int
    """Findings at neighbouring offsets of the same partition, this one among them."""
    offset_last: int | None
    """Where the last of them lies."""
    seconds: float | None
    """When its first witness was recorded."""
    blamed: list[Fault]
    """The faults of all of them."""
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

    @property
    def left(self) -> int:
        """How many findings the page does not show."""
        return self.total - sum(shown.count for shown in self.shown)


@dataclass(frozen=True, slots=True)
class Headline:
    """An illegal anomaly in short."""

    anomaly: str
    meaning: str
    total: int
    finding: Finding
    """The first of them."""
    blamed: list[Fault]
    """The faults that were active between its witnesses."""


def load(path: Path) -> pa.Table | None:
    """The table of ``findings.parquet``, ``None`` when there is none."""
    return pq.read_table(path) if path.exists() else None


def groups(table: pa.Table | None, columns: Columns, faults: Sequence[Fault]) -> list[Group]:
    """Illegal anomalies first, the most frequent of each kind before the others."""
    if table is None or not table.num_rows:
        return []
    by_id = {fault.id: fault for fault in faults}
    found = []
    for anomaly, legal, rows in _by_anomaly(table):
        shown = []
        for first, count in stretches(rows)[:SHOWN]:
            finding = _finding(rows.slice(first, 1).to_pylist()[0])
            mine = rows.slice(first, count)
            blamed = sorted(pc.unique(pc.list_flatten(mine["faults"])).to_pylist())
            offset_last = mine["offset"][-1].as_py()
            lines, seconds = _around(finding, columns)
            struck_by = [by_id[number] for number in blamed if number in by_id]
            shown.append(Shown(finding, count, offset_last, seconds, struck_by, lines))
        meaning = _meaning(anomaly)
        found.append(Group(anomaly, meaning, legal, rows.num_rows, shown))
    return found


def headlines(table: pa.Table | None, faults: Sequence[Fault]) -> list[Headline]:
    """The first finding of each illegal anomaly, the most frequent first."""
    if table is None or not table.num_rows:
        return []
    by_id = {fault.id: fault for fault in faults}
    found = []
    for anomaly, legal, rows in _by_anomaly(table):
        if not legal:
            first = _finding(rows.slice(0, 1).to_pylist()[0])
            blamed = [by_id[number] for number in sorted(first.faults) if number in by_id]
            found.append(Headline(anomaly, _meaning(anomaly), rows.num_rows, first, blamed))
    return found


def _meaning(anomaly: str) -> str:
    name = anomaly.removeprefix(INVARIANT)
    return MEANING.get(anomaly, "") if name == anomaly else invariants.MEANING.get(name, "")


def _by_anomaly(table: pa.Table) -> list[tuple[str, bool, pa.Table]]:
    """(anomaly, legal, its rows): illegal ones first, the most frequent before the others."""
    counted = table.group_by(["legal", "anomaly"]).aggregate([([], "count_all")]).to_pylist()
    counted.sort(key=lambda row: (row["legal"], -row["count_all"], row["anomaly"]))
    return [
        (row["anomaly"], row["legal"], table.filter(
            pc.and_(
                pc.equal(table["anomaly"], row["anomaly"]), pc.equal(table["legal"], row["legal"])
            )
        ))
        for row in counted
    ]  # fmt: skip


def stretches(rows: pa.Table) -> list[tuple[int, int]]:
    """Where findings of one partition lie next to each other (several values may claim one
    offset): (first row, count)."""
    found: list[tuple[int, int]] = []
    before: tuple[str | None, int | None] = (None, None)
    places = zip(rows["key"].to_pylist(), rows["offset"].to_pylist(), strict=True)
    for place, (key, offset) in enumerate(places):
        if offset is not None and before in ((key, offset - 1), (key, offset)):
            first, count = found.pop()
            found.append((first, count + 1))
        else:
            found.append((place, 1))
        before = key, offset
    return found


def _finding(row: dict[str, Any]) -> Finding:
    given = {name: part for name, part in row.items() if part is not None}
    return msgspec.convert(given, Finding)


def _around(finding: Finding, columns: Columns) -> tuple[list[Line | None], float | None]:
    """The events around a finding's witnesses, and when the first of these was recorded."""
    rows = [row for row in map(columns.row_of, finding.ops[:WITNESSES]) if row is not None]
    around = sorted({near for row in rows for near in neighbours(columns, row, finding.key)})
    lines: list[Line | None] = []
    for place, row in enumerate(around):
        if place and _left_out(columns, around[place - 1], row, finding.key):
            lines.append(None)
        lines.append(_line(columns.op(row), finding, witness=row in rows))
    return lines, min((columns.time_ns[row] / 1e9 for row in rows), default=None)


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
        taken = faults = 0
        near = row + step
        while 0 <= near < len(columns) and abs(near - row) <= SEARCHED and taken < AROUND:
            if columns.process[near] == NEMESIS:
                faults += columns.type[near] == INFO
                if columns.type[near] == INFO and faults <= AROUND:
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
    what = (
        struck(op.value)
        if op.process == NEMESIS
        else described(op.value, finding.key, finding.offset)
    )
    return Line(
        op.index, op.time_ns / 1e9, op.process, op.type, op.f, what, op.error or "", witness
    )


def struck(value: Any) -> str:
    """What the nemesis did, in a phrase."""
    if not isinstance(value, dict):
        return "" if value is None else _short(value)
    if "node" in value:
        return f"{value['node']}: ended by itself, status {value.get('status')}"
    if "recovered" in value:
        return "the cluster is whole" if value["recovered"] else "the cluster is not whole"
    phase = {"apply": "applied to", "heal": "healed at"}.get(str(value.get("phase")), "")
    where = spoken(value.get("targets"))
    effect = value.get("effect")
    how = str(effect.get("how", "")) if isinstance(effect, dict) else ""
    how = how.removeprefix(f"{where}: ").removeprefix(f"{where} ")
    return f"{phase} {where}".strip() + (f": {how}" if how else "")


def described(value: Any, key: str | None, offset: int | None) -> str:
    """What an event did, as far as it touches the partition: of many records, the stretches
    around the offset."""
    if not isinstance(value, list):
        return "" if value is None else _short(value)
    parts = []
    sent: dict[str, list[tuple[int | None, Any]]] = {}
    for micro in value:
        match micro:
            case ["send", str(where), [int(at), number]]:
                sent.setdefault(where, []).append((at, number))
            case ["send", str(where), number]:
                sent.setdefault(where, []).append((None, number))
            case ["poll", dict(polled)]:
                parts += [
                    f"{where} → {_records(rows, offset if where == key else None)}"
                    for where, rows in polled.items()
                    if key is None or where == key
                ]
            case ["poll"]:
                pass
            case ["catch-up", str(where)]:
                parts.append(f"{where} → its end?")
            case ["catch-up", str(where), int(position), int(end)]:
                parts.append(f"{where} → {position} of {end}")
            case str(text):
                parts.append(text)
            case _:
                parts.append(_short(micro))
    parts += [f"{where} ← {_ranges(records, offset)}" for where, records in sent.items()]
    return "; ".join(parts)


def _records(rows: Any, offset: int | None) -> str:
    if not isinstance(rows, list):
        return _short(rows)
    pairs = [
        (row[0], row[1]) if isinstance(row, list) and len(row) == 2 else (None, row) for row in rows
    ]
    return _ranges(pairs, offset)


def _ranges(records: Sequence[tuple[Any, Any]], offset: int | None) -> str:
    """Values and their offsets, written as ranges where both count up."""
    ranges: list[list[tuple[Any, Any]]] = []
    for at, number in records:
        if ranges and _next(ranges[-1][-1], (at, number)):
            ranges[-1][1:] = [(at, number)]
        else:
            ranges.append([(at, number)])
    first = 0
    if len(ranges) > RANGES:
        near = [
            place
            for place, ends in enumerate(ranges)
            if offset is None or (isinstance(ends[-1][0], int) and ends[-1][0] >= offset)
        ]
        first = max(0, (near[0] if near else len(ranges)) - RANGES // 2)
    shown = ranges[first : first + RANGES]
    before, after = "… " if first else "", " …" if first + len(shown) < len(ranges) else ""
    return f"{before}{', '.join(map(_range, shown))}{after}"


def _next(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    """Does the second record follow the first, by value and, where known, by offset?"""
    return all(
        (isinstance(a, int) and isinstance(b, int) and b == a + 1) or (a is None and b is None)
        for a, b in zip(one, other, strict=True)
    )


def _range(ends: Sequence[tuple[Any, Any]]) -> str:
    (first_at, first), (last_at, last) = ends[0], ends[-1]
    values = str(first) if first == last else f"{first}…{last}"
    if first_at is None:
        return values
    return f"{values} at {first_at}" if first_at == last_at else f"{values} at {first_at}…{last_at}"


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 300 else text[:299] + "…"
