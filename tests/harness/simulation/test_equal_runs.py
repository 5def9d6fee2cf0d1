"""The trace depends on the seed, not on the environment of the process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TALK = Path(__file__).with_name("talk.py")


def trace_hash(seed: int, folder: Path, repository: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, str(TALK), str(seed)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(repository), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_trace_depends_on_the_seed_alone(tmp_path: Path, repository: Path) -> None:
    """Home, time zone, hash seed, size of the environment and folder do not change the trace."""
    here = trace_hash(3, repository, repository, PYTHONHASHSEED="5")
    (tmp_path / "elsewhere").mkdir()
    there = trace_hash(
        3,
        tmp_path / "elsewhere",
        repository,
        PYTHONHASHSEED="random",
        HOME=str(tmp_path),
        TZ="Asia/Kathmandu",
        LANG="C",
        PYTHONASYNCIODEBUG="1",
        **{f"FILLER_{number}": "x" * 997 for number in range(50)},
    )
    assert here == there
    assert trace_hash(4, repository, repository) != here
