"""Receipts: that a checker ran, and how it went."""

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import NamedTuple

from checkers.kernels.rows import Found


class Receipt(NamedTuple):
    """That a checker ran on a key or on a whole history, and how it went."""

    checker: str
    seconds: float
    crash: str | None = None
    """Why it did not come to an end: it has found nothing and excluded nothing."""


class GaveUp(Exception):
    """A checker's budget is spent; the message says on what. Not known is not wrong."""


class Asking:
    """Asks one checker after the other: one that crashes does not keep the others from theirs."""

    def __init__(self) -> None:
        self.receipts: list[Receipt] = []

    def ask(self, checker: str, question: Callable[[], Iterable[Found]]) -> list[Found] | None:
        """What it finds; ``None`` if it came to no end."""
        begin, found, crash = perf_counter(), None, None
        try:
            found = list(question())
        except GaveUp as reason:
            crash = f"it gave up: {reason}"
        except Exception as error:  # noqa: BLE001 - a checker of any kind of failure found nothing
            crash = f"{type(error).__name__}: {error}"
        self.receipts.append(Receipt(checker, perf_counter() - begin, crash))
        return found
