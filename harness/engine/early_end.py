"""A request to end a test before its time, from an observer or from another thread's callback."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class EarlyEnd:
    """Ends the main phase of one test when it is asked to.

    ``heals`` says whether faults must be healed then: a cluster that ends with the test needs none.
    """

    def __init__(self, *, heals: bool = False) -> None:
        self.heals = heals
        self.is_asked = False
        self._task: asyncio.Task[Any] | None = None
        """The task that runs the phase."""

    def ask(self) -> None:
        """End the phase; must be called on the event loop of the test."""
        if not self.is_asked and self._task is not None:
            self._task.cancel()
        self.is_asked = True

    async def run(self, phase: Coroutine[Any, Any, None]) -> bool:
        """Run a phase of the test; return whether it reached its own end.

        The phase runs in the current task: another one would change the order of a simulation's
        events.
        """
        if self.is_asked:
            phase.close()
            return False
        task = self._task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        try:
            await phase
        except asyncio.CancelledError:
            if not self.is_asked or task.uncancel():  # it is cancelled for another reason, too
                raise
            return False
        finally:
            self._task = None
        return True
