"""The ZooKeeper server and the brokers run in a simulation unchanged and deterministically."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("three_brokers.py")


def play(seed: int, repository: Path, **environment: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(seed)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(repository), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    judged: dict[str, Any] = json.loads(done.stdout)
    return judged


@pytest.mark.slow
def test_three_brokers_survive_a_kill(tmp_path: Path, repository: Path) -> None:
    """After a kill a new leader is elected, and no acknowledged record is lost.

    The trace depends on the seed only.
    """
    one = play(1, repository)
    assert one["leader"] != one["successor"]
    assert one["offsets"] == list(range(40))
    assert 6 < one["elected_s"] - one["killed_s"] < 12, "after the session's time-out"
    assert one["whole_s"] - one["elected_s"] < 10
    assert one["failures"] == []
    same = play(1, repository, HOME=str(tmp_path), TZ="Asia/Kathmandu", FILLER="x" * 10_000)
    assert same["hash"] == one["hash"]
    assert play(2, repository)["hash"] != one["hash"]
