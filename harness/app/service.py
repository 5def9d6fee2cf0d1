"""Which kind of system a run tested, by its workload, and what its places are called."""

from collections.abc import Mapping
from typing import Any, Literal

from harness.app import catalogue

Service = Literal["kafka", "zookeeper"]

PLACES: Mapping[Service, str] = {"kafka": "partitions", "zookeeper": "znodes"}
"""What is read to its end at the end of a run."""


def of(workload: Any) -> Service:
    """Return the service of the workload of this name; an unknown one is one of Kafka's."""
    found = catalogue.WORKLOADS.get(workload) if isinstance(workload, str) else None
    return "kafka" if found is None else found.service
