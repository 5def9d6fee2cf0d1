"""A planted bug is found on virtual time, and nothing without it."""

from pathlib import Path

import pytest

from tests.sim.conftest import INVALID, VALID, Faultline


@pytest.mark.timeout(300)
def test_ack_on_local_append(faultline: Faultline, repository: Path) -> None:
    """A leader that acknowledges alone loses writes when it is cut off: by the plan that shows it
    on processes, too."""
    plan = repository / "examples" / "plans" / "ack-on-local-append.toml"
    words = ("run", plan, "--target", "simulated", "--rate", 20, "--time-limit", 18)
    correct = faultline(*words, results="correct")
    assert correct.status == VALID
    assert correct.verdict["evidence"]["faults_effective"] == 3
    planted = faultline(*words, "--mutant", "ack-on-local-append", results="planted")
    assert planted.status == INVALID
    assert set(planted.verdict["anomalies"]) == {"lost-write"}
