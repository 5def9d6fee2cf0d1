"""Tasks that somebody answers for: none is forgotten, and none fails unheard."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Tasks:
    """What runs in the background for one owner; a task that fails is told to ``on_failure``."""

    def __init__(self, on_failure: Callable[[BaseException], None]) -> None:
        self._on_failure = on_failure
        self._running: dict[asyncio.Task[Any], None] = {}

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run this in the background."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._running[task] = None
        task.add_done_callback(self._done)
        return task

    def every(self, interval_ms: float, action: Callable[[], None]) -> None:
        """Do this again and again, the first time after one interval."""

        async def repeat() -> None:
            while True:
                await asyncio.sleep(interval_ms / 1000)
                action()

        self.start(repeat())

    def cancel(self) -> None:
        """Tell all of them to end."""
        for task in tuple(self._running):
            task.cancel()

    async def ended(self) -> None:
        """Wait until none runs."""
        while self._running:
            await asyncio.gather(*self._running, return_exceptions=True)
            await asyncio.sleep(0)  # what is done leaves the list in a turn of its own

    def __len__(self) -> int:
        return len(self._running)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._on_failure(error)
