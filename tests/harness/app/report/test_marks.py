"""Findings as marks on the time axis."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.app.report import columns, findings, marks, plots, render
from model.finding import Finding


def table(*found: Finding) -> pa.Table:
    return pa.Table.from_pylist(msgspec.to_builtins(list(found)))


def test_lost_records_are_marked_when_they_were_acknowledged(
    run_folder: Callable[..., Path],
) -> None:
    """A mark is at the acknowledgement, with the number of records lost and the first of them."""
    folder = run_folder("invalid")
    events = columns.load(folder / "history.jsonl")
    found = marks.of(findings.load(folder / "findings.parquet"), events, plots.edges_s(events))
    (lost,) = [mark for mark in found if mark.anomaly == "lost-write"]
    assert lost.seconds == pytest.approx(23.0)
    assert (lost.count, lost.meaning) == (10, marks.LOST)
    assert lost.first.startswith("orders-1, offset ")
    assert {mark.anomaly: mark.meaning for mark in found}["duplicate"] == marks.FOUND
    assert "nonmonotonic-poll" not in {mark.anomaly for mark in found}
    html = render(folder).read_text()
    assert marks.LOST in html
    assert "witnesses of the first finding" in html


def test_a_loss_that_the_configuration_allows_is_marked_as_such(
    run_folder: Callable[..., Path],
) -> None:
    """A loss that the configuration allows (acks=1) is marked as allowed."""
    events = columns.load(run_folder("valid") / "history.jsonl")
    allowed = Finding(anomaly="lost-write", legal=True, ops=(30,))
    (mark,) = marks.of(table(allowed), events, plots.edges_s(events))
    assert (mark.anomaly, mark.first) == ("lost-write (allowed)", "no partition or offset")


def test_findings_without_a_known_witness_have_no_mark(run_folder: Callable[..., Path]) -> None:
    """A finding that names no event, or one that the history lacks, has no mark."""
    folder = run_folder("valid")
    events = columns.load(folder / "history.jsonl")
    found = table(Finding(anomaly="a", ops=(10**9,)), Finding(anomaly="b"))
    assert marks.of(found, events, plots.edges_s(events)) == []
    assert marks.of(None, events, np.array([0.0, 1.0])) == []
    pq.write_table(found, folder / "findings.parquet")
    assert marks.LOST not in render(folder).read_text()


def test_many_findings_are_few_marks(run_folder: Callable[..., Path]) -> None:
    """Marks are counted per bin, so that the page stays small."""
    events = columns.load(run_folder("valid") / "history.jsonl")
    many = [Finding(anomaly="lost-write", ops=(row,)) for row in range(len(events))] * 20
    edges = plots.edges_s(events)
    found = marks.of(table(*many), events, edges)
    assert len(found) <= len(edges) - 1
    assert sum(mark.count for mark in found) == len(many)
