"""Exits of nodes that are no crash, because an active fault explains them.

A broker whose disk is full ends, as Kafka does when its last log directory fails, with an exit
status of its own. So may a broker one of whose directories fails. The kernel's OOM killer may end a
broker whose memory is limited. These exits are expected from the fault until a moment after it. No
other exit is.
"""

import math
from collections.abc import Callable
from typing import Literal

from broker_impl.node.exit_status import STORAGE_FAILED
from harness.cluster.node import Exit
from model.roles import NodeId

Reason = Literal["disk", "directory", "memory"]

AFTER_S = 3.0
"""How long after the end of a fault a node may still exit because of it."""


class ExpectedExits:
    """The exits that are currently expected, by node and reason."""

    def __init__(
        self, clock: Callable[[], float], storage_failed_status: int = STORAGE_FAILED
    ) -> None:
        """``clock`` returns seconds; the status is that of a broker whose disk has failed."""
        self._storage_failed_status = storage_failed_status
        self._clock = clock
        self._until_s: dict[tuple[NodeId, Reason], float] = {}

    def begin(self, node: NodeId, reason: Reason) -> None:
        """Expect exits of ``node`` for this reason from now on."""
        self._until_s[node, reason] = math.inf

    def end(self, node: NodeId, reason: Reason) -> None:
        """Expect them for :data:`AFTER_S` more; do nothing if they were not expected."""
        if self.expects(node, reason):
            self._until_s[node, reason] = self._clock() + AFTER_S

    def cover(self, end: Exit, *, oom_killed: bool) -> bool:
        """Return whether a fault explains this exit."""
        if self._holds(end.node, "memory") and oom_killed:
            return True
        storage: tuple[Reason, ...] = ("disk", "directory")
        failed = any(self._holds(end.node, reason) for reason in storage)
        return failed and end.status == self._storage_failed_status

    def expects(self, node: NodeId, reason: Reason) -> bool:
        """Return whether the fault has begun and not ended."""
        return self._until_s.get((node, reason)) == math.inf

    def _holds(self, node: NodeId, reason: Reason) -> bool:
        return self._clock() <= self._until_s.get((node, reason), -math.inf)
