"""Background tasks with an owner: none is garbage-collected, and none fails silently."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from broker_impl.errors import DirectoryFailed


class Tasks:
    """The background tasks of one owner; ``on_failure`` receives the error of a task that fails."""

    def __init__(self, on_failure: Callable[[BaseException], None]) -> None:
        self._on_failure = on_failure
        self._running: dict[asyncio.Task[Any], None] = {}

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run this coroutine in the background."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._running[task] = None
        task.add_done_callback(self._done)
        return task

    def every(self, interval_ms: float, action: Callable[[], None]) -> None:
        """Run this action periodically, the first time after one interval.

        After the failure of a data directory, which may not end the owner, the action goes on.
        """

        async def repeat() -> None:
            while True:
                await asyncio.sleep(interval_ms / 1000)
                try:
                    action()
                except DirectoryFailed as error:
                    self._on_failure(error)

        self.start(repeat())

    def cancel(self) -> None:
        """Cancel all tasks."""
        for task in tuple(self._running):
            task.cancel()

    async def ended(self) -> None:
        """Wait until no task runs."""
        while self._running:
            await asyncio.gather(*self._running, return_exceptions=True)
            await asyncio.sleep(0)  # a finished task leaves the list in the next turn of the loop

    def __len__(self) -> int:
        return len(self._running)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._on_failure(error)
