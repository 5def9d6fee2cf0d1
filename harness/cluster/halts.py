"""Holds a node of a simulated world at a named point of its code, until it may go on."""

import asyncio

from broker_impl import points
from harness.simulation.process import Process
from harness.simulation.world import World
from model.roles import NodeId

Place = tuple[NodeId, str]
"""A node, and the name of a point."""


class Halts:
    """Who is to be held where, and who is. To be handed to :func:`broker_impl.points.hold_by`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._held: dict[Place, list[tuple[Process, asyncio.Future[None]]]] = {}

    def halt(self, node: NodeId, point: str) -> None:
        """Whatever comes to this point of this node waits there. ``ValueError``: no such point."""
        if point not in points.POINTS:
            raise ValueError(f"no point is called {point}; there are {', '.join(points.POINTS)}")
        self._held.setdefault((node, point), [])

    def waiting(self, node: NodeId, point: str) -> int:
        """How many paths of its code wait there; what has ended since waits no more."""
        held = self._held.get((node, point), [])
        return sum(not process.is_done and not future.done() for process, future in held)

    def release(self, node: NodeId, point: str) -> None:
        """All who wait there go on, and nobody is held there any more."""
        for process, future in self._held.pop((node, point), []):
            if not process.is_done:
                process.call(_go_on, future)

    def release_all(self) -> None:
        """Nobody is held anywhere."""
        for place in list(self._held):
            self.release(*place)

    async def hold(self, point: str) -> None:
        """Called by the code itself, in the process that has come to the point."""
        process = self._world.current
        assert process is not None, "code runs in a process"
        held = self._held.get((process.host.name, point))
        if held is not None:
            future = asyncio.get_running_loop().create_future()
            held.append((process, future))
            await future


def _go_on(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
