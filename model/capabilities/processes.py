"""Capabilities that concern the processes of nodes: signals, breakpoints, CPU and memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from model.roles import NodeId


@runtime_checkable
class HasProcesses(Protocol):
    """A target that can measure which nodes run and which are frozen, whatever froze them."""

    async def is_running(self, node: NodeId) -> bool: ...
    async def is_paused(self, node: NodeId) -> bool: ...


@runtime_checkable
class CanProbe(Protocol):
    """A target that can ask every node for a sign of life, past all faults of links."""

    async def unresponsive(self, within_s: float) -> tuple[NodeId, ...]:
        """Return the nodes that run, are not paused, and answer no probe within this time."""
        ...


@runtime_checkable
class CanKill(Protocol):
    async def kill(self, node: NodeId) -> None: ...
    async def start_node(self, node: NodeId) -> None: ...
    async def is_running(self, node: NodeId) -> bool: ...


@runtime_checkable
class CanRestart(Protocol):
    async def stop_node(self, node: NodeId) -> int:
        """Stop the node with SIGTERM; return its exit status, negative if it had to be killed."""
        ...

    async def start_node(self, node: NodeId) -> None: ...
    async def is_running(self, node: NodeId) -> bool: ...


@runtime_checkable
class CanPause(Protocol):
    async def pause(self, node: NodeId) -> None: ...
    async def resume(self, node: NodeId) -> None: ...
    async def is_paused(self, node: NodeId) -> bool: ...


@runtime_checkable
class CanBreakAtPoint(Protocol):
    """A target that can hold a node at a named point of its code; its other tasks continue."""

    @classmethod
    def breakpoints(cls) -> Sequence[str]:
        """Return the names of all points."""
        ...

    async def halt(self, node: NodeId, point: str) -> None:
        """Hold every task of the node that reaches this point from now on.

        Raises ``ValueError`` for an unknown point.
        """
        ...

    async def halted(self, node: NodeId, point: str) -> int:
        """Measure how many tasks of the node are waiting at the point."""
        ...

    async def go_on(self, node: NodeId, point: str) -> None:
        """Resume all tasks that wait at the point, and hold no further ones there."""
        ...

    async def all_go_on(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """A node's resource limits, and how often it reached them."""

    cpus: float
    """The current CPU limit, as the container engine reports it; 0 means none."""
    memory_bytes: int
    """The current memory limit, as the container engine reports it; 0 means none."""
    throttled_periods: int
    """The number of scheduler periods since the node's start in which its CPU was throttled."""
    memory_used_bytes: int
    """The memory in use; 0 while the node is down."""
    memory_met: int
    """Grows whenever the kernel reclaims pages because the node reached its memory limit.

    Counted since the node's start; 0 while it is down.
    """
    oom_killed: bool
    """True if the kernel's OOM killer ended the node's present or most recent process."""


@runtime_checkable
class CanLimitResources(Protocol):
    """A target that can reduce the CPU and the memory of a running node."""

    async def limit_cpu(self, node: NodeId, cpus: float) -> None: ...
    async def limit_memory(self, node: NodeId, bytes_: int) -> None:
        """Limit the node's memory.

        An exit by the OOM killer is expected until :meth:`lift_limits`.
        """
        ...

    async def lift_limits(self, node: NodeId) -> None:
        """Restore both limits; has no effect on a node whose limits are unchanged."""
        ...

    async def resource_usage(self, node: NodeId) -> ResourceUsage:
        """Measure the node's limits and usage, also while the node is down."""
        ...
