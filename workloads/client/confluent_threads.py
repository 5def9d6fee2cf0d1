"""Runs the blocking calls and the callbacks of librdkafka in threads, for an asyncio program.

librdkafka reports through callbacks and blocks in its calls, so each producer and consumer is
driven by a thread of its own, from its creation to its destruction. The threads are daemons,
because librdkafka may block while it closes, and the run must not wait for that. Only the modules
of librdkafka's clients may start threads: librdkafka can never run in simulation.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """A thread that makes one call after another."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    async def call(self, function: Callable[[], T]) -> T:
        answer: asyncio.Future[T] = self._loop.create_future()

        def run() -> None:
            try:
                result = function()
            except Exception as error:  # noqa: BLE001 - raised where it is awaited
                call_in_loop(self._loop, _fail, answer, error)
            else:
                call_in_loop(self._loop, resolve, answer, result)

        self._calls.put(run)
        return await answer

    def last(self, function: Callable[[], object]) -> None:
        """Make one more call, ignore its result, and stop."""

        def run() -> None:
            with suppress(Exception):
                function()

        self._calls.put(run)
        self.stop()

    def stop(self) -> None:
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


async def in_thread(function: Callable[[], T]) -> T:
    worker = Worker("admin")
    try:
        return await worker.call(function)
    finally:
        worker.stop()


def resolve(future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[T]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def call_in_loop(
    loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any
) -> None:
    """Have the event loop call a function, unless the loop has ended."""
    if not loop.is_closed():
        try:
            loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            if not loop.is_closed():
                raise
