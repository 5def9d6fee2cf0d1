"""A stream of Spark shows what this process would show, and keeps its states between batches."""

import itertools
import threading
from pathlib import Path
from typing import Any

import pytest

from checkers.expectations import Contract
from checkers.live.on_spark import OnSpark
from checkers.live.partition import Looked
from tests.checkers.live.recording import Recording

pytestmark = pytest.mark.spark
PATIENCE_S = 120.0


class _Received:
    """What the stream has shown, with a signal for each micro-batch."""

    def __init__(self) -> None:
        self.anomalies: set[tuple[str, str | None, int | None]] = set()
        self.batches = 0
        self._changed = threading.Condition()

    def __call__(self, looked: Looked) -> None:
        with self._changed:
            assert not looked.crashed
            self.anomalies |= {
                (seen.finding.anomaly, seen.finding.key, seen.finding.value) for seen in looked.seen
            }
            self.batches += 1
            self._changed.notify_all()

    def wait(self, batches: int) -> None:
        """Wait until so many micro-batches were judged."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.batches >= batches, PATIENCE_S)


def test_a_stream_keeps_its_states(tmp_path: Path, spark: Any) -> None:
    """Sends, and the polls that contradict them, come with different micro-batches."""
    recording, received = Recording(tmp_path), _Received()
    stream = OnSpark(spark, tmp_path / "stream", received)
    steps = itertools.count(1)

    def judged() -> None:
        for batch in recording.tail.batches():
            stream.submit(batch, Contract())
        received.wait(next(steps))
        assert stream.error() is None

    recording.log("x-0", range(4))
    recording.log("y-0", range(4))
    stream.start()
    judged()
    assert received.anomalies == set()
    recording.polled("x-0", (9, 99))
    judged()
    assert received.anomalies == {("phantom", "x-0", 99)}
    recording.polled("y-0", (7, 2))
    judged()
    stream.stop()
    recording.close()
    assert received.anomalies == {("phantom", "x-0", 99), ("duplicate", "y-0", 2)}


def test_a_stream_that_fails_says_why(tmp_path: Path, spark: Any) -> None:
    """The history's file is missing: the stream ends with an error, and shows nothing."""
    recording, received = Recording(tmp_path), _Received()
    stream = OnSpark(spark, tmp_path / "stream", received)
    recording.log("x-0", range(2))
    [batch] = recording.tail.batches()
    recording.close()
    Path(batch.path).unlink()
    stream.submit(batch, Contract())
    stream.start()
    with pytest.raises(Exception, match="No such file"):
        stream._query.awaitTermination(PATIENCE_S)
    assert stream.error() is not None
    assert received.batches == 0
