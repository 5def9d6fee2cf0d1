"""Draws which fault is applied when from a seed, and keeps the schedule as data.

A schedule consists of periods. Each period uses a random subset of the packages, in the lane of
process faults, the lane of network faults, or both, and perhaps in the lane of operators as well.
Faults of one lane follow one another; faults of different lanes may overlap. Then no fault is
active for a while, so that the cluster can recover; now and then there is a longer pause. The
probability of each package to be in a subset is drawn once per schedule (swarm testing), so that
some runs concentrate on one kind of fault.
"""

import dataclasses
import random
from collections.abc import Container, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from model.layout import Layout
from model.plan import ScheduledFault
from model.roles import NodeId
from nemesis.draws import ClusterShape, Drawn
from nemesis.package import DOWN, Lane, Package
from nemesis.targets import CONTROLLER

QUIET_START_S = 5.0
"""No fault is applied before the cluster has settled: it would show nothing."""
QUIET_END_S = 5.0
"""Every fault is healed this long before the end of the workload, so that clients can recover."""
QUIET_PERIODS = 0.25
"""The probability of an additional pause between two periods."""
SECONDS_PER_FAULT = 7.0
"""A schedule has at least one fault per this many seconds between its quiet ends."""
KINDS = 3
"""The faults of a schedule come from at least this many packages, if there are so many."""

TRIGGERED = 0.5
"""The share of faults that wait for an operation of a client, if the workload offers some."""

STRIKE_S = 0.8
"""How long before the fault that interrupts it a request begins, at most."""

OPERATORS = {1: 0.3, 2: 0.6}
"""The share of periods with operators, by the number of other lanes in use."""

LANES: tuple[Lane, ...] = ("process", "network", "admin")


class DrawSettings(NamedTuple):
    """Settings of the draw.

    The schedule of a seed must not change under the defaults, also when a setting is added.
    """

    pause_scale: float = 1.0
    """Stretches the pauses between faults, and makes additional pauses more likely."""
    repeat_target_p: float = 0.0
    """How likely a fault on one broker targets the same one as the previous such fault."""
    exclusive_p: float = 0.0
    """How likely a period consists of one fault that must be alone.

    Such faults mostly take too long for the time that other faults have left in a period.
    """
    strike_p: float = 0.0
    """How likely an operator's request comes shortly before another fault of its period.

    The fault then strikes while the cluster carries out the request, and as likely the controller.
    """


EVEN = DrawSettings()


def draw(
    packages: Sequence[Package],
    *,
    layout: Layout,
    seed: int,
    time_limit_s: float,
    keys: Sequence[str] = (),
    coordinators: Sequence[str] = (),
    acknowledged: bool = True,
    replicas: int = 3,
    asked: Sequence[str] = ("Produce", "Fetch"),
    intercepts_brokers: bool = True,
    refuses_links: bool = True,
    cuts_clients: bool = True,
    internal_topics: bool = True,
    trigger_ops: Sequence[str] = (),
    session_timeout_s: float = 2.0,
    min_isr: int = 2,
    synced: bool = False,
    start_s: float = 0.0,
    directories: int = 1,
    draw_settings: DrawSettings = EVEN,
) -> tuple[ScheduledFault, ...]:
    """Draw a schedule: the same one for the same arguments, and empty if no package may be drawn.

    ``trigger_ops`` are operations of clients; some faults are applied when one of them begins.
    ``asked`` are APIs that clients call again and again; without ``intercepts_brokers`` all faults
    on messages are on those of clients. Without ``refuses_links`` links are only cut, without
    ``cuts_clients`` only those between nodes, and without ``internal_topics`` only partitions of
    clients are moved. ``time_limit_s`` is that of the workload; every fault is over before it. If
    time allows, the schedule has enough faults of enough kinds to be meaningful
    (:data:`SECONDS_PER_FAULT`, :data:`KINDS`): draws that have fewer are repeated.
    """
    shape = ClusterShape(
        layout=layout,
        keys=tuple(keys),
        coordinators=tuple(coordinators),
        acknowledged=acknowledged,
        replicas=replicas,
        asked=tuple(asked),
        intercepts_brokers=intercepts_brokers,
        refuses_links=refuses_links,
        cuts_clients=cuts_clients,
        internal_topics=internal_topics,
        session_timeout_s=session_timeout_s,
        min_isr=min_isr,
        synced=synced,
        start_s=start_s,
        directories=directories,
    )
    packages = [each for each in packages if each.draw is not None and each.room(shape)]
    if not packages:
        return ()
    start_s = min(QUIET_START_S, time_limit_s / 6)
    end_s = quiet_from_s(time_limit_s)
    wanted = int((end_s - start_s) / SECONDS_PER_FAULT)
    kinds = min(KINDS, len(packages), wanted)
    best: list[tuple[float, str, Drawn]] = []
    for attempt in range(200):
        rng = random.Random(f"{seed}/{attempt}")
        faults = _drawn(rng, packages, shape, start_s, end_s, draw_settings)
        drawn = sorted(faults, key=lambda item: item[0])
        if draw_settings.repeat_target_p:
            drawn = list(_again(rng, drawn, layout.brokers, draw_settings.repeat_target_p))
        if draw_settings.strike_p:
            requests = {each.name for each in packages if each.lane == "admin"}
            drawn = list(
                _at_controller(rng, drawn, requests, layout.brokers, draw_settings.strike_p)
            )
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
            options=fault.options | _trigger(rng, trigger_ops),
        )
        for number, (at_s, _, fault) in enumerate(best, start=1)
    )


