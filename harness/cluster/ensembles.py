"""The options of a plan that say how many ZooKeeper servers there are, and the layout they give."""

from collections.abc import Mapping
from typing import Any

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


def layout(plan: Plan, options: Mapping[str, Any] = OPTIONS) -> Layout:
    """Return the nodes of a plan's brokers and ZooKeeper servers; ``options`` are defaults."""
    wanted = {**OPTIONS, **options, **plan.options}
    return with_zookeeper(plan.brokers, int(wanted[SERVERS]), int(wanted[OBSERVERS]))


def refusal(options: Mapping[str, Any]) -> str | None:
    """Return why these options are invalid; ``None`` if there can be such an ensemble."""
    wanted = {name: {**OPTIONS, **options}[name] for name in OPTIONS}
    if (why := options_.refusal(wanted, LEAST)) is not None:
        return why
    if wanted[SERVERS] > SERVERS_MAX:
        return f"options: {SERVERS}={wanted[SERVERS]}: must be at most {SERVERS_MAX}"
    voters = wanted[SERVERS] - wanted[OBSERVERS]
    if wanted[OBSERVERS] and voters < 1:
        return f"options: {OBSERVERS}={wanted[OBSERVERS]}: at least one server must vote"
    return None
