"""Operations that cross the border of chunks: their invocation moves to the chunk that ends them.

A task reports where each process stands at the beginning and at the end of its chunk. From these
reports the driver sees which invocations belong to which later chunk, and whether the order of
events is kept across borders; within a chunk, :mod:`checkers.wellformed` looks at it.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from checkers import arrow, pieces, wellformed
from checkers.columns import INVOKE, Columns
from checkers.distributed import packing
from checkers.kernels.arrays import changes, stable_order
from checkers.kernels.rows import I8, I64, Rows
from model.op import NEMESIS

_INFO = pieces.TYPES.index("info")


class _Processes(NamedTuple):
    process: I64
    first_row: I64
    first_type: I8
    first_index: I64
    last_row: I64
    last_type: I8
    last_index: I64


class Processes(Rows, _Processes):
    """The clients of a chunk; rows count from the chunk's first one."""

    __slots__ = ()


class Border(NamedTuple):
    """What is known of the ends of a chunk."""

    rows: int
    first: tuple[int, int]
    """Index and time of the first event, and then of the last one."""
    last: tuple[int, int]
    processes: Processes
    open: bytes
    """The invocations that are not completed in the chunk, in the order of their processes."""


class Carried(NamedTuple):
    """What a chunk gets from earlier ones, and loses to later ones."""

    events: bytes
    """Invocations that the chunk completes, in the order of their indices; empty if there are
    none."""
    rows: I64
    """The row of each in the history."""
    begin: int
    """The row of the chunk's first event in the history."""
    moved: I64
    """Rows of the chunk, from 0, that another chunk gets."""


class Refusal(NamedTuple):
    """The first event of a history that breaks a rule."""

    row: int
    """Its row in the history, from 0."""
    event: int
    """Its index."""
    why: str


class Joined(NamedTuple):
    """All chunks together."""

    carried: list[Carried]
    broken: Refusal | None
    """The first event that breaks a rule where two chunks meet."""


def border(history: pa.Table, columns: Columns) -> Border:
    """Return the border of a chunk, which has at least one event."""
    clients = np.flatnonzero(columns.process != NEMESIS)
    order = clients[stable_order(columns.process[clients])]
    process = columns.process[order].astype(np.int64)
    begins = np.flatnonzero(changes(process))
    ends = np.append(begins[1:], len(order))[: len(begins)] - 1
    first, last = order[begins], order[ends]
    is_open = columns.type[last] == INVOKE
    return Border(
        rows=history.num_rows,
        first=(int(columns.index[0]), int(columns.time_ns[0])),
        last=(int(columns.index[-1]), int(columns.time_ns[-1])),
        processes=Processes(
            process[begins],
            first,
            columns.type[first],
            columns.index[first],
            last,
            columns.type[last],
            columns.index[last],
        ),
        open=packing.packed(history.take(arrow.column(last[is_open]))),
    )


def joined(borders: Sequence[Border]) -> Joined:
    """Return what each chunk carries, given the borders of all chunks in their order."""
    base = np.concatenate(([0], np.cumsum([each.rows for each in borders]))).astype(np.int64)
    number = np.repeat(np.arange(len(borders)), [len(each.processes.process) for each in borders])
    columns: Any = zip(*(each.processes for each in borders), strict=True)
    every = Processes(*map(np.concatenate, columns))
    order = np.lexsort((number, every.process))
    every, number = every.where(order), number[order]
    follows = np.flatnonzero(every.process[1:] == every.process[:-1])
    broken = _broken(borders, base)
    continues = (every.last_type[follows] == _INFO) & (every.first_type[follows + 1] == INVOKE)
    for place in follows[continues].tolist():
        row = int(base[number[place + 1]] + every.first_row[place + 1])
        why = wellformed.continues(int(every.process[place]), int(every.last_index[place]))
        broken.append(Refusal(row, int(every.first_index[place + 1]), why))
    moving = follows[every.last_type[follows] == INVOKE]
    source, target = number[moving], number[moving + 1]
    opened = [_Opened(each) for each in borders]
    carried = [
        _carried(
            opened,
            {int(of): every.process[moving[(target == chunk) & (source == of)]]
             for of in np.unique(source[target == chunk])},
            base,
            chunk,
            every.last_row[moving[source == chunk]],
        )
        for chunk in range(len(borders))
    ]  # fmt: skip
    return Joined(carried, min(broken, default=None))


class _Opened:
    """The invocations that a chunk leaves open."""

    def __init__(self, of: Border) -> None:
        is_open = of.processes.last_type == INVOKE
        self._process = of.processes.process[is_open]
        self._rows = of.processes.last_row[is_open]
        self._events = packing.unpacked([of.open])

    def of(self, processes: I64) -> tuple[pa.Table, I64]:
        """Return the invocations of these processes, and their rows in the chunk."""
        places = np.searchsorted(self._process, processes)
        return self._events.take(arrow.column(places)), self._rows[places]


def _carried(
    opened: Sequence[_Opened],
    wanted: Mapping[int, I64],
    base: I64,
    chunk: int,
    moved: I64,
) -> Carried:
    """Return what a chunk carries, given the processes whose invocations it gets, by the chunk
    where they are."""
    found = [(of, *opened[of].of(processes)) for of, processes in wanted.items()]
    if not found:
        return Carried(b"", np.zeros(0, dtype=np.int64), int(base[chunk]), moved)
    events = packing.joined([table for _, table, _ in found])
    rows = np.concatenate([base[of] + places for of, _, places in found])
    order = np.argsort(rows)
    return Carried(
        packing.packed(events.take(arrow.column(order))), rows[order], int(base[chunk]), moved
    )


def _broken(borders: Sequence[Border], base: I64) -> list[Refusal]:
    """Return where the indices or the times of events do not go on from chunk to chunk."""
    found = []
    for number, (one, other) in enumerate(pairwise(borders), start=1):
        (index, time_ns), (next_index, next_ns) = one.last, other.first
        if next_index <= index:
            why = wellformed.index_follows(next_index, index)
            found.append(Refusal(int(base[number]), next_index, why))
        elif next_ns < time_ns:
            why = wellformed.time_follows(next_ns, time_ns)
            found.append(Refusal(int(base[number]), next_index, why))
    return found
