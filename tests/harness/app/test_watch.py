"""A watch passes on what is new, and ends the run at the first anomaly that is seen."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from checkers.expectations import Contract
from checkers.live.partition import Looked, Seen
from harness.app import watch as watch_
from harness.app.watch import Watch
from harness.engine.early_end import EarlyEnd
from harness.engine.recorder import Recorder
from model.batch import Batch
from model.finding import Finding

ROOT = Path(__file__).resolve().parents[3]
FINDING = Finding(anomaly="lost-write", key="x-0", value=3, ops=(1, 5), why="it is gone")


class _Judge:
    """Remembers batches, and reports a given failure."""

    def __init__(self, failure: str | None = None) -> None:
        self.batches: list[Batch] = []
        self.failure = failure

    def submit(self, batch: Batch, contract: Contract) -> None:
        self.batches.append(batch)

    async def ready(self) -> None:
        """Return at once."""

    def error(self) -> str | None:
        return self.failure


def _watched(folder: Path, say: Callable[[str], None] = lambda line: None) -> Watch:
    return Watch(folder, is_virtual=False, say=say, early_end=EarlyEnd())


def _recorder(folder: Path, watch: Watch) -> Recorder:
    return Recorder(folder / "history.jsonl", lambda: 7, of_places=[watch.observe])


def test_nothing_is_judged_before_the_run_begins(tmp_path: Path) -> None:
    """Each look passes on the events since the one before."""
    watch, judge = _watched(tmp_path), _Judge()
    watch.use(judge)
    recorder = _recorder(tmp_path, watch)
    recorder.record(0, "invoke", "send", [["send", "x-0", 1]])
    watch.look()
    assert judge.batches == []
    asyncio.run(watch.begin(Contract(), lambda: 0))
    watch.look()
    watch.look()
    recorder.record(0, "ok", "send", [["send", "x-0", [0, 1]]])
    watch.look()
    assert [batch.number for batch in judge.batches] == [1, 2]
    recorder.close()
    watch.close()


def test_the_first_anomaly_ends_the_run(tmp_path: Path) -> None:
    """All that are seen are written down; the run ends once."""
    said: list[str] = []
    watch = _watched(tmp_path, said.append)
    asyncio.run(watch.begin(Contract(), lambda: 9))
    later = Finding(anomaly="phantom", key="y-0", value=1, ops=(8,), why="who sent it?")
    assert not watch.early_end.is_asked
    watch.receive(Looked((Seen(FINDING, 4, 5),), ()))
    watch.receive(Looked((Seen(later, 5, 8),), ()))
    watch.close()
    assert watch.early_end.is_asked
    assert watch.first is not None
    assert watch.first.finding == FINDING
    rows = [json.loads(line) for line in (tmp_path / watch_.FILE).read_text().splitlines()]
    assert [(row["finding"]["anomaly"], row["witnessed_ns"], row["found_ns"]) for row in rows] == [
        ("lost-write", 5, 9),
        ("phantom", 8, 9),
    ]
    assert said == ["the run ends, because the history so far shows lost-write of x-0: it is gone"]


def test_a_watch_that_fails_does_not_end_the_run(tmp_path: Path) -> None:
    """The reason is reported once."""
    said: list[str] = []
    watch = _watched(tmp_path, said.append)
    watch.use(_Judge("the session died"))
    asyncio.run(watch.begin(Contract(), lambda: 0))
    watch.look()
    watch.look()
    watch.receive(Looked((), ("the checker loss crashed: ValueError",)))
    watch.close()
    assert said == [
        "watch: the run is not watched any more: the session died",
        "watch: the checker loss crashed: ValueError",
    ]
    assert not watch.early_end.is_asked


@pytest.mark.slow
def test_another_process_judges(tmp_path: Path) -> None:
    """A value that no process has sent is seen by the process that judges in place of Spark."""

    async def run() -> Watch:
        watch = _watched(tmp_path)
        async with watch_.judging(watch, tmp_path, None):
            await watch.begin(Contract(), lambda: 0)
            recorder = _recorder(tmp_path, watch)
            recorder.record(9, "invoke", "poll", [["poll"]])
            recorder.record(9, "ok", "poll", [["poll", {"x-0": [[0, 5]]}]])
            assert await watch.early_end.run(_forever()) is False
            recorder.close()
        return watch

    watch = asyncio.run(run())
    watch.close()
    assert watch.first is not None
    assert watch.first.finding.anomaly == "phantom"
    assert list(tmp_path.glob(f"{watch_.PREFIX}*")) == []


async def _forever() -> None:
    await asyncio.Event().wait()


WATCHING = """
import asyncio, os, signal, sys
from harness.app.watch import InProcess

async def main():
    pool = InProcess(lambda looked: None)._pool
    print(pool.submit(signal.getsignal, signal.SIGINT).result() is signal.SIG_IGN)
    print(pool.submit(os.getppid).result() == os.getpid(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of such an end")
def test_the_process_that_judges_ends_with_its_parent(tmp_path: Path) -> None:
    """Not even a SIGKILL of the run leaves it; it leaves a terminal's Ctrl-C to the run."""
    script = tmp_path / "watching.py"
    script.write_text(WATCHING)
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    ) as watching:
        assert watching.stdout is not None
        said = watching.stdout.read()  # until no process has it open
    assert (said.split(), watching.returncode) == (["True", "True"], -signal.SIGKILL)
