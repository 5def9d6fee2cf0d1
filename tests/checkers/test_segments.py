"""A history in several files is read as if it were in one."""

import random
from pathlib import Path

import pytest

from bench.histories import World
from checkers import left_out, segments
from checkers.distributed import chunks, plan
from checkers.distributed.here import Here
from harness.app import check
from model import history
from model.history import BadHistory
from tests.checkers.distributed.test_plan import at_once, concluded


def _written(folder: Path, *, parts: int = 4) -> tuple[Path, Path]:
    """Write a history with defects, whole and in segments, in folders of their own."""
    world = World(random.Random(5), keys=4, lost=2, doubled=1, phantom=1, doubt=0.1, span=50)
    whole = folder / "whole" / "history.jsonl"
    whole.parent.mkdir()
    history.write(whole, world.events(400))
    lines = whole.read_bytes().splitlines(keepends=True)
    first = folder / "run" / "history.jsonl"
    first.parent.mkdir()
    size = len(lines) // parts + 1
    for number, begin in enumerate(range(0, len(lines), size)):
        history.segment(first, number).write_bytes(b"".join(lines[begin : begin + size]))
    assert len(history.segments(first)) == parts
    return whole, first


def test_segments_are_one_history(tmp_path: Path) -> None:
    """A run's folder with segments has the findings and the verdict of one with a single file."""
    whole, first = _written(tmp_path)
    (judged, again) = (check.examine(path.parent, inline=True) for path in (whole, first))
    assert judged.findings
    assert again.findings == judged.findings
    assert again.verdict.anomalies == judged.verdict.anomalies
    assert again.verdict.evidence == judged.verdict.evidence
    assert (first.parent / "history.parquet").is_file()


def test_chunks_of_segments_are_one_history(tmp_path: Path) -> None:
    """So it is in chunks, whose borders are also those of segments."""
    whole, first = _written(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    given = [chunk for each in history.segments(first) for chunk in chunks.of_file(each, size=9000)]
    judged = plan.judge(first, given, Here(), scratch)
    assert judged is not None
    assert concluded(judged) == at_once(whole)


def test_a_bad_line_is_named_with_its_segment(tmp_path: Path) -> None:
    """Both executors name the same file and line."""
    _, first = _written(tmp_path)
    third = history.segment(first, 2)
    lines = third.read_bytes().splitlines(keepends=True)
    third.write_bytes(b"".join((*lines[:2], b"{}\n", *lines[2:])))
    given = [chunk for each in history.segments(first) for chunk in chunks.of_file(each)]
    with pytest.raises(BadHistory, match=r"history-000002\.jsonl, line 3: ") as inline:
        segments.read(first, lambda done: None)
    with pytest.raises(BadHistory) as distributed:
        plan.judge(first, given, Here(), tmp_path)
    assert str(distributed.value) == str(inline.value)


def test_a_misfit_is_named_with_its_segment(tmp_path: Path) -> None:
    """An event that cannot follow the events of earlier segments is named by its own line."""
    _, first = _written(tmp_path)
    second = history.segment(first, 1)
    lines = second.read_bytes().splitlines(keepends=True)
    second.write_bytes(b"".join((lines[0], lines[0], *lines[1:])))
    with pytest.raises(BadHistory, match=r"history-000001\.jsonl, line 2: event "):
        check.examine(first.parent, inline=True)


def test_only_the_last_segment_may_be_torn(tmp_path: Path) -> None:
    """An incomplete line at the end was being written; one before is damage."""
    _, first = _written(tmp_path)
    last, third = history.segment(first, 3), history.segment(first, 2)
    last.write_bytes(last.read_bytes()[:-5])
    torn = left_out.torn(segments.read(first, lambda done: None))
    assert torn is not None
    assert "is torn" in torn
    third.write_bytes(third.read_bytes()[:-5])
    why = r"history-000002\.jsonl: .* but the history goes on in history-000003\.jsonl"
    with pytest.raises(BadHistory, match=why) as inline:
        segments.read(first, lambda done: None)
    given = [chunk for each in history.segments(first) for chunk in chunks.of_file(each)]
    with pytest.raises(BadHistory) as distributed:
        plan.judge(first, given, Here(), tmp_path)
    assert str(distributed.value) == str(inline.value)


def test_an_empty_segment_is_left_out(tmp_path: Path) -> None:
    """A recorder that is killed when it begins a segment leaves an empty file."""
    whole, first = _written(tmp_path)
    history.segment(first, 4).touch()
    again = check.examine(first.parent, inline=True)
    assert again.findings == check.examine(whole.parent, inline=True).findings
