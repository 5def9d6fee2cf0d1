"""Groups findings by anomaly, each with the operations around its witnesses."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from checkers import anomalies
from checkers.anomalies import INVARIANT
from harness.app.report.columns import INFO, NO_KEY, SEVERAL_KEYS, Columns, keys_of
from harness.app.report.event_text import Record, described, shared_records, struck
from harness.app.report.faults import Fault
from harness.app.report.proximity import Near, near
from model.finding import Finding
from model.op import NEMESIS, Op

SHOWN = 20
"""The number of rows per anomaly: each is one finding, or several at adjacent offsets."""
DETAILED = 60
"""The number of findings of a page that have witnesses and surroundings: the first ones."""
WITNESSES = 6
AROUND = 3
"""The number of events of the same partition, and of faults, shown before and after a witness."""
SEARCHED = 4000
"""How many events are searched for them."""


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
    time_ns: int


@dataclass(frozen=True, slots=True)
class Witness:
    """An event that supports a finding."""

    index: int
    line: Line | None
    """``None`` if the history has no such event."""
    near: list[Near]
    """The faults that were active at that time, or else the last one that ended before it."""


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding as the page shows it, together with the findings at the following offsets."""

    number: int
    """The number of the finding on the page, from 1."""
    finding: Finding
    count: int
    """The number of findings at adjacent offsets of the same partition, including this one."""
    offset_last: int | None
    """The offset of the last of them."""
    seconds: float | None
    """When the first witness was recorded."""
    own: list[Fault]
    """The faults of this finding alone."""
    blamed: list[Fault]
    """The faults of all findings of this row."""
    witnesses: list[Witness]
    """The witnesses of this finding, in the order of its argument, up to :data:`WITNESSES`."""
    lines: list[Line | None]
    """The events around the witnesses; ``None`` where some are left out."""

    @property
    def others(self) -> list[Fault]:
        """The faults of the other findings of this row only."""
        return [fault for fault in self.blamed if fault not in self.own]

    @property
    def witnesses_left(self) -> int:
        """The number of witnesses that are not shown."""
        return len(self.finding.ops) - len(self.witnesses)


@dataclass(frozen=True, slots=True)
class Group:
    """The findings of one anomaly."""

    anomaly: str
    meaning: str
    legal: bool
    total: int
    shown: list[FindingRow]

    @property
    def left(self) -> int:
        """The number of findings that the page does not show."""
        return self.total - sum(shown.count for shown in self.shown)


@dataclass(frozen=True, slots=True)
class Headline:
    """The summary of an illegal anomaly."""

    anomaly: str
    meaning: str
    total: int
    finding: Finding
    """The first finding."""
    blamed: list[Fault]
    """The faults that were active between the witnesses of the first finding."""


def load(path: Path) -> pa.Table | None:
    """Return the table of ``findings.parquet``; ``None`` if there is no file."""
    return pq.read_table(path) if path.exists() else None


def groups(table: pa.Table | None, columns: Columns, faults: Sequence[Fault]) -> list[Group]:
    """Return the groups, illegal anomalies first, and the most frequent first among equals."""
    if table is None or not table.num_rows:
        return []
    by_id = {fault.id: fault for fault in faults}
    found = []
    number = 0
    for anomaly, legal, rows in _by_anomaly(table):
        shown = []
        for first, count in stretches(rows)[:SHOWN]:
            finding = _finding(rows.slice(first, 1).to_pylist()[0])
            mine = rows.slice(first, count)
            blamed = sorted(pc.unique(pc.list_flatten(mine["faults"])).to_pylist())
            number += 1
            is_detailed = number <= DETAILED
            witnesses, lines = _around(finding, columns, faults) if is_detailed else ([], [])
            shown.append(
                FindingRow(
                    number=number,
                    finding=finding,
                    count=count,
                    offset_last=mine["offset"][-1].as_py(),
                    seconds=_first_s(witnesses),
                    own=[by_id[each] for each in sorted(finding.faults) if each in by_id],
                    blamed=[by_id[each] for each in blamed if each in by_id],
                    witnesses=witnesses,
                    lines=lines,
                )
            )
        meaning = anomalies.summary(anomaly)
        found.append(Group(anomaly, meaning, legal, rows.num_rows, shown))
    return found


