"""A shrunk failure is small, and the same in every checkout."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.sim.conftest import INVALID, CommandResult, Faultline

PACKAGES = ("broker_impl", "checkers", "harness", "model", "nemesis", "workloads")

Done = subprocess.CompletedProcess[str]


def _python(*words: object, cwd: Path, env: Mapping[str, str]) -> Done:
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


@pytest.fixture
def shrunk(faultline: Faultline, repository: Path, tmp_path: Path) -> CommandResult:
    """A lost write, shrunk from a plan that has more faults than it needs."""
    plan = repository / "examples" / "plans" / "ack-on-local-append.toml"
    options = ("--target", "simulated", "--rate", 20, "--time-limit", 18)
    failure = faultline("run", plan, *options, "--mutant", "ack-on-local-append", results="found")
    assert failure.status == INVALID
    words = ("shrink", failure.folder, "--minutes", 1, "--json", "--results", "small")
    done = _python("-m", "harness.app.cli", *words, cwd=tmp_path, env=os.environ)
    assert done.returncode == INVALID, done.stderr
    told = json.loads(done.stdout)
    assert told["anomaly"] == "lost-write"
    assert told["after"]["faults"] < told["before"]["faults"]
    return CommandResult(done.returncode, told, tmp_path / told["folder"])


@pytest.mark.prove
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_shrunk_failure_is_the_same_in_another_checkout(
    shrunk: CommandResult, repository: Path, tmp_path: Path
) -> None:
    """A shrunk failure is byte for byte the same in another checkout.

    Its test case passes there. The other checkout has another home, time zone, size of the
    environment, and directory.
    """
    checkout, elsewhere = tmp_path / "another" / "check out", tmp_path / "elsewhere"
    for package in PACKAGES:
        shutil.copytree(
            repository / package, checkout / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    elsewhere.mkdir()
    there = {
        **os.environ,
        "PYTHONPATH": str(checkout),
        "HOME": str(elsewhere),
        "TZ": "Asia/Kathmandu",
        "PADDING": "x" * 5000,
    }
    where = _python("-c", "import harness; print(harness.__file__)", cwd=elsewhere, env=there)
    assert where.stdout.startswith(str(checkout))
    words = ("replay", shrunk.folder, "--inline", "--json", "--results", "again")
    done = _python("-m", "harness.app.cli", *words, cwd=elsewhere, env=there)
    assert done.returncode == INVALID, done.stderr
    (folder,) = (elsewhere / "again").iterdir()
    again = CommandResult(done.returncode, json.loads(done.stdout), folder)
    for name in ("history.jsonl", "schedule.jsonl", "invariants.jsonl"):
        assert again.hash_of(name) == shrunk.hash_of(name), name
    case = shrunk.folder / Path(shrunk.verdict["case"]).name
    tested = _python("-m", "pytest", "-q", "-p", "no:cacheprovider", case, cwd=elsewhere, env=there)
    assert tested.returncode == 0, tested.stdout
