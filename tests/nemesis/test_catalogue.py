"""The faults of a plan, from which a target learns what it must prepare."""

import pytest

from model.plan import Plan, ScheduledFault
from nemesis import catalogue

FULL = ScheduledFault(id=1, at_s=1, duration_s=1, fault="disk-full", targets="controller")
KILL = ScheduledFault(id=2, at_s=1, duration_s=1, fault="kill", targets="controller")


@pytest.mark.parametrize(
    ("plan", "names"),
    [
        (Plan(nemesis=("disk", "restart")), {"disk-full", "restart", "restart-rolling"}),
        (Plan(nemesis=("disk", "kill"), schedule=(KILL,)), {"kill"}),
        (Plan(nemesis=("disk", "kill"), schedule=(KILL, FULL)), {"kill", "disk-full"}),
        (Plan(nemesis=("disk",), schedule=()), set()),
        (Plan(), set()),
    ],
)
def test_faults_of_a_plan(plan: Plan, names: set[str]) -> None:
    """A schedule determines the faults of a plan; until it is drawn, the nemeses do."""
    faults = list(catalogue.faults_of(plan))
    assert {fault.name for fault in faults} == names
    assert any(fault.needs_small_disk for fault in faults) is ("disk-full" in names)
