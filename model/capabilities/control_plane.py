"""What ZooKeeper and the controller know of a cluster, and what they can be asked to change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from model.roles import Coordinated, NodeId


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition's assignment and state, as the controller last wrote them."""

    key: str
    """``topic-partition``."""
    replicas: tuple[NodeId, ...]
    """The assigned replicas, the preferred leader first, with those being added or removed."""
    leader: NodeId | None
    leader_epoch: int
    isr: tuple[NodeId, ...]
    adding: tuple[NodeId, ...] = ()
    removing: tuple[NodeId, ...] = ()

    @property
    def topic(self) -> str:
        """The topic of the partition."""
        return self.key.rpartition("-")[0]

    @property
    def target(self) -> tuple[NodeId, ...]:
        """The assigned replicas once the reassignment in progress, if any, is complete."""
        return tuple(node for node in self.replicas if node not in self.removing)

    @property
    def is_moving(self) -> bool:
        """True while a reassignment adds or removes replicas."""
        return bool(self.adding or self.removing)

    @property
    def is_whole(self) -> bool:
        """True if it has a leader, all its replicas are in sync and no reassignment is running."""
        in_sync = sorted(self.isr) == sorted(self.replicas)
        return self.leader is not None and in_sync and not self.is_moving


@runtime_checkable
class HasHealth(Protocol):
    """The health of a cluster according to ZooKeeper's current data."""

    async def is_whole(self) -> bool:
        """Return whether the cluster is completely healthy.

        It is if every broker is registered, a controller is elected, and every partition has a
        leader, a full ISR and no reassignment in progress.
        """
        ...

    async def registration(self, node: NodeId) -> int | None:
        """Return the epoch of a broker's registration, which differs for every session.

        Returns ``None`` for ZooKeeper and for a broker that is not registered.
        """
        ...

    async def in_sync_min(self, node: NodeId) -> int:
        """Return the size of the smallest ISR that contains the broker; 0 when none does.

        Returns 1 when ZooKeeper cannot be read, because the broker may be the only in-sync replica.
        """
        ...


@runtime_checkable
class HasRoles(Protocol):
    async def controller(self) -> NodeId | None: ...
    async def leader(self, key: str) -> NodeId | None:
        """Return the current leader of ``topic-partition`` according to ZooKeeper."""
        ...

    async def isr(self, key: str) -> tuple[NodeId, ...]:
        """Return the current in-sync replicas of ``topic-partition`` according to ZooKeeper."""
        ...

    async def coordinator(self, of: Coordinated, name: str) -> NodeId | None:
        """Return the coordinator of a group or a transactional id.

        It is the current leader, according to ZooKeeper, of the partition of the internal topic
        that the name maps to.
        """
        ...


EnsembleRole = Literal["leader", "follower", "observer"]
"""The role of a ZooKeeper server; a server that is alone leads."""


@runtime_checkable
class HasEnsemble(Protocol):
    """A cluster whose ZooKeeper servers say which role they have."""

    async def zookeepers(self) -> Mapping[NodeId, EnsembleRole]:
        """Return the roles of the servers that answer and have one."""
        ...


@runtime_checkable
class CanAdminister(Protocol):
    """A target that can send an operator's requests to the controller.

    The results map each partition to the name of an error, ``NONE`` for success. When no controller
    answers, the result has no entries.
    """

    async def partitions(self) -> Sequence[Partition]:
        """Return all partitions of all topics according to ZooKeeper; none if it does not
        answer."""
        ...

    async def reassign(self, wanted: Mapping[str, Sequence[NodeId] | None]) -> Mapping[str, str]:
        """Reassign partitions to these replicas; ``None`` cancels a partition's reassignment."""
        ...

    async def elect_preferred(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Make the first replica of each of these partitions its leader."""
        ...


@runtime_checkable
class CanExpire(Protocol):
    """A target that can expire a broker's ZooKeeper session while the broker itself is healthy."""

    async def expire_session(self, node: NodeId) -> bool:
        """Expire the broker's session, and return whether it has ended.

        Returns False for a node without a session, and when ZooKeeper does not answer.
        """
        ...
