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
    rows = [Finding(anomaly="lost-write", offset=2 * place) for place in range(1000)]
    (group,) = findings.groups(table(*rows), empty, [])
    assert (group.total, len(group.shown), group.left) == (1000, findings.SHOWN, 980)
    assert [shown.finding.offset for shown in group.shown] == list(range(0, 40, 2))


def test_neighbours_in_the_log_are_one_row(empty: columns.Columns) -> None:
    """Findings next to each other, or at one offset, are told once, with the faults of all."""
    places = [
        ("a-0", 7),
        ("a-0", 8),
        ("a-0", 9),
        ("a-0", 9),
        ("a-0", 11),
        ("b-0", 12),
        ("b-0", None),
    ]
    rows = [
        Finding(anomaly="lost-write", key=key, offset=offset, faults=(9 - number // 2,))
        for number, (key, offset) in enumerate(places)
    ]
    struck = [faults.Fault(id=number, fault="kill") for number in range(10)]
    (group,) = findings.groups(table(*rows), empty, struck)
    assert [(each.finding.offset, each.offset_last, each.count) for each in group.shown] == [
        (7, 9, 4),
        (11, 11, 1),
        (12, 12, 1),
        (None, None, 1),
    ]
    assert [fault.id for fault in group.shown[0].blamed] == [8, 9]
    assert group.left == 0


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
        assert (
            asked.what == f"{shown.finding.key} ← {shown.finding.value} at {shown.finding.offset}"
        )
        assert f"{shown.finding.key} → " in read.what
        assert f"{shown.finding.value} at" not in read.what
        assert all(str(shown.finding.key) in line.what for line in lines if line.process != -1)
        assert len(lines) >= 6
        assert {line.type for line in lines if line.process == -1} <= {"info"}
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


def polled(*rows: list[int]) -> list[Any]:
    return [["poll", {"a-0": list(rows)}]]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([["send", "a-0", 5]], "a-0 ← 5"),
        ([["send", "a-0", 5], ["send", "a-0", 6], ["send", "a-0", 9]], "a-0 ← 5…6, 9"),
        ([["send", "a-0", [7, 5]], ["send", "a-0", [8, 6]]], "a-0 ← 5…6 at 7…8"),
        ([["send", "a-0", [7, 5]], ["send", "a-0", [9, 6]]], "a-0 ← 5 at 7, 6 at 9"),
        ([["send", "a-0", [None, 5]]], "a-0 ← [None, 5]"),
        ([["poll"]], ""),
        ([["poll", {"a-0": [[7, 5]], "a-1": [[1, 1]]}]], "a-0 → 5 at 7"),
        (polled(*([at, at + 100] for at in range(50))), "a-0 → 100…149 at 0…49"),
        (polled([19, 19], [20, 31], [21, 32]), "a-0 → 19 at 19, 31…32 at 20…21"),
        (polled(*([at, 2 * at] for at in range(50))),
         "a-0 → … 34 at 17, 36 at 18, 38 at 19, 40 at 20, 42 at 21, 44 at 22 …"),
        (polled(*([at, 2 * at] for at in range(8))),
         "a-0 → … 10 at 5, 12 at 6, 14 at 7"),
        ([["poll", {"a-0": "?"}]], 'a-0 → "?"'),
        ([["catch-up", "a-0"]], "a-0 → its end?"),
        ([["catch-up", "a-0", 7, 9]], "a-0 → 7 of 9"),
        (["a-0", "a-1"], "a-0; a-1"),
        ([[1, 2]], "[1,2]"),
        ({"id": 1}, '{"id":1}'),
        (None, ""),
    ],
)  # fmt: skip
def test_described(value: Any, text: str) -> None:
    """Events read like sentences; of a long poll, the stretches around the offset are shown."""
    assert findings.described(value, "a-0", 20) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"phase": "apply", "targets": ["broker-2"],
          "effect": {"proved": True, "how": "broker-2: the process is gone"}},
         "applied to broker-2: the process is gone"),
        ({"phase": "heal", "targets": ["broker-2"], "effect": {"how": "broker-2 was started"}},
         "healed at broker-2: was started"),
        ({"phase": "heal", "targets": "controller"}, "healed at controller"),
        ({"phase": ["?"], "targets": None, "effect": 7}, ""),
        (["?"], '["?"]'),
        (None, ""),
    ],
)  # fmt: skip
def test_struck(value: Any, text: str) -> None:
    """What the nemesis did reads like a phrase, whatever a history holds in its place."""
    assert findings.struck(value) == text


@pytest.mark.parametrize(
    ("value", "phrase"),
    [
        ({"node": "broker-2", "status": -11}, "broker-2: ended by itself, status -11"),
        ({"recovered": True}, "the cluster is whole"),
        ({"recovered": False}, "the cluster is not whole"),
    ],
)
def test_what_befell_the_test_is_told(value: dict[str, Any], phrase: str) -> None:
    """Events of the nemesis that are no faults."""
    assert findings.struck(value) == phrase
