"""The options of a plan for ZooKeeper servers: how many there are, and the settings of each."""

from collections.abc import Mapping
from typing import Any

from broker_impl.zookeeper.history import WINDOW
from harness.cluster.settings import TICK_MS
from model import options as options_
from model.layout import Layout, with_zookeeper
from model.plan import Plan

SERVERS = "zookeepers"
"""The option with the number of ZooKeeper servers (``--zookeepers``)."""
OBSERVERS = "observers"
"""The option with the number of those that do not vote."""
OPTIONS: Mapping[str, int] = {SERVERS: 1, OBSERVERS: 0}
LEAST: Mapping[str, float] = {SERVERS: 1, OBSERVERS: 0}
SERVERS_MAX = 9

TICK, SNAP_COUNT, LOG_COUNT = "tick_ms", "snap_count", "commit_log_count"
SETTINGS: Mapping[str, int] = {TICK: TICK_MS, SNAP_COUNT: 2_000, LOG_COUNT: WINDOW}
"""The settings of each server of a plan that tests ZooKeeper, by ZooKeeper's names: sessions last
2 to 20 ticks; so many transactions are between two snapshots; so many are kept in memory for
servers that join. With ZooKeeper's default of 100,000 between two snapshots, few runs would ever
recover from one."""
LEAST_SETTINGS: Mapping[str, float] = {TICK: 20, SNAP_COUNT: 2, LOG_COUNT: 1}


def layout(plan: Plan, options: Mapping[str, Any] = OPTIONS) -> Layout:
    """Return the nodes of a plan's brokers and ZooKeeper servers; ``options`` are defaults."""
    wanted = {**OPTIONS, **options, **plan.options}
    return with_zookeeper(plan.brokers, int(wanted[SERVERS]), int(wanted[OBSERVERS]))


def settings(plan: Plan) -> dict[str, int]:
    """Return the settings of the servers of a plan."""
    return {name: int({**SETTINGS, **plan.options}[name]) for name in SETTINGS}


def refusal(options: Mapping[str, Any]) -> str | None:
    """Return why these options are invalid; ``None`` if there can be such an ensemble."""
    given = {**OPTIONS, **SETTINGS, **options}
    wanted = {name: given[name] for name in (*OPTIONS, *SETTINGS)}
    if (why := options_.refusal(wanted, {**LEAST, **LEAST_SETTINGS})) is not None:
        return why
    if wanted[SERVERS] > SERVERS_MAX:
        return f"options: {SERVERS}={wanted[SERVERS]}: must be at most {SERVERS_MAX}"
    voters = wanted[SERVERS] - wanted[OBSERVERS]
    if wanted[OBSERVERS] and voters < 1:
        return f"options: {OBSERVERS}={wanted[OBSERVERS]}: at least one server must vote"
    return None
