"""Each planted bug makes its plan INVALID, which proves that the checkers find it."""

import json
import subprocess
from pathlib import Path

import pytest

VALID, INVALID = 0, 1

EXPECTED = {
    "ack-on-local-append": "lost-write",
    "truncate-to-hw-loss": "lost-write",
    "pstate-not-replicated": "duplicate",
    "no-min-isr-check": "lost-write",
}

pytestmark = [pytest.mark.prove, pytest.mark.cluster, pytest.mark.timeout(600)]


def run(plan: Path, environment: dict[str, str], results: Path, *options: str) -> tuple[int, dict]:  # type: ignore[type-arg]
    """Return the exit status and the verdict of one run."""
    done = subprocess.run(
        ["faultline", "run", str(plan), "--json", "--results", str(results), *options],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize(("mutant", "anomaly"), EXPECTED.items())
def test_a_planted_bug_is_found_by_name(
    mutant: str,
    anomaly: str,
    repository: Path,
    project_environment: dict[str, str],
    tmp_path: Path,
) -> None:
    """The plan with the bug exits with 1 and reports the bug's anomaly."""
    plan = repository / "examples" / "plans" / f"{mutant}.toml"
    status, verdict = run(plan, project_environment, tmp_path, "--mutant", mutant)
    assert status == INVALID, verdict
    assert verdict["anomalies"].get(anomaly, 0) > 0, verdict["anomalies"]


@pytest.mark.parametrize("mutant", EXPECTED)
def test_nothing_is_found_without_it(
    mutant: str, repository: Path, project_environment: dict[str, str], tmp_path: Path
) -> None:
    """The same plan on the correct broker exits with 0, and every fault is proved."""
    plan = repository / "examples" / "plans" / f"{mutant}.toml"
    status, verdict = run(plan, project_environment, tmp_path)
    assert status == VALID, verdict
    evidence = verdict["evidence"]
    assert evidence["faults"] == evidence["faults_effective"] > 0
