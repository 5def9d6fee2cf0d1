from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from harness.app.report import columns, faults, findings
from model import history
from model.finding import Finding
from model.op import Op, OpType


def table(*found: Finding) -> pa.Table:
    return pa.Table.from_pylist(msgspec.to_builtins(list(found)))


@pytest.fixture
def empty(tmp_path: Path) -> columns.Columns:
    return columns.load(tmp_path / "absent")


def test_illegal_comes_first_then_the_most_frequent(empty: columns.Columns) -> None:
    """Illegal anomalies come first, then the most frequent.

    Allowed findings are a group of their own.
    """
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
    """All findings are counted, but a bounded number is shown, so that the page stays small."""
    rows = [Finding(anomaly="lost-write", offset=2 * place) for place in range(1000)]
    (group,) = findings.groups(table(*rows), empty, [])
    assert (group.total, len(group.shown), group.left) == (1000, findings.SHOWN, 980)
    assert [shown.finding.offset for shown in group.shown] == list(range(0, 40, 2))


def test_neighbours_in_the_log_are_one_row(empty: columns.Columns) -> None:
    """Findings at the same or at adjacent offsets are one row, with the faults of all."""
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
    assert [fault.id for fault in group.shown[0].own] == [9]
    assert [fault.id for fault in group.shown[0].others] == [8]
    assert group.left == 0


def test_no_findings(tmp_path: Path, empty: columns.Columns) -> None:
    """Neither an absent nor an empty table makes a group."""
    assert findings.load(tmp_path / "absent") is None
    assert findings.groups(None, empty, []) == []
    assert findings.groups(table(Finding(anomaly="x")).slice(0, 0), empty, []) == []


def test_a_finding_is_shown_among_its_neighbours(run_folder: Callable[..., Path]) -> None:
    """A finding is shown among its partition's events, with its witnesses and faults marked."""
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
    """If events of the partition between two witnesses are left out, a gap is shown."""
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


def test_a_witness_of_another_partition_is_shown(tmp_path: Path) -> None:
    """A witness in another partition is shown with what it read.

    A torn transaction, for example, is witnessed by a poll of the record that another partition
    has.
    """
    sent = [["send", "a-0", [5, 1]], ["send", "b-0", [7, 2]]]
    asked = [["send", "a-0", 1], ["send", "b-0", 2]]
    read = [["poll", {"b-0": [[6, 9], [7, 2]], "c-0": [[1, 1]]}]]
    past = [["poll", {"a-0": [[6, 3]]}]]
    events: list[tuple[int, OpType, str, Any]] = [
        (1, "invoke", "txn", asked), (1, "ok", "txn", sent), (2, "invoke", "poll", [["poll"]]),
        (2, "ok", "poll", read), (3, "invoke", "poll", [["poll"]]), (3, "ok", "poll", past),
    ]  # fmt: skip
    history.write(
        tmp_path / "history.jsonl",
        [
            Op(index=index, time_ns=index, process=process, type=kind, f=f, value=value)
            for index, (process, kind, f, value) in enumerate(events)
        ],
    )
    torn = Finding(anomaly="torn-transaction", key="a-0", offset=5, value=1, ops=(1, 3, 5))
    (group,) = findings.groups(table(torn), columns.load(tmp_path / "history.jsonl"), [])
    (shown,) = group.shown
    told = {line.index: line.what for line in shown.lines if line is not None and line.witness}
    assert told == {
        1: "a-0 ← 1 at 5; b-0 ← 2 at 7",
        3: "b-0 → 9 at 6, 2 at 7",
        5: "a-0 → 3 at 6",
    }
    assert [witness.index for witness in shown.witnesses] == [1, 3, 5]


def test_a_witness_that_shares_no_record_says_all_that_it_did(tmp_path: Path) -> None:
    """A witness that shares no record with the finding is shown with all that it did."""
    history.write(
        tmp_path / "history.jsonl",
        [Op(index=0, time_ns=0, process=1, type="ok", f="poll",
            value=[["poll", {"b-0": [[6, 9]]}]])],
    )  # fmt: skip
    found = Finding(anomaly="x", key="a-0", ops=(0, 4711))
    (group,) = findings.groups(table(found), columns.load(tmp_path / "history.jsonl"), [])
    first, missing = group.shown[0].witnesses
    assert first.line is not None
    assert first.line.what == "b-0 → 9 at 6"
    assert missing.line is None


def test_what_clients_saw_comes_before_what_brokers_show(empty: columns.Columns) -> None:
    """Anomalies that clients saw come before violated invariants of brokers, as on the terminal."""
    rows = [Finding(anomaly="invariant:log-matching")] * 3 + [Finding(anomaly="lost-write")]
    found = findings.groups(table(*rows), empty, [])
    assert [group.anomaly for group in found] == ["lost-write", "invariant:log-matching"]