def quiet_from_s(time_limit_s: float) -> float:
    """Return the second by which every fault is healed, so that clients can recover."""
    return time_limit_s - min(QUIET_END_S, time_limit_s / 6)


def _trigger(rng: random.Random, trigger_ops: Sequence[str]) -> dict[str, Any]:
    """Return the option ``when`` for some faults: the operation that triggers them."""
    return {"when": rng.choice(trigger_ops)} if trigger_ops and rng.random() < TRIGGERED else {}


def _again(
    rng: random.Random,
    drawn: Sequence[tuple[float, str, Drawn]],
    brokers: Sequence[NodeId],
    repeat_target_p: float,
) -> Iterator[tuple[float, str, Drawn]]:
    """Yield the same faults, some of them with the targets of the fault before them."""
    last: Any = None
    for at_s, package, fault in drawn:
        is_one = _is_one(fault, brokers)
        if is_one and last is not None and rng.random() < repeat_target_p:
            fault = dataclasses.replace(fault, targets=last)
        if is_one:
            last = fault.targets
        yield at_s, package, fault


def _at_controller(
    rng: random.Random,
    drawn: Sequence[tuple[float, str, Drawn]],
    requests: Container[str],
    brokers: Sequence[NodeId],
    strike_p: float,
) -> Iterator[tuple[float, str, Drawn]]:
    """Yield the same faults; some of those right after an operator's request hit the controller."""
    asked_s = -STRIKE_S
    for at_s, package, fault in drawn:
        if package in requests:
            asked_s = at_s
        elif at_s - asked_s <= STRIKE_S and _is_one(fault, brokers) and rng.random() < strike_p:
            fault = dataclasses.replace(fault, targets=CONTROLLER)
        yield at_s, package, fault


def _is_one(fault: Drawn, brokers: Sequence[NodeId]) -> bool:
    """Whether a fault has one broker as its target, or one role."""
    return isinstance(fault.targets, str) or tuple(fault.targets) in {(each,) for each in brokers}


