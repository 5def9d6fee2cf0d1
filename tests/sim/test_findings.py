"""Plans that once showed a bug of the broker (docs/findings), and show none any more."""

from pathlib import Path

import pytest

from harness.app import plan_resolution
from tests.sim.conftest import Simulate

PLANS = sorted((Path(__file__).parent / "findings").glob("*.toml"))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_it_stays_mended(path: Path, simulate: Simulate) -> None:
    """A plan of a fixed bug is valid, with all of its faults proved."""
    verdict = simulate(plan_resolution.plan_of(plan_resolution.from_toml(path))).verdict
    assert verdict["valid"] is True, verdict
    assert verdict["evidence"]["faults_effective"] == verdict["evidence"]["faults"] > 0
