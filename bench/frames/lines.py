"""Which lines of the broker were run: inputs that reach new ones are kept and mutated further.

Tracing every line is slow. A function whose lines are known is therefore traced for a limited
number of calls only, and again once it has shown a new line.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Final

CALLS_TRACED: Final = 30
"""The calls of a function that are traced after its last new line."""


class Lines:
    """The lines that have run so far, in files of one folder."""

    def __init__(self, folder: str) -> None:
        self.count = 0
        """The number of lines that have run."""
        self._folder = folder
        self._seen: dict[CodeType, set[int]] = {}
        self._calls_left: dict[CodeType, int] = {}

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Count the lines that run inside of this block."""
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(before)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        left = self._calls_left.get(code)
        if left is None:
            left = CALLS_TRACED if code.co_filename.startswith(self._folder) else 0
            self._seen[code] = set()
        self._calls_left[code] = max(0, left - 1)
        return self._line if left else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            code = frame.f_code
            seen = self._seen[code]
            if frame.f_lineno not in seen:
                seen.add(frame.f_lineno)
                self.count += 1
                self._calls_left[code] = CALLS_TRACED
        return self._line
