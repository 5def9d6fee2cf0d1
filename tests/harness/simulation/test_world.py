"""Simulated programs talk, fail, end and are killed without taking real time."""

import asyncio
import gc
import time
import weakref
from itertools import pairwise
from typing import Any

import pytest

from harness.simulation.deadlock import Deadlock, Livelock, OutOfTime
from harness.simulation.process import ProcessKilled
from harness.simulation.world import Unheard, World


def test_two_programs_talk(pair: Any) -> None:
    """Streams over the simulated network carry what was written."""
    pair.echo()
    assert pair.run(lambda: pair.ask(b"hello")) == b"hello"
    assert 0 < pair.world.now < 0.1


def test_killed_server_is_gone(pair: Any) -> None:
    """Peers of a killed process see its end of the stream, and its port refuses connects."""
    server = pair.echo()

    async def main() -> None:
        reader, writer = await pair.connect()
        writer.write(b"x")
        await reader.readexactly(1)
        server.kill()
        assert await reader.read() == b""
        with pytest.raises(ConnectionRefusedError):
            await pair.connect()
        writer.close()

    pair.run(main)
    with pytest.raises(ProcessKilled):
        server.result()


def test_cut_swallows(pair: Any) -> None:
    """Over a cut no answer comes; after the heal, TCP retransmits what it has kept."""
    pair.echo()
    network = pair.world.network

    async def main() -> None:
        reader, writer = await pair.connect()
        network.cut("beta", "alpha")
        writer.write(b"late")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await reader.readexactly(4)
        network.heal("beta", "alpha")
        assert await reader.readexactly(4) == b"late"
        writer.close()

    pair.run(main)
    assert 5 < pair.world.now < 13, "the next retransmission is at most as far off as the last one"


def test_hours_take_no_time(pair: Any) -> None:
    """When the world is idle, time jumps to the next timer."""
    began = time.process_time()
    pair.run(lambda: asyncio.sleep(36_000), limit_s=40_000)
    assert pair.world.now >= 36_000
    assert time.process_time() - began < 2


def test_time_advances_with_every_step(pair: Any) -> None:
    """Each step of a process advances time, so that loops that compare times strictly end."""

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        times = []
        for _ in range(50):
            times.append(loop.time())
            await asyncio.sleep(0)
        return times

    times = pair.run(main)
    steps = [later - earlier for earlier, later in pairwise(times)]
    assert all(1e-6 <= step <= 21e-6 for step in steps)
    assert len(set(steps)) > 40


def test_callbacks_are_first_in_first_out(pair: Any) -> None:
    """Within a process, callbacks run in asyncio's order."""

    async def main() -> list[int]:
        seen: list[int] = []
        for number in range(100):
            asyncio.get_running_loop().call_soon(seen.append, number)
        await asyncio.sleep(0)
        return seen

    assert pair.run(main) == list(range(100))


def test_processes_interleave_by_the_seed() -> None:
    """The order of processes at one time depends on the seed only."""

    def order(seed: int) -> str:
        seen: list[str] = []

        async def main(name: str) -> None:
            for _ in range(20):
                seen.append(name)
                await asyncio.sleep(0)

        with World(seed) as world:
            host = world.host("alpha")
            processes = [host.spawn(lambda name=name: main(name)) for name in "abc"]  # type: ignore[misc]
            for process in processes:
                world.run(process)
        return "".join(seen)

    assert order(1) == order(1)
    assert len({order(seed) for seed in range(10)}) == 10


def test_deadlock_names_who_waits(pair: Any) -> None:
    """When no event can occur any more, the error names every waiting task and its place."""

    async def waits_for_ever() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(waits_for_ever(), name="patience")

    pair.alpha.spawn(waits_for_ever, "sleeper")
    with pytest.raises(Deadlock) as told:
        pair.run(main)
    text = str(told.value)
    assert "beta: patience at" in text
    assert "test_world.py" in text
    assert "in test_deadlock_names_who_waits.<locals>.waits_for_ever" in text
    assert "sleeper: main at" in text


def test_livelock_names_who_spins() -> None:
    """When time hardly advances over many steps, the error names the tasks that are ready."""

    async def spin() -> None:
        while True:  # noqa: ASYNC110 - no task would set an event
            await asyncio.sleep(0)

    with World(1, busy_steps_max=30_000) as world:
        process = world.host("alpha").spawn(spin)
        with pytest.raises(
            Livelock, match=r"40000 callbacks ran without an idle moment(.|\n)*alpha: .*spin"
        ):
            world.run(process)


