"""Checkers that stop or crash."""

from collections.abc import Iterator

import pytest

from checkers.kernels.checker_runs import CheckerRunner, GaveUp
from checkers.kernels.found import Found

FOUND = Found(anomaly="lost-write", why="it is missing")


def kernel(count: int, error: Exception | None) -> Iterator[Found]:
    yield from [FOUND] * count
    if error is not None:
        raise error


@pytest.mark.parametrize(
    ("count", "error", "found", "crash"),
    [
        (2, None, [FOUND, FOUND], None),
        (0, None, [], None),
        (1, GaveUp("5 steps"), [FOUND], "the checker stopped: 5 steps"),
        (0, GaveUp("5 steps"), None, "the checker stopped: 5 steps"),
        (1, KeyError("stat"), None, "KeyError: 'stat'"),
    ],
)
def test_what_a_checker_found_before_its_end(
    count: int, error: Exception | None, found: list[Found] | None, crash: str | None
) -> None:
    """Findings stand if the budget is used up later; after another error none is trusted."""
    runner = CheckerRunner()
    assert runner.run("c", lambda: kernel(count, error)) == found
    assert [(run.checker, run.crash) for run in runner.checker_runs] == [("c", crash)]
