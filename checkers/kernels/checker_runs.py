"""Checker runs: which checkers ran, for how long, and whether they finished."""

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import NamedTuple

from checkers.kernels.found import Found


class CheckerRun(NamedTuple):
    """The record of a checker's run on a partition or on a whole history."""

    checker: str
    seconds: float
    crash: str | None = None
    """Why it did not finish; it has found nothing and excluded nothing."""


class GaveUp(Exception):
    """A checker has used up its budget; the message says which. The result is unknown, not
    invalid."""


class CheckerRunner:
    """Runs one checker after the other; one that crashes does not keep the others from running."""

    def __init__(self) -> None:
        self.checker_runs: list[CheckerRun] = []

    def run(self, checker: str, kernel: Callable[[], Iterable[Found]]) -> list[Found] | None:
        """Return what a checker finds; ``None`` if it did not finish."""
        begin, found, crash = perf_counter(), None, None
        try:
            found = list(kernel())
        except GaveUp as reason:
            crash = f"the checker stopped: {reason}"
        except Exception as error:  # noqa: BLE001 - a checker of any kind of failure found nothing
            crash = f"{type(error).__name__}: {error}"
        self.checker_runs.append(CheckerRun(checker, perf_counter() - begin, crash))
        return found
