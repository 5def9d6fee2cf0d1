"""A simulated process: one main coroutine and one loop; its kernel cleans up after its end."""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from harness.simulation.loop import SimLoop
from harness.simulation.stack import Stack
from harness.simulation.timeline import Timeline

Main = Callable[[], Coroutine[Any, Any, Any]]


class ProcessKilled(Exception):
    """The process has no result: it was killed, or its host lost power."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of a process that its own code did not handle."""

    at_s: float
    process: str
    message: str
    exception: BaseException | None

    def __str__(self) -> str:
        what = "" if self.exception is None else f": {self.exception!r}"
        return f"{self.at_s:.6f} {self.process}: {self.message}{what}"


class ProcessWorld(Protocol):
    """What a process asks of its world."""

    timeline: Timeline

    @property
    def now(self) -> float:
        """Virtual seconds since the world began."""

    def failed(self, failure: Failure, key: object = None) -> None:
        """Record the failure of a process that its own code cannot handle."""

    def heard(self, key: object) -> None:
        """Discard the failure recorded under ``key``: a caller has retrieved it."""

    def note(self, what: str) -> None:
        """Write a change made to the world into its trace."""


class ProcessHost(Protocol):
    """What a process asks of its host."""

    stack: Stack

    @property
    def name(self) -> str:
        """The host's name, also on the network."""

    @property
    def world(self) -> ProcessWorld:
        """The world of the host."""


class Process:
    """A process that runs from ``spawn`` until its main ends or it is killed.

    When main returns or raises, the other tasks are cancelled and awaited, as in ``asyncio.run``,
    and the kernel closes all open connections.
    """

    def __init__(self, host: ProcessHost, name: str, number: int) -> None:
        self.host = host
        self.name = name
        self.number = number
        """The process's number in its world."""
        self.is_done = False
        """Whether the process has ended, for whatever reason."""
        self.was_killed = False
        self.is_paused = False
        self._busy_until = 0.0
        self.loop: SimLoop[Process]
        self.main: asyncio.Task[Any]
        self._waiting: list[asyncio.Future[None]] = []

    def __repr__(self) -> str:
        return f"<Process {self.name}>"

    def start(self, loop: "SimLoop[Process]", main: Main) -> None:
        """Start the main coroutine; called by the world."""
        self.loop = loop
        loop.set_exception_handler(self._unheard)
        self.main = loop.create_task(main(), name="main", context=contextvars.Context())
        self.main.add_done_callback(self._wind_down)

    # What other processes and the harness do to it.

    def kill(self) -> None:
        """SIGKILL: stop the process at once; its kernel closes its connections.

        A process that kills itself continues until its next await.
        """
        if not self.is_done:
            self._note("killed")
            self._vanish()
            self.host.stack.close_all(self)

    def lose_power(self) -> None:
        """End the process because its host is off; its connections are not closed."""
        if not self.is_done:
            self._vanish()

    def pause(self) -> None:
        """SIGSTOP: the process does not run, but its kernel still does."""
        if not self.is_done and not self.is_paused:
            self._note("paused")
            self.is_paused = True
            self.loop.halt()

    def resume(self) -> None:
        """SIGCONT: run again; timers that came due during the pause fire now."""
        if not self.is_done and self.is_paused:
            self._note("resumed")
            self.is_paused = False
            if self._busy_until <= self.host.world.now:
                self.loop.go_on()

    def busy(self, seconds: float) -> None:
        """Keep the process from running for ``seconds`` after this step; repeated calls add up."""
        world = self.host.world
        if self._busy_until > world.now:
            self._busy_until += seconds
        else:
            self._busy_until = world.now + seconds
            self.loop.halt()
            world.timeline.at(self._busy_until, self._idle)

    def _idle(self) -> None:
        world = self.host.world
        if self._busy_until > world.now:
            world.timeline.at(self._busy_until, self._idle)
        elif not self.is_done and not self.is_paused:
            self.loop.go_on()

    def call(self, callback: Callable[..., object], *args: Any) -> None:
        """Call ``callback`` in the process's own loop, as a signal handler would."""
        self.loop.call_soon(callback, *args, context=contextvars.Context())

    def discard(self) -> None:
        """End a process that still runs when the world ends."""
        if not self.is_done:
            self._vanish()

    # Its end.

    async def ended(self) -> None:
        """Wait until the process has ended; called in another process."""
        if not self.is_done:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter

    def result(self) -> Any:
        """Return what main returned, or raise what main raised.

        Raises:
            ProcessKilled: it did neither.
            RuntimeError: it has not ended.
        """
        if not self.is_done:
            raise RuntimeError(f"{self.name} has not ended")
        if self.was_killed and not self.main.done():
            raise ProcessKilled(f"{self.name} was killed")
        self.host.world.heard(self.main)
        return self.main.result()

    def _wind_down(self, main: "asyncio.Task[Any]") -> None:
        others = [task for task in self.loop.tasks if not task.done()]
        for task in others:
            task.cancel()
        if not main.cancelled() and main.exception() is not None:
            self.host.world.failed(
                Failure(self.host.world.now, self.name, "main failed", main.exception()), main
            )
        self.loop.create_task(self._exit(others), name="exit", context=contextvars.Context())

    async def _exit(self, others: "list[Any]") -> None:
        outcomes = await asyncio.gather(*others, return_exceptions=True)
        for task, outcome in zip(others, outcomes, strict=True):
            if isinstance(outcome, Exception):
                message = f"{task.get_name()} failed when cancelled"
                self.host.world.failed(Failure(self.host.world.now, self.name, message, outcome))
        del others, outcomes
        await self.loop.shutdown_asyncgens()
        self.loop.forget_done_tasks()
        self._note("ended")
        self._end()
        self.host.stack.close_all(self)

    def _vanish(self) -> None:
        self.was_killed = True
        self.loop.is_over = True
        self._end()

    def _end(self) -> None:
        self.is_done = True
        self.is_paused = False
        self.loop.halt()
        self.loop.forget_timers()
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def _unheard(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if self.was_killed:
            return  # a killed process reports nothing
        world = self.host.world
        message = str(context.get("message"))
        world.failed(Failure(world.now, self.name, message, context.get("exception")))

    def _note(self, what: str) -> None:
        self.host.world.note(f"{self.name} {what}")
