"""What a cluster believes of itself, as plain values: controller, brokers, leaders, ISRs."""

from dataclasses import dataclass
from typing import Protocol

from model.roles import NodeId, Partition


class Unseen(Exception):
    """ZooKeeper could not be asked, so nothing is known just now."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A broker's znode, which goes with its session."""

    epoch: int
    """The broker epoch: another number for every registration."""
    session_id: int


class Sight(Protocol):
    """What can be read of a cluster's own state; each may raise :class:`Unseen`."""

    async def close(self) -> None: ...
    async def controller(self) -> NodeId | None: ...
    async def live(self) -> tuple[NodeId, ...]: ...
    async def registration(self, broker: NodeId) -> Registration | None: ...
    async def partition(self, key: str) -> Partition | None: ...
    async def partitions(self) -> tuple[Partition, ...]: ...
