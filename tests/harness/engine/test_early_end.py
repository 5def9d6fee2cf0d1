"""A test ends early when it is asked to, and otherwise as if nothing could ask."""

import asyncio

import pytest

from harness.engine.early_end import EarlyEnd


async def _phase(steps: list[str], wait: asyncio.Event) -> None:
    steps.append("begun")
    try:
        await wait.wait()
        steps.append("done")
    finally:
        steps.append("left")


def test_a_phase_reaches_its_end() -> None:
    """Nothing is cancelled if nothing asks."""

    async def run() -> tuple[bool, list[str]]:
        steps, wait = list[str](), asyncio.Event()
        wait.set()
        return await EarlyEnd().run(_phase(steps, wait)), steps

    assert asyncio.run(run()) == (True, ["begun", "done", "left"])


def test_a_phase_is_ended_once_it_is_asked_for() -> None:
    """The phase cleans up, and the caller goes on."""

    async def run() -> tuple[bool, list[str]]:
        steps, end = list[str](), EarlyEnd()
        asyncio.get_running_loop().call_soon(end.ask)
        asyncio.get_running_loop().call_soon(end.ask)  # a second request changes nothing
        reached = await end.run(_phase(steps, asyncio.Event()))
        await asyncio.sleep(0)
        return reached, steps

    assert asyncio.run(run()) == (False, ["begun", "left"])


def test_a_phase_does_not_begin_after_the_request() -> None:
    """The request may come while the cluster starts."""

    async def run() -> tuple[bool, list[str]]:
        steps, end = list[str](), EarlyEnd()
        end.ask()
        return await end.run(_phase(steps, asyncio.Event())), steps

    assert asyncio.run(run()) == (False, [])


@pytest.mark.parametrize("asks", [False, True])
def test_an_interrupt_is_none_of_its_requests(*, asks: bool) -> None:
    """Ctrl-C cancels the test as a whole, even in the same moment as a request."""

    async def run() -> None:
        end = EarlyEnd()
        task = asyncio.create_task(end.run(_phase([], asyncio.Event())))
        await asyncio.sleep(0)
        task.cancel()
        if asks:
            end.ask()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
