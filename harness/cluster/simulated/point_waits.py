"""Waits of random length at the points of brokers' code where the order of two actions is open.

A race rarely shows if both actions take almost no time. A wait at such a point leaves time for the
other action: for an order of a controller while a coordinator loads, or for a late batch while the
markers of its transaction have not been sent. A slow disk, a pause of the collector or the
operating system's scheduler may cause the same waits. FoundationDB calls this ``BUGGIFY``.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from model.roles import NodeId

REST_S: Final = 1.0
"""How long nothing waits at a point of a node after a wait there, if many paths reach it."""


class PointWaits:
    """Draws how long code paths wait at points; the length is distributed uniformly.

    Args:
        seed: of the draws.
        options: those of `simulated_options`: which share of code paths waits, and how long.
        now_s: returns the time of the world, in seconds.
        is_over: returns whether no code path waits any more.
    """

    def __init__(
        self,
        seed: int,
        options: Mapping[str, Any],
        now_s: Callable[[], float],
        is_over: Callable[[], bool],
    ) -> None:
        self._rng = random.Random(f"{seed} points")
        self._share = float(options["point_share"])
        self._longest_s = float(options["point_ms"]) / 1000
        self._now_s = now_s
        self._is_over = is_over
        self._next_at: dict[tuple[NodeId, str], float] = {}

    def __call__(self, node: NodeId, point: str) -> float:
        """Return how long a code path of a node that has reached a point waits, in seconds."""
        if not self._share or self._is_over():
            return 0.0
        now = self._now_s()
        if now < self._next_at.get((node, point), 0.0) or self._rng.random() >= self._share:
            return 0.0
        seconds = self._rng.random() * self._longest_s
        self._next_at[node, point] = now + seconds + REST_S
        return seconds
