from pathlib import Path

import pytest

from model import violation
from model.history import BadHistory
from model.violation import Record, Violation, Watched

BROKEN = Violation(
    invariant="log-matching",
    time_ns=7,
    key="t-0",
    offset=3,
    brokers=(1, 2),
    epochs=(0, 1),
    why="they differ",
)
END = Watched(snapshots=9, until_ns=11)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    """A record is read as it was written, line by line."""
    path = tmp_path / violation.FILE
    path.write_bytes(violation.encode(BROKEN) + violation.encode(END))
    assert violation.read(path) == Record((BROKEN,), END)


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    """A torn last line is left out: the lines before it count, and there is no end."""
    path = tmp_path / violation.FILE
    path.write_bytes(violation.encode(BROKEN) + violation.encode(END)[:-9])
    assert violation.read(path) == Record((BROKEN,), None)


def test_a_line_that_means_nothing_is_refused(tmp_path: Path) -> None:
    """A line that is no record is rejected with its number."""
    path = tmp_path / violation.FILE
    path.write_bytes(violation.encode(BROKEN) + b'{"type":"rumour"}\n')
    with pytest.raises(BadHistory, match=r"invariants.jsonl, line 2"):
        violation.read(path)
