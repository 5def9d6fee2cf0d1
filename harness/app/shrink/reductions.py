"""Generates smaller plans: for each kind of part, plans without some parts, the boldest first.

Any change of a plan changes the course of the simulation. Reductions are therefore guesses, which a
trial confirms or rejects.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from harness.app import catalogue
from harness.app.plan_resolution import default_options
from harness.cluster import security
from model import data_directories
from model.plan import Plan, ScheduledFault

FIRST_FAULT_S = 2.0
"""The earliest time of a fault; before it, topics are created."""
GAP_S = 0.5
DURATION_S_MIN = 0.5
TIME_LIMIT_S_MIN = 3.0
AFTER_S = 1.0
"""How long work continues after the last event on which a finding depends."""
_LEADER = re.compile(r"leader:[\w.]+-\d+")

Item = TypeVar("Item")


class Seen(NamedTuple):
    """The times of the first and the last event that witnessed the anomaly in a run."""

    first_s: float = math.inf
    last_s: float = math.inf


Reduction = Callable[[Plan, Seen], Iterator[Plan]]


def shorter(plan: Plan, seen: Seen) -> Iterator[Plan]:
    """End the work soon after the finding's witnesses, without the faults that would come later."""
    limits = (
        seen.first_s + AFTER_S,
        seen.last_s + AFTER_S,
        seen.last_s + 4 * AFTER_S,
        plan.time_limit_s / 2,
        plan.time_limit_s * 3 / 4,
    )
    for limit_s in sorted({max(TIME_LIMIT_S_MIN, round(limit, 3)) for limit in limits
                           if math.isfinite(limit)}):  # fmt: skip
        if limit_s < plan.time_limit_s * 0.9:
            kept = [fault for fault in _faults(plan) if fault.at_s < limit_s]
            yield _with(plan, kept, time_limit_s=limit_s)


def fewer_faults(plan: Plan, seen: Seen) -> Iterator[Plan]:
    """Remove all faults, then each half, and so on, down to each single fault."""
    for left in without_parts(_faults(plan)):
        yield _with(plan, left)


def smaller_cluster(plan: Plan, seen: Seen) -> Iterator[Plan]:
    """Reduce to one topic with one partition on three brokers, or take a step towards it."""
    options = plan.options
    one_topic = {
        name: count
        for name, count in {"topics": 1, "late_topics": 0, "partitions": 1}.items()
        if name in options
    }
    if any(options[name] > count for name, count in one_topic.items()):
        aimed = [
            msgspec.structs.replace(fault, targets=_at_the_first(fault.targets))
            for fault in _faults(plan)
        ]
        yield _with(plan, aimed, options=options | one_topic)
        for name, count in one_topic.items():
            if options[name] > count:
                yield msgspec.structs.replace(plan, options=options | {name: count})
    if plan.brokers > 3:
        factor = min(3, int(options["replication_factor"]))
        min_isr = min(2, int(plan.broker["min.insync.replicas"]))
        yield msgspec.structs.replace(
            plan,
            brokers=3,
            options=options | {"replication_factor": factor},
            broker={
                **plan.broker,
                "default.replication.factor": str(factor),
                "min.insync.replicas": str(min_isr),
            },
        )


def fewer_operations(plan: Plan, seen: Seen) -> Iterator[Plan]:
    """Use fewer clients, smaller batches and lower rates."""
    for clients in (2, 3, 4):
        if clients < plan.concurrency:
            yield msgspec.structs.replace(plan, concurrency=clients)
    for batch in (1, 4):
        if batch < plan.options.get("batch_max", 0):
            yield msgspec.structs.replace(plan, options=plan.options | {"batch_max": batch})
    for rate_hz in (2.0, 5.0):
        if rate_hz < plan.rate_hz:
            yield msgspec.structs.replace(plan, rate_hz=rate_hz)


def plainer_settings(plan: Plan, seen: Seen) -> Iterator[Plan]:
    """Reset settings to their defaults: all of them, then halves, then quarters."""
    standard = _standard(plan)
    needed = _needed(plan, standard["options"])
    odd = [
        (part, name)
        for part, values in standard.items()
        for name, value in getattr(plan, part).items()
        if values.get(name) != value and name not in needed
    ]
    for left in without_parts(odd, parts_max=4):
        kept = {part: dict(values) for part, values in standard.items()}
        kept["options"] |= needed
        for part, name in left:
            kept[part][name] = getattr(plan, part)[name]
        yield msgspec.structs.replace(plan, **kept)


