"""Runs all kernels on one partition, folds their findings, and measures their time."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from checkers.kernels import (
    availability,
    commits,
    compacted,
    consumption,
    deliveries,
    duplicates,
    early,
    folding,
    loss,
    offsets,
    order,
    owners,
    phantom,
    plain,
    polls,
    precommitted,
    progress,
    watermarks,
)
from checkers.kernels.availability import Outage, Recovery
from checkers.kernels.checker_runs import CheckerRun, CheckerRunner
from checkers.kernels.consumption import Consumption
from checkers.kernels.found import Found
from checkers.kernels.log import Log

Kernel = Callable[[Log], Iterable[Found]]

BASIC: dict[str, Kernel] = {
    "loss": loss.kernel,
    "duplicates": duplicates.duplicates,
    "offsets": offsets.inconsistent_offsets,
    "phantom": phantom.kernel,
    "precommitted": precommitted.precommitted_reads,
    "early": early.early_reads,
}
"""Kernels that run first, since what they find may explain the rest."""

GROUPS: dict[str, Kernel] = {
    "commits": commits.kernel,
    "deliveries": deliveries.kernel,
    "owners": owners.kernel,
    "watermarks": watermarks.kernel,
    "progress": progress.stuck_groups,
}
"""Kernels for partitions that groups have used, or whose log ends were requested."""

DERIVED: dict[str, Kernel] = {"order": order.kernel, "polls": polls.poll_order}


class Report(NamedTuple):
    """What is known of a partition after all checkers have seen it."""

    found: list[Found]
    checker_runs: list[CheckerRun]
    acked: int = 0
    read: int = 0
    """Number of distinct records that were read at least once."""
    outage: Outage | None = None
    recoveries: Sequence[Recovery] = ()
    consumption: Consumption = consumption.NOTHING


def judge(log: Log) -> Report:
    """Run every kernel on one partition. A checker that crashes does not keep the others from
    running."""
    runner = CheckerRunner()
    run, is_plain = runner.run, plain.is_plain(log)

    def of_records(name: str, kernel: Kernel) -> list[Found] | None:
        return run(name, tuple if is_plain else partial(kernel, log))

    basic = [f for name, kernel in BASIC.items() for f in of_records(name, kernel) or ()]
    by_kernel = {name: of_records(name, kernel) for name, kernel in DERIVED.items()}
    finished = [name for name, found in by_kernel.items() if found is not None]
    derived = [f for found in by_kernel.values() for f in found or ()]

    def again(clean: Log) -> Iterable[Found]:
        return (f for name in finished for f in DERIVED[name](clean))

    folded = run("folding", lambda: folding.fold(log, basic, derived, again))
    standing = basic + derived if folded is None else folded
    if log.is_compacted:
        stale = run("compacted", partial(compacted.stale_keys, log)) or []
        standing = folding.fold_keys([*standing, *stale])
    stuck = run("availability", partial(availability.stuck, log)) or []
    skips = of_records("order", order.send_skips) or []
    outage, recoveries = availability.measured(log)
    return Report(
        found=[*standing, *skips, *stuck, *_of_groups(log, runner)],
        checker_runs=runner.checker_runs,
        acked=len(log.acked.op),
        read=len(log.first_reads[0]) if is_plain else int(log.known.read.sum()),
        outage=outage,
        recoveries=recoveries,
        consumption=consumption.consumption(log),
    )


def _of_groups(log: Log, runner: CheckerRunner) -> list[Found]:
    """Return the findings about groups and log ends, where the partition has any events of them."""
    found: list[Found] = []
    if len(log.steps.op):
        for name, kernel in GROUPS.items():
            found += runner.run(name, partial(kernel, log)) or ()
    return folding.fold_groups(found)
