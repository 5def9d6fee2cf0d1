"""All handlers: importing this module fills the table of the registry."""

from broker_impl.api import (
    cluster_control,
    configs,
    fetch,
    metadata,
    offsets,
    produce,
    producers,
    topics,
    versions,
)
from broker_impl.api.registry import APIS

__all__ = [
    "APIS",
    "cluster_control",
    "configs",
    "fetch",
    "metadata",
    "offsets",
    "produce",
    "producers",
    "topics",
    "versions",
]
