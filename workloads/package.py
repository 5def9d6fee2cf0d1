"""A workload as one value: its operations, its processes and its final reads.

It depends on neither cluster nor nemesis.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from model.connection import Connection
from model.generator import Generator
from model.plan import Plan
from model.roles import Client
from workloads.needs import Need, of_producers


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload; the module of each workload ends with one."""

    name: str
    service: Literal["kafka", "zookeeper"] = "kafka"
    """The kind of system that the workload tests, and that its clients speak to."""
    rate_hz: float
    """Write operations per second unless the plan says otherwise."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Its own settings with their defaults; a plan may override these and no others."""
    broker: Mapping[str, str] = field(default_factory=dict)
    producer: Mapping[str, str] = field(default_factory=dict)
    consumer: Mapping[str, str] = field(default_factory=dict)
    """Defaults that the workload needs; ``--set`` overrides them."""
    refuse: Callable[[Plan], str | None]
    """Returns in one line why this (resolved) plan cannot be run; ``None`` if it can."""
    main: Callable[[Plan], Generator]
    """The main phase, which ends at the plan's time limit."""
    final: Callable[[Plan, tuple[str, ...], float], Generator]
    """The final reads of these partitions by new processes.

    They end when they are done, or at that time of the run (in seconds).
    """
    client: Callable[[Plan, Connection, int], Client]
    """The client of one process, which reaches the cluster this way; not yet open."""
    op_timeout_s: Callable[[Plan], float]
    """The time after which an operation is given up as ``info``."""
    topics: Callable[[Plan], tuple[str, ...]]
    """The partitions that exist soon after the start, whose leaders faults may have as targets."""
    coordinators: Callable[[Plan], tuple[str, ...]] = lambda plan: ()
    """The roles that faults may have as targets, as in schedules.

    They are ``group-coordinator:GROUP`` and ``transaction-coordinator:TRANSACTIONAL-ID``.
    """
    asked: Callable[[Plan], tuple[str, ...]] = lambda plan: ("Produce", "Fetch")
    """The APIs that its clients call again and again, whatever happens; faults may wait for one."""
    needs: Callable[[Plan], tuple[Need, ...]] = of_producers
    """The features of a release without which a plan of this workload cannot be run."""
    trigger_ops: tuple[str, ...] = ()
    """The operations that may trigger faults, which then are applied in the middle of one."""
    vary: Callable[[random.Random], Mapping[str, Mapping[str, Any]]] = lambda rng: {}
    """Draws what a search varies of this workload only.

    The result has settings by part of a plan (``options``, ``producer``, …; ``plan`` for its own
    fields).
    """