def headlines(table: pa.Table | None, faults: Sequence[Fault]) -> list[Headline]:
    """Return the first finding of each illegal anomaly, the most frequent anomaly first."""
    if table is None or not table.num_rows:
        return []
    by_id = {fault.id: fault for fault in faults}
    found = []
    for anomaly, legal, rows in _by_anomaly(table):
        if not legal:
            first = _finding(rows.slice(0, 1).to_pylist()[0])
            blamed = [by_id[number] for number in sorted(first.faults) if number in by_id]
            meaning = anomalies.summary(anomaly)
            found.append(Headline(anomaly, meaning, rows.num_rows, first, blamed))
    return found


def _by_anomaly(table: pa.Table) -> list[tuple[str, bool, pa.Table]]:
    """Return (anomaly, legal, its rows), ordered by importance.

    Illegal anomalies come first, then what clients observed before what the brokers' state shows,
    then the most frequent.
    """
    counted = table.group_by(["legal", "anomaly"]).aggregate([([], "count_all")]).to_pylist()
    counted.sort(
        key=lambda row: (
            row["legal"],
            row["anomaly"].startswith(INVARIANT),
            -row["count_all"],
            row["anomaly"],
        )
    )
    return [
        (row["anomaly"], row["legal"], table.filter(
            pc.and_(
                pc.equal(table["anomaly"], row["anomaly"]), pc.equal(table["legal"], row["legal"])
            )
        ))
        for row in counted
    ]  # fmt: skip


def stretches(rows: pa.Table) -> list[tuple[int, int]]:
    """Return (first row, count) of each run of findings at adjacent offsets of one partition.

    Several findings may be about the same offset, which may hold several values.
    """
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


def _around(
    finding: Finding, columns: Columns, faults: Sequence[Fault]
) -> tuple[list[Witness], list[Line | None]]:
    """Return the witnesses of a finding, and the lines of the history that the report shows for it.

    These are the witnesses and the events before and after each of them. ``None`` marks a place
    where events are left out.
    """
    witness_rows = [(index, columns.row_of(index)) for index in finding.ops[:WITNESSES]]
    ops = {row: columns.op(row) for _, row in witness_rows if row is not None}
    shared = shared_records(ops.values())
    around = sorted({close for row in ops for close in neighbours(columns, row, finding.key)})
    lines: dict[int, Line] = {}
    spread: list[Line | None] = []
    for place, row in enumerate(around):
        if place and _left_out(columns, around[place - 1], row, finding.key):
            spread.append(None)
        op = ops.get(row) or columns.op(row)
        lines[row] = _line(op, finding, shared if row in ops else set(), witness=row in ops)
        spread.append(lines[row])
    witnesses = [
        Witness(index, None, [])
        if row is None
        else Witness(index, lines[row], near(faults, lines[row].time_ns))
        for index, row in witness_rows
    ]
    return witnesses, spread


def _first_s(witnesses: Sequence[Witness]) -> float | None:
    """Return when the first of these events was recorded."""
    return min((each.line.seconds for each in witnesses if each.line), default=None)


def _left_out(columns: Columns, before: int, after: int, key: str | None) -> bool:
    """Return whether the history has events of the partition between two rows that are shown."""
    if key is None:
        return after - before > 1
    code = _code(columns, key)
    return any(_touches(columns, row, code, key) for row in range(before + 1, after))


def neighbours(columns: Columns, row: int, key: str | None) -> list[int]:
    """Return this row and nearby rows that concern the partition or are events of the nemesis."""
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


def _line(op: Op, finding: Finding, shared: AbstractSet[Record], *, witness: bool) -> Line:
    if op.process == NEMESIS:
        what = struck(op.value)
    else:
        what = described(op.value, finding.key, finding.offset, shared)
        if witness and not what:  # it touches only other partitions
            what = described(op.value, None, None)
    return Line(
        index=op.index,
        seconds=op.time_ns / 1e9,
        process=op.process,
        type=op.type,
        f=op.f,
        what=what,
        error=op.error or "",
        witness=witness,
        time_ns=op.time_ns,
    )
