"""The recorder assigns index and time, and its file survives a SIGKILL."""

import errno
import io
import itertools
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.engine.recorder import FaultRow, Lines, Recorder, Roll, encode_row
from model import history
from model.op import Op

FULL = OSError(errno.ENOSPC, "No space left on device")


class Disk(io.FileIO):
    """A file on a disk that is full after some bytes, until ``room`` is set to ``None``."""

    def __init__(self, path: Path, room: int, *, shrinks: bool) -> None:
        super().__init__(path, "ab")
        self.room: int | None = room
        self._shrinks = shrinks

    def write(self, data: Any) -> int:
        if self.room == 0:
            raise FULL
        written = super().write(data[: self.room])
        if self.room is not None:
            self.room -= written
        return written

    def truncate(self, size: int | None = None) -> int:
        if not self._shrinks:
            raise FULL
        return super().truncate(size)


def on_disk(recorder: Recorder, disk: Disk) -> None:
    recorder._lines._file.close()
    recorder._lines._file = disk


WRITER = """
import sys
from pathlib import Path
from harness.engine.recorder import Recorder
recorder = Recorder(Path(sys.argv[1]), lambda: 5)
for number in range(100):
    recorder.record(0, "invoke", "send", [["send", "k-0", number]])
print("written", flush=True)
sys.stdin.read()
"""


def test_index_and_time_are_assigned_here(tmp_path: Path) -> None:
    """Indices count from 0; time never goes back, even when the clock does."""
    clock = iter([10, 30, 20, 40])
    recorder = Recorder(tmp_path / "h", lambda: next(clock))
    ops = [recorder.record(1, "invoke", "poll", [["poll"]]) for _ in range(4)]
    recorder.close()
    assert [(op.index, op.time_ns) for op in ops] == [(0, 10), (1, 30), (2, 30), (3, 40)]
    assert list(history.read(tmp_path / "h")) == ops


def test_a_kill_leaves_every_recorded_event(tmp_path: Path) -> None:
    """Every event for which ``record`` has returned is in the file without a flush or a close."""
    path = tmp_path / "history.jsonl"
    argv = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"written\n"
        writer.send_signal(signal.SIGKILL)
    assert [op.index for op in history.read(path)] == list(range(100))


def test_observers_hear_what_was_written(tmp_path: Path) -> None:
    """An observer receives each event once, after it was written to the file."""
    seen: list[tuple[Op, int]] = []
    path = tmp_path / "h"
    ticks = itertools.count()
    recorder = Recorder(
        path, lambda: next(ticks), [lambda op: seen.append((op, path.stat().st_size))]
    )
    op = recorder.record(-1, "info", "kill", {"id": 1}, "timeout")
    recorder.close()
    assert seen == [(op, len(history.encode(op)))]


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    """A folder holds one run: a second recorder on the same file raises FileExistsError."""
    Lines(tmp_path / "h").close()
    with pytest.raises(FileExistsError):
        Lines(tmp_path / "h")


def test_a_line_of_the_schedule() -> None:
    """The fields of a row of ``schedule.jsonl`` are those of the published format."""
    row = FaultRow(
        id=1,
        fault="kill",
        targets=["broker-1"],
        asked_ns=1,
        applied_ns=2,
        healed_ns=None,
        effect={"proved": True, "how": "pid gone"},
        late_ns=3,
    )
    assert encode_row(row) == (
        b'{"id":1,"fault":"kill","targets":["broker-1"],"asked_ns":1,"applied_ns":2,'
        b'"healed_ns":null,"effect":{"proved":true,"how":"pid gone"},'
        b'"late_ns":3,"overran_ns":null}\n'
    )


def test_a_long_history_has_several_files(tmp_path: Path) -> None:
    """A segment ends before it would exceed its size, or its time; no event is torn or lost."""
    path, now = tmp_path / "history.jsonl", iter(range(1000))
    places: list[tuple[Path, int, int]] = []
    recorder = Recorder(
        path,
        lambda: next(now),
        of_places=[lambda op, file, begin, end: places.append((file, begin, end))],
        roll=Roll(bytes=400, ns=20),
    )
    ops = [recorder.record(0, "invoke", "poll", [["poll"]]) for _ in range(60)]
    recorder.close()
    segments = history.segments(path)
    assert len(segments) > 3
    assert [op for each in segments for op in history.read(each)] == ops
    for each in segments:
        times = [op.time_ns for op in history.read(each)]
        assert each.stat().st_size <= 400
        assert times[-1] - times[0] <= 20
    lines = [file.read_bytes()[begin:end] for file, begin, end in places]
    assert lines == [history.encode(op) for op in ops]


def test_a_line_that_a_full_disk_cut_off_is_removed(tmp_path: Path) -> None:
    """A history whose disk was full for a while has whole events only, and their indices count."""
    path, now = tmp_path / "history.jsonl", iter(range(100))
    recorder = Recorder(path, lambda: next(now))
    first = recorder.record(0, "invoke", "send", [["send", "k-0", 1]])
    disk = Disk(path, 40, shrinks=True)
    on_disk(recorder, disk)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left on device"):
            recorder.record(0, "ok", "send", [["send", "k-0", [0, 1]]])
    disk.room = None
    last = recorder.record(-1, "info", "crash", {"node": "broker-1"})
    recorder.close()
    assert list(history.read(path)) == [first, last]
    assert [first.index, last.index] == [0, 1]


def test_a_part_of_a_line_that_stays_is_the_last(tmp_path: Path) -> None:
    """No event follows a part of a line that cannot be removed: a history may end so."""
    path, now = tmp_path / "history.jsonl", iter(range(100))
    recorder = Recorder(path, lambda: next(now))
    first = recorder.record(0, "invoke", "send", [["send", "k-0", 1]])
    disk = Disk(path, 40, shrinks=False)
    on_disk(recorder, disk)
    for room in (40, None):
        disk.room = room
        with pytest.raises(OSError, match="No space left on device"):
            recorder.record(0, "ok", "send", [["send", "k-0", [0, 1]]])
    recorder.close()
    assert list(history.read(path)) == [first]
