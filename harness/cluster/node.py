"""A node as the cluster sees it: something that is started, ended and frozen, and leaves a log.

What it is made of, a process of this machine or a container, is the target's business.
"""

from dataclasses import dataclass
from typing import Protocol

from model.roles import NodeId


class ClusterError(Exception):
    """The cluster cannot be had, or does not do as it is told; the message says what and why."""


class NodeError(ClusterError):
    """A node that did not do as it was told; the message says what it did instead."""


@dataclass(frozen=True, slots=True)
class Exit:
    """A node that ended although nobody had ended it: evidence of a crash."""

    node: NodeId
    status: int
    """Negative: the signal that ended it."""
    last_line: str
    """What it said last."""


class Node(Protocol):
    """One member of a cluster, started as often as need be; its log is kept over restarts."""

    async def start(self) -> None:
        """A new life; :class:`NodeError` when the last one still goes on."""
        ...

    async def kill(self) -> None:
        """SIGKILL, and wait until it has gone; nothing to do when it has."""
        ...

    async def stop(self, timeout_s: float) -> int:
        """SIGTERM; the exit status, that of SIGKILL (-9) when it did not end in time.

        One that was not running has the exit status of its last end, 0 if never started.
        """
        ...

    async def pause(self) -> None:
        """Freeze it; :class:`NodeError` when nothing runs."""
        ...

    async def resume(self) -> None:
        """Let it go on; :class:`NodeError` when nothing runs."""
        ...

    async def is_up(self) -> bool:
        """Is it there (frozen or not)?"""
        ...

    async def is_paused(self) -> bool: ...

    async def last_line(self) -> str:
        """What it said last, empty if nothing."""
        ...
