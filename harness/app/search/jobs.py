"""Children of this process, each of which does one thing and hands back bytes.

A child begins as a copy of its parent: with everything imported, and all of them in the same state,
so that what it does depends on its task alone. It has a process group of its own: Ctrl-C is for the
parent to deal with. One that runs away is ended by the limit on its CPU time, one that waits in
vain by the clock, and none outlives its parent.
"""

import contextlib
import ctypes
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

SAID = "said.txt"
"""What a child prints, in the folder that it works in."""
CPU_S_MAX = 300
"""A hundred times what a run of a search takes."""
GRACE_S = 5
"""After it the signal that ends a child leaves it no word."""
CLOCK_S_MAX = 1800
"""It waits for nobody, but may have to share its core with many others."""
_PR_SET_PDEATHSIG = 1

Key = TypeVar("Key")


class Ended(NamedTuple, Generic[Key]):
    """A child that is gone."""

    key: Key
    answer: bytes
    """All that it handed back; empty when it did not come so far."""
    status: int
    """Of its exit; negative: the signal that ended it."""


@dataclass(slots=True)
class _Child(Generic[Key]):
    key: Key
    pid: int
    answer: bytearray = field(default_factory=bytearray)


class Jobs(Generic[Key]):
    """Children under way. Leaving the block ends those that are left."""

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
        """Fork a child that does ``work``; what it prints goes to the file ``words``."""
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
        """Those that have ended; waits for one, but no longer than this."""
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
    """How a child came to its end that has not handed anything back."""
    lines = said.read_text(errors="replace").split("\n") if said.exists() else []
    last = next((line for line in reversed(lines) if line.strip()), "it said nothing")
    limits = {
        -signal.SIGXCPU: f"it had used {CPU_S_MAX} s of CPU time",
        -signal.SIGALRM: f"it was not done after {CLOCK_S_MAX} s",
    }
    if (limit := limits.get(status)) is not None:
        place = next((line.strip() for line in lines if line.startswith("  File")), "nobody knows")
        return f"{limit}, and was ended: {place}"
    if status < 0:
        name = signal.Signals(-status).name
        return f"its process was ended by {name}: {last}"
    return f"its process ended with status {status}: {last}"


def drop_if_empty(said: Path) -> None:
    """A file in which nothing was said is of no use to anybody."""
    if said.exists() and not said.stat().st_size:
        said.unlink()


def _live(work: Callable[[], bytes], writing: int, words: Path) -> NoReturn:
    """A child's whole life."""
    status = 1
    try:
        os.setpgid(0, 0)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX + GRACE_S))
        said = os.open(words, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(said, 1)
        os.dup2(said, 2)
        faulthandler.enable(2)
        for number in (signal.SIGXCPU, signal.SIGALRM):
            faulthandler.register(number, 2, chain=True)  # says where it is, and ends it
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
