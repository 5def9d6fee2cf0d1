"""When which fault strikes: drawn from a seed, kept as data.

A schedule goes in periods. Each period turns a random subset of the packages loose, in a lane for
processes and one for the network, or in one of them, and beside them perhaps in one for operators:
faults of one lane follow one another, faults of different lanes may overlap. Then all is quiet for
a while, so that the cluster can recover; now and then a whole period is quiet. How likely a package
is to be in a subset is drawn once per schedule (swarm testing), so that some runs are all about one
kind of trouble.
"""

import dataclasses
import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from model.plan import ScheduledFault
from model.roles import NodeId
from nemesis.package import Drawn, Lane, Package, Shape

QUIET_START_S = 5.0
"""Trouble before anything has settled teaches nothing."""
QUIET_END_S = 5.0
"""Before the end of the workload everything is healed, and clients have some calm."""
QUIET_PERIODS = 0.25
"""The share of periods without any fault."""
SECONDS_PER_FAULT = 7.0
"""A schedule has at least one fault for so many seconds between its quiet ends …"""
KINDS = 3
"""… from at least so many packages, if so many are at hand."""

MOMENTS = 0.5
"""The share of faults that wait for a moment, where a workload has some."""

OPERATORS = {1: 0.3, 2: 0.6}
"""The share of periods with faults of that many lanes in which operators are at work, too."""

LANES: tuple[Lane, ...] = ("process", "network", "admin")


class Temper(NamedTuple):
    """How a schedule is meant; as it is by default, it does not depend on what is added here."""

    calm: float = 1.0
    """Stretches the pauses between faults, and makes quiet periods more likely."""
    grudge: float = 0.0
    """How likely a fault that strikes one broker strikes the same one as the last that did."""
    weight: float = 0.0
    """How likely a period belongs to one fault that wants to be alone: such faults mostly take too
    long for what others have left of a period."""


EVEN = Temper()


def draw(
    packages: Sequence[Package],
    *,
    brokers: Sequence[NodeId],
    seed: int,
    time_limit_s: float,
    keys: Sequence[str] = (),
    coordinators: Sequence[str] = (),
    acknowledged: bool = True,
    replicas: int = 3,
    asked: Sequence[str] = ("Produce", "Fetch"),
    moments: Sequence[str] = (),
    session_timeout_s: float = 2.0,
    min_isr: int = 2,
    synced: bool = False,
    temper: Temper = EVEN,
) -> tuple[ScheduledFault, ...]:
    """A schedule, the same for the same arguments; empty without packages
    that have room in such a cluster.

    ``moments`` are operations of clients by whose beginning some of the faults are to strike.
    ``asked`` are APIs that they call again and again. ``time_limit_s`` is the workload's; every
    fault is over before it. With time for it the schedule has enough faults of enough kinds to mean
    something (:data:`SECONDS_PER_FAULT`, :data:`KINDS`): draws that do not are drawn again.
    """
    shape = Shape(
        brokers=tuple(brokers),
        keys=tuple(keys),
        coordinators=tuple(coordinators),
        acknowledged=acknowledged,
        replicas=replicas,
        asked=tuple(asked),
        session_timeout_s=session_timeout_s,
        min_isr=min_isr,
        synced=synced,
    )
    packages = [each for each in packages if each.draw is not None and each.room(shape)]
    if not packages:
        return ()
    start_s = min(QUIET_START_S, time_limit_s / 6)
    end_s = time_limit_s - min(QUIET_END_S, time_limit_s / 6)
    wanted = int((end_s - start_s) / SECONDS_PER_FAULT)
    kinds = min(KINDS, len(packages), wanted)
    best: list[tuple[float, str, Drawn]] = []
    for attempt in range(200):
        rng = random.Random(f"{seed}/{attempt}")
        faults = _drawn(rng, packages, shape, start_s, end_s, temper)
        drawn = sorted(faults, key=lambda item: item[0])
        if temper.grudge:
            drawn = list(_again(rng, drawn, brokers, temper.grudge))
        enough = len(drawn) >= wanted and len({package for _, package, _ in drawn}) >= kinds
        if enough or len(drawn) > len(best):
            best = drawn
        if enough:
            break
    rng = random.Random(f"{seed}/moments")
    return tuple(
        ScheduledFault(
            id=number,
            at_s=round(at_s, 3),
            duration_s=round(fault.duration_s, 3),
            fault=fault.fault,
            targets=fault.targets,
            options=fault.options | _moment(rng, moments),
        )
        for number, (at_s, _, fault) in enumerate(best, start=1)
    )