def test_out_of_time_names_who_waits(pair: Any) -> None:
    """A run that exceeds its time limit ends with an error that names the waiting tasks."""

    async def main() -> None:
        while True:  # noqa: ASYNC110 - no task would set an event
            await asyncio.sleep(1)

    with pytest.raises(OutOfTime, match=r"beta: main at .*test_world.py"):
        pair.run(main, limit_s=30)
    assert 30 < pair.world.now < 32


def test_failure_of_a_task_is_told() -> None:
    """A task whose exception is never retrieved fails the world."""

    async def fails() -> None:
        raise ValueError("nobody hears")

    async def main() -> None:
        task = asyncio.create_task(fails())
        await asyncio.sleep(1)
        del task

    with pytest.raises(Unheard, match="nobody hears"), World(1) as world:
        world.run(world.host("alpha").spawn(main))


def _divide() -> float:
    return 1 / 0


def test_failure_of_a_callback_is_told(pair: Any) -> None:
    """An exception in a callback is kept until `take_failures`, which returns it once."""

    async def main() -> None:
        asyncio.get_running_loop().call_soon(_divide)
        await asyncio.sleep(1)

    pair.run(main)
    (failure,) = pair.world.take_failures()
    assert isinstance(failure.exception, ZeroDivisionError)
    assert failure.message == "Exception in callback _divide"
    assert failure.process == "beta"
    assert pair.world.take_failures() == []


def test_failure_of_main_is_told_once(pair: Any) -> None:
    """An exception of main is raised with its result, or else is a failure of the world."""

    async def main() -> None:
        raise ValueError("main")

    with pytest.raises(ValueError, match="main"):
        pair.run(main)
    pair.alpha.spawn(main)
    pair.run(lambda: asyncio.sleep(1))
    assert "main failed" in str(pair.world.take_failures()[0])


def test_a_process_ends_like_asyncio_run(pair: Any) -> None:
    """When main has ended, its other tasks are cancelled and may clean up while time passes."""
    seen: list[str] = []

    async def background() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(1)
            seen.append("tidied up")

    async def main() -> str:
        asyncio.create_task(background())  # noqa: RUF006 - that is the point
        await asyncio.sleep(0.1)
        return "done"

    assert pair.run(main) == "done"
    assert seen == ["tidied up"]
    assert 1.1 < pair.world.now < 2


def test_nothing_of_a_killed_process_runs(pair: Any) -> None:
    """After a kill neither finally clauses nor timers of the process run."""
    seen: list[str] = []

    async def victim() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            seen.append("finally")

    process = pair.alpha.spawn(victim)

    async def main() -> None:
        await asyncio.sleep(0.5)
        process.kill()
        await asyncio.sleep(5)
        await process.ended()

    pair.run(main)
    assert process.is_done
    assert seen == []


@pytest.mark.parametrize("is_killed", [True, False])
def test_timers_of_an_ended_process_are_forgotten(pair: Any, *, is_killed: bool) -> None:
    """A timer that is due in a day does not keep the objects of its process until then."""

    class Held:
        def __call__(self) -> None: ...

    held: list[weakref.ref[Held]] = []

    async def program() -> None:
        timer = Held()
        held.append(weakref.ref(timer))
        asyncio.get_running_loop().call_later(86_400, timer)
        del timer
        await asyncio.sleep(3600 if is_killed else 1)

    async def main() -> None:
        process = pair.alpha.spawn(program)
        await asyncio.sleep(0.5)
        gc.collect()
        assert held[0]() is not None
        if is_killed:
            process.kill()
        await process.ended()
        del process
        await asyncio.sleep(1)
        gc.collect()
        assert held[0]() is None
        await asyncio.sleep(1)  # other timers still come due

    pair.run(main)


def test_paused_process_catches_up(pair: Any) -> None:
    """A stopped process does nothing; timers that came due meanwhile fire when it resumes."""
    ticks: list[float] = []

    async def ticker() -> None:
        while True:
            await asyncio.sleep(1)
            ticks.append(asyncio.get_running_loop().time())

    process = pair.alpha.spawn(ticker)

    async def main() -> None:
        await asyncio.sleep(2.5)
        process.pause()
        await asyncio.sleep(10)
        assert len(ticks) == 2
        process.resume()
        await asyncio.sleep(1.5)

    pair.run(main)
    assert len(ticks) == 4
    assert 12.5 < ticks[2] < 12.51


def test_call_runs_in_the_process(pair: Any) -> None:
    """A call into a process is a step of that process, as a signal handler is."""
    stop = asyncio.Event()

    async def main() -> float:
        await stop.wait()
        return asyncio.get_running_loop().time()

    process = pair.alpha.spawn(main)

    async def other() -> None:
        await asyncio.sleep(3)
        process.call(stop.set)
        await process.ended()

    pair.run(other)
    assert 3 < process.result() < 3.1
