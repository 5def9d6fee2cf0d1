"""Former leaders: whether the faults of a history explain an answer from memory.

A broker that was replaced as a leader answers from its own state until it hears of its successor.
For all that time, faults must keep the news from it: faults that struck this broker, or that struck
the controller, which could not reach it. So the faults that explain one answer struck one broker,
one after another, and between them there was no time in which every broker would have heard. A
broker that ended meanwhile remembers nothing, and a paused one gives no answer.

A fault also causes the election of the successor, while it is active or soon after. A former leader
remembers no state of a later time.

How long after a fault a broker may not have heard yet follows from the timeouts of the cluster. The
contract knows them (``checkers.expectations``), so an explanation says how long it needs.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from checkers.kernels.faults import SETTLED_NS, FaultInterval

ANY_BROKER = ""
"""Stands for a broker that no fault names."""


SOON_NS = 2_000_000_000
"""For so long after a fault, a leader may be replaced because of it, and a broker with working
connections may not have heard of that."""
NEVER = -(1 << 62)


class Spell(NamedTuple):
    """A time in which a leader may have been replaced without hearing of it before its answer."""

    broker: str
    from_ns: int
    to_ns: int
    idle_ns: int
    """The longest time without an active fault between that time and the answer."""


def leaders_of(intervals: Iterable[FaultInterval], key: str) -> tuple[FaultInterval, ...]:
    """Return the intervals that may leave a former leader of a partition answering, or end one."""
    return tuple(
        interval
        for interval in intervals
        if interval.restarts
        or (interval.misleads and (interval.keys is None or key in interval.keys))
    )


def coordinators_of(intervals: Iterable[FaultInterval]) -> tuple[FaultInterval, ...]:
    """Return the fault intervals that may leave a former coordinator answering, or that end one."""
    return tuple(
        interval
        for interval in intervals
        if interval.restarts or (interval.misleads and interval.coordinators)
    )


def idle_ns(
    intervals: Sequence[FaultInterval],
    begin_ns: int,
    end_ns: int,
    explains: Callable[[Spell], bool],
) -> int | None:
    """Return for how long a former leader must have missed its successor while no fault was active.

    The leader gave its answer between the two times. ``explains(spell)`` says whether the answer
    was right when the leader may have been replaced. The result is ``None`` if no faults explain
    it.
    """
    found = [
        next((spell.idle_ns for spell in spells if explains(spell)), None)
        for spells in _of_brokers(intervals, begin_ns, end_ns)
    ]
    return min((idle for idle in found if idle is not None), default=None)


def seconds(idle: int) -> int:
    """Whole seconds, rounded up."""
    return -(-idle // 1_000_000_000)


def _of_brokers(
    intervals: Sequence[FaultInterval], begin_ns: int, end_ns: int
) -> Iterator[Iterator[Spell]]:
    """Yield the spells of each broker that a fault names, the last spell first."""
    named = {node for interval in intervals if interval.misleads for node in interval.nodes or ()}
    for broker in sorted(named) or [ANY_BROKER]:
        mine = [
            interval for interval in intervals if interval.nodes is None or broker in interval.nodes
        ]
        yield _spells(broker, mine, begin_ns, end_ns)


def _spells(
    broker: str, intervals: Sequence[FaultInterval], begin_ns: int, end_ns: int
) -> Iterator[Spell]:
    """Yield the spells of one broker, backwards from its answer."""
    ends = sorted(
        interval.to_ns for interval in intervals if interval.restarts and interval.to_ns is not None
    )
    reach_ns, idle = begin_ns, 0
    for from_ns, to_ns, broken_ns in _pieces(intervals, ends, end_ns):
        if any(to_ns <= ended_ns <= reach_ns for ended_ns in ends):
            return
        if reach_ns - to_ns > SOON_NS:
            to_ns = broken_ns
        idle = max(idle, reach_ns - to_ns)
        if idle > SETTLED_NS:
            return
        reach_ns = min(reach_ns, from_ns)
        yield Spell(broker, from_ns, min(to_ns + SOON_NS, end_ns), idle)


def _pieces(
    intervals: Sequence[FaultInterval], ends: Sequence[int], end_ns: int
) -> list[tuple[int, int, int]]:
    """Return when faults kept news from a broker, the last time first.

    Each has a begin, an end, and a time until when connections were broken (``NEVER`` if they were
    not). Times are cut where the broker started again.
    """
    active = sorted(
        (interval.from_ns, _until(interval, end_ns), interval.disconnects)
        for interval in intervals
        if interval.misleads
        and interval.from_ns <= end_ns
        and not (interval.silences and (interval.to_ns is None or interval.to_ns > end_ns))
    )
    merged: list[tuple[int, int, int]] = []
    for from_ns, to_ns, disconnects in active:
        broken_ns = to_ns if disconnects else NEVER
        if merged and from_ns <= merged[-1][1]:
            first_ns, last_ns, before_ns = merged.pop()
            merged.append((first_ns, max(last_ns, to_ns), max(before_ns, broken_ns)))
        else:
            merged.append((from_ns, to_ns, broken_ns))
    pieces: list[tuple[int, int, int]] = []
    for from_ns, to_ns, broken_ns in merged:
        cuts = [from_ns, *(ended for ended in ends if from_ns < ended < to_ns), to_ns]
        for first_ns, last_ns in itertools.pairwise(cuts):
            is_broken = broken_ns > first_ns or broken_ns == last_ns
            left_ns = min(broken_ns, last_ns) if is_broken else NEVER
            pieces.append((first_ns, last_ns, left_ns))
    return pieces[::-1]


def _until(interval: FaultInterval, end_ns: int) -> int:
    return end_ns if interval.to_ns is None else min(interval.to_ns, end_ns)
