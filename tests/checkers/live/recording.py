"""A history that grows, and a judge that looks at it now and then."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from checkers.expectations import Contract
from checkers.live.here import Here
from checkers.live.partition import Looked, Seen
from harness.engine.recorder import ROLL, Recorder, Roll
from harness.engine.tail import Tail
from model.batch import Batch
from model.op import Op, OpType


class Recording:
    """Records operations, and judges in this process what is new at every look."""

    def __init__(
        self, folder: Path, *, contract: Contract | None = None, roll: Roll = ROLL
    ) -> None:
        self.now_s = 0.0
        self.tail, self.here = Tail(), Here()
        self.contract = contract or Contract()
        self._recorder = Recorder(
            folder / "history.jsonl",
            lambda: int(self.now_s * 1e9),
            of_places=[self.tail.observe],
            roll=roll,
        )
        self._values = itertools.count()

    def record(self, process: int, kind: OpType, f: str, value: Any = None) -> Op:
        """Record one event."""
        self.now_s += 0.001
        return self._recorder.record(process, kind, f, value)

    def sent(self, key: str, offset: int, value: int, *, process: int = 0) -> None:
        """Record a send that is acknowledged."""
        self.record(process, "invoke", "send", [["send", key, value]])
        self.record(process, "ok", "send", [["send", key, [offset, value]]])

    def polled(self, key: str, *records: tuple[int, int], process: int = 9) -> None:
        """Record a poll that delivers these offsets and values."""
        self.record(process, "invoke", "poll", [["poll"]])
        self.record(process, "ok", "poll", [["poll", {key: [[*each] for each in records]}]])

    def log(self, key: str, offsets: range, *, process: int = 9) -> None:
        """Record sends of the offsets as values, each followed by a poll."""
        for offset in offsets:
            self.sent(key, offset, offset)
            self.polled(key, (offset, offset), process=process)

    def look(self) -> list[str]:
        """Judge what is new, and return the anomalies."""
        return [each.finding.anomaly for each in self.seen()]

    def seen(self) -> list[Seen]:
        """Judge what is new."""
        found: list[Looked] = [
            self.here.judge(batch, self.contract) for batch in self.tail.batches()
        ]
        assert not any(looked.crashed for looked in found)
        return [each for looked in found for each in looked.seen]

    def close(self) -> None:
        """Close the file."""
        self._recorder.close()


Make = Callable[..., Recording]


def batches(recording: Recording) -> list[Batch]:
    """Return what is new, without judging it."""
    return recording.tail.batches()
