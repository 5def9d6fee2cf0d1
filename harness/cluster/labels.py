"""Whose a container, network or volume is: written on it when it is made, read by the reaper.

The owner is a process, told by its id *and* its start, on a host, in a namespace of process
ids. Only whoever looks from the same host and namespace can say that it has gone. What carries no
owner (the compose file's cluster) is nobody's to take away.
"""

import functools
import os
import socket
from collections.abc import Mapping
from pathlib import Path

from harness.cluster.registry import Known, known

RUN = "faultline"
"""The name of the run's folder."""
OWNER = "faultline.owner"
STARTED = "faultline.owner-started"
NAMESPACE = "faultline.owner-pidns"
HOST = "faultline.owner-host"


@functools.cache
def owner() -> Mapping[str, str]:
    """The labels of this process as an owner."""
    this = known(os.getpid())
    assert this is not None, "this process exists"
    return {OWNER: str(this.pid), STARTED: this.started, **place()}


def place() -> Mapping[str, str]:
    """From where this process can tell who lives."""
    namespace = Path("/proc/self/ns/pid")
    return {
        NAMESPACE: str(namespace.readlink()) if namespace.is_symlink() else "",
        HOST: socket.gethostname(),
    }


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
