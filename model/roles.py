"""What the harness asks of others: a client of a workload, the capabilities of a cluster.

A nemesis asks for the capabilities it needs; a cluster offers those it has; a plan that asks for a
fault which nobody offers is refused. All of them are ``runtime_checkable``: ``isinstance`` asks.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from model.op import Op

NodeId = str
"""``broker-1`` … ``broker-N``, ``zookeeper``; the clients as one party are ``clients``."""

CLIENTS: NodeId = "clients"
ZOOKEEPER: NodeId = "zookeeper"


def broker(number: int) -> NodeId:
    """The node id of the broker with this ``broker.id`` (they start at 1)."""
    return f"broker-{number}"


def client(name: str) -> NodeId:
    """The party of a client that has listeners, and so links, of its own."""
    return f"{CLIENTS}-{name}"


class Client(Protocol):
    """One logical process of a workload; lives until it closes or an operation ends in doubt."""

    @property
    def alive(self) -> bool:
        """False once it must not act again, although no operation of it ended in doubt."""
        ...

    async def open(self) -> None: ...
    async def invoke(self, op: Op) -> Op:
        """Carry the operation out. The answer is ``op`` with another type, value and error;
        index and time are the interpreter's to set."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Cluster(Protocol):
    """A cluster under test, whatever it is made of."""

    @property
    def nodes(self) -> tuple[NodeId, ...]: ...
    @property
    def brokers(self) -> tuple[NodeId, ...]: ...
    def bootstrap(self, client: str | None = None) -> str:
        """``host:port,…`` for clients; a name selects that client's own listeners."""
        ...

    async def start(self) -> None:
        """Up and ready: a controller is elected and a replicated topic can be written."""
        ...

    async def stop(self) -> None:
        """Everything ended and removed, whatever state it is in."""
        ...

    async def recover(self, timeout_s: float) -> bool:
        """After all faults are healed: every node up, every partition led with a full ISR?"""
        ...


@runtime_checkable
class CanKill(Protocol):
    async def kill(self, node: NodeId) -> None: ...
    async def start_node(self, node: NodeId) -> None: ...
    async def is_running(self, node: NodeId) -> bool: ...


@runtime_checkable
class CanRestart(Protocol):
    async def stop_node(self, node: NodeId) -> int:
        """A clean stop (SIGTERM); the exit status, negative when it had to be killed."""
        ...

    async def start_node(self, node: NodeId) -> None: ...
    async def is_running(self, node: NodeId) -> bool: ...


@runtime_checkable
class CanPause(Protocol):
    async def pause(self, node: NodeId) -> None: ...
    async def resume(self, node: NodeId) -> None: ...
    async def is_paused(self, node: NodeId) -> bool: ...


@runtime_checkable
class CanCut(Protocol):
    """Links are directed: cutting ``a → b`` stops the bytes from a to b, whoever connected."""

    async def cut(self, source: NodeId, target: NodeId) -> None: ...
    async def heal(self, source: NodeId, target: NodeId) -> None: ...
    async def heal_all(self) -> None: ...
    async def is_cut(self, source: NodeId, target: NodeId) -> bool | None:
        """Measured: was a probe through the links between the two left unanswered, while the
        probed node itself answered past them? ``None`` when there is no telling: that node is
        down, or another fault makes the links too slow to wait for."""
        ...


@runtime_checkable
class CanRefuse(Protocol):
    """Links can also be closed: a connection is reset at once, a new one refused."""

    async def refuse(self, one: NodeId, other: NodeId) -> None: ...
    async def accept(self, one: NodeId, other: NodeId) -> None: ...
    async def is_refused(self, one: NodeId, other: NodeId) -> bool:
        """Measured: nobody accepts a connection on the links between the two."""
        ...


@runtime_checkable
class CanSlow(Protocol):
    """Links can be slow: bytes from source to target arrive later, all of them, in order."""

    async def slow(self, source: NodeId, target: NodeId, latency_s: float) -> None: ...
    async def quicken(self, source: NodeId, target: NodeId) -> None: ...
    async def round_trip_s(self, source: NodeId, target: NodeId) -> float | None:
        """Measured: the quickest answer to a probe over the links between the two, in seconds;
        ``None`` for no answer."""
        ...


@runtime_checkable
class HasRoles(Protocol):
    async def controller(self) -> NodeId | None: ...
    async def leader(self, key: str) -> NodeId | None:
        """The leader of ``topic-partition`` as ZooKeeper has it now."""
        ...

    async def isr(self, key: str) -> tuple[NodeId, ...]:
        """The in-sync replicas of ``topic-partition`` as ZooKeeper has them now."""
        ...


class Ended(Protocol):
    """A process of the cluster that ended although nobody had asked it to."""

    @property
    def node(self) -> NodeId: ...
    @property
    def status(self) -> int:
        """Its exit status; negative: the signal that ended it."""
        ...

    @property
    def last_line(self) -> str: ...


@runtime_checkable
class HasExits(Protocol):
    @property
    def unexpected_exits(self) -> Sequence[Ended]:
        """All since the start, in their order."""
        ...


@runtime_checkable
class HasData(Protocol):
    def drop_data(self) -> None:
        """Remove what the nodes have stored, keep their logs; after :meth:`Cluster.stop`."""
        ...
