"""Whose a container, network or volume is: written on it when it is made, read by the reaper.

The owner is a process, told by its id *and* its start, on a host, in a namespace of process
ids. Only whoever looks from the same host and namespace can say that it has gone. What carries no
owner (the compose file's cluster) is nobody's to take away.
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
    """The labels of everything that this process makes for a run."""
    return {RUN: name, **owner()}


def is_stray(labels: Mapping[str, str] | None) -> bool:
    """Has its owner gone, for all that can be told from here?"""
    labels = labels or {}
    try:
        was = Known(pid=int(labels[OWNER]), started=labels[STARTED])
    except (KeyError, ValueError):
        return False
    if ":" not in was.started:  # written otherwise: it would never be found alive
        return False
    return all(labels.get(name) == value for name, value in place().items()) and not was.alive()
