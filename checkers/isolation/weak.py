"""Levels weaker than snapshot isolation, by their axioms: read committed to causal consistency.

All axioms have one form. If T3 read key x from T1, and T2 is another transaction that wrote x and
that T3 must know of, then T2 precedes T1. The levels differ in what T3 must know of (Biswas and
Enea, "On the Complexity of Checking Transactional Consistency", 2019):

- read committed: the transactions from which T3 had read before;
- read atomic: those before T3 in its session, and all from which T3 read;
- causal: those, and all that these must know of.

A history satisfies a level exactly if these precedences, the order of sessions, and that of reads
after the writes they saw have no cycle. The precedences are found as in AWDIT (Møldrup and
Pavlogiannis, 2025), which leaves out those that follow from others.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from checkers.isolation.components import labels
from checkers.isolation.findings import listed
from checkers.isolation.sessions import INITIAL, Sessions, Violation

Precedence = tuple[int, int]


def known(history: Sessions) -> dict[Precedence, str]:
    """Return the order of sessions, and that of writes before the reads that saw them."""
    found: dict[Precedence, str] = {}
    for session in history.sessions:
        found[INITIAL, session[0]] = "the initial versions precede all transactions"
        for before, after in pairwise(session):
            found[before, after] = "both are in one session"
    for number, txn in enumerate(history.txns):
        for key, writer in txn.reads:
            found.setdefault((writer, number), f"the later one read {key} from it")
    return found


def _common(some: Collection[Any], others: Collection[Any]) -> Iterator[Any]:
    """Yield the keys that two collections have in common, in steps of the smaller one's size."""
    few, many = (some, others) if len(some) < len(others) else (others, some)
    return (key for key in few if key in many)


def read_committed(history: Sessions) -> Iterator[tuple[Precedence, Any]]:
    """Yield the precedences of read committed, each with the key that shows it.

    The reads of T3 are visited from the last one to the first one. Of the reads of each key after
    the visited one, the two earliest writers count, because the others follow from these.
    """
    for txn in history.txns:
        first_read = {writer: at for at, (_, writer) in reversed([*enumerate(txn.reads)])}
        later: dict[Any, tuple[int, ...]] = {}
        for at in range(len(txn.reads) - 1, -1, -1):
            key, writer = txn.reads[at]
            if first_read[writer] == at:
                for other in _common(later, history.txns[writer].writes):
                    yield from (
                        ((writer, source), other) for source in later[other] if source != writer
                    )
            earlier = (writer, *(each for each in later.get(key, ()) if each != writer))
            later[key] = earlier[:2]


def read_atomic(history: Sessions) -> Iterator[tuple[Precedence, Any]]:
    """Yield the precedences of read atomic, each with the key that shows it."""
    for session in history.sessions:
        last: dict[Any, int] = {}
        for number in session:
            txn = history.txns[number]
            for key, source in txn.reads:
                if last.get(key, source) != source:
                    yield (last[key], source), key
            sources = dict(txn.reads)
            for writer in {writer for _, writer in txn.reads}:
                for key in _common(sources, history.txns[writer].writes):
                    if sources[key] != writer:
                        yield (writer, sources[key]), key
            last.update(dict.fromkeys(txn.writes, number))


def causal(history: Sessions) -> Iterator[tuple[Precedence, Any]]:
    """Yield the precedences of causal consistency, each with the key that shows it.

    Each transaction has for each session the number of its transactions that it must know of.
    """
    home = {number: at for at, session in enumerate(history.sessions) for number in session}
    writers: dict[Any, list[list[int]]] = {}
    for at, session in enumerate(history.sessions):
        for number in session:
            for key in history.txns[number].writes:
                if key not in writers:
                    writers[key] = [[] for _ in history.sessions]
                writers[key][at].append(number)
    clocks: dict[int, Any] = {INITIAL: np.zeros(len(history.sessions), np.int64)}
    for number in _in_order(history):
        if number == INITIAL:
            continue
        txn = history.txns[number]
        clock = np.zeros(len(history.sessions), np.int64)
        own = history.sessions[home[number]][max(0, txn.place - 1) : txn.place]
        for before in (*own, *(writer for _, writer in txn.reads)):
            np.maximum(clock, clocks[before], out=clock)
            if before != INITIAL:
                one = history.txns[before].place + 1
                clock[home[before]] = max(clock[home[before]], one)
        clocks[number] = clock
        for key, source in dict.fromkeys(txn.reads):
            for end, written in zip(clock.tolist(), writers.get(key, ()), strict=False):
                known_of = bisect_left(written, end, key=lambda each: history.txns[each].place)
                if known_of and written[known_of - 1] != source:
                    yield (written[known_of - 1], source), key


