"""A simulated run repeated on processes applies the same faults in the same order."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.prove, pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(300)]


def schedule_of(folder: Path) -> list[tuple[Any, ...]]:
    """Return the faults and their targets, in the order in which they ended."""
    rows = map(json.loads, (folder / "schedule.jsonl").read_text().splitlines())
    return [(row["id"], row["fault"], tuple(row["targets"])) for row in rows]


def test_a_simulated_schedule_on_processes(
    project_environment: dict[str, str], tmp_path: Path
) -> None:
    """The run is valid on both targets, and each fault is proved on both."""

    def faultline(*words: object, results: str) -> Path:
        there = tmp_path / results
        done = subprocess.run(
            ["faultline", *map(str, words), "--inline", "--results", str(there)],
            env=project_environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        (folder,) = there.iterdir()
        return folder

    drawn = ("--nemesis", "kill,pause,partition", "--time-limit", 20, "--seed", 5)
    simulated = faultline("run", "--target", "simulated", *drawn, results="simulated")
    real = faultline("replay", simulated, "--target", "processes", results="real")
    rows = schedule_of(real)
    assert len(rows) >= 3
    assert [(number, fault) for number, fault, _ in rows] == [
        (number, fault) for number, fault, _ in schedule_of(simulated)
    ]
    verdict = json.loads((real / "verdict.json").read_text())
    assert verdict["evidence"]["faults_effective"] == verdict["evidence"]["faults"] == len(rows)
