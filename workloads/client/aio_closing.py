"""Ends clients of aiokafka within time limits: their tasks, their starts and their connections.

None of aiokafka's ways to stop has a time limit, and some never end: flushing what can never be
sent, waiting for a metadata update that no task makes any more. So this module forces tasks to end
and waits for them within limits, for which it needs some private names of aiokafka.
"""

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

STOP_TIMEOUT_S = 2.0
"""The time limit for an aiokafka client to close its connections."""


async def end_task(task: "asyncio.Future[Any]") -> None:
    """Cancel a task repeatedly until it has ended.

    One cancellation is not enough: aiokafka's sender then waits for the requests in flight, without
    a time limit.
    """
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)
    forget(task)


def requests_of(sender: "asyncio.Task[Any]") -> list["asyncio.Task[Any]"]:
    """Return the tasks of the requests that a sender has in flight, or had when it failed.

    Only the sender's stack frame refers to these tasks. When a sender ends, all but one of them
    continue to run, and would fail because their batches no longer exist.
    """
    coroutine: Any = sender.get_coro()
    frames = [coroutine.cr_frame]
    if sender.done() and not sender.cancelled() and (error := sender.exception()) is not None:
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [task for frame in frames if frame for task in frame.f_locals.get("tasks", ())]


async def end_start(starting: "asyncio.Task[None]") -> None:
    """Cancel the start of a client, unless it has ended.

    While the client requests metadata from its first broker (``client.bootstrap``), only the stack
    frame of the start refers to that connection. The connection is therefore closed here.
    """
    connection = None
    coroutine: Any = starting.get_coro()
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        connection = frame.f_locals.get("bootstrap_conn", connection)
        coroutine = coroutine.cr_await
    await end_task(starting)
    if connection is not None:
        connection.close()


async def stop_client(
    stop: Callable[[], Awaitable[None]], close: Callable[[], Awaitable[None]]
) -> None:
    """Stop a client of aiokafka, and close its connections even if that fails or takes too long."""
    for ending in (stop, close):
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_TIMEOUT_S):
                (error,) = await asyncio.gather(ending(), return_exceptions=True)
                if error is None:
                    return


def forget(future: "asyncio.Future[Any]") -> None:
    """Discard a future whose result is no longer needed, so that asyncio does not log its error."""
    if not future.done():
        future.cancel()
    elif not future.cancelled():
        future.exception()