def _in_order(history: Sessions) -> list[int]:
    """Return the transactions in an order that sessions and reads allow, which have no cycle."""
    following: dict[int, list[int]] = {}
    missing = [0] * len(history.txns)
    for before, after in known(history):
        following.setdefault(before, []).append(after)
        missing[after] += 1
    found = [number for number, count in enumerate(missing) if not count]
    for number in found:
        for after in following.get(number, ()):
            missing[after] -= 1
            if not missing[after]:
                found.append(after)
    return found


AXIOMS: Mapping[str, Callable[[Sessions], Iterator[tuple[Precedence, Any]]]] = {
    "read-committed": read_committed,
    "repeatable-read": read_committed,
    "read-atomic": read_atomic,
    "causal": causal,
}
REPEATABLE = ("repeatable-read", "read-atomic", "causal")
"""The levels at which a transaction reads a key from one other transaction only."""


def precedences(history: Sessions, level: str) -> dict[Precedence, str]:
    """Return all that precedes something at a level. Raises :class:`Violation` if there is a
    cycle."""
    found = known(history)
    _refuse_cycle(history, found)
    if level in REPEATABLE:
        _refuse_unrepeatable(history)
    for edge, key in AXIOMS[level](history):
        found.setdefault(
            edge,
            f"a transaction that must know its write of {key} read {key} from the later one",
        )
    _refuse_cycle(history, found)
    return found


def _refuse_unrepeatable(history: Sessions) -> None:
    for txn in history.txns:
        sources: dict[Any, int] = {}
        for key, writer in txn.reads:
            if sources.setdefault(key, writer) != writer:
                events = [txn.event, *(history.txns[n].event for n in (sources[key], writer))]
                raise Violation(
                    f"T1 = {txn.text} read {key} from two other transactions.",
                    [event for event in events if event >= 0],
                )


def _refuse_cycle(history: Sessions, edges: Mapping[Precedence, str]) -> None:
    """Raise :class:`Violation` with a short cycle, if there is any."""
    source, target = np.array([*edges], np.int64).reshape(-1, 2).T
    component = labels(source, target, len(history.txns))
    inner = np.flatnonzero(component[source] == component[target])
    if not len(inner):
        return
    following: dict[int, list[int]] = {}
    for before, after in zip(source[inner].tolist(), target[inner].tolist(), strict=True):
        following.setdefault(before, []).append(after)
    cycle = _cycle(int(source[inner[0]]), following)
    names = [f"T{n} = {history.txns[number].text}" for n, number in enumerate(cycle, 1)]
    steps = [
        f"T{n + 1} precedes T{(n + 1) % len(cycle) + 1}, because"
        f" {edges[number, cycle[(n + 1) % len(cycle)]]}"
        for n, number in enumerate(cycle)
    ]
    raise Violation(
        f"Let {listed(names)}. {'. '.join(steps)}: a contradiction.",
        [history.txns[number].event for number in cycle if number != INITIAL],
    )


def _cycle(start: int, following: Mapping[int, list[int]]) -> list[int]:
    """Return a shortest cycle through a vertex that is on one."""
    came: dict[int, int] = {}
    waiting = [start]
    for number in waiting:
        for after in following.get(number, ()):
            if after not in came:
                came[after] = number
                waiting.append(after)
    cycle = [came[start]]
    while cycle[-1] != start:
        cycle.append(came[cycle[-1]])
    return cycle[::-1]
