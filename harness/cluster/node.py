"""The interface of a node: it can be started, stopped and frozen, and writes a log.

Whether it is a process of this machine or a container is decided by the target.
"""

from dataclasses import dataclass
from typing import Protocol

from model.roles import NodeId


class ClusterError(Exception):
    """The cluster cannot start, or does not do what was asked; the message says what and why."""


class NodeError(ClusterError):
    """A node did not do what was asked of it; the message says what it did instead."""


@dataclass(frozen=True, slots=True)
class Exit:
    """An unexpected exit of a node: evidence of a crash."""

    node: NodeId
    status: int
    """The exit status; a negative one is the signal that ended the node."""
    last_line: str
    """The last line of its log."""


class Node(Protocol):
    """One member of a cluster, which can be restarted; its log is kept over restarts."""

    async def start(self) -> None:
        """Start the node; :class:`NodeError` if it still runs."""
        ...

    async def kill(self) -> None:
        """SIGKILL, and wait until the node has ended; do nothing if it has ended already."""
        ...

    async def stop(self, timeout_s: float) -> int:
        """SIGTERM; return the exit status, that of SIGKILL (-9) if it did not end in time.

        If the node does not run, return the status of its last exit, 0 if there was none.
        """
        ...

    async def pause(self) -> None:
        """Freeze the node; :class:`NodeError` if it does not run."""
        ...

    async def resume(self) -> None:
        """Resume the node; :class:`NodeError` if it does not run."""
        ...

    async def is_up(self) -> bool:
        """Return whether the node runs (frozen or not)."""
        ...

    async def is_paused(self) -> bool: ...

    async def last_line(self) -> str:
        """The last line of its log, empty if there is none."""
        ...
