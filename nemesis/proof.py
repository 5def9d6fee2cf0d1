"""Proof by probes, which need somebody at the other end who would answer."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

Told = TypeVar("Told")

TRIES = 6
BETWEEN_S = 0.5


async def told(probe: Callable[[], Awaitable[Sequence[Told | None]]]) -> Sequence[Told | None]:
    """What the probes tell, as soon as one of them tells anything (``None`` is nothing).

    A node that has just been started may not answer yet, and is given a moment.
    """
    answers = await probe()
    for _ in range(TRIES - 1):
        if any(answer is not None for answer in answers):
            break
        await asyncio.sleep(BETWEEN_S)
        answers = await probe()
    return answers
