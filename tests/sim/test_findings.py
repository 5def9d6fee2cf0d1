"""Plans that once showed a bug of the broker's own (docs/findings), and show nothing any more."""

from pathlib import Path

import pytest

from harness.app import request
from tests.sim.conftest import Simulate

PLANS = sorted((Path(__file__).parent / "findings").glob("*.toml"))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_it_stays_mended(path: Path, simulate: Simulate) -> None:
    """With every fault of it proved."""
    verdict = simulate(request.plan_of(request.from_toml(path))).verdict
    assert verdict["valid"] is True, verdict
    assert verdict["evidence"]["faults_effective"] == verdict["evidence"]["faults"] > 0
