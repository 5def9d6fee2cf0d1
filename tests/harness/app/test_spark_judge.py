"""An interrupt cancels the jobs of Spark."""

import os
import signal
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from checkers.distributed import on_spark, plan
from harness.app import check, spark_judge

pytestmark = pytest.mark.spark


def _waits(folder: str, item: int) -> int:
    """Show that the task runs, and take longer than any test waits for."""
    Path(folder, "running").touch()
    time.sleep(60)
    Path(folder, "finished").touch()
    return item


def test_an_interrupt_cancels_the_job(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command ends as interrupted at once, with no verdict, and the session can go on."""
    running, history = tmp_path / "running", tmp_path / "history.jsonl"
    history.write_text("{}")

    def judge(path: Path, chunks: Any, runner: Any, scratch: Path) -> None:
        runner.each(partial(_waits, str(tmp_path)), [0])

    def interrupt() -> None:
        while not running.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(plan, "judge", judge)
    monkeypatch.setattr(spark_judge, "LARGE_BYTES", {".jsonl": 0})
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        check.examine(history, inline=False, session=spark)
    thread.join()
    assert not (tmp_path / "finished").exists()
    assert on_spark.OnSpark(spark, lambda done: None).each(str, [1, 2]) == ["1", "2"]
