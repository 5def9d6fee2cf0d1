"""A cluster's own metadata as plain values: controller, brokers, leaders, ISRs."""

from dataclasses import dataclass
from typing import Protocol

from model.capabilities.control_plane import Partition
from model.roles import NodeId


class ViewUnavailable(Exception):
    """ZooKeeper did not answer, so the metadata is unknown at the moment."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A broker's registration znode, which is removed with its session."""

    epoch: int
    """The broker epoch, which differs for every registration."""
    session_id: int


class MetadataView(Protocol):
    """Reads a cluster's own metadata; each method may raise :class:`ViewUnavailable`."""

    async def close(self) -> None: ...
    async def controller(self) -> NodeId | None: ...
    async def live(self) -> tuple[NodeId, ...]: ...
    async def registration(self, broker: NodeId) -> Registration | None: ...
    async def partition(self, key: str) -> Partition | None: ...
    async def partitions(self) -> tuple[Partition, ...]: ...
