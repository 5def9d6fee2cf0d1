"""Transactions across slices: what is asked of the slices, and which operations are looked up."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from checkers.distributed import cycle_task
from checkers.distributed.conclusion import Passes
from checkers.distributed.cycle_task import Searched, Windows
from checkers.distributed.slicing import Happened, Slicing
from checkers.distributed.transaction_task import Known, Records, Seen
from checkers.kernels import history_kernels, suspects
from checkers.kernels.arrays import distinct, is_in
from checkers.kernels.checker_runs import GaveUp
from checkers.kernels.found import Found
from checkers.kernels.history import History
from checkers.kernels.history_kernels import Kernel
from checkers.kernels.rows import I64

SUSPECTS_MAX = 200_000
"""With more suspects than this, the anomalies of isolation are unknown: the process that looks for
them would need too much memory."""
_NONE = np.zeros(0, dtype=np.int64)


_Cycles = tuple[Sequence[Found] | GaveUp, Sequence[Found] | GaveUp]
"""The cycles of a history, and those without the records that are misplaced."""


class Across(NamedTuple):
    """What is known of transactions beyond single slices."""

    ops: I64 = _NONE
    """The operations that have to be looked up."""
    cycles: _Cycles = ((), ())
    gave_up: str = ""
    """Why the anomalies of isolation are unknown; empty if they are not."""

    def kernels(self, related: History) -> Mapping[str, Kernel]:
        """Return the kernels of a whole history, given the operations that were looked up."""

        def cycles(history: History) -> Iterable[Found]:
            found = self.cycles[history is not related]
            if isinstance(found, GaveUp):
                raise found
            return found

        def isolation(history: History) -> Iterable[Found]:
            if self.gave_up:
                raise GaveUp(self.gave_up)
            return history_kernels.KERNELS["transactions"](history)

        return {**history_kernels.KERNELS, "transactions": isolation, "cycles": cycles}


def across(slicing: Slicing, passes: Passes, happened: Happened, events: tuple[int, int]) -> Across:
    """Ask the slices about their transactions; ``events`` are the first and the last event."""
    keys = list(slicing.weights)
    first, last = events
    count = max(
        1, sum(each.border.rows for each in passes.prepared if each.border) // cycle_task.EVENTS
    )
    known = Known(
        keys={key: number for number, key in enumerate(keys)},
        happened=happened,
        misplaced=_misplaced(slicing, passes.found),
        overdue=suspects.latest(each.overdue for each in passes.judged),
        fences=suspects.fences(passes.uses.inits),
        windows=Windows(first, (last - first) // count + 1, count),
        settled=slicing.settled,
    )
    too_many = ""
    seen: Sequence[Seen] = ()
    searched: Sequence[tuple[Searched, Searched | None]] = ()
    if slicing.given_up:
        names = ", ".join(slicing.given_up)
        too_many = f"too many operations of {names} would have to be judged together"
    else:
        seen, searched = slicing.split(known, partial(cycle_task.search, keys))
    wanted = np.union1d(known.overdue.op, _union(each.suspects for each in seen))
    lost = [f.ops[0] for f in passes.found if f.anomaly == "lost-write"]
    repeated = [op for each in passes.judged for value in each.repeated for op in value.ops]
    others = np.array([*lost, *repeated], dtype=np.int64)
    gave_up = too_many
    if len(wanted) and not gave_up:
        wanted, gave_up = _sources(wanted, seen)
    if gave_up:
        wanted = _NONE
    wanted = np.union1d(wanted, others)
    if len(wanted):
        near = slicing.neighbours(known, wanted)
        wanted = np.union1d(wanted, _union(near))
    found = _cycles(too_many, [whole for whole, _ in searched], keys)
    clean = _cycles(too_many, [clean for _, clean in searched if clean is not None], keys)
    ops = [
        op for each in (found, clean) if not isinstance(each, GaveUp) for f in each for op in f.ops
    ]
    return Across(np.union1d(wanted, np.array(ops, dtype=np.int64)), (found, clean), gave_up)


def _cycles(
    too_many: str, searched: Sequence[Searched], keys: Sequence[str]
) -> Sequence[Found] | GaveUp:
    if too_many:
        return GaveUp(too_many)
    try:
        return cycle_task.joined(searched, keys)
    except GaveUp as error:
        return error


def _sources(wanted: I64, seen: Sequence[Seen]) -> tuple[I64, str]:
    """Return transactions with all those on which they depend, and why that is unknown, if it
    is."""
    if not all(each.all_links for each in seen):
        return wanted, "too many transactions read from others that were open at the same time"
    source, target = _all(each.source for each in seen), _all(each.target for each in seen)
    more = wanted
    while len(more) and len(wanted) <= SUSPECTS_MAX:
        more = np.setdiff1d(source[is_in(target, more)], wanted)
        wanted = np.union1d(wanted, more)
    if len(wanted) > SUSPECTS_MAX:
        return wanted, f"more than {SUSPECTS_MAX:,} transactions may have been read too early"
    return wanted, ""


def _misplaced(slicing: Slicing, found: Sequence[Found]) -> dict[int, Records]:
    """Return by slice the records that are blamed for where they are in a log."""
    blamed: dict[int, set[tuple[str | None, int | None]]] = {}
    for place in history_kernels.misplaced(found):
        key = found[place].key
        if key is not None:
            blamed.setdefault(slicing.slice_of[key], set()).add((key, found[place].value))
    return dict(blamed)


def _union(columns: Iterable[I64]) -> I64:
    return distinct(_all(columns))


def _all(columns: Iterable[I64]) -> I64:
    return np.concatenate([_NONE, *columns])
