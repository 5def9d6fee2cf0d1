"""What a client's library trips over in its own code is a crash of that client, not of the run.

A library has tasks and callbacks that nobody waits for. What they raise is a line in a log where
they run in production, and the client goes on with a part of itself missing. Here the client is
given up, and its process says why. What our own code raises there stays a failure of the run.
"""

import asyncio
import traceback
from collections.abc import Callable
from contextvars import Context, ContextVar
from typing import Any

PROCESS: ContextVar[int] = ContextVar("PROCESS")
"""Whose client this task or callback is of; whatever a client begins inherits it."""
LIBRARIES = ("aiokafka",)
"""Those whose tasks run in the loop of the test."""
_OURS = ("harness", "workloads", "model", "nemesis")


def tell(stumbled: Callable[[int, str], None]) -> None:
    """Tell, for as long as the running loop lasts, of a process whose client's library has failed,
    and of where. All else is told to whoever heard of it before."""
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler() or (
        lambda loop, told: loop.default_exception_handler(told)
    )

    def hear(loop: asyncio.AbstractEventLoop, told: dict[str, Any]) -> None:
        process, error = _process_of(told), told.get("exception")
        where = None if error is None else _of_a_library(error)
        if process is None or where is None:
            before(loop, told)
        else:
            stumbled(process, f"{type(error).__name__} in {where}")

    loop.set_exception_handler(hear)


def _process_of(told: dict[str, Any]) -> int | None:
    """By what its callback or task was made in, where that can be asked for."""
    handle, task = told.get("handle"), told.get("future")
    made_in: Context | None = getattr(handle, "_context", None)
    if task is not None and hasattr(task, "get_context"):  # simulated ones; all, since 3.12
        made_in = task.get_context()
    return None if made_in is None else made_in.get(PROCESS)


def _of_a_library(error: BaseException) -> str | None:
    """The function that raised it, if that is no function of ours. Not what the error says: it may
    name an object by its address, which is another one in every run."""
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] in LIBRARIES:
            return f"{module}.{frame.f_code.co_qualname}"
        if module.partition(".")[0] in _OURS:
            return None
    return None
