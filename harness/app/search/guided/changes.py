"""Changes of plans: a fault right after a rare event, another continuation, another seed.

With the same seed a simulation repeats itself up to the first fault that differs, so a changed plan
reaches the rare event again, and the new fault strikes in the window that the event has opened. Two
faults that no draw would let overlap do not overlap here either: some pairs are survived by no
correct cluster.
"""

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from harness.app import catalogue
from model.plan import Plan, ScheduledFault
from nemesis.package import Package
from nemesis.schedule import quiet_from_s

TAKES_S = 2.0
"""How long applying, healing and proving a fault may take, in addition to its duration."""
ALONE_TAKES_S = 8.0
"""The same for faults that must be alone: some restart all brokers."""
MEAN_DELAY_S = 0.7
DELAY_S_MAX = 4.0
"""The delay of a new fault after a rare event: mean and maximum."""
JOINING = ("admin", "clock", "kill", "packets", "partition", "pause", "point", "slow", "slow-disk")
"""The nemeses whose faults on one target may overlap faults of other lanes, however they are
drawn."""
STRIKE_P, CONTINUE_P = 0.5, 0.3
"""How often a change is a strike, and another continuation; otherwise it is another seed."""


class Change(NamedTuple):
    """A changed plan."""

    how: str
    plan: Plan


def draw(
    plan: Plan, moment_s: float, fresh: Sequence[ScheduledFault], rng: random.Random
) -> Change:
    """Draw a change of a plan.

    Args:
        plan: the plan, with its schedule.
        moment_s: when a phase with a rare event began.
        fresh: another schedule that was drawn for the same plan.
        rng: the source of all draws.
    """
    chance = rng.random()
    at_s = round(moment_s + min(rng.expovariate(1 / MEAN_DELAY_S), DELAY_S_MAX), 3)
    seed = rng.getrandbits(31)
    if fresh and chance < STRIKE_P:
        struck = strike(plan, rng.choice(fresh), at_s)
        if struck != plan:
            return Change("strike", struck)
    if fresh and chance < STRIKE_P + CONTINUE_P:
        return Change("continue", continued(plan, fresh, at_s))
    return Change("reseed", msgspec.structs.replace(plan, seed=seed))


def strike(plan: Plan, fault: ScheduledFault, at_s: float) -> Plan:
    """Return the plan with one more fault at this second, or as soon as earlier ones permit it.

    Later faults that would overlap it are left out.
    """
    earlier = [each for each in plan.schedule or () if each.at_s <= at_s]
    at_s = max([at_s, *(until_s(each) for each in earlier if excludes(each, fault))])
    added = _at(fault, at_s)
    if not _fits(plan, added):
        return plan
    later = [each for each in plan.schedule or () if each not in earlier]
    return _with(plan, [*earlier, added], later)


def continued(plan: Plan, fresh: Sequence[ScheduledFault], at_s: float) -> Plan:
    """Return the plan up to this second, followed by the faults of another schedule."""
    earlier = [each for each in plan.schedule or () if each.at_s <= at_s]
    shift_s = at_s - min(each.at_s for each in fresh)
    return _with(plan, earlier, [_at(each, each.at_s + shift_s) for each in fresh])


def _with(plan: Plan, first: Sequence[ScheduledFault], then: Iterable[ScheduledFault]) -> Plan:
    """Return the plan with the first faults, and those of the others that may be added to them."""
    kept = list(first)
    for fault in sorted(then, key=lambda each: each.at_s):
        clashes = any(excludes(each, fault) and overlap(each, fault) for each in kept)
        if _fits(plan, fault) and not clashes:
            kept.append(fault)
    ordered = sorted(kept, key=lambda each: each.at_s)
    numbered = [msgspec.structs.replace(each, id=n) for n, each in enumerate(ordered, 1)]
    return msgspec.structs.replace(plan, schedule=tuple(numbered))


def _fits(plan: Plan, fault: ScheduledFault) -> bool:
    """Return whether a fault is healed before the quiet end of a run."""
    return fault.at_s + fault.duration_s < quiet_from_s(plan.time_limit_s)


def _at(fault: ScheduledFault, at_s: float) -> ScheduledFault:
    """Return the fault at another second; it does not wait for an operation of a client."""
    options = {name: value for name, value in fault.options.items() if name != "when"}
    return msgspec.structs.replace(fault, at_s=round(at_s, 3), options=options)


def excludes(one: ScheduledFault, other: ScheduledFault) -> bool:
    """Return whether two faults may not be active at the same time."""
    same = _package(one).lane == _package(other).lane
    return same or not (may_join(one) and may_join(other))


def may_join(fault: ScheduledFault) -> bool:
    """Return whether a fault may overlap with faults of other lanes."""
    package = _package(fault)
    several = isinstance(fault.targets, list | tuple) and len(fault.targets) > 1
    return package.name in JOINING and not (package.lane == "process" and several)


def overlap(one: ScheduledFault, other: ScheduledFault) -> bool:
    """Return whether two faults would be active at the same time."""
    return one.at_s < until_s(other) and other.at_s < until_s(one)


def until_s(fault: ScheduledFault) -> float:
    """Return the second by which a fault is healed, in milliseconds as the seconds of plans."""
    return round(fault.at_s + fault.duration_s + (TAKES_S if may_join(fault) else ALONE_TAKES_S), 3)


def _package(fault: ScheduledFault) -> Package:
    return _PACKAGES[fault.fault]


_PACKAGES = {name: package for package in catalogue.NEMESES.values() for name in package.names}
