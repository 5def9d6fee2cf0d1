"""A plan holds everything needed to run a test again: workload, faults, configuration, seed."""

from typing import Any

import msgspec


class ScheduledFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of a fault schedule; it is data, so that a schedule can be replayed and shrunk."""

    id: int
    at_s: float
    """Seconds after the workload began."""
    duration_s: float
    """The time until the fault is healed."""
    fault: str
    """The fault's name, such as ``partition-one``."""
    targets: Any = None
    """What the fault affects, in the fault's own notation.

    Examples: node ids, ``leader:orders-0``, ``controller``, ``group-coordinator:billing``.
    """
    options: dict[str, Any] = {}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``plan.json``; every default is written out."""

    workload: str = "idempotent"
    nemesis: tuple[str, ...] = ()
    """Names of nemeses; empty means none."""
    target: str = "processes"
    system: str = "kafka"
    """What is tested: ``kafka``, this project's broker, or a release, ``apache-kafka:3.9.1``."""
    time_limit_s: float = 60.0
    rate_hz: float = 0.0
    """Operations per second over all clients; 0 stands for the target's default."""
    concurrency: int = 5
    brokers: int = 3
    seed: int = 0
    mutants: tuple[str, ...] = ()
    broker: dict[str, str] = {}
    """Broker settings by Kafka's names, as in ``--set broker.KEY=VALUE``."""
    producer: dict[str, str] = {}
    consumer: dict[str, str] = {}
    expect: dict[str, str] = {}
    """Settings (``broker.KEY`` …) that the verdict uses instead of the plan's own.

    They are for plans that promise more than their settings do.
    """
    options: dict[str, Any] = {}
    """The workload's own settings (topics, partitions, …)."""
    schedule: tuple[ScheduledFault, ...] | None = None
    """The drawn schedule; ``None`` in a plan file means that it is drawn from the seed."""
    versions: dict[str, str] = {}
    commit: str = ""
