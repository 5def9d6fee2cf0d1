"""A workload is a package: what to ask, by whom, how to read everything at the end, who can judge.

It names its checkers by string and knows neither cluster nor nemesis.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from model.generator import Generator
from model.plan import Plan
from model.roles import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One value per workload; each module of a workload ends in one."""

    name: str
    idea: str
    """What it asks of a broker, in one sentence, for ``--help``."""
    checkers: tuple[str, ...]
    """Names of the checkers that can judge it."""
    rate_hz: float
    """Write operations asked per second when the plan does not say."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Its own settings with their defaults; a plan may override these and no others."""
    broker: Mapping[str, str] = field(default_factory=dict)
    producer: Mapping[str, str] = field(default_factory=dict)
    consumer: Mapping[str, str] = field(default_factory=dict)
    """Defaults that the workload needs; ``--set`` overrides them."""
    refuse: Callable[[Plan], str | None]
    """Why this (resolved) plan cannot be run, in one line; ``None`` when it can."""
    main: Callable[[Plan], Generator]
    """The main phase: ends at the plan's time limit."""
    final: Callable[[Plan, tuple[str, ...], float], Generator]
    """The final reads of these keys, by new processes, until they are done or that time of the run
    has come (seconds)."""
    client: Callable[[Plan, str, int], Client]
    """The client of one process, for these bootstrap servers; not yet open."""
    op_timeout_s: Callable[[Plan], float]
    """After so long an operation is given up as ``info``."""
    topics: Callable[[Plan], tuple[str, ...]]
    """Keys that exist soon after the start: faults may aim at their leaders."""
    coordinators: Callable[[Plan], tuple[str, ...]] = lambda plan: ()
    """Roles that faults may aim at, as a schedule names them: ``group-coordinator:GROUP``,
    ``transaction-coordinator:TRANSACTIONAL-ID``."""
    asked: Callable[[Plan], tuple[str, ...]] = lambda plan: ("Produce", "Fetch")
    """APIs that its clients call again and again, whatever happens: faults may wait for one."""
    moments: tuple[str, ...] = ()
    """Operations in whose midst faults should strike."""
    vary: Callable[[random.Random], Mapping[str, Mapping[str, Any]]] = lambda rng: {}
    """What a search varies of this workload alone: settings by part of a plan (``options``,
    ``producer``, …; ``plan``, its own fields), drawn from the generator."""
