"""Files that faultline writes are private to its user, whatever the umask is."""

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.app import private
from harness.app.run import new_folder

FAULTLINE = [sys.executable, "-m", "harness.app.cli"]


@pytest.fixture(params=[0o000, 0o022, 0o277])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Set the user's umask."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_files_are_private_within_the_block(umask: int, tmp_path: Path) -> None:
    """Files are 0600 and folders 0700 within the block; after it the user's umask applies again."""
    with private.writing(), private.writing():
        (tmp_path / "file").touch()
        (tmp_path / "folder").mkdir()
        with private.as_asked():
            (tmp_path / "asked").touch()
    (tmp_path / "after").touch()
    assert mode(tmp_path / "file") == 0o600
    assert mode(tmp_path / "folder") == 0o700
    assert mode(tmp_path / "asked") == mode(tmp_path / "after") == 0o666 & ~umask


def test_a_run_has_a_private_folder(tmp_path: Path) -> None:
    """A run's folder is private also if a program calls the module without the command line."""
    before = os.umask(0)
    try:
        folder = new_folder(tmp_path / "results", "x", time.gmtime(0))
    finally:
        os.umask(before)
    assert mode(folder) == 0o700


@pytest.mark.slow
def test_all_of_a_run_is_private(tmp_path: Path) -> None:
    """With a umask of 0, every folder that a run makes is 0700 and every file 0600."""
    results = tmp_path / "results"
    words = ["run", "--target", "simulated", "--time-limit", "2", "--nemesis", "none"]
    done = subprocess.run(
        [*FAULTLINE, *words, "--results", str(results)],
        umask=0,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 2), done.stderr
    made = [results, *results.rglob("*")]
    assert {path.name for path in made} >= {"plan.json", "log.txt", "verdict.json", "report.html"}
    loose = [path for path in made if mode(path) != (0o700 if path.is_dir() else 0o600)]
    assert loose == []
