"""Explains why a world cannot continue: where tasks wait, or which callbacks spin."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from harness.simulation.process import Process

_ASYNCIO = str(Path(asyncio.__file__).parent)


class Stuck(Exception):
    """A run did not come to its end."""


class Deadlock(Stuck):
    """Nothing can happen any more, and a process has not ended."""


class Livelock(Stuck):
    """Steps go on without end, while virtual time hardly moves."""


class OutOfTime(Stuck):
    """The run did not end within its limit of virtual time."""


def waiting_tasks(processes: Iterable[Process]) -> str:
    """List every waiting task, one line each: process, task, and where it waits."""
    lines = [
        f"  {process.name}{' (paused)' if process.is_paused else ''}:"
        f" {task.get_name()} at {where(task.get_coro())}"
        for process in processes
        if not process.is_done
        for task in process.loop.tasks
        if not task.done()
    ]
    return "\n".join(lines)


def spinning(names: "Counter[str]") -> str:
    """List the busiest callbacks, one line each."""
    return "\n".join(f"  {count:6} {name}" for name, count in names.most_common(10))


def where(coroutine: Any) -> str:
    """The innermost line outside asyncio at which a coroutine waits: ``file:line in function``."""
    frames = list(_frames(coroutine))
    if not frames:
        return "the end of its coroutine"
    for frame in reversed(frames):
        if not frame.f_code.co_filename.startswith(_ASYNCIO):
            break
    else:
        frame = frames[-1]
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"


def _frames(coroutine: Any) -> Iterable[FrameType]:
    while coroutine is not None:
        frame = None
        for kind in ("cr", "gi", "ag"):
            frame = getattr(coroutine, f"{kind}_frame", None)
            if frame is not None:
                yield frame
                step = "yieldfrom" if kind == "gi" else "await"
                coroutine = getattr(coroutine, f"{kind}_{step}")
                break
        if frame is None:
            return
