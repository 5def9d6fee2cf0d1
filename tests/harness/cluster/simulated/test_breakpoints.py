"""Breakpoints hold the processes that reach them, in a world of two hosts."""

import asyncio

import pytest

from broker_impl import failpoints
from harness.cluster.simulated.breakpoints import Breakpoints
from harness.simulation.world import World

POINT = failpoints.ISR_WRITE


def test_a_node_is_held_and_no_other() -> None:
    """A process at a breakpoint is held until its release; other nodes and later passes are not."""
    with World(1) as world:
        breakpoints = Breakpoints(world)
        passed: list[tuple[str, float]] = []

        async def come() -> None:
            for _ in range(2):
                await asyncio.sleep(0.1)
                await breakpoints.hold(POINT)
                assert world.current is not None
                passed.append((world.current.host.name, world.now))

        async def main() -> None:
            breakpoints.halt("a", POINT)
            await asyncio.sleep(1.0)
            assert (breakpoints.waiting("a", POINT), breakpoints.waiting("b", POINT)) == (1, 0)
            breakpoints.release("a", POINT)
            assert breakpoints.waiting("a", POINT) == 0
            await asyncio.sleep(1.0)

        for name in ("a", "b"):
            world.host(name).spawn(come)
        world.run(world.host("clients").spawn(main))
        assert [name for name, _ in passed] == ["b", "b", "a", "a"]
        assert [at > 1.0 for _, at in passed] == [False, False, True, True]


def test_paths_wait_as_long_as_drawn() -> None:
    """Without a breakpoint, a code path waits for as long as is drawn for its node and point."""
    with World(1) as world:
        asked: list[tuple[str, str]] = []

        def waits(node: str, point: str) -> float:
            asked.append((node, point))
            return 0.5 if node == "a" else 0.0

        breakpoints = Breakpoints(world, waits)
        passed: dict[str, float] = {}

        async def come() -> None:
            assert world.current is not None
            name = world.current.host.name
            await breakpoints.hold(POINT)
            passed[name] = world.now

        async def main() -> None:
            breakpoints.halt("c", POINT)
            await asyncio.sleep(1.0)
            breakpoints.release_all()

        for name in ("a", "b", "c"):
            world.host(name).spawn(come)
        world.run(world.host("clients").spawn(main))
        assert passed["b"] < 0.1 < passed["a"] < 0.6
        assert sorted(asked) == [("a", POINT), ("b", POINT)]


def test_the_dead_wait_nowhere() -> None:
    """A node that is killed at a breakpoint counts as held no more, and its release is harmless."""
    with World(1) as world:
        breakpoints = Breakpoints(world)

        async def come() -> None:
            await breakpoints.hold(POINT)

        async def main() -> None:
            breakpoints.halt("a", POINT)
            process = world.host("a").spawn(come)
            await asyncio.sleep(0.1)
            assert breakpoints.waiting("a", POINT) == 1
            process.kill()
            assert breakpoints.waiting("a", POINT) == 0
            breakpoints.release_all()

        world.run(world.host("clients").spawn(main))


def test_points_have_names() -> None:
    """An unknown breakpoint is an error that names the existing ones."""
    with World(1) as world, pytest.raises(ValueError, match=r"no point is called x; there are isr"):
        Breakpoints(world).halt("a", "x")
