"""Breakpoints: holds a simulated node at a named point of its code until it is released."""

import asyncio
from collections.abc import Callable

from broker_impl import failpoints
from harness.simulation.process import Process
from harness.simulation.world import World
from model.roles import NodeId

Place = tuple[NodeId, str]
"""A node, and the name of a point."""
Waits = Callable[[NodeId, str], float]
"""Returns how many seconds a code path of a node waits at a point that is no breakpoint."""


class Breakpoints:
    """The active breakpoints; :meth:`hold` is passed to :func:`broker_impl.failpoints.hold_by`."""

    def __init__(self, world: World, waits: Waits = lambda node, point: 0.0) -> None:
        self._world = world
        self._waits = waits
        self._held: dict[Place, list[tuple[Process, asyncio.Future[None]]]] = {}

    def halt(self, node: NodeId, point: str) -> None:
        """Hold every task of the node that reaches the point. ``ValueError``: no such point."""
        if point not in failpoints.POINTS:
            raise ValueError(
                f"no point is called {point}; there are {', '.join(failpoints.POINTS)}"
            )
        self._held.setdefault((node, point), [])

    def waiting(self, node: NodeId, point: str) -> int:
        """How many tasks of the node wait at the point, without those of processes that ended."""
        held = self._held.get((node, point), [])
        return sum(not process.is_done and not future.done() for process, future in held)

    def release(self, node: NodeId, point: str) -> None:
        """Resume all tasks that wait at the point, and remove the breakpoint."""
        for process, future in self._held.pop((node, point), []):
            if not process.is_done:
                process.call(_go_on, future)

    def release_all(self) -> None:
        """Remove all breakpoints."""
        for place in list(self._held):
            self.release(*place)

    async def hold(self, point: str) -> None:
        """Wait at a breakpoint, or as long as is drawn; called in the process of a broker."""
        process = self._world.current
        assert process is not None, "a broker runs in a simulated process"
        node = process.host.name
        held = self._held.get((node, point))
        if held is None:
            seconds = self._waits(node, point)
            if seconds > 0:
                await asyncio.sleep(seconds)
        else:
            future = asyncio.get_running_loop().create_future()
            held.append((process, future))
            await future


def _go_on(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
