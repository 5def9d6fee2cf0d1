"""How long ``cluster up`` waits."""

import pytest

from harness.app import catalogue, cluster
from model.plan import Plan


@pytest.mark.parametrize("system", ["kafka", "apache-kafka:3.9.1"])
def test_up_waits_longer_than_the_slowest_node(system: str) -> None:
    """The target reports why a node did not start before the command gives up."""
    plan = Plan(system=system)
    assert cluster.patience_s(plan) > catalogue.system_of(plan).start_timeout_s + 30
