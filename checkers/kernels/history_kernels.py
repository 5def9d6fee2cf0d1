"""Runs the kernels for a whole history, after those of its partitions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from checkers.kernels import cycles, isolation, outputs, phantom, progress, torn, unproven
from checkers.kernels.checker_runs import CheckerRun, CheckerRunner
from checkers.kernels.found import Found
from checkers.kernels.history import History

Kernel = Callable[[History], Iterable[Found]]
Rewrite = Callable[[History, Sequence[Found]], Iterable[Found]]
"""A function that rewrites the findings so far, given all partitions: it renames or folds them."""

KERNELS: dict[str, Kernel] = {
    "transactions": isolation.kernel,
    "cycles": cycles.kernel,
    "outputs": outputs.kernel,
    "producers": progress.stuck_producers,
}

REWRITES: dict[str, Rewrite] = {
    "misrouted": phantom.misrouted,
    "unproven": unproven.kernel,
    "torn": torn.kernel,
}


MISPLACED = (
    "G1c-process",
    "G1c-realtime",
    "realtime-order",
    "nonmonotonic-send",
    "int-nonmonotonic-send",
    "duplicate",
    "phantom",
)
"""Anomalies that blame one record for where or when it is in a log. What follows from that record's
place is no further anomaly: transactions that were open only if it is where it was read, for
example."""


class Report(NamedTuple):
    """All that was found in a history, and which checkers looked at its partitions together."""

    found: list[Found]
    checker_runs: list[CheckerRun]


class _Judged(NamedTuple):
    """What one kernel found."""

    found: list[Found]
    clean: list[Found]
    """What is left of it without the records that are misplaced."""
    checker_runs: list[CheckerRun]


def misplaced(found: Sequence[Found]) -> list[int]:
    """Return which findings are those that :data:`MISPLACED` names."""
    return [n for n, f in enumerate(found) if f.anomaly in MISPLACED and f.value is not None]


def judge(
    history: History,
    of_keys: Iterable[Found],
    kernels: Mapping[str, Kernel] = KERNELS,
    mapped: Callable[[Callable[[str], _Judged], Iterable[str]], Iterable[_Judged]] = map,
    rewrites: Mapping[str, Rewrite] = REWRITES,
) -> Report:
    """Run every kernel on a whole history. ``of_keys`` are the findings of its partitions.

    A kernel is called again without the records that are misplaced, if any are. ``mapped`` calls a
    function for each name of a kernel, and returns the results in their order.
    """
    runner = CheckerRunner()
    found = list(of_keys)
    places = misplaced(found)
    clean = history
    if places:
        clean = history.without({(found[n].key, found[n].value) for n in places})

    def judged(name: str) -> _Judged:
        mine, kernel = CheckerRunner(), kernels[name]
        more = mine.run(name, partial(kernel, history)) or []
        left = more
        if more and places:
            left = mine.run(name, partial(kernel, clean)) or []
        return _Judged(more, left, mine.checker_runs)

    for more, left, checker_runs in mapped(judged, kernels):
        runner.checker_runs += checker_runs
        if more and places:
            first = found[places[0]]
            folded = first.folded + max(len(more) - len(left), 0)
            found[places[0]] = replace(first, folded=folded)
        found += left
    for name, rewrite in rewrites.items():
        rewritten = runner.run(name, partial(rewrite, history, found))
        found = found if rewritten is None else rewritten
    return Report(found, runner.checker_runs)
