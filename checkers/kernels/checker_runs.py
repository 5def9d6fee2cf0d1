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
    """Why it did not finish: it has excluded nothing, and found at most a part."""


class GaveUp(Exception):
    """A checker has used up its budget; the message says which. The result is unknown, not
    invalid."""


class CheckerRunner:
    """Runs one checker after the other; one that crashes does not keep the others from running."""

    def __init__(self) -> None:
        self.checker_runs: list[CheckerRun] = []

    def run(self, checker: str, kernel: Callable[[], Iterable[Found]]) -> list[Found] | None:
        """Return what a checker finds; ``None`` if it did not finish.

        What it had found before it used up its budget stands; what it had found before any other
        error does not.
        """
        begin, crash = perf_counter(), None
        found: list[Found] = []
        try:
            for each in kernel():
                found.append(each)  # noqa: PERF402 - the findings before an error count
        except GaveUp as reason:
            crash = f"the checker stopped: {reason}"
        except Exception as error:  # noqa: BLE001 - a checker of any kind of failure found nothing
            crash = f"{type(error).__name__}: {error}"
            found.clear()
        self.checker_runs.append(CheckerRun(checker, perf_counter() - begin, crash))
        return found if found or crash is None else None
