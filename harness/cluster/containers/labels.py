"""The labels that name the owner of a container, network or volume, for the reaper.

The owner is a process, identified by its id *and* its start time, on a host, in a namespace of
process ids. Only from the same host and namespace can one decide that it has ended. The reaper
never removes an object without an owner (the cluster of the compose file).
"""

import functools
import os
from collections.abc import Mapping

from harness.cluster.registry import HOST as HOST
from harness.cluster.registry import NAMESPACE as NAMESPACE
from harness.cluster.registry import Known, known
from harness.cluster.registry import place as place

RUN = "faultline"
"""The name of the run's folder."""
OWNER = "faultline.owner"
STARTED = "faultline.owner-started"


@functools.cache
def owner() -> Mapping[str, str]:
    """The labels of this process as an owner."""
    this = known(os.getpid())
    assert this is not None, "this process exists"
    return {OWNER: str(this.pid), STARTED: this.started, **place()}


def of_run(name: str) -> dict[str, str]:
    """The labels of everything that this process creates for a run."""
    return {RUN: name, **owner()}


def is_stray(labels: Mapping[str, str] | None) -> bool:
    """Return whether the owner has ended, as far as this place can decide that."""
    labels = labels or {}
    try:
        was = Known(pid=int(labels[OWNER]), started=labels[STARTED])
    except (KeyError, ValueError):
        return False
    if ":" not in was.started:  # in another format: it would never be found alive
        return False
    return all(labels.get(name) == value for name, value in place().items()) and not was.alive()
