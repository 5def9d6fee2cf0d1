"""Finds the transactions on cycles of a large history, one part of it after the other.

Transactions have places in one order: those that succeeded by their completions, and those in doubt
by their invocations. No order of processes or realtime leads back in it. A cycle leads back over
each place that it leads forward over. So it is within a region: between two places that no
dependency leads back over.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from checkers.isolation import conclusion
from checkers.isolation.components import labels
from checkers.isolation.transactions import UNKNOWN, Transactions
from checkers.kernels.arrays import I32, I64, changes, stable_order
from checkers.kernels.rows import OK, Bools
from checkers.threads import mapped

BLOCK = 1 << 16
"""Number of transactions whose cycles are searched together, unless a region has more."""
BATCH = 1 << 22
"""Number of dependencies that are counted together."""
_NONE = np.zeros(0, np.int64)

Ends = tuple[I32, I32]
"""The earlier and the later transactions of dependencies, by their places."""


class Places(NamedTuple):
    """The order of places."""

    order: I64
    """The transactions by their places."""
    place: I32
    """The place of each transaction."""


def positions(txns: Transactions) -> I64:
    """Return the positions in the history that decide about places."""
    return np.where((txns.outcome == OK) | (txns.invoked == UNKNOWN), txns.completed, txns.invoked)


def places(txns: Transactions) -> Places:
    """Return the places of transactions."""
    order = np.argsort(positions(txns), kind="stable")
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return Places(order, place)


def begins(ends: Sequence[Ends], count: int) -> I64:
    """Return at which of so many places the region of each place begins."""
    change = np.zeros(count + 1, np.int64)
    for backs in _batched(_backward(each) for each in ends):
        for at, sign in ((0, -1), (1, 1)):
            places = np.concatenate([back[at] for back in backs])
            change += sign * np.bincount(places + 1, minlength=count + 1)
    is_first = np.cumsum(change[:-1]) == 0
    return np.maximum.accumulate(np.where(is_first, np.arange(count), 0))


def _backward(ends: Ends) -> Ends:
    """Return the dependencies that lead back."""
    source, target = ends
    back = np.flatnonzero(source > target)
    return source[back], target[back]


def _batched(found: Iterable[Ends]) -> Iterator[list[Ends]]:
    """Yield several of these at a time."""
    batch, size = list[Ends](), 0
    for each in found:
        batch.append(each)
        size += len(each[0])
        if size > BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def on_cycles(
    txns: Transactions,
    order: I64,
    happened: Bools,
    ends: list[Ends],
    orders: frozenset[str],
    threads: int = 1,
) -> I64:
    """Return the places of transactions on cycles of dependencies and orders, ascending.

    Args:
        txns: all transactions.
        order: their rows, by their places.
        happened: whether they happened, by their places.
        ends: all dependencies between transactions that happened; they are removed from this list,
            because there may be no memory for a copy of all.
        orders: the orders that count.
        threads: how many threads may be used.
    """
    begin = begins(ends, len(happened))
    block: NDArray[Any] = begin // BLOCK
    if len(block) < BLOCK << 16:
        block = block.astype(np.uint16)  # these are sorted faster
    limits = np.append(np.flatnonzero(changes(block)), len(block))
    numbers = block[limits[:-1]]
    every = (ends.pop() for _ in range(len(ends)))
    parts = [*mapped(lambda each: _in_blocks(each, begin, block, numbers), every, threads)]

    def members(number: int) -> I64:
        first, last = int(limits[number]), int(limits[number + 1])
        edges = [
            (source[at[number] : at[number + 1]], target[at[number] : at[number + 1]])
            for source, target, at in parts
        ]
        some = txns.where(order[first:last])
        return first + _cyclic(some, happened[first:last], first, edges, orders)

    return np.concatenate([_NONE, *mapped(members, range(len(numbers)), threads)])


def _in_blocks(
    ends: Ends, begin: I64, block: NDArray[Any], numbers: NDArray[Any]
) -> tuple[I32, I32, I64]:
    """Return the dependencies inside regions, by their blocks, and where each block begins."""
    source, target = ends
    inside = np.flatnonzero(begin[source] == begin[target])
    of = block[source[inside]]
    order = stable_order(of)
    at = np.searchsorted(of[order], numbers)
    inside = inside[order]
    return source[inside], target[inside], np.append(at, len(inside))


def _cyclic(
    txns: Transactions, happened: Bools, first: int, ends: Sequence[Ends], orders: frozenset[str]
) -> I64:
    """Return which transactions of a block are on cycles; it begins at the place ``first``."""
    if not any(len(source) for source, _ in ends):
        return _NONE
    following = [(p.source, p.target) for p in conclusion.orders(txns, happened, orders)]
    source, target = (
        np.concatenate([*(end[at] - first for end in ends), *(end[at] for end in following)])
        for at in (0, 1)
    )
    component = labels(source, target, int(max(source.max(), target.max())) + 1)
    is_several = np.bincount(component)[component] > 1
    return np.flatnonzero(is_several[: len(happened)])
