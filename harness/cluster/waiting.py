"""Waiting for another process: it sends us no event, so we look again and again."""

import asyncio
from collections.abc import Awaitable, Callable

EVERY_S = 0.05


async def until(condition: Callable[[], Awaitable[bool]], every_s: float = EVERY_S) -> None:
    """Returns once the condition holds; whoever calls has the clock (``asyncio.timeout``)."""
    while not await condition():  # noqa: ASYNC110 - no event of ours: the change is elsewhere
        await asyncio.sleep(every_s)
