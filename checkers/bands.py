"""From faults to bands: which faults can leave a former leader answering, and which brokers they
concern.

A former leader answers from its memory until it hears of its successor. It can fail to hear because
a fault struck it, or because a fault struck the controller, which tells it. A fault that ends a
broker leaves nothing to answer from. A fault between clients and a broker keeps no news from that
broker.
"""

from collections.abc import Mapping
from typing import Any

from checkers.facts import Fault
from checkers.kernels.rows import Band

ENDS_BROKERS = ("kill", "restart", "restart-rolling", "power-loss")
"""Faults by which a broker ends, so that it remembers nothing when it starts again."""

HARMLESS = (*ENDS_BROKERS, "disk-full", "bit-flip", "partition-clients")
"""Faults that keep no news of leaders from a broker that answers clients."""

OF_MESSAGES = ("hold-request", "drop-response", "corrupt-request")
"""Faults of single messages."""
ORDERS = frozenset({"LeaderAndIsr", "StopReplica", "UpdateMetadata"})
"""The APIs by which a controller tells brokers who leads."""

OF_OPERATORS = ("reassign", "elect-leaders", "elect-apart")
"""Faults that replace the leaders of the partitions that they name, and of no others. The option
``internal`` means the partitions of coordinators."""

SILENT = ("pause", "disconnect")
"""Faults of brokers that give no answer meanwhile."""

KEEP_CONNECTIONS = (
    *OF_MESSAGES,
    *OF_OPERATORS,
    "expire-session",
    "slow",
    "slow-disk",
    "clock-skew",
    "clock-jump",
    "squeeze-cpu",
    "squeeze-memory",
    "at-point",
)
"""Faults that break no connection for long, so that brokers hear soon after them."""

ZOOKEEPER = "zookeeper"


def band(fault: Fault) -> Band:
    """When a fault was active, and whose former leaders it may leave answering."""
    options: Mapping[str, Any] = fault.options if isinstance(fault.options, dict) else {}
    ends = fault.fault in ENDS_BROKERS
    misleads = fault.fault not in HARMLESS
    if fault.fault in OF_MESSAGES:
        misleads = _withholds_orders(options)
    nodes = _nodes(fault)
    keys: frozenset[str] | None = None
    coordinators = True
    if fault.fault in OF_OPERATORS:
        coordinators = options.get("internal") is True
        named = options.get("keys")
        if coordinators:
            keys = frozenset()
        elif isinstance(named, list):
            keys = frozenset(map(str, named))
    return Band(
        fault.id,
        fault.from_ns,
        fault.to_ns,
        misleads,
        silences=fault.fault in SILENT and nodes is not None,
        disconnects=fault.fault not in KEEP_CONNECTIONS,
        nodes=nodes,
        restarts=ends,
        keys=keys,
        coordinators=coordinators,
    )


def _withholds_orders(options: Mapping[str, Any]) -> bool:
    """May the message have been an order of a controller? Without an ``api`` it may have been."""
    apis = {options.get("api"), *(options.get("or") or ())}
    return None in apis or not apis.isdisjoint(ORDERS)


def _nodes(fault: Fault) -> frozenset[str] | None:
    """The brokers that were struck; ``None`` where it may have been any."""
    targets = fault.targets
    if not isinstance(targets, list) or not targets or ZOOKEEPER in targets:
        return None
    if fault.fault in (*OF_MESSAGES, *OF_OPERATORS):
        return None
    return frozenset(map(str, targets))
