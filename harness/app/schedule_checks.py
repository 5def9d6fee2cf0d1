"""Checks the faults of a schedule before anything starts: their names, times, targets and options.

A schedule that was drawn from a seed needs no check. One from a plan file, a suite or a run's
folder does: the run itself would find a wrong fault late, or apply another one than was meant.
"""

import math
from collections.abc import Sequence

from checkers import vocabulary
from harness.app import catalogue, names
from harness.app.refused import Refused
from model.plan import Plan, ScheduledFault
from model.text import brief
from nemesis.package import Environment

TIME_LIMIT_MAX_S = 7 * 24 * 3600
"""A week, the longest time limit, and the latest time of a fault."""
ID_MAX = 2**63 - 1
"""Numbers that are written to files have at most 64 bits."""


def check(plan: Plan) -> None:
    """Raise :class:`Refused` for a fault of a resolved plan's schedule that no run can apply.

    Each fault must be one of the plan's nemeses, begin before the time limit, and have targets and
    options that it accepts in the plan's cluster.
    """
    faults = {
        fault.name: fault for name in plan.nemesis for fault in catalogue.NEMESES[name].faults
    }
    environment = Environment(
        catalogue.system_of(plan).layout(plan),
        catalogue.TARGETS[plan.target].cluster_kind(plan),
        plan.target,
        plan.options,
    )
    schedule = plan.schedule or ()
    for entry in schedule:
        if entry.fault not in faults:
            raise Refused(f"schedule: {names.unknown(entry.fault, faults)}")
    check_numbers(schedule)
    for entry in schedule:
        if entry.at_s >= plan.time_limit_s:
            raise Refused(
                f"{_named(entry)} is scheduled at {entry.at_s:g} s,"
                f" but --time-limit is {plan.time_limit_s:g} s"
            )
        refusal = faults[entry.fault].refusal(entry.targets, entry.options, environment)
        if (refusal := refusal or _never_begins(entry)) is not None:
            raise Refused(f"{_named(entry)}: {refusal}")


def check_numbers(schedule: Sequence[ScheduledFault]) -> None:
    """Raise :class:`Refused` for ids and times that no schedule can have."""
    numbers = set()
    for entry in schedule:
        if entry.id in numbers:
            raise Refused(f"schedule: two faults have the id {entry.id}; each needs its own")
        numbers.add(entry.id)
        if abs(entry.id) > ID_MAX:
            raise Refused(f"schedule: fault id {brief(entry.id)} is too large")
        if not (0 <= entry.at_s < math.inf and 0 <= entry.duration_s < math.inf):
            raise Refused(f"{_named(entry)} needs times of 0 or more")
        for what, seconds in (("begins at", entry.at_s), ("lasts", entry.duration_s)):
            if seconds > TIME_LIMIT_MAX_S:
                raise Refused(
                    f"{_named(entry)} {what} {seconds:g} s; the maximum is {TIME_LIMIT_MAX_S:,} s"
                )


def _never_begins(entry: ScheduledFault) -> str | None:
    """Return why no client begins the operation that the fault waits for; ``None`` if one may."""
    when = entry.options.get("when")
    if when is None or when in vocabulary.OPERATIONS:
        return None
    return (
        f"when = {brief(when)}: must be an operation ({', '.join(sorted(vocabulary.OPERATIONS))})"
    )


def _named(entry: ScheduledFault) -> str:
    return f"schedule: fault {brief(entry.id)} ({brief(entry.fault)})"
