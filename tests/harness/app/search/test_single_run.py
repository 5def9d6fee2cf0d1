"""The times that a search's run takes from its history."""

from pathlib import Path

from harness.app.search import single_run
from model import history
from model.finding import Finding
from model.op import Op

SECOND = 1_000_000_000


def _written(folder: Path, *segments: int) -> Path:
    """Write a history with this many events in each segment, one a second."""
    first, index = folder / "history.jsonl", 0
    for number, events in enumerate(segments):
        ops = [
            Op(index=at, time_ns=at * SECOND, process=1, type="invoke", f="poll")
            for at in range(index, index + events)
        ]
        history.write(history.segment(first, number), ops)
        index += events
    return first


def _found(anomaly: str, *ops: int, legal: bool = False) -> Finding:
    return Finding(anomaly=anomaly, key="x-0", ops=ops, why="…", legal=legal)


def test_witnesses_are_in_any_segment(tmp_path: Path) -> None:
    """The times are those of the finding that was complete first, wherever its events are."""
    path = _written(tmp_path, 3, 2, 4)
    findings = [
        _found("lost-write", 1, 8),
        _found("lost-write", 2, 4, 3),
        _found("duplicate", 0, 5, legal=True),
    ]
    assert single_run._witnessed_s(findings, path) == {"lost-write": (2.0, 4.0)}
    (tmp_path / "one").mkdir()
    one = _written(tmp_path / "one", 9)
    assert single_run._witnessed_s(findings, one) == {"lost-write": (2.0, 4.0)}


def test_a_run_lasts_until_its_last_event(tmp_path: Path) -> None:
    """The last event is in the last segment that has any; no history lasts no time."""
    assert single_run._until_s(tmp_path / "history.jsonl") == 0.0
    assert single_run._until_s(_written(tmp_path, 3)) == 2.0
    assert single_run._until_s(_written(tmp_path, 3, 2)) == 4.0
    assert single_run._until_s(_written(tmp_path, 3, 2, 0)) == 4.0
