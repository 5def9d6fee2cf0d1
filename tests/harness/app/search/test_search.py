"""Searches as a user starts them: complete simulated runs in pinned processes."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.app.search.outcome import FILE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[4]
PLAN = ROOT / "examples" / "mutants" / "ack-on-local-append.toml"


def _faultline(*arguments: object, cwd: Path, **environment: str) -> tuple[int, Any]:
    """Run a command and return its exit status and its JSON output."""
    done = subprocess.run(
        [sys.executable, "-m", "harness.app.cli", *map(str, arguments), "--json"],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def _hash(folder: Path) -> str:
    return hashlib.sha256((folder / "history.jsonl").read_bytes()).hexdigest()


@pytest.mark.prove
def test_a_planted_bug_is_found_and_its_folder_replays(tmp_path: Path) -> None:
    """A search finds a planted bug, and a replay of its folder gives the same history and findings.

    The replay has another working directory, home, time zone and environment.
    """
    status, told = _faultline(
        *("search", "--mutant", "ack-on-local-append", "--runs", 40, "--results", "r"),
        cwd=tmp_path,
    )
    assert status == 1
    found = told["findings"][0]
    assert {"lost-write", "invariant:acknowledged-above-hw"} & set(found["anomalies"])
    folder = tmp_path / found["folder"]
    assert folder.name == f"seed{found['seed']}"
    assert (folder / "report.html").exists()
    elsewhere = tmp_path / "else" / "where"
    elsewhere.mkdir(parents=True)
    status, verdict = _faultline(
        *("replay", folder, "--inline", "--results", "again"),
        cwd=elsewhere,
        HOME=str(elsewhere),
        TZ="Pacific/Chatham",
        PADDING="x" * 5000,
    )
    assert status == 1
    assert verdict["anomalies"] == found["anomalies"]
    [again] = (elsewhere / "again").iterdir()
    assert _hash(again) == _hash(folder)


def test_a_green_search_tells_what_it_did(tmp_path: Path) -> None:
    """A green search has exit status 0, its runs do real work, and it leaves the summary only."""
    status, told = _faultline(
        *("search", "--runs", 2, "--jobs", 2, "--seed", 1, "--results", "r"), cwd=tmp_path
    )
    assert (status, told["findings"], told["doubtful"]) == (0, [], [])
    assert told["runs"] == 2
    assert sorted(seed for seeds in told["workloads"].values() for seed in seeds) == [1, 2]
    assert told["least"]["simulated_seconds"] >= 40
    assert told["least"]["acked"] >= 500
    assert told["least"]["faults_effective"] >= 3
    assert [path.name for path in (tmp_path / told["folder"]).iterdir()] == [FILE]


@pytest.mark.prove
@pytest.mark.spark
def test_a_search_is_judged_once_more_by_spark(tmp_path: Path) -> None:
    """One Spark job judges all histories of a search and agrees with the first judgement."""
    status, told = _faultline(
        *("search", PLAN, "--runs", 2, "--jobs", 2, "--mutant", "ack-on-local-append"),
        *("--workload", "idempotent", "--keep-going", "--spark", "--results", "r"),
        cwd=tmp_path,
    )
    assert status == 1
    assert "lost-write" in told["anomalies"]
    assert (told["together"]["histories"], told["together"]["differ"]) == (2, [])
    left = {path.name for path in (tmp_path / told["folder"]).iterdir()}
    assert left == {FILE, *(f"seed{run['seed']}" for run in told["findings"])}