def briefer_faults(plan: Plan, seen: Seen) -> Iterator[Plan]:
    """Halve the duration of all faults, or of one."""
    faults = _faults(plan)
    briefer = [
        msgspec.structs.replace(
            fault, duration_s=round(max(DURATION_S_MIN, fault.duration_s / 2), 3)
        )
        if fault.duration_s > 1.5 * DURATION_S_MIN
        else fault
        for fault in faults
    ]
    changed = [number for number, fault in enumerate(faults) if briefer[number] != fault]
    if changed:
        yield _with(plan, briefer)
    if len(changed) > 1:
        for number in changed:
            yield _with(plan, [*faults[:number], briefer[number], *faults[number + 1 :]])


def earlier_faults(plan: Plan, seen: Seen) -> Iterator[Plan]:
    """Start the first fault at once, and shorten the pauses between faults."""
    faults = _faults(plan)
    if not faults:
        return
    moved, end_s, moved_end_s = [], faults[0].at_s, FIRST_FAULT_S
    for fault in faults:
        at_s = moved_end_s + min(fault.at_s - end_s, GAP_S)
        moved.append(msgspec.structs.replace(fault, at_s=round(max(FIRST_FAULT_S, at_s), 3)))
        end_s = max(end_s, fault.at_s + fault.duration_s)
        moved_end_s = max(moved_end_s, moved[-1].at_s + fault.duration_s)
    gained_s = faults[-1].at_s - moved[-1].at_s
    if gained_s > 1.0:
        limit_s = round(max(TIME_LIMIT_S_MIN, plan.time_limit_s - gained_s), 3)
        yield _with(plan, moved, time_limit_s=limit_s)
        yield _with(plan, moved)


REDUCTIONS: Sequence[Reduction] = (
    shorter,
    fewer_faults,
    shorter,
    smaller_cluster,
    fewer_operations,
    shorter,
    earlier_faults,
    briefer_faults,
    shorter,
    plainer_settings,
)
"""The order in which they pay: a short run makes every later trial cheap."""


def without_parts(items: Sequence[Item], parts_max: int | None = None) -> Iterator[list[Item]]:
    """Yield the items without all, each half, each quarter, … each single one (delta debugging).

    ``parts_max`` bounds the number of parts into which the items are divided.
    """
    parts, count = 1, len(items)
    while count and parts <= (parts_max or count):
        for part in range(parts):
            begin, end = part * count // parts, (part + 1) * count // parts
            yield [*items[:begin], *items[end:]]
        if parts == count:
            return
        parts = min(2 * parts, count)


def _faults(plan: Plan) -> list[ScheduledFault]:
    return sorted(plan.schedule or (), key=lambda fault: (fault.at_s, fault.id))


def _with(plan: Plan, faults: Sequence[ScheduledFault], **changes: Any) -> Plan:
    """Return the plan with these faults, and without nemeses that have no fault left."""
    names = {fault.fault for fault in faults}
    nemesis = tuple(name for name in plan.nemesis if names & {*catalogue.NEMESES[name].names})
    return msgspec.structs.replace(plan, schedule=tuple(faults), nemesis=nemesis, **changes)


def _at_the_first(targets: Any) -> Any:
    """Replace the leader of any partition as a target by the leader of the only one."""
    return _LEADER.sub("leader:topic0-0", targets) if isinstance(targets, str) else targets


def _needed(plan: Plan, standard: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options without which the target does not offer the plan's faults."""
    target = catalogue.TARGETS[plan.target]
    needed: dict[str, Any] = {}
    # Faults of access need a protected cluster, and those of directories several of them.
    for option in (security.OPTION, data_directories.OPTION):
        if option not in plan.options or option not in standard:
            continue
        options = {**plan.options, option: standard[option]}
        plain = msgspec.structs.replace(plan, options=options)
        if not all(target.offers(catalogue.NEMESES[name], plain) for name in plan.nemesis):
            needed[option] = plan.options[option]
    return needed


def _standard(plan: Plan) -> Mapping[str, Mapping[str, Any]]:
    """Return the default settings of a plan with this plan's target, workload and sizes."""
    target, workload = catalogue.TARGETS[plan.target], catalogue.WORKLOADS[plan.workload]
    shape = ("default.replication.factor", "min.insync.replicas")
    system = catalogue.system_of(plan)
    options = default_options(workload, target, system)
    sizes = ("topics", "late_topics", "partitions", "replication_factor", "batch_max")
    return {
        "broker": {**system.broker, **target.broker, **workload.broker}
        | {name: plan.broker[name] for name in shape if name in plan.broker},
        "producer": {**workload.producer},
        "consumer": {**workload.consumer, **target.consumer},
        "options": options | {name: plan.options[name] for name in sizes if name in plan.options},
    }
