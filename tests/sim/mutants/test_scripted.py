"""Each mutant has a plan that shows its bug every time, and that the correct broker passes.

A new mutant is a registration (``broker_impl/mutants``) and a plan of its name; this file stays as
it is.
"""

from pathlib import Path

import msgspec
import pytest

from broker_impl import mutants
from harness.app import plan_resolution
from harness.cluster.mutants import catalogue
from tests.sim.conftest import Simulate

ROOT = Path(__file__).resolve().parents[3]
PLANS = {plan.stem: plan for plan in sorted((ROOT / "examples" / "mutants").glob("*.toml"))}
EVERY = 24
"""Of so many plans one is simulated by ``make test``; ``make prove`` simulates all."""


def test_every_mutant_has_a_plan() -> None:
    """Every mutant that a plan can show has one, and every plan has a mutant."""
    assert sorted(PLANS) == [name for name, each in catalogue().items() if each.is_measured]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if number % EVERY == 0 else pytest.mark.prove)
        for number, name in enumerate(PLANS)
    ],
)
def test_red_with_it_and_green_without(name: str, simulate: Simulate) -> None:
    """A mutant's plan has the expected anomaly with the mutant, and is valid without it, all faults
    proved."""
    asked = plan_resolution.plan_of(plan_resolution.from_toml(PLANS[name]))
    without = simulate(asked).verdict
    assert without["valid"] is True, without
    assert without["evidence"]["faults"] == without["evidence"]["faults_effective"] > 0
    planted = simulate(msgspec.structs.replace(asked, mutants=(*asked.mutants, name))).verdict
    assert planted["valid"] is False, planted
    assert mutants.get(name).symptom in planted["anomalies"], planted["anomalies"]
