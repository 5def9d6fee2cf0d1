"""The interpreter runs the operations that a generator asks for and records their outcomes.

It is the only place where a test has tasks and a clock. Each of its threads runs one logical
process at a time. A process whose operation ends in ``info`` is retired, because its client may
still have requests in flight: its thread continues as process ``old + concurrency`` with a new
client (Jepsen's rule, on which checkers rely).
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from harness.engine import client_crashes
from harness.engine.recorder import Recorder
from model.generator import Context, Generator, Invocation, Wait
from model.op import Op
from model.roles import Client

ClientFactory = Callable[[int], Client]
"""Creates the client of a process; the client is opened before its first operation."""

REFUSED_PAUSE_S = 1.0
"""How long a thread pauses after its client could not be opened."""


class Interpreter:
    """Runs generators one after another on the same threads."""

    def __init__(
        self,
        recorder: Recorder,
        make_client: ClientFactory,
        *,
        concurrency: int,
        rng: random.Random,
        op_timeout_s: float,
        close_timeout_s: float = 5.0,
        overtime_s: Callable[[], float] = lambda: 0.0,
        first: int = 0,
    ) -> None:
        """``op_timeout_s`` bounds every operation: one that takes longer ends in ``info``, and its
        client is abandoned. ``overtime_s`` is passed on to generators in their context. ``first``
        is the number of the first process, a multiple of ``concurrency``."""
        self._recorder = recorder
        self._make_client = make_client
        self._concurrency = concurrency
        self._rng = rng
        self._op_timeout_s = op_timeout_s
        self._close_timeout_s = close_timeout_s
        self._overtime_s = overtime_s
        self._processes = list(range(first, first + concurrency))
        """The process of each thread, by thread."""
        self._clients: dict[int, Client] = {}
        """The opened clients, by process."""
        self._running: dict[int, asyncio.Task[None]] = {}
        """Operations in progress, by thread."""
        self._asked: dict[int, asyncio.Task[None]] = {}
        """The invocation that each client is running, by process."""
        self._stumbled: dict[int, str] = {}
        """The error that made a client unusable, by process; kept until the process is retired."""
        self._closing: dict[asyncio.Task[str | None], None] = {}
        self._left_behind: dict[asyncio.Task[Any], None] = {}
        """Abandoned tasks, referenced only so that they are not garbage-collected."""
        self._events: list[Op] = []
        """Completions that the generator has not received yet."""
        self._changed = asyncio.Event()
        self._failure: Exception | None = None

    async def run(
        self, generator: Generator, on_exhausted: Callable[[], None] = lambda: None
    ) -> None:
        """Run until the generator is exhausted and every operation has ended.

        ``on_exhausted`` is called when the generator is exhausted; the last operations may still be
        in progress.
        """
        exhausted = False
        while True:
            self._changed.clear()
            if self._failure is not None:
                raise self._failure
            events, self._events = self._events, []
            for event in events:
                generator = generator.update(event)
            if exhausted:
                if not self._running:
                    return
                await self._changed.wait()
                continue
            answer, later = generator.op(self._context())
            match answer:
                case None:
                    exhausted = True
                    on_exhausted()
                case Wait(until_s):
                    generator = later
                    await self._sleep_until(until_s)
                case Invocation(at_s=at_s) if at_s > self._now_s():
                    await self._sleep_until(at_s)
                case Invocation():
                    generator = later.update(self._dispatch(answer))

    def client_failed(self, process: int, error: str) -> None:
        """Give up the client of ``process``, whose library has failed.

        The current operation ends in ``info``, or else the next one in ``fail``; then the process
        is retired.
        """
        if process not in self._processes:
            return  # it has been retired already
        self._stumbled.setdefault(process, f"client-crash: {error}")
        if process in self._asked:
            self._asked[process].cancel()

    async def retire_all(self) -> None:
        """Close every client; each thread continues as a new process."""
        assert not self._running, "clients are retired only while no operation is running"
        for thread in range(self._concurrency):
            self._retire(thread)
        await asyncio.gather(*self._closing)

    async def close(self) -> None:
        """Cancel all operations and close every client."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._running.clear()
        await self.retire_all()
        for task in list(self._left_behind):
            task.cancel()

    def _now_s(self) -> float:
        return self._recorder.now_ns() / 1e9

    def _context(self) -> Context:
        free = tuple(
            process for thread, process in enumerate(self._processes) if thread not in self._running
        )
        return Context(self._now_s(), free, self._concurrency, self._rng, self._overtime_s())

    async def _sleep_until(self, until_s: float) -> None:
        """Sleep until that time of the run, or until an operation ends."""
        timer = None
        if until_s != float("inf"):
            loop = asyncio.get_running_loop()
            timer = loop.call_later(max(0.0, until_s - self._now_s()), self._changed.set)
        elif not self._running:
            raise RuntimeError("the generator waits for an event, but no operation is running")
        try:
            await self._changed.wait()
        finally:
            if timer is not None:
                timer.cancel()

    def _dispatch(self, invocation: Invocation) -> Op:
        process = invocation.process
        thread = process % self._concurrency
        assert self._processes[thread] == process, f"process {process} has been retired"
        assert thread not in self._running, f"process {process} is busy"
        op = self._recorder.record(process, "invoke", invocation.f, invocation.value)
        self._running[thread] = asyncio.create_task(self._carry_out(thread, op))
        return op

    async def _carry_out(self, thread: int, op: Op) -> None:
        """Run one operation from its invocation until its thread is free again."""
        client_crashes.PROCESS.set(op.process)
        try:
            completion, alive = await self._complete(op)
            assert completion.type != "invoke", (
                f"the client's completion of {op.f} is an invocation"
            )
            event = self._recorder.record(
                op.process, completion.type, op.f, completion.value, completion.error
            )
            if event.type == "info" or not alive:
                self._retire(thread)
            self._events.append(event)
        except Exception as error:  # noqa: BLE001 - run() raises it: a test without records is none
            self._failure = self._failure or error
        finally:
            del self._running[thread]
            self._changed.set()

    async def _complete(self, op: Op) -> tuple[Op, bool]:
        """Return the completion of ``op`` and whether its client is still usable."""
        client = self._clients.get(op.process)
        if client is None:
            client = self._make_client(op.process)
            error = await self._bounded(client.open(), self._op_timeout_s)
            if error is not None:
                self._leave(client.close())
                await asyncio.sleep(REFUSED_PAUSE_S)
                return _ended(op, "fail", f"no-client: {error}"), True
            self._clients[op.process] = client
        if op.process in self._stumbled:
            return _ended(op, "fail", self._stumbled[op.process]), False
        answers: list[Op] = []

        async def invoke() -> None:
            answers.append(await client.invoke(op))

        self._asked[op.process] = asyncio.create_task(invoke())
        error = await self._bounded(self._asked[op.process], self._op_timeout_s)
        del self._asked[op.process]
        if answers:
            return answers[0], client.alive and op.process not in self._stumbled
        return _ended(op, "info", self._stumbled.get(op.process, error)), False

    def _retire(self, thread: int) -> None:
        """Continue the thread as a new process at once; the old client closes in the background."""
        process = self._processes[thread]
        self._processes[thread] = process + self._concurrency
        self._stumbled.pop(process, None)
        client = self._clients.pop(process, None)
        if client is not None:
            closing = asyncio.create_task(self._bounded(client.close(), self._close_timeout_s))
            self._closing[closing] = None
            closing.add_done_callback(self._closing.pop)

    async def _bounded(self, work: Awaitable[None], timeout_s: float) -> str | None:
        """Run ``work`` for at most ``timeout_s`` and return its error, if any.

        Work that exceeds its time is cancelled and abandoned, even if it ignores the cancellation.
        """
        task = asyncio.ensure_future(work)
        try:
            # This takes half the steps of a shield in a time-out, for every operation.
            await asyncio.wait([task], timeout=timeout_s)  # noqa: TID251 - one task has no order
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not task.done():
            self._leave(task)
            task.cancel()
            return "timeout"
        if task.cancelled():  # by the work itself: the interpreter did not cancel it
            return "CancelledError"
        error = task.exception()
        if error is None:
            return None
        if isinstance(error, Exception) and not isinstance(error, AssertionError):
            return f"{type(error).__name__}: {error}".rstrip(": ")
        raise error  # a broken invariant of Faultline's own code says nothing about the broker

    def _leave(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._left_behind[task] = None
        task.add_done_callback(self._forget)

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self._left_behind.pop(task, None)
        if not task.cancelled():
            task.exception()


def _ended(op: Op, kind: Literal["fail", "info"], error: str | None) -> Op:
    return msgspec.structs.replace(op, type=kind, error=error)
