"""A cluster under test: its nodes, its start and stop, its unexpected exits and its data."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from model.cluster_facts import ClusterFacts
from model.connection import Connection
from model.layout import Layout
from model.roles import NodeId


@runtime_checkable
class Cluster(Protocol):
    """A cluster under test, on any target."""

    @property
    def layout(self) -> Layout: ...
    @property
    def nodes(self) -> tuple[NodeId, ...]: ...
    @property
    def brokers(self) -> tuple[NodeId, ...]: ...
    def bootstrap(self, client: str | None = None) -> str:
        """Return ``host:port,…`` for clients; ``client`` selects that client's own listeners."""
        ...

    async def start(self) -> None:
        """Start; return once a controller is elected and a replicated topic can be written."""
        ...

    async def stop(self) -> None:
        """Stop and remove all nodes, whatever state they are in."""
        ...

    async def recover(self, timeout_s: float) -> bool:
        """Start the nodes that are down; wait until every partition has a leader and a full ISR.

        Call this after all faults are healed. Returns whether the cluster reached that state in
        time.
        """
        ...


class Ended(Protocol):
    """A process of the cluster that exited although the harness had not stopped it."""

    @property
    def node(self) -> NodeId: ...
    @property
    def status(self) -> int:
        """Its exit status; negative if a signal ended it."""
        ...

    @property
    def last_line(self) -> str: ...


@runtime_checkable
class HasExits(Protocol):
    @property
    def unexpected_exits(self) -> Sequence[Ended]:
        """All unexpected exits since the start, in order."""
        ...


@runtime_checkable
class HasFacts(Protocol):
    async def facts(self, topics: Sequence[str]) -> ClusterFacts | None:
        """Return what the cluster reports about itself and these topics, past all faults.

        Returns ``None`` if its configuration is completely that of the plan.
        """
        ...


@runtime_checkable
class HasConnection(Protocol):
    """A cluster that its clients reach with settings or names of its own."""

    def connection(self) -> Connection: ...


@runtime_checkable
class HasTrace(Protocol):
    """A simulated cluster, whose runs repeat themselves exactly."""

    def trace(self) -> str:
        """Return the hash of all steps and messages so far, in hexadecimal."""
        ...


@runtime_checkable
class HasData(Protocol):
    def settle_data(self, *, keep: bool) -> None:
        """Leave the nodes' data in the run's folder, or remove them; their logs stay.

        To be called after :meth:`Cluster.stop`. Data that are not kept need never be written.
        """
        ...