def _moment(rng: random.Random, moments: Sequence[str]) -> dict[str, Any]:
    """When a fault is to strike, if that matters to it."""
    return {"when": rng.choice(moments)} if moments and rng.random() < MOMENTS else {}


def _again(
    rng: random.Random,
    drawn: Sequence[tuple[float, str, Drawn]],
    brokers: Sequence[NodeId],
    grudge: float,
) -> Iterator[tuple[float, str, Drawn]]:
    """The same faults, some of them at whom the one before them struck."""
    ones = {(broker,) for broker in brokers}
    last: Any = None
    for at_s, package, fault in drawn:
        is_one = isinstance(fault.targets, str) or tuple(fault.targets) in ones
        if is_one and last is not None and rng.random() < grudge:
            fault = dataclasses.replace(fault, targets=last)
        if is_one:
            last = fault.targets
        yield at_s, package, fault


def _drawn(
    rng: random.Random,
    packages: Sequence[Package],
    shape: Shape,
    start_s: float,
    end_s: float,
    temper: Temper,
) -> Iterator[tuple[float, str, Drawn]]:
    calm = temper.calm
    weights = {package.name: rng.uniform(0.25, 1.0) for package in packages}
    lanes = [lane for lane in LANES if any(package.lane == lane for package in packages)]
    beside: list[Lane] = ["admin"] if lanes[-1] == "admin" and len(lanes) > 1 else []
    lanes = [lane for lane in lanes if lane not in beside]
    at_s = start_s
    while at_s < end_s:
        if at_s > start_s and rng.random() < QUIET_PERIODS * calm:
            at_s += rng.uniform(3.0, 6.0)
        if temper.weight and rng.random() < temper.weight:
            heavy = _alone(rng, packages, shape, end_s - at_s)
            if heavy is not None:
                yield at_s, *heavy
                at_s += heavy[1].takes_s + rng.uniform(2.0, 4.0) * calm
                continue
        until_s = min(end_s, at_s + rng.uniform(8.0, 14.0))
        busy = rng.choice([lanes, lanes, lanes[:1], lanes[-1:]])
        if beside and rng.random() < OPERATORS[len(busy)]:
            busy = [*busy, *beside]
        over_s = at_s
        for lane in busy:
            mine = [package for package in packages if package.lane == lane]
            loose = [package for package in mine if rng.random() < weights[package.name]]
            loose = loose or [rng.choice(mine)]
            for fault in _lane(rng, loose, shape, at_s, until_s, calm, alone=len(busy) == 1):
                yield fault
                over_s = max(over_s, fault[0] + fault[2].takes_s)
        at_s = over_s + rng.uniform(2.0, 4.0) * calm


def _alone(
    rng: random.Random, packages: Sequence[Package], shape: Shape, room_s: float
) -> tuple[str, Drawn] | None:
    """A fault that wants to be alone, for which there is time; rather one that takes long, for the
    others have their chances elsewhere."""
    found: list[tuple[str, Drawn]] = []
    for package in packages:
        assert package.draw is not None, "only what can be drawn is"
        for _ in range(20):
            fault = package.draw(rng, shape)
            if fault.alone and fault.takes_s < room_s:
                found.append((package.name, fault))
                break
    if not found:
        return None
    return rng.choices(found, [fault.takes_s for _, fault in found])[0]


def _lane(
    rng: random.Random,
    packages: Sequence[Package],
    shape: Shape,
    from_s: float,
    until_s: float,
    calm: float,
    *,
    alone: bool,
) -> Iterator[tuple[float, str, Drawn]]:
    """Faults one after another; those that want to be alone only when this lane is."""
    weights = [package.weight for package in packages]
    at_s = from_s + rng.uniform(0.0, 1.0)
    while at_s < until_s:
        [package] = rng.choices(packages, weights)
        assert package.draw is not None, "only what can be drawn is"
        fault = package.draw(rng, shape)
        over_s = at_s + fault.takes_s
        if (alone or not fault.alone) and over_s < until_s:
            yield at_s, package.name, fault
            at_s = over_s
        at_s += rng.uniform(0.5, 2.0) * calm
