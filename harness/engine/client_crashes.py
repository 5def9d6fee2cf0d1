"""Treats an unhandled error inside a client library as a crash of that client, not of the run.

A library has tasks and callbacks whose results are never awaited. In production an error raised
there is one line in a log, and the client continues with a part of itself missing. Here the client
is given up, and its process records the reason. An error that Faultline's own code raises there
still fails the run.
"""

import asyncio
import traceback
from collections.abc import Callable
from contextvars import Context, ContextVar
from typing import Any

PROCESS: ContextVar[int] = ContextVar("PROCESS")
"""The process whose client owns the running task or callback; new tasks inherit it."""
LIBRARIES = ("aiokafka",)
"""The client libraries whose tasks run in the event loop of the test."""
_OURS = ("harness", "workloads", "model", "nemesis")


def report_errors(client_failed: Callable[[int, str], None]) -> None:
    """Call ``client_failed`` with the process and the place of every error inside a client library.

    This holds for as long as the running loop lasts. All other errors go to the loop's previous
    exception handler.
    """
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler() or (
        lambda loop, context: loop.default_exception_handler(context)
    )

    def hear(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        process, error = _process_of(context), context.get("exception")
        where = None if error is None else _of_a_library(error)
        if process is None or where is None:
            before(loop, context)
        else:
            client_failed(process, f"{type(error).__name__} in {where}")

    loop.set_exception_handler(hear)


def _process_of(context: dict[str, Any]) -> int | None:
    """The process whose client created the failed task or callback; ``None`` if it is unknown."""
    handle, task = context.get("handle"), context.get("future")
    made_in: Context | None = getattr(handle, "_context", None)
    if task is not None and hasattr(task, "get_context"):  # simulated tasks; all since 3.12
        made_in = task.get_context()
    return None if made_in is None else made_in.get(PROCESS)


def _of_a_library(error: BaseException) -> str | None:
    """The library function that raised ``error``; ``None`` if Faultline's own code raised it.

    The message of the error is left out: it may contain the address of an object, which differs in
    every run.
    """
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] in LIBRARIES:
            return f"{module}.{frame.f_code.co_qualname}"
        if module.partition(".")[0] in _OURS:
            return None
    return None
