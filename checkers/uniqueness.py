"""Leaves out values that are not unique in their partition, since they cannot be judged.

Checkers find the write of a record by its partition and value. If two operations may have written a
value (a client that tries again after ``info``, say), each of its records may be of either. The
rows of such a value are left out, and the verdict says so. A write that certainly failed does not
count: its value may be sent again.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from checkers.kernels.arrays import are_distinct
from checkers.kernels.compact import AllPolls, AllSends
from checkers.kernels.rows import FAIL, Bools


class Repeated(NamedTuple):
    """Which rows stay, and which values are left out."""

    sends: Bools
    """Mask of the rows of sends that stay."""
    polls: Bools
    """Mask of the rows of polls that stay."""
    values: tuple[tuple[int, int, tuple[int, ...]], ...]
    """Partition and value that more than one write may have written, and the operations that
    did."""


def repeated(sends: AllSends, polls: AllPolls, compacted: Iterable[int]) -> Repeated | None:
    """Return what has to be left out; ``None`` where values are unique.

    Of a ``compacted`` partition with such a value nothing is judged, because that value may have
    replaced any other of its record key.
    """
    send_key, poll_key = sends.key, polls.key
    if are_distinct(send_key, sends.value):
        return None
    order = np.lexsort((sends.outcome == FAIL, sends.value, send_key))
    key, value = send_key[order], sends.value[order]
    same = (key[1:] == key[:-1]) & (value[1:] == value[:-1])
    if not same.any():
        return None
    possible = sends.outcome[order] != FAIL
    stays = np.ones(len(order), dtype=np.bool_)
    # failed writes come last of their value: each that follows a possible one is left out
    stays[order[1:][same & ~possible[1:] & _with_possible(same, possible)]] = False
    twice = same & possible[1:] & possible[:-1]
    if not twice.any():
        return Repeated(stays, np.ones(len(poll_key), dtype=np.bool_), ())
    places = np.flatnonzero(twice)
    pairs = sorted(set(zip(key[places].tolist(), value[places].tolist(), strict=True)))
    whole = set(compacted) & {key for key, _ in pairs}
    ops: dict[tuple[int, int], list[int]] = {pair: [] for pair in pairs}
    near = np.flatnonzero(np.isin(sends.value, [value for _, value in pairs]))
    for row in near.tolist():
        pair = int(send_key[row]), int(sends.value[row])
        if pair in ops:
            stays[row] = False
            if sends.outcome[row] != FAIL:
                ops[pair].append(int(sends.op[row]))
    read = np.ones(len(poll_key), dtype=np.bool_)
    for row in np.flatnonzero(np.isin(polls.value, [value for _, value in pairs])).tolist():
        read[row] = (int(poll_key[row]), int(polls.value[row])) not in ops
    stays &= ~np.isin(send_key, list(whole))
    read &= ~np.isin(poll_key, list(whole))
    return Repeated(stays, read, tuple((*pair, tuple(ops[pair])) for pair in pairs))


def _with_possible(same: Bools, possible: Bools) -> Bools:
    """Return for each row but the first whether its value has a write that may have happened. Rows
    of one value are adjacent, and such a write comes first."""
    number = np.arange(len(possible))
    begins = np.maximum.accumulate(np.where(np.append(True, ~same), number, 0))
    found: Bools = possible[begins][1:]
    return found
