"""Finds the transactions on cycles in windows of a history, and then over their borders.

As in :mod:`checkers.isolation.regions`, no cycle crosses a gap: a place that no dependency leads
back over. What is between two gaps of a window is complete. What is left before the first gap and
after the last one is joined with that of other windows.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from checkers.distributed import packing
from checkers.distributed.list_tasks import Dependencies
from checkers.isolation import conclusion, regions
from checkers.isolation.regions import Ends
from checkers.isolation.transactions import UNKNOWN, Transactions
from checkers.kernels.arrays import I64, is_in
from checkers.kernels.rows import OK, Bools

LEFT_MAX = 2_000_000
"""With more dependencies than this left in all windows, their cycles are unknown: the process that
joins them would need too much memory."""
MEMBERS_MAX = 200_000
"""Number of transactions on cycles whose anomalies are searched."""
LATEST = int(np.iinfo(np.int64).max)
_NONE = np.zeros(0, np.int64)


class Left(NamedTuple):
    """What is before the first gap of a window and after the last one."""

    txns: Transactions
    happened: Bools
    source: I64
    target: I64


class Searched(NamedTuple):
    """What was found in a window."""

    members: I64
    """The transactions on cycles between gaps, by their numbers."""
    is_all: bool
    """Whether these are all."""
    left: Left
    transactions: int
    """How many the window has."""
    has_edges: bool
    """Whether there is a dependency, or an order that counts."""
    processes: I64
    """The processes of transactions that succeeded."""
    first: int
    """The first position at which one of these completed; LATEST without one."""
    last: int
    """The last position at which a transaction that happened was invoked; -1 without one."""


def search(orders: frozenset[str], _number: int, parts: Sequence[bytes]) -> Searched:
    """Search a window for cycles."""
    loaded = [packing.loaded(part) for part in parts]
    found = _joined_txns([each for each in loaded if isinstance(each, Transactions)])
    dependencies = [each for each in loaded if isinstance(each, Dependencies)]
    del loaded
    position = regions.positions(found)
    order = np.argsort(position, kind="stable")
    txns, position = found.where(order), position[order]
    proven = np.concatenate([_NONE, *(each.proven for each in dependencies)])
    happened: Bools = (txns.outcome == OK) | is_in(position, proven)
    places = [_places(each, position, happened) for each in dependencies]
    over = np.concatenate([_NONE, *(each.over for each in dependencies)])
    gaps = np.flatnonzero(~_crossed(places, np.searchsorted(position, over), len(position)))
    count = len(position)
    first, last = (int(gaps[0]), int(gaps[-1])) if len(gaps) else (count, count)
    inside = np.arange(first, last)
    ends = [_inside(each, first, last) for each in places]
    members = first + regions.on_cycles(txns, inside, happened[inside], ends, orders)
    outside = np.concatenate((np.arange(first), np.arange(last, count)))
    kept = [*zip(dependencies, (_left(each, first, last) for each in places), strict=True)]
    return Searched(
        txns.event[members[:MEMBERS_MAX]],
        len(members) <= MEMBERS_MAX,
        Left(
            txns.where(outside),
            happened[outside],
            np.concatenate([_NONE, *(each.source[at] for each, at in kept)]),
            np.concatenate([_NONE, *(each.target[at] for each, at in kept)]),
        ),
        count,
        any(each.is_real.any() for each in places)
        or any(len(part.source) for part in conclusion.orders(txns, happened, orders)),
        np.unique(txns.process[txns.outcome == OK]),
        int(txns.completed[txns.outcome == OK].min(initial=LATEST)),
        int(txns.invoked[happened].max(initial=UNKNOWN)),
    )


class _Places(NamedTuple):
    """Dependencies by places in a window; those outside of it are clipped to its limits."""

    source: I64
    target: I64
    is_here: Bools
    """Whether the earlier transaction is in the window."""
    is_real: Bools
    """Whether both happened, as far as the window knows."""


def _places(found: Dependencies, position: I64, happened: Bools) -> _Places:
    source, target = (np.searchsorted(position, each) for each in found[:2])
    is_here = source < len(position)
    is_here[is_here] = position[source[is_here]] == found.source[is_here]
    is_real = happened[target]
    is_real[is_here] &= happened[source[is_here]]
    return _Places(source, target, is_here, is_real)


def _crossed(places: Sequence[_Places], over: I64, count: int) -> Bools:
    """Return for each gap whether a dependency leads back over it: before the first transaction,
    between two of them, and after the last one."""
    change = np.zeros(count + 2, np.int64)
    for each in places:
        back = np.flatnonzero(each.is_real & (each.source > each.target))
        change += np.bincount(each.target[back] + 1, minlength=count + 2)
        change -= np.bincount(np.minimum(each.source[back], count) + 1, minlength=count + 2)
    change[0] += len(over)
    change -= np.bincount(np.minimum(over, count) + 1, minlength=count + 2)
    crossed: Bools = np.cumsum(change)[:-1] > 0
    return crossed


def _inside(each: _Places, first: int, last: int) -> Ends:
    """Return the dependencies between gaps."""
    kept = each.is_real & each.is_here
    kept &= (each.target >= first) & (each.target < last)
    kept &= (each.source >= first) & (each.source < last)
    return (
        (each.source[kept] - first).astype(np.int32),
        (each.target[kept] - first).astype(np.int32),
    )


def _left(each: _Places, first: int, last: int) -> I64:
    """Return which dependencies are needed beyond the window."""
    is_after = (each.target >= last) & (each.source >= last)
    return np.flatnonzero(each.is_real & ((each.target < first) | is_after))


def joined(found: Sequence[Searched], orders: frozenset[str]) -> tuple[I64, str]:
    """Return the transactions on cycles of all windows, by their numbers, ascending; and why some
    are missing, or an empty text."""
    members = [each.members for each in found]
    count = sum(len(each.left.source) for each in found)
    if count > LEFT_MAX:
        return np.sort(np.concatenate([_NONE, *members])), (
            f"so many transactions were open at the same time that {count:,} dependencies would"
            f" have to be searched together, more than {LEFT_MAX:,}"
        )
    lefts = [each.left for each in found]
    txns = _joined_txns([each.txns for each in lefts])
    happened = np.concatenate([np.zeros(0, np.bool_), *(each.happened for each in lefts)])
    order = np.argsort(regions.positions(txns), kind="stable")
    txns, happened = txns.where(order), happened[order]
    position = regions.positions(txns)
    source, target = (np.concatenate([_NONE, *(each[at] for each in lefts)]) for at in (2, 3))
    kept = is_in(source, position)
    ends = [np.searchsorted(position, each[kept]).astype(np.int32) for each in (source, target)]
    real = happened[ends[0]] & happened[ends[1]]
    across = regions.on_cycles(
        txns, np.arange(len(position)), happened, [(ends[0][real], ends[1][real])], orders
    )
    members = [*members, txns.event[across]]
    total = sum(map(len, members))
    why = ""
    if total > MEMBERS_MAX or not all(each.is_all for each in found):
        members, why = (
            _few(members),
            (
                f"more than {MEMBERS_MAX:,} transactions are on cycles, and only some of them were"
                " searched for anomalies"
            ),
        )
    return np.sort(np.concatenate([_NONE, *members])), why


def is_empty(found: Sequence[Searched], orders: frozenset[str]) -> bool:
    """Return whether no transaction depends on another one or follows it in an order that
    counts."""
    processes = np.concatenate([_NONE, *(each.processes for each in found)])
    first = min((each.first for each in found), default=LATEST)
    last = max((each.last for each in found), default=UNKNOWN)
    return (
        not any(each.has_edges for each in found)
        and not ("process" in orders and len(np.unique(processes)) < len(processes))
        and not ("realtime" in orders and first < last)
    )


def _few(members: Sequence[I64]) -> list[I64]:
    """Return whole windows with few members."""
    found, count = list[I64](), 0
    for each in sorted(members, key=len):
        if count + len(each) > MEMBERS_MAX:
            break
        found.append(each)
        count += len(each)
    return found


def _joined_txns(parts: Sequence[Transactions]) -> Transactions:
    columns: Any = zip(*parts, strict=True)
    if not parts:
        return Transactions(_NONE, _NONE, _NONE.astype(np.int8), _NONE, _NONE)
    return Transactions(*map(np.concatenate, columns))
