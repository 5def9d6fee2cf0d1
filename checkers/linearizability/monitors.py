"""Decides linearizability without a search where every value is written once: in O(n log n).

Where values are unique, it is known which write each read saw, and the search for an order becomes
a comparison of intervals. The number of concurrent operations does not matter, nor how many were
never completed. (Gibbons and Korach 1997; Lee and Mathur, OOPSLA 2025.)

All functions take columns of int64: ``call`` and ``end`` are places in the order of all events, and
one operation precedes another if its end is less than the other's call. They return the rows of two
operations that no order explains, or ``None``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from checkers.linearizability.operations import NEVER

I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]
READ, WRITE, CAS = 0, 1, 2
"""Kinds of operations of a register."""
BEFORE = -NEVER
"""A place before all events."""


class Conflict(NamedTuple):
    """Operations that no order explains: their rows, and why."""

    rows: tuple[int, ...]
    why: str


class NotUnique(Exception):
    """A value was written more than once, so that it is not known which write a read saw."""


def _rows_of(known: I64, wanted: I64) -> I64:
    """Return the row of each wanted value among the known ones, or -1. Raises NotUnique."""
    order = np.argsort(known, kind="stable")
    ordered = known[order]
    if (ordered[1:] == ordered[:-1]).any():
        raise NotUnique
    if not len(known):
        return np.full(len(wanted), -1)
    place = np.minimum(np.searchsorted(ordered, wanted), len(known) - 1)
    return np.where(ordered[place] == wanted, order[place], -1)


def register(is_write: Bools, value: I64, call: I64, end: I64, initial: int) -> Conflict | None:
    """Check a register. ``value`` is what was written or read; every read has a value.

    The operations on one value form a cluster: the write, and then the reads. One cluster precedes
    another one if any of its operations does. Raises :class:`NotUnique`.
    """
    writes, reads = np.flatnonzero(is_write), np.flatnonzero(~is_write & (end < NEVER))
    cluster = _rows_of(np.append(value[writes], initial), value[reads])
    if (cluster < 0).any():
        row = int(reads[np.flatnonzero(cluster < 0)[0]])
        return Conflict((row,), "its value was never written")
    written = np.append(call[writes], BEFORE)
    early = end[reads] < written[cluster]
    if early.any():
        which = int(np.flatnonzero(early)[0])
        rows = int(reads[which]), int(writes[cluster[which]])
        return Conflict(rows, "the value was read before it was written")
    first_end, last_call = np.append(end[writes], BEFORE), written.copy()
    by_end, by_call = np.append(writes, -1), np.append(writes, -1)
    _least(first_end, by_end, cluster, end[reads], reads)
    _most(last_call, by_call, cluster, call[reads], reads)
    takes_effect = np.append(end[writes] < NEVER, True)
    takes_effect[cluster] = True
    return zones(first_end, last_call, by_end, by_call, np.flatnonzero(takes_effect))


def _least(least: I64, row: I64, group: I64, numbers: I64, rows: I64) -> None:
    """Lower the least number of each group, and note the row that has it."""
    order = np.argsort(-numbers, kind="stable")
    lower = order[numbers[order] < least[group[order]]]
    least[group[lower]], row[group[lower]] = numbers[lower], rows[lower]


def _most(most: I64, row: I64, group: I64, numbers: I64, rows: I64) -> None:
    """Raise the greatest number of each group, and note the row that has it."""
    order = np.argsort(numbers, kind="stable")
    higher = order[numbers[order] > most[group[order]]]
    most[group[higher]], row[group[higher]] = numbers[higher], rows[higher]


def zones(first: I64, last: I64, by_end: I64, by_call: I64, clusters: I64) -> Conflict | None:
    """Find two clusters each of which must precede the other one.

    A cluster has a forward zone if one of its operations ended before another one was called: no
    other forward zone may overlap it, and no other cluster may lie within it.
    """
    first, last = first[clusters], last[clusters]
    forward = np.flatnonzero(first < last)
    forward = forward[np.argsort(first[forward], kind="stable")]
    backward = np.flatnonzero(first >= last)
    found: tuple[int, int] | None = None
    overlaps = first[forward[1:]] < last[forward[:-1]]
    if overlaps.any():
        at = int(overlaps.argmax())
        found = int(forward[at]), int(forward[at + 1])
    elif len(forward) and len(backward):
        place = np.searchsorted(first[forward], last[backward], side="left") - 1
        around = forward[np.maximum(place, 0)]
        inside = (place >= 0) & (first[backward] < last[around])
        if inside.any():
            at = int(inside.argmax())
            found = int(around[at]), int(backward[at])
    if found is None:
        return None
    one, other = clusters[found[0]], clusters[found[1]]
    rows = (by_end[one], by_call[other], by_end[other], by_call[one])
    return Conflict(
        tuple(dict.fromkeys(int(row) for row in rows if row >= 0)),
        "each of two values must have been replaced before the other one was written",
    )


def queue(
    enqueues: tuple[I64, I64, I64], dequeues: tuple[I64, I64, I64], empties: tuple[I64, I64]
) -> Conflict | None:
    """Check a FIFO queue. Columns are value, call and end, and for the dequeues that found nothing
    call and end; every dequeue was completed.

    Rows of the result count through enqueues, dequeues, and empty dequeues. Raises
    :class:`NotUnique`.
    """
    value, call, end = enqueues
    taken, taken_call, taken_end = dequeues
    first = len(value)
    source = _rows_of(value, taken)
    if (source < 0).any():
        row = int(np.flatnonzero(source < 0)[0])
        return Conflict((first + row,), "its element was never enqueued")
    by_source = np.argsort(source, kind="stable")
    twice = np.flatnonzero(source[by_source][1:] == source[by_source][:-1])
    if len(twice):
        one, other = by_source[twice[0]], by_source[twice[0] + 1]
        return Conflict((first + int(one), first + int(other)), "an element was dequeued twice")
    early = np.flatnonzero(taken_end < call[source])
    if len(early):
        row = int(early[0])
        rows = first + row, int(source[row])
        return Conflict(rows, "an element was dequeued before it was enqueued")
    left_call = np.full(first, NEVER, dtype=np.int64)
    left_call[source] = taken_call
    left_by = np.full(first, -1, dtype=np.int64)
    left_by[source] = np.arange(len(taken)) + first
    present = np.flatnonzero((end < NEVER) | (left_by >= 0))  # the others had no effect
    order = present[np.argsort(end[present], kind="stable")]
    latest = np.maximum.accumulate(left_call[order]) if len(order) else left_call
    before = np.searchsorted(end[order], call[source], side="left")
    wrong = (before > 0) & (latest[np.maximum(before, 1) - 1] > taken_end if len(order) else False)
    if np.any(wrong):
        row = int(np.flatnonzero(wrong)[0])
        older = order[int(np.argmax(left_call[order][: before[row]]))]
        involved = (older, source[row], first + row, left_by[older])
        return Conflict(
            tuple(int(each) for each in involved if each >= 0),
            "an element was dequeued before an older one",
        )
    return _never_empty(end[order], left_call[order], empties, first + len(taken))


def _never_empty(begin: I64, end: I64, empties: tuple[I64, I64], first: int) -> Conflict | None:
    """Find a dequeue that found nothing while some element was in the queue all the time.

    ``begin`` and ``end`` say between which places each element was certainly there, by ``begin``.
    """
    there = begin < end
    begin, end = begin[there], end[there]
    if not len(begin) or not len(empties[0]):
        return None
    latest = np.maximum.accumulate(end)
    starts = np.append(True, begin[1:] >= latest[:-1])
    left, right = begin[starts], latest[np.append(np.flatnonzero(starts)[1:], len(begin)) - 1]
    call, until = empties
    place = np.searchsorted(left, call, side="left") - 1
    wrong = np.flatnonzero((place >= 0) & (until < right[np.maximum(place, 0)]))
    if not len(wrong):
        return None
    return Conflict((first + int(wrong[0]),), "it found nothing while the queue had elements")


def levels(low: I64, high: I64, call: I64, end: I64) -> Conflict | None:
    """Check operations whose places in the order are known to be between two levels.

    Two of them conflict if the one that precedes has the higher level.
    """
    order = np.argsort(high, kind="stable")
    latest = np.maximum.accumulate(call[order]) if len(order) else call
    below = np.searchsorted(high[order], low, side="left")
    wrong = (below > 0) & (latest[np.maximum(below, 1) - 1] > end if len(order) else False)
    if not np.any(wrong):
        return None
    row = int(np.flatnonzero(wrong)[0])
    later = int(order[int(np.argmax(call[order][: below[row]]))])
    return Conflict((row, later), "the later one saw less than the earlier one")


def holders(begin: I64, end: I64) -> Conflict | None:
    """Check a lock, given the end of each acquisition and the call of its release: between them it
    was certainly held. Two such intervals must not overlap."""
    rows = np.flatnonzero(begin < end)
    order = rows[np.argsort(begin[rows], kind="stable")]
    overlaps = begin[order[1:]] < end[order[:-1]]
    if not overlaps.any():
        return None
    at = int(overlaps.argmax())
    return Conflict(
        (int(order[at]), int(order[at + 1])), "two processes held the lock at the same time"
    )
