"""A mutant's bug is found on virtual time, and no anomaly without it."""

from pathlib import Path

import pytest

from tests.sim.conftest import INVALID, VALID, Faultline


@pytest.mark.timeout(300)
def test_ack_on_local_append(faultline: Faultline, repository: Path) -> None:
    """A leader that acknowledges on its own append loses writes when it is cut off.

    The plan is the one that shows it on processes.
    """
    plan = repository / "examples" / "plans" / "ack-on-local-append.toml"
    words = ("run", plan, "--target", "simulated", "--rate", 20, "--time-limit", 18)
    correct = faultline(*words, results="correct")
    assert correct.status == VALID
    assert correct.verdict["evidence"]["faults_effective"] == 3
    planted = faultline(*words, "--mutant", "ack-on-local-append", results="planted")
    assert planted.status == INVALID
    assert set(planted.verdict["anomalies"]) == {"lost-write", "invariant:acknowledged-above-hw"}
