"""All request handlers: importing this module fills the registry's table."""

from broker_impl.api import (
    altering,
    cluster_control,
    configs,
    deletion,
    describing,
    fetch,
    find_coordinator,
    group_offsets,
    groups,
    markers,
    metadata,
    offsets,
    produce,
    producers,
    topics,
    transaction_requests,
    versions,
)
from broker_impl.api.registry import APIS

__all__ = [
    "APIS",
    "altering",
    "cluster_control",
    "configs",
    "deletion",
    "describing",
    "fetch",
    "find_coordinator",
    "group_offsets",
    "groups",
    "markers",
    "metadata",
    "offsets",
    "produce",
    "producers",
    "topics",
    "transaction_requests",
    "versions",
]
