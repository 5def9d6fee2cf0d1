"""Which ends of nodes are no crash, because a fault explains them.

A broker whose disk is full ends, as Kafka does when its last log directory fails, and says so by
its exit status; one that is squeezed may be ended by the kernel. Both are expected from the fault
until a moment after it, and nothing else is.
"""

import math
from collections.abc import Callable
from typing import Literal

from broker_impl.node.ending import STORAGE_FAILED
from harness.cluster.node import Exit
from model.roles import NodeId

Reason = Literal["disk", "memory"]

AFTER_S = 3.0
"""How long after a fault is over a node may still end of it."""


class Excuses:
    """What is expected of whom at the moment."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` in seconds."""
        self._clock = clock
        self._until_s: dict[tuple[NodeId, Reason], float] = {}

    def begin(self, node: NodeId, reason: Reason) -> None:
        """From now on it may end for this reason."""
        self._until_s[node, reason] = math.inf

    def end(self, node: NodeId, reason: Reason) -> None:
        """Soon it may not; changes nothing when it might not before."""
        if self.expects(node, reason):
            self._until_s[node, reason] = self._clock() + AFTER_S

    def cover(self, end: Exit, *, oom_killed: bool) -> bool:
        """Does a fault explain this end?"""
        if self._holds(end.node, "memory") and oom_killed:
            return True
        return self._holds(end.node, "disk") and end.status == STORAGE_FAILED

    def expects(self, node: NodeId, reason: Reason) -> bool:
        """Has it begun, and not ended?"""
        return self._until_s.get((node, reason)) == math.inf

    def _holds(self, node: NodeId, reason: Reason) -> bool:
        return self._clock() <= self._until_s.get((node, reason), -math.inf)
