"""Waits for another process by polling, because it sends this process no event."""

import asyncio
from collections.abc import Awaitable, Callable

EVERY_S = 0.05


async def until(condition: Callable[[], Awaitable[bool]], every_s: float = EVERY_S) -> None:
    """Return once the condition holds; the caller limits the time (``asyncio.timeout``)."""
    while not await condition():  # noqa: ASYNC110 - no event of ours: the change is elsewhere
        await asyncio.sleep(every_s)
