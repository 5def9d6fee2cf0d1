"""Searches for cycles in windows of a history, and then over their borders.

Transactions are numbered by the events that ended them, and a window is a range of these. A cycle
leads back over each place that it leads forward over. So no cycle crosses a gap, a place that no
dependency leads back over, and what is between two gaps of a window is complete. What is left
before the first gap and after the last one is joined with that of other windows.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from checkers.distributed import packing
from checkers.kernels import cycles
from checkers.kernels.arrays import distinct, is_in
from checkers.kernels.checker_runs import GaveUp
from checkers.kernels.cycles import Cycles, Edges
from checkers.kernels.found import Found
from checkers.kernels.rows import I64, Bools

EVENTS = 1 << 20
"""How many events a window is wide, about."""
LEFT_MAX = 1_000_000
"""With more dependencies than this left in all windows, their cycles are unknown: the process that
joins them would need too much memory."""


class Windows(NamedTuple):
    """Ranges of events of the same width."""

    first: int
    """The index of the first event."""
    width: int
    number: int
    """How many there are."""

    def of(self, events: I64) -> I64:
        """Return the window of each event."""
        return (events - self.first) // self.width


class Part(NamedTuple):
    """What a slice knows of a window."""

    transactions: I64
    edges: Edges
    """The dependencies whose targets are in the window."""
    over: I64
    """The sources of the dependencies that lead back from this window, or over all of it, to an
    earlier one."""


class Left(NamedTuple):
    """What is between gaps of two windows."""

    transactions: I64
    edges: Edges


class Searched(NamedTuple):
    """What was found in a window."""

    cycles: Cycles
    left: Left
    gave_up: str = ""
    """Why the search ended early; empty if it did not."""


def search(
    keys: Sequence[str], number: int, parts: Sequence[bytes]
) -> tuple[Searched, Searched | None]:
    """Search a window for cycles, and again without the records that are misplaced, if any are."""
    loaded: list[tuple[Part | None, Part | None]] = [packing.loaded(part) for part in parts]
    whole, clean = ([part for part in kind if part] for kind in zip(*loaded, strict=True))
    return _searched(whole, keys), _searched(clean, keys) if clean else None


def _searched(parts: Sequence[Part], keys: Sequence[str]) -> Searched:
    op = distinct(_concatenated(part.transactions for part in parts))
    edges = _joined([part.edges for part in parts])
    edges = edges.where(is_in(edges.target, op))
    if not len(op):
        return Searched(Cycles(), Left(op, edges))
    over = _concatenated(part.over for part in parts)
    gaps = np.flatnonzero(~_crossed(op, edges, over))
    first, last = (int(gaps[0]), int(gaps[-1])) if len(gaps) else (len(op), len(op))
    source, target = np.searchsorted(op, edges.source), np.searchsorted(op, edges.target)
    is_here = (source < len(op)) & (edges.source >= op[0])
    inside = (target >= first) & (target < last) & (source >= first) & (source < last) & is_here
    left = Left(
        np.concatenate((op[:first], op[last:])) if len(gaps) else op,
        edges.where((target < first) | ((target >= last) & (source >= last))),
    )
    try:
        return Searched(cycles.among(op[first:last], edges.where(inside), keys), left)
    except GaveUp as error:
        return Searched(Cycles(), left, str(error))


def _crossed(op: I64, edges: Edges, over: I64) -> Bools:
    """Return for each place whether a dependency leads back over it: before the first transaction,
    between two of them, and after the last one."""
    back = edges.source > edges.target
    before = np.zeros(len(over), dtype=np.int64)
    begins = np.concatenate((np.searchsorted(op, edges.target[back]) + 1, before))
    ends = np.searchsorted(op, np.concatenate((edges.source[back], over))) + 1
    places = len(op) + 2
    change = np.bincount(begins, minlength=places) - np.bincount(ends, minlength=places)
    crossed: Bools = np.cumsum(change)[:-1] > 0
    return crossed


def joined(found: Iterable[Searched], keys: Sequence[str]) -> list[Found]:
    """Return the findings about all windows.

    Raises :class:`~checkers.kernels.checker_runs.GaveUp` if the search in a window did, or above
    ``LEFT_MAX`` dependencies that are left.
    """
    found = list(found)
    for each in found:
        if each.gave_up:
            raise GaveUp(each.gave_up)
    count = sum(len(each.left.edges.source) for each in found)
    if count > LEFT_MAX:
        raise GaveUp(
            f"so many transactions were open at the same time that {count:,} dependencies would"
            f" have to be searched together, more than {LEFT_MAX:,}"
        )
    parts = [each.cycles for each in found]
    if count:
        op = distinct(_concatenated(each.left.transactions for each in found))
        edges = _joined([each.left.edges for each in found])
        parts.append(cycles.among(op, edges.where(is_in(edges.source, op)), keys))
    return cycles.concluded(parts)


def _joined(edges: Sequence[Edges]) -> Edges:
    columns: Any = zip(cycles.NO_EDGES, *edges, strict=True)
    return Edges(*map(np.concatenate, columns))


def _concatenated(columns: Iterable[I64]) -> I64:
    return np.concatenate([np.zeros(0, dtype=np.int64), *columns])
