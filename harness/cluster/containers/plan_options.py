"""What a plan chooses of a cluster of containers: its options, and disks that can be filled."""

from collections.abc import Mapping
from typing import Any

from harness.cluster import base_cluster, links
from harness.cluster.base_cluster import CONTROLLER_FIRST
from model import options
from model.plan import Plan
from nemesis import catalogue

OPTIONS: Mapping[str, Any] = {
    "client_listeners": [],
    CONTROLLER_FIRST: False,
    "cpus": 1.0,
    "memory_mb": 512,
    "disk_mb": 128,
}
"""Limits of each broker; ``disk_mb`` applies only if the plan fills a disk."""
LEAST: Mapping[str, float] = {"cpus": 0.01, "memory_mb": 64, "disk_mb": 16}
"""The least values: engines give no less CPU, and a broker needs the memory and disk to start."""


def refuse(plan: Plan) -> str | None:
    """Why these options are invalid; ``None`` if they are valid."""
    return (
        base_cluster.refusal(plan.options)
        or links.refusal(plan.options["client_listeners"])
        or options.refusal(plan.options, LEAST)
    )


def fills_disks(plan: Plan) -> bool:
    """Return whether the plan has a fault that needs small disks."""
    return any(fault.needs_small_disk for fault in catalogue.faults_of(plan))
