"""Runs functions in child processes, each of which returns bytes.

A child begins as a copy of its parent, with everything imported. All children start in the same
state, so that the result of a child depends on its task alone. Each child has its own process
group: Ctrl-C is left to the parent. A limit on CPU time ends a child that loops, a timer ends one
that hangs, and no child outlives its parent.
"""

import contextlib
import faulthandler
import os
import resource
import selectors
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, NamedTuple, NoReturn, Self, TypeVar

from harness.app import lifetime

SAID = "said.txt"
"""The file for a child's output, in the folder in which it works."""
CPU_S_MAX = 300
"""The limit on a child's CPU time: a hundred times that of a search's run."""
GRACE_S = 5
"""The CPU seconds after the limit until the kernel kills the child, without a message."""
CLOCK_S_MAX = 1800
"""The limit on a child's duration. It waits for no process, but may share its core with many."""

Key = TypeVar("Key")


class Ended(NamedTuple, Generic[Key]):
    """A child process that has ended."""

    key: Key
    answer: bytes
    """The bytes that it returned; empty if it did not finish."""
    status: int
    """The exit status; negative if a signal ended it."""


@dataclass(slots=True)
class _Child(Generic[Key]):
    key: Key
    pid: int
    answer: bytearray = field(default_factory=bytearray)


class Jobs(Generic[Key]):
    """The running child processes; leaving the block kills those that still run."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._children: dict[int, _Child[Key]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for child in self._children.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
        for fd, child in self._children.items():
            os.close(fd)
            os.waitpid(child.pid, 0)
        self._children.clear()
        self._selector.close()

    def __len__(self) -> int:
        return len(self._children)

    def start(self, key: Key, work: Callable[[], bytes], words: Path) -> None:
        """Fork a child that runs ``work``; its output goes to the file ``words``."""
        sys.stdout.flush()
        sys.stderr.flush()
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            _live(work, writing, words)
        os.close(writing)
        self._children[reading] = _Child(key, pid)
        self._selector.register(reading, selectors.EVENT_READ)

    def ended(self, patience_s: float) -> Iterator[Ended[Key]]:
        """Yield the children that have ended; wait for one, but no longer than ``patience_s``."""
        for ready, _ in self._selector.select(patience_s):
            child = self._children[ready.fd]
            if data := os.read(ready.fd, 1 << 20):
                child.answer += data
                continue
            self._selector.unregister(ready.fd)
            os.close(ready.fd)
            del self._children[ready.fd]
            _, status = os.waitpid(child.pid, 0)
            yield Ended(child.key, bytes(child.answer), os.waitstatus_to_exitcode(status))


def how_ended(status: int, said: Path) -> str:
    """Return why a child ended that returned no result."""
    lines = said.read_text(errors="replace").split("\n") if said.exists() else []
    last = next((line for line in reversed(lines) if line.strip()), "the process printed nothing")
    limits = {
        -signal.SIGXCPU: f"the run used {CPU_S_MAX} s of CPU time",
        -signal.SIGALRM: f"the run did not finish within {CLOCK_S_MAX} s",
    }
    if (limit := limits.get(status)) is not None:
        place = next((line.strip() for line in lines if line.startswith("  File")), "unknown")
        return f"{limit} and was ended at: {place}"
    if status < 0:
        name = signal.Signals(-status).name
        return f"the process was ended by {name}: {last}"
    return f"the process ended with status {status}: {last}"


def drop_if_empty(said: Path) -> None:
    """Remove an output file that is empty."""
    if said.exists() and not said.stat().st_size:
        said.unlink()


def _live(work: Callable[[], bytes], writing: int, words: Path) -> NoReturn:
    """Run the task in the child process, and exit."""
    status = 1
    try:
        os.setpgid(0, 0)
        lifetime.end_with_parent()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX + GRACE_S))
        said = os.open(words, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(said, 1)
        os.dup2(said, 2)
        faulthandler.enable(2)
        for number in (signal.SIGXCPU, signal.SIGALRM):
            faulthandler.register(number, 2, chain=True)  # writes the stack, then ends the child
        signal.setitimer(signal.ITIMER_REAL, CLOCK_S_MAX)
        answer = memoryview(work())
        while answer:
            answer = answer[os.write(writing, answer) :]
        status = 0
    except BaseException:  # noqa: BLE001 - a child must never go on as its parent
        with contextlib.suppress(OSError):
            os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)
