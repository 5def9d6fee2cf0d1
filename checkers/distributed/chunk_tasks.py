"""What an executor does with a chunk: it reads it, and then checks it and cuts it into slices.

These are two tasks, because operations cross the borders of chunks: the first one reports the
border, and the second one gets what the chunk carries from earlier ones.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from checkers import (
    arrow,
    completions,
    counts,
    facts,
    group_events,
    jsonl,
    micro_ops,
    parquet,
    table_builder,
    wellformed,
)
from checkers.columns import Columns
from checkers.completions import Misfit
from checkers.counts import Outcomes
from checkers.distributed import borders, chunks, group_context, packing, slices, uses
from checkers.distributed.borders import Border, Carried, Refusal
from checkers.distributed.chunks import Chunk
from checkers.distributed.kept import Kept
from checkers.distributed.uses import Uses
from checkers.kernels.arrays import I32
from checkers.kernels.compact import Operations
from checkers.kernels.rows import I8, I64
from model.history import BadHistory
from model.op import NEMESIS

_GROUPS = frozenset((micro_ops.FREEZE, *group_events.OF_GROUPS))


_NONE = np.zeros(0, dtype=np.int64)


class Prepared(NamedTuple):
    """A chunk that was read."""

    chunk: Chunk
    """Where its rows are."""
    border: Border | None = None
    """``None`` for a chunk without events."""
    weights: Mapping[str, int] = {}
    """How many micro-operations and records name each partition, in the order of the names."""
    has_groups: bool = False
    has_transactions: bool = False
    moments_ns: Sequence[int] = ()
    """When processes began to act that were frozen at its end."""
    nemesis: bytes = b""
    """The events of the nemesis, packed."""
    unknown: Mapping[str, int] = {}
    torn: str | int | None = None
    """What was left out at the end: a sentence, or the number of a line within the chunk."""
    bad: str | jsonl.BadLine | None = None
    """Why the chunk cannot be read; the line counts from the begin of the chunk."""


class Scanned(NamedTuple):
    """What is known of a chunk besides its slices."""

    broken: Refusal | None = None
    """The first event that breaks a rule, with its row in the history."""
    misfits: tuple[tuple[int, int, Misfit], ...] = ()
    """Row in the history, and index, of each completion that does not fit; up to the first that is
    rejected."""
    outcomes: Outcomes = Outcomes()
    ignored: Mapping[str, int] = {}
    subscribes: bool = False
    uses: Uses = Uses()


class Cut(NamedTuple):
    """How chunks are cut into slices."""

    slice_of: Mapping[str, int]
    """The number of the slice of each partition."""
    slices: int
    """How many there are."""
    healed_ns: int | None
    """When the last fault was healed, 0 without any; ``None`` if one was not."""
    kept: Mapping[str, Kept]
    """The partitions of which slices have only some records, and which ones."""
    ops: I64 = _NONE
    """The operations that slices have with all that they sent."""
    moments_ns: Sequence[int] | None = None
    """When processes began to act that were frozen at the end of some chunk; ``None`` in a history
    without groups."""


def prepare(chunk: Chunk, typed: Path) -> Prepared:
    """Read a chunk; lines become a Parquet file, ``typed``."""
    torn: str | int | None = None
    try:
        if chunk.is_typed:
            history = chunks.rows(chunk)
        else:
            history, torn = chunks.lines(chunk)
            parquet.write(typed, history.schema, [history])
            chunk = Chunk(str(typed), 0, pq.read_metadata(typed).num_row_groups)
    except BadHistory as error:
        return Prepared(chunk, bad=str(error))
    except OSError as error:
        return Prepared(chunk, bad=f"{chunk.path} cannot be read: {error.strerror or error}")
    except jsonl.BadLine as error:
        return Prepared(chunk, bad=error)
    return described(chunk, history, torn)


def described(chunk: Chunk, history: pa.Table, torn: str | int | None) -> Prepared:
    """Return what a plan needs to know of a chunk with these events."""
    if not history.num_rows:
        return Prepared(chunk, torn=torn)
    columns = Columns(history)
    return Prepared(
        chunk,
        borders.border(history, columns),
        _weights(columns),
        not _used(columns.op, columns.op_names).isdisjoint(_GROUPS),
        "txn" in _used(columns.f, columns.f_names),
        group_context.moments_ns(columns),
        packing.packed(history.take(arrow.column(np.flatnonzero(columns.process == NEMESIS)))),
        columns.unknown,
        columns.torn if torn is None else torn,
    )


def _used(codes: I32, names: Sequence[str]) -> frozenset[str]:
    """Return the names that are in use: a dictionary may have others."""
    count = np.bincount(codes, minlength=len(names))
    return frozenset(name for name, times in zip(names, count.tolist(), strict=True) if times)


def _weights(columns: Columns) -> dict[str, int]:
    rows = np.arange(len(columns.op))
    named = columns.op_key[rows] if len(rows) else rows
    count = len(columns.keys)
    found = np.bincount(named[named >= 0], minlength=count)
    found += np.bincount(columns.record_key, minlength=count)
    return dict(zip(columns.keys, found.tolist(), strict=True))


def scan(
    chunk: Chunk, carried: Carried, cut: Cut, wanted: Collection[int]
) -> tuple[Scanned, Iterator[tuple[int, bytes]]]:
    """Check a chunk, and return number and packed events of the ``wanted`` ones of its slices.

    A chunk that cannot be judged has no slices.
    """
    whole = _whole(chunk, carried)
    columns = Columns(whole.history)
    broken = wellformed.broken(whole.history, columns)
    misfits = () if broken is not None else _misfits(columns, whole.rows)
    if broken is not None or any(not misfit.is_doubt for *_, misfit in misfits):
        refusal = None
        if broken is not None:
            row = broken.row
            refusal = Refusal(int(whole.rows[row]), int(columns.index[row]), broken.why)
        return Scanned(refusal, misfits), iter(())
    operations = table_builder.operations_of(columns)
    mine = operations.only(~np.isin(operations.last, whole.moved))
    scanned = Scanned(
        None,
        misfits,
        counts.outcomes(operations),
        _ignored(columns, whole.carried),
        counts.subscribes(operations),
        uses.of_chunk(columns, mine, cut.healed_ns),
    )
    return scanned, _slices(whole, columns, operations, cut, wanted)


Works = Callable[[Columns, Operations], I8]
"""Returns a column of numbers of 8 bits about operations."""


def cut(
    chunk: Chunk,
    carried: Carried,
    cut: Cut,
    wanted: Collection[int],
    works: Works | None = None,
) -> Iterator[tuple[int, bytes]]:
    """Return number and packed events of the wanted slices of a chunk that was scanned before.

    ``works`` makes their column :data:`~checkers.distributed.slices.WORK`.
    """
    whole = _whole(chunk, carried)
    columns = Columns(whole.history)
    return _slices(whole, columns, table_builder.operations_of(columns), cut, wanted, works)


def _slices(
    whole: "_Whole",
    columns: Columns,
    operations: Operations,
    cut: Cut,
    wanted: Collection[int],
    works: Works | None = None,
) -> Iterator[tuple[int, bytes]]:
    number = np.array([cut.slice_of[key] for key in columns.keys], dtype=np.int64)
    kept = {code: cut.kept[key] for code, key in enumerate(columns.keys) if key in cut.kept}
    context = None
    if cut.moments_ns is not None:
        ended = np.flatnonzero(~np.isin(operations.last, whole.moved))
        context = group_context.of_chunk(columns, operations, ended, cut.moments_ns)
    of_works = None if works is None else works(columns, operations)
    slicer = slices.Slicer(
        whole.history,
        columns,
        operations,
        number,
        cut.slices,
        kept,
        cut.ops,
        context,
        of_works,
    )
    return ((of, packing.packed(events)) for of, events in slicer.slices(wanted, whole.moved))


def operations(chunk: Chunk, carried: Carried) -> tuple[Columns, Operations]:
    """Return the columns of a chunk that was scanned before, and the operations that it ends."""
    whole = _whole(chunk, carried)
    columns = Columns(whole.history)
    found = table_builder.operations_of(columns)
    return columns, found.only(~np.isin(found.last, whole.moved))


def both(
    chunk: Chunk, carried: Carried, cut: Cut, wanted: Collection[int]
) -> tuple[Columns, Operations, Iterator[tuple[int, bytes]]]:
    """Return what :func:`operations` and :func:`cut` do."""
    whole = _whole(chunk, carried)
    columns = Columns(whole.history)
    found = table_builder.operations_of(columns)
    mine = found.only(~np.isin(found.last, whole.moved))
    return columns, mine, _slices(whole, columns, found, cut, wanted)


class _Whole(NamedTuple):
    """The events of a chunk, after those that it carries."""

    history: pa.Table
    rows: I64
    """The row of each event in the history of all chunks."""
    moved: I64
    """The rows of the events that another chunk gets."""
    carried: pa.Table | None
    """The carried events."""


def _whole(chunk: Chunk, carried: Carried) -> _Whole:
    history = chunks.rows(chunk)
    rows = np.arange(carried.begin, carried.begin + history.num_rows)
    if not carried.events:
        return _Whole(history, rows, carried.moved, None)
    before = packing.unpacked([carried.events])
    return _Whole(
        packing.joined([before, history]),
        np.concatenate((carried.rows, rows)),
        len(carried.rows) + carried.moved,
        before,
    )


def _misfits(columns: Columns, rows: I64) -> tuple[tuple[int, int, Misfit], ...]:
    """Return the completions that do not fit, up to the first that is rejected."""
    found = []
    for misfit in completions.misfits(columns):
        found.append((int(rows[misfit.row]), int(columns.index[misfit.row]), misfit))
        if not misfit.is_doubt:
            break
    return tuple(found)


def _ignored(columns: Columns, carried: pa.Table | None) -> Counter[str]:
    """Count what no checker knows, without the carried events, which count in their own chunk."""
    found = Counter(facts.ignored(columns))
    if carried is not None:
        found -= Counter(facts.ignored(Columns(carried)))
    return found


def related(chunk: Chunk, carried: Carried, values: I64, ops: I64) -> bytes:
    """Return the operations of a chunk that send one of these values, that end with one of these
    events, or that concern topics, packed."""
    whole = _whole(chunk, carried)
    columns = Columns(whole.history)
    operations = table_builder.operations_of(columns)
    number = operations.of_events()
    number[whole.moved] = -1
    is_wanted = columns.is_op(micro_ops.CREATE_COMPACTED, micro_ops.DELETE_TOPIC)
    sends = np.flatnonzero(columns.is_op(micro_ops.SEND))
    is_wanted[sends[np.isin(columns.op_value[sends], values)] if len(sends) else sends] = True
    wanted = np.union1d(
        number[columns.event[is_wanted]], np.flatnonzero(np.isin(operations.op, ops))
    )
    rows = np.flatnonzero(np.isin(number, wanted[wanted >= 0]))
    return packing.packed(whole.history.take(arrow.column(rows)))
