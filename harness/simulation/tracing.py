"""Hashes what happens in a run: two runs with equal hashes had the same steps and messages.

The hash covers the time, the process and the callback of each step, and the time, the ends, the
length and the CRC of each segment that arrived. If a text file is given, the same facts are written
to it, one per line: ``diff`` of two such files shows where two runs diverge.
"""

import hashlib
import zlib
from array import array
from collections.abc import Callable
from typing import Any, TextIO

from harness.simulation.tasks import SimTask

_FLUSH_AT = 8192


class Trace:
    """A running hash of a run, and on request a text of it."""

    def __init__(self, text: TextIO | None = None) -> None:
        """``text``: a file to which each event is written as a line, in addition to the hash."""
        self.text = text
        self._hash = hashlib.sha256()
        self._numbers: list[float] = []
        self._names: dict[str, int] = {}

    def step(self, now: float, process: int, name: str, callback: Callable[..., object]) -> str:
        """Add a step, whose callback is about to run, and return the callback's name."""
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
        """Add a segment that has arrived over a link."""
        crc = zlib.crc32(data)
        self._numbers += (now, link, flags, len(data), crc)
        if self.text is not None:
            self.text.write(f"{now:.9f} {name} {flags} {len(data)} {crc:08x}\n")

    def note(self, now: float, what: str) -> None:
        """Add a change made to the world (such as a fault), or a failure in it."""
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
    """The name of a step: that of its task's coroutine, or else of its function."""
    owner = getattr(callback, "__self__", None)
    if type(owner) is SimTask:
        return owner.label
    return getattr(callback, "__qualname__", None) or type(callback).__name__
