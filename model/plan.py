"""A plan holds everything needed to run a test again: workload, faults, configuration, seed."""

from typing import Any, Literal

import msgspec

Target = Literal["processes", "simulated", "containers", "external"]


class ScheduledFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of a fault schedule: data, so that it can be replayed and shrunk."""

    id: int
    at_s: float
    """Seconds after the workload began."""
    duration_s: float
    """How long until it is healed."""
    fault: str
    """The fault's name, such as ``partition-one``."""
    targets: Any = None
    """Whom it strikes, in the fault's own words: node ids, ``leader:orders-0``, ``controller``,
    ``group-coordinator:billing``."""
    options: dict[str, Any] = {}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What ``plan.json`` holds; every default is written out."""

    workload: str = "idempotent"
    nemesis: tuple[str, ...] = ()
    """Names of fault packages; empty means none."""
    target: Target = "processes"
    time_limit_s: float = 60.0
    rate_hz: float = 0.0
    """Operations asked per second over all clients; 0 stands for the target's default."""
    concurrency: int = 5
    brokers: int = 3
    seed: int = 0
    mutants: tuple[str, ...] = ()
    broker: dict[str, str] = {}
    """``--set broker.KEY=VALUE``: Kafka's own names."""
    producer: dict[str, str] = {}
    consumer: dict[str, str] = {}
    expect: dict[str, str] = {}
    """``broker.KEY`` …: settings that the verdict goes by in place of the plan's own, where the
    plan promises more than its settings do."""
    options: dict[str, Any] = {}
    """The workload's own settings (topics, partitions, …)."""
    schedule: tuple[ScheduledFault, ...] | None = None
    """The drawn schedule; ``None`` in a plan file means: draw it from the seed."""
    versions: dict[str, str] = {}
    commit: str = ""
