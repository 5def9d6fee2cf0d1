"""A tail names every event of a history once, in batches, and remembers what is open."""

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.engine.recorder import ROLL, Recorder, Roll
from harness.engine.tail import CONTEXT_NS, Tail
from model import history
from model.batch import Batch
from model.op import NEMESIS


class _Run:
    """A recorder with a tail, on a clock of seconds."""

    def __init__(self, folder: Path, roll: Roll = ROLL) -> None:
        self.now_s = 0.0
        self.tail = Tail()
        self.path = folder / "history.jsonl"
        self.recorder = Recorder(
            self.path, lambda: int(self.now_s * 1e9), of_places=[self.tail.observe], roll=roll
        )

    def send(self, value: int, *, process: int = 0, done: bool = True) -> None:
        self.recorder.record(process, "invoke", "send", [["send", "x-0", value]])
        if done:
            self.recorder.record(process, "ok", "send", [["send", "x-0", [value, value]]])

    def fault(self, number: int, phase: str) -> None:
        for kind in ("invoke", "info"):
            value: dict[str, Any] = {"id": number, "phase": phase}
            self.recorder.record(NEMESIS, kind, "kill", value)

    def batch(self) -> Batch:
        [batch] = self.tail.batches()
        return batch


@pytest.fixture
def run(tmp_path: Path) -> Iterator[_Run]:
    made = _Run(tmp_path)
    yield made
    made.recorder.close()


def _text(batch: Batch) -> bytes:
    return Path(batch.path).read_bytes()[batch.begin : batch.end]


def test_batches_follow_each_other(run: _Run) -> None:
    """Together they have the whole file; without an event there is no batch."""
    texts = []
    for value in range(5):
        run.send(value)
        texts.append(_text(run.batch()))
        assert run.tail.batches() == []
    assert b"".join(texts) == run.path.read_bytes()


def test_a_new_file_begins_a_new_batch(tmp_path: Path) -> None:
    """A batch has events of one segment only."""
    run = _Run(tmp_path, Roll(bytes=200))
    with contextlib.closing(run.recorder):
        for value in range(6):
            run.send(value)
        batches = run.tail.batches()
    assert [Path(batch.path) for batch in batches] == history.segments(run.path)
    assert len(batches) > 2
    assert [batch.number for batch in batches] == list(range(1, len(batches) + 1))
    assert b"".join(map(_text, batches)) == b"".join(
        path.read_bytes() for path in history.segments(run.path)
    )


def test_open_invocations_are_carried(run: _Run) -> None:
    """Each batch has those that were open at its beginning, and says how old the oldest is."""
    run.send(0, done=False)
    run.now_s = 1.0
    run.recorder.record(7, "invoke", "poll", [["poll"]])
    assert run.batch().carried == ()
    run.now_s = 2.0
    run.send(1, process=2)
    batch = run.batch()
    assert [history.decode(line.encode()).process for line in batch.carried] == [0, 7]
    assert (batch.open_event, batch.open_ns) == (1, 10**9)  # a send delivers nothing
    run.recorder.record(7, "ok", "poll", [["poll", {}]])
    run.batch()
    run.send(2, process=2)
    batch = run.batch()
    assert [history.decode(line.encode()).process for line in batch.carried] == [0]
    assert batch.open_ns == batch.now_ns


def test_new_partitions_get_the_faults_that_are_not_healed(run: _Run) -> None:
    """However long ago they were injected; healed ones are forgotten after a while."""
    for number in (1, 2):
        run.fault(number, "apply")
    run.fault(2, "heal")
    run.send(0)
    run.batch()
    run.now_s = CONTEXT_NS / 1e9 + 1
    run.send(1)
    assert run.batch().context == ()  # no partition is new
    run.recorder.record(0, "invoke", "send", [["send", "y-0", 1]])
    batch = run.batch()
    assert batch.new_keys == ("y-0",)
    assert batch.keys == ("x-0",)
    values = [history.decode(line.encode()).value for line in batch.context]
    assert [value["id"] for value in values] == [1, 1]


def test_partitions_are_named_once(run: _Run) -> None:
    """Also those that only polls have named."""
    run.send(0)
    run.recorder.record(7, "invoke", "poll", [["poll"]])
    run.recorder.record(7, "ok", "poll", [["poll", {"z-1": [[0, 5]]}]])
    assert run.batch().new_keys == ("x-0", "z-1")
    for value in itertools.islice(itertools.count(1), 2):
        run.send(value)
        batch = run.batch()
        assert (batch.keys, batch.new_keys) == (("x-0", "z-1"), ())
