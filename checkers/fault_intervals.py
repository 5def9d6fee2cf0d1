"""Fault intervals: when a fault may leave a former leader answering, and which brokers it concerns.

A deposed leader answers from its own state until it learns of its successor. It can miss that news
because a fault struck it, or because a fault struck the controller, which sends the news. A fault
that ends a broker leaves no such state. A fault between clients and a broker does not delay the
news to that broker.
"""

from collections.abc import Mapping
from typing import Any

from checkers.facts import Fault
from checkers.kernels.faults import FaultInterval

ENDS_BROKERS = ("kill", "restart", "restart-rolling", "power-loss")
"""Faults that end a broker's process: it remembers nothing when it starts again."""

OF_CLIENTS = ("change-credentials", "revoke-acl", "partition-clients")
"""Faults that keep clients from brokers, and brokers from nothing."""

HARMLESS = (*ENDS_BROKERS, "disk-full", "failed-directory", "bit-flip", *OF_CLIENTS)
"""Faults that do not keep news of new leaders from a broker that answers clients."""

OF_MESSAGES = (
    "hold-request",
    "drop-request",
    "drop-response",
    "corrupt-request",
    "duplicate-request",
)
"""Faults that affect single messages."""
ORDERS = frozenset({"LeaderAndIsr", "StopReplica", "UpdateMetadata"})
"""The requests by which a controller announces leaders to brokers."""

OF_OPERATORS = ("reassign", "elect-leaders", "elect-apart")
"""Operator actions that replace the leaders of the partitions that they name, and of no others. The
option ``internal`` selects the partitions of the coordinators' topics."""

SILENT = ("pause", "disconnect")
"""Faults during which the struck brokers answer no request."""

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
"""Faults that break no connection for long, so that brokers hear of new leaders soon after them."""

KEEPERS = ("zookeeper", "controller-")
"""How the ids begin of nodes that keep the metadata."""


def interval(fault: Fault) -> FaultInterval:
    """Return when a fault was active, and whose former leaders it may leave answering."""
    options: Mapping[str, Any] = fault.options if isinstance(fault.options, dict) else {}
    misleads = fault.fault not in HARMLESS
    if fault.fault in OF_MESSAGES:
        misleads = _withholds_orders(options)
    nodes = _nodes(fault)
    is_internal = options.get("internal") is True
    return FaultInterval(
        fault.id,
        fault.from_ns,
        fault.to_ns,
        misleads,
        silences=fault.fault in SILENT and nodes is not None,
        disconnects=fault.fault not in KEEP_CONNECTIONS,
        nodes=nodes,
        restarts=fault.fault in ENDS_BROKERS,
        keys=_keys(fault, options, is_internal=is_internal),
        coordinators=is_internal or fault.fault not in OF_OPERATORS,
    )


def _keys(fault: Fault, options: Mapping[str, Any], *, is_internal: bool) -> frozenset[str] | None:
    """Return the clients' partitions whose leaders the fault may have replaced; ``None`` for
    all."""
    if fault.fault not in OF_OPERATORS:
        return None
    if is_internal:
        return frozenset()
    named = options.get("keys")
    return frozenset(map(str, named)) if isinstance(named, list) else None


def _withholds_orders(options: Mapping[str, Any]) -> bool:
    """Return whether the message may have been a controller's order; without an ``api`` it may."""
    apis = {options.get("api"), *(options.get("or") or ())}
    return None in apis or not apis.isdisjoint(ORDERS)


def _nodes(fault: Fault) -> frozenset[str] | None:
    """Return the brokers that the fault struck; ``None`` if it may have struck any."""
    targets = fault.targets
    if not isinstance(targets, list) or not targets or any(map(_keeps_metadata, targets)):
        return None
    if fault.fault in (*OF_MESSAGES, *OF_OPERATORS):
        return None
    return frozenset(map(str, targets))


def _keeps_metadata(node: object) -> bool:
    return str(node).startswith(KEEPERS)
