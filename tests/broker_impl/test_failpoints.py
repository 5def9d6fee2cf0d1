"""Points in the code at which a test can hold the broker."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_impl import failpoints


@pytest.fixture(autouse=True)
def _nobody_holds() -> Iterator[None]:
    yield
    failpoints.hold_by(None)


async def test_nobody_is_held_by_default() -> None:
    """Without a holder, a point is passed without a turn of the event loop."""
    turns: list[str] = []
    asyncio.get_running_loop().call_soon(turns.append, "a turn")
    await failpoints.point(failpoints.ISR_WRITE)
    assert turns == []


async def test_whoever_holds_is_told_the_name() -> None:
    """The holder gets the name of the point, and the broker waits for the holder."""
    came: list[str] = []
    go_on = asyncio.Event()

    async def hold(name: str) -> None:
        came.append(name)
        await go_on.wait()

    failpoints.hold_by(hold)
    held = asyncio.create_task(failpoints.point(failpoints.CONTROLLER_WRITE))
    await asyncio.sleep(0)
    assert (came, held.done()) == ([failpoints.CONTROLLER_WRITE], False)
    go_on.set()
    await held


def test_every_point_stands_somewhere() -> None:
    """Every point occurs in the code."""
    folder = Path(failpoints.__file__).parent
    code = "".join(path.read_text() for path in sorted((folder / "node").rglob("*.py")))
    names = [name for name, value in vars(failpoints).items() if value in failpoints.POINTS]
    assert len(names) == len(failpoints.POINTS)
    for name in names:
        assert f"await failpoints.point(failpoints.{name})" in code