def _drawn(
    rng: random.Random,
    packages: Sequence[Package],
    shape: ClusterShape,
    start_s: float,
    end_s: float,
    draw_settings: DrawSettings,
) -> Iterator[tuple[float, str, Drawn]]:
    pause_scale = draw_settings.pause_scale
    weights = {package.name: rng.uniform(0.25, 1.0) for package in packages}
    lanes = [lane for lane in LANES if any(package.lane == lane for package in packages)]
    beside: list[Lane] = ["admin"] if lanes[-1] == "admin" and len(lanes) > 1 else []
    lanes = [lane for lane in lanes if lane not in beside]
    at_s = start_s
    while at_s < end_s:
        if at_s > start_s and rng.random() < QUIET_PERIODS * pause_scale:
            at_s += rng.uniform(3.0, 6.0)
        if draw_settings.exclusive_p and rng.random() < draw_settings.exclusive_p:
            heavy = _alone(rng, packages, shape, end_s - at_s)
            if heavy is not None:
                yield at_s, *heavy
                at_s += heavy[1].takes_s + rng.uniform(2.0, 4.0) * pause_scale
                continue
        until_s = min(end_s, at_s + rng.uniform(8.0, 14.0))
        busy = rng.choice([lanes, lanes, lanes[:1], lanes[-1:]])
        if beside and rng.random() < OPERATORS[len(busy)]:
            busy = [*busy, *beside]
        over_s = at_s
        others_s: list[float] = []
        for lane in busy:
            mine = [package for package in packages if package.lane == lane]
            loose = [package for package in mine if rng.random() < weights[package.name]]
            loose = loose or [rng.choice(mine)]
            found = _lane(rng, loose, shape, at_s, until_s, pause_scale, alone=len(busy) == 1)
            if lane in beside and draw_settings.strike_p:
                found = _before(rng, found, others_s, until_s, draw_settings.strike_p)
            for fault in found:
                yield fault
                others_s.append(fault[0])
                over_s = max(over_s, fault[0] + fault[2].takes_s)
        at_s = over_s + rng.uniform(2.0, 4.0) * pause_scale


def _alone(
    rng: random.Random, packages: Sequence[Package], shape: ClusterShape, room_s: float
) -> tuple[str, Drawn] | None:
    """Draw a fault that must be alone and for which there is time, preferably one that takes long.

    The shorter ones have chances in other periods.
    """
    found: list[tuple[str, Drawn]] = []
    for package in packages:
        for _ in range(20):
            fault = _fault(rng, package, shape)
            if fault.alone and fault.takes_s < room_s:
                found.append((package.name, fault))
                break
    if not found:
        return None
    return rng.choices(found, [fault.takes_s for _, fault in found])[0]


def _fault(rng: random.Random, package: Package, shape: ClusterShape) -> Drawn:
    """Draw a fault of a package, and allow for the start of the nodes that it stops."""
    assert package.draw is not None, "packages without a draw function are left out"
    drawn = package.draw(rng, shape)
    stops = any(fault.state == DOWN for fault in package.faults if fault.name == drawn.fault)
    if not (stops and shape.start_s):
        return drawn
    times = len(drawn.targets) if drawn.fault == "restart-rolling" else 1
    return dataclasses.replace(drawn, overhead_s=drawn.overhead_s + times * shape.start_s)


def _lane(
    rng: random.Random,
    packages: Sequence[Package],
    shape: ClusterShape,
    from_s: float,
    until_s: float,
    pause_scale: float,
    *,
    alone: bool,
) -> Iterator[tuple[float, str, Drawn]]:
    """Draw faults one after another; those that must be alone only if no other lane is in use."""
    weights = [package.weight for package in packages]
    at_s = from_s + rng.uniform(0.0, 1.0)
    while at_s < until_s:
        [package] = rng.choices(packages, weights)
        fault = _fault(rng, package, shape)
        over_s = at_s + fault.takes_s
        if (alone or not fault.alone) and over_s < until_s:
            yield at_s, package.name, fault
            at_s = over_s
        at_s += rng.uniform(0.5, 2.0) * pause_scale


def _before(
    rng: random.Random,
    drawn: Iterator[tuple[float, str, Drawn]],
    others_s: Sequence[float],
    until_s: float,
    strike_p: float,
) -> Iterator[tuple[float, str, Drawn]]:
    """Yield the same faults of a lane, some of them later: shortly before one of another lane.

    others_s: when those begin. Each fault ends before the next one of its lane, and ``until_s``.
    """
    faults = list(drawn)
    for (at_s, package, fault), after in zip_longest(faults, faults[1:]):
        last_s = (until_s if after is None else after[0]) - fault.takes_s
        fits = [other_s for other_s in others_s if at_s + STRIKE_S <= other_s <= last_s]
        if fits and rng.random() < strike_p:
            at_s = rng.choice(fits) - rng.uniform(0.0, STRIKE_S)
        yield at_s, package, fault
