"""What happened, as a hash: two runs are equal when every step and every message was.

The hash takes in the time, the process and the callback of each step, and the time, the ends, the
length and the CRC of each segment that arrived. With a text file at hand, the same things are
written to it a line each: ``diff`` of two such files shows where two runs part.
"""

import hashlib
import zlib
from array import array
from collections.abc import Callable
from typing import Any, TextIO

from harness.simulation.tasks import SimTask

_FLUSH_AT = 8192


class Trace:
    """A running hash, and on request a text."""

    def __init__(self, text: TextIO | None = None) -> None:
        """``text``: where to write lines to, besides."""
        self.text = text
        self._hash = hashlib.sha256()
        self._numbers: list[float] = []
        self._names: dict[str, int] = {}

    def step(self, now: float, process: int, name: str, callback: Callable[..., object]) -> str:
        """A callback of a process is about to run; what it is called."""
        owner = getattr(callback, "__self__", None)
        what = owner.label if type(owner) is SimTask else name_of(callback)
        number = self._names.get(what)
        if number is None:
            number = self._names[what] = len(self._names)
            self._hash.update(what.encode())
        numbers = self._numbers
        numbers += (now, process, number)
        if len(numbers) >= _FLUSH_AT:
            self._flush()
        if self.text is not None:
            self.text.write(f"{now:.9f} {name} {what}\n")
        return what

    def segment(self, now: float, link: int, name: str, flags: int, data: bytes) -> None:
        """A segment has arrived over a link."""
        crc = zlib.crc32(data)
        self._numbers += (now, link, flags, len(data), crc)
        if self.text is not None:
            self.text.write(f"{now:.9f} {name} {flags} {len(data)} {crc:08x}\n")

    def note(self, now: float, what: str) -> None:
        """Something that was done to the world, or went wrong in it."""
        self._flush()
        self._hash.update(f"{now!r} {what}\n".encode())
        if self.text is not None:
            self.text.write(f"{now:.9f} {what}\n")

    def digest(self) -> str:
        """The hash of everything so far, in hexadecimal."""
        self._flush()
        return self._hash.hexdigest()

    def _flush(self) -> None:
        self._hash.update(array("d", self._numbers))
        self._numbers.clear()


def name_of(callback: Callable[..., Any]) -> str:
    """What a step does, in a word: the coroutine of a task, or the function."""
    owner = getattr(callback, "__self__", None)
    if type(owner) is SimTask:
        return owner.label
    return getattr(callback, "__qualname__", None) or type(callback).__name__
