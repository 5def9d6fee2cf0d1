from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from harness.app.report import columns, faults, findings
from model.finding import Finding


def table(*found: Finding) -> pa.Table:
    return pa.Table.from_pylist(msgspec.to_builtins(list(found)))


@pytest.fixture
def empty(tmp_path: Path) -> columns.Columns:
    return columns.load(tmp_path / "absent")


def test_illegal_comes_first_then_the_most_frequent(empty: columns.Columns) -> None:
    """What failed the run is on top, and an anomaly is split by whether it was allowed."""
    rows = [Finding(anomaly="duplicate", legal=True)] * 3
    rows += [
        Finding(anomaly="phantom"),
        Finding(anomaly="lost-write"),
        Finding(anomaly="lost-write"),
    ]
    rows += [Finding(anomaly="duplicate")]
    found = findings.groups(table(*rows), empty, [])
    assert [(group.anomaly, group.legal, group.total) for group in found] == [
        ("lost-write", False, 2),
        ("duplicate", False, 1),
        ("phantom", False, 1),
        ("duplicate", True, 3),
    ]


def test_a_thousand_findings_are_counted_but_not_all_shown(empty: columns.Columns) -> None:
    """The page stays small however bad the run was."""
    rows = [Finding(anomaly="lost-write", offset=offset) for offset in range(1000)]
    (group,) = findings.groups(table(*rows), empty, [])
    assert (group.total, len(group.shown)) == (1000, findings.SHOWN)
    assert [shown.finding.offset for shown in group.shown] == list(range(findings.SHOWN))


def test_no_findings(tmp_path: Path, empty: columns.Columns) -> None:
    """Neither an absent nor an empty table makes a group."""
    assert findings.load(tmp_path / "absent") is None
    assert findings.groups(None, empty, []) == []
    assert findings.groups(table(Finding(anomaly="x")).slice(0, 0), empty, []) == []


def test_a_finding_is_shown_among_its_neighbours(run_folder: Callable[..., Path]) -> None:
    """Witnesses are marked, everything shown touches the partition, and the faults are named."""
    folder = run_folder("invalid", sends=2000)
    events = columns.load(folder / "history.jsonl")
    struck = faults.load(folder / "schedule.jsonl")
    found = findings.groups(findings.load(folder / "findings.parquet"), events, struck)
    (lost,) = [group for group in found if group.anomaly == "lost-write"]
    for shown in lost.shown:
        lines = [line for line in shown.lines if line is not None]
        assert [line.index for line in lines if line.witness] == list(shown.finding.ops)
        assert [line.index for line in lines] == sorted(line.index for line in lines)
        asked, read = (line for line in lines if line.witness)
        assert f"← {shown.finding.value} at offset {shown.finding.offset}" in asked.what
        assert f"{shown.finding.offset}=" in read.what
        assert f"{shown.finding.offset}={shown.finding.value} " not in read.what
        assert all(str(shown.finding.key) in line.what for line in lines if line.process != -1)
        assert len(lines) >= 6
        assert [fault.fault for fault in shown.blamed] == ["pause"]
        assert shown.seconds == pytest.approx(asked.seconds)


def test_gaps_between_shown_events_are_marked(run_folder: Callable[..., Path]) -> None:
    """Where events of the partition are left out between two witnesses, the page says so."""
    events = columns.load(run_folder("valid", sends=2000) / "history.jsonl")
    key = events.key_names[0]
    code = 0
    rows = [row for row in range(len(events)) if events.key[row] == code]
    far = Finding(anomaly="duplicate", key=key, ops=(rows[10], rows[-10]))
    near = Finding(anomaly="phantom", key=key, ops=(rows[10], rows[11]))
    shown = {
        group.anomaly: group.shown[0].lines
        for group in findings.groups(table(far, near), events, [])
    }
    assert shown["duplicate"].count(None) == 1
    assert None not in shown["phantom"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([["send", "a-0", 5]], "a-0 ← 5"),
        ([["send", "a-0", [7, 5]], ["send", "a-0", [8, 6]]],
         "a-0 ← 5 at offset 7; a-0 ← 6 at offset 8"),
        ([["poll"]], ""),
        ([["poll", {"a-0": [[7, 5]], "a-1": [[1, 1]]}]], "a-0: 7=5"),
        ([["poll", {"a-0": [[at, at + 100] for at in range(50)]}]],
         "a-0: … 17=117 18=118 19=119 20=120 21=121 22=122 … (44 more records)"),
        ([["poll", {"a-0": [[at, at + 100] for at in range(8)]}]],
         "a-0: … 5=105 6=106 7=107 (5 more records)"),
        ([["catch-up", "a-0", 7, 7]], '["catch-up","a-0",7,7]'),
        (["a-0", "a-1"], '"a-0"; "a-1"'),
        ({"id": 1}, '{"id":1}'),
        (None, ""),
    ],
)  # fmt: skip
def test_described(value: Any, text: str) -> None:
    """Events read like sentences; of a long poll, the records around the offset are shown."""
    assert findings.described(value, "a-0", 20) == text
