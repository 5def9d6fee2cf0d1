"""Functions of all kinds, into which tests put probes."""

import functools
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any


def may_join(end: int, start: int) -> bool:
    """Return whether a log reaches the start."""
    return end >= start


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return function(*arguments)

    return call


@_checked
def decorated(value: int) -> str:
    """Return a word."""
    return "many" if value > 1 else "one"


@contextmanager
def held(value: int) -> Any:
    """Hold a value."""
    if value:
        yield value
    else:
        yield None


class Log:
    """A class with methods of all kinds."""

    class Part:
        """A class within it."""

        def size(self, rows: int) -> int:
            """Return a size."""
            return rows if rows else -1

    @property
    def is_empty(self) -> bool:
        """Return false."""
        return len(vars(self)) == 9

    @functools.cached_property
    def name(self) -> str:
        """Return a name."""
        return "log"

    @classmethod
    def new(cls, value: int) -> "Log | None":
        """Return a new one."""
        return cls() if value > 0 else None
