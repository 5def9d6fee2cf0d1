"""What an executor does with a chunk: it reads it, and then checks it and cuts it into slices.

These are two tasks, because operations cross the borders of chunks: the first one reports the
border, and the second one gets what the chunk carries from earlier ones.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from checkers import (
    completions,
    counts,
    facts,
    group_events,
    jsonl,
    micro_ops,
    table_builder,
    wellformed,
)
from checkers.columns import Columns
from checkers.completions import Misfit
from checkers.counts import Outcomes
from checkers.distributed import borders, chunks, packing, slices
from checkers.distributed.borders import Border, Carried, Refusal
from checkers.distributed.chunks import Chunk
from checkers.kernels.compact import I32
from checkers.kernels.rows import I64
from model.history import BadHistory
from model.op import NEMESIS

SPANNING = frozenset(("txn", "init", micro_ops.FREEZE, *group_events.OF_GROUPS))
"""Operations and micro-operations whose checkers need more than slices: those of transactions, and
of groups."""


class Prepared(NamedTuple):
    """A chunk that was read."""

    chunk: Chunk
    """Where its rows are."""
    border: Border | None = None
    """``None`` for a chunk without events."""
    weights: Mapping[str, int] = {}
    """How many micro-operations and records name each partition, in the order of the names."""
    spanning: frozenset[str] = frozenset()
    """Those of :data:`SPANNING` that it has."""
    unknown: Mapping[str, int] = {}
    torn: str | int | None = None
    """What was left out at the end: a sentence, or the number of a line within the chunk."""
    bad: str | jsonl.BadLine | None = None
    """Why the chunk cannot be read; the line counts from the begin of the chunk."""


class Scanned(NamedTuple):
    """What is known of a chunk besides its slices."""

    broken: Refusal | None
    """The first event that breaks a rule, with its row in the history."""
    misfits: tuple[tuple[int, int, Misfit], ...]
    """Row in the history, and index, of each completion that does not fit; up to the first that is
    rejected."""
    outcomes: Outcomes
    ignored: Mapping[str, int]
    subscribes: bool
    nemesis: bytes
    """The events of the nemesis."""


def prepare(chunk: Chunk, typed: Path) -> Prepared:
    """Read a chunk; lines become a Parquet file, ``typed``."""
    torn: str | int | None = None
    try:
        if chunk.is_typed:
            history = chunks.rows(chunk)
        else:
            history, torn = chunks.lines(chunk)
            pq.write_table(history, typed, compression="zstd")
            chunk = Chunk(str(typed), 0, pq.read_metadata(typed).num_row_groups)
    except BadHistory as error:
        return Prepared(chunk, bad=str(error))
    except OSError as error:
        return Prepared(chunk, bad=f"{chunk.path} cannot be read: {error.strerror or error}")
    except jsonl.BadLine as error:
        return Prepared(chunk, bad=error)
    if not history.num_rows:
        return Prepared(chunk, torn=torn)
    columns = Columns(history)
    return Prepared(
        chunk,
        borders.border(history, columns),
        _weights(history, columns),
        (_used(columns.f, columns.f_names) | _used(columns.op, columns.op_names)) & SPANNING,
        columns.unknown,
        columns.torn if torn is None else torn,
    )


def _used(codes: I32, names: Sequence[str]) -> frozenset[str]:
    """Return the names that are in use: a dictionary may have others."""
    count = np.bincount(codes, minlength=len(names))
    return frozenset(name for name, times in zip(names, count.tolist(), strict=True) if times)


def _weights(history: pa.Table, columns: Columns) -> dict[str, int]:
    rows = np.arange(len(columns.op))
    named = columns.op_key[rows] if len(rows) else rows
    count = len(columns.keys)
    found = np.bincount(named[named >= 0], minlength=count)
    found += np.bincount(columns.record_key, minlength=count)
    return dict(zip(columns.keys, found.tolist(), strict=True))


def scan(
    chunk: Chunk,
    carried: Carried,
    slice_of: Mapping[str, int],
    count: int,
    wanted: Collection[int],
) -> tuple[Scanned, Iterator[tuple[int, bytes]]]:
    """Check a chunk, and return number and packed events of the ``wanted`` ones of its slices.

    ``slice_of`` has the number of the slice of each partition. A chunk that cannot be judged has no
    slices.
    """
    history, rows = _whole(chunk, carried)
    columns = Columns(history)
    broken = wellformed.broken(history, columns)
    misfits = () if broken is not None else _misfits(columns, rows)
    if broken is not None or any(not misfit.is_doubt for *_, misfit in misfits):
        refusal = None
        if broken is not None:
            row = broken.row
            refusal = Refusal(int(rows[row]), int(columns.index[row]), broken.why)
        return Scanned(refusal, misfits, Outcomes(), {}, False, b""), iter(())
    operations = table_builder.operations_of(columns)
    subscribing = [code for code, name in enumerate(columns.f_names) if name == "subscribe"]
    scanned = Scanned(
        None,
        misfits,
        counts.outcomes(operations),
        _ignored(columns, carried),
        bool(np.isin(operations.f_code, subscribing).any()),
        packing.packed(history.take(pa.array(np.flatnonzero(columns.process == NEMESIS)))),
    )
    number = np.array([slice_of[key] for key in columns.keys], dtype=np.int64)
    ends = operations.first, operations.last
    moved = len(carried.rows) + carried.moved
    slicer = slices.Slicer(history, columns, ends, number, count)
    return scanned, ((of, packing.packed(events)) for of, events in slicer.slices(wanted, moved))


def _whole(chunk: Chunk, carried: Carried) -> tuple[pa.Table, I64]:
    """Return the events of a chunk after those that it carries, and the row of each in the
    history."""
    history = chunks.rows(chunk)
    rows = np.arange(carried.begin, carried.begin + history.num_rows)
    if not carried.events:
        return history, rows
    whole = packing.joined([packing.unpacked([carried.events]), _plain(history)])
    return whole, np.concatenate((carried.rows, rows))


def _plain(history: pa.Table) -> pa.Table:
    return history.replace_schema_metadata(None)


def _misfits(columns: Columns, rows: I64) -> tuple[tuple[int, int, Misfit], ...]:
    """Return the completions that do not fit, up to the first that is rejected."""
    found = []
    for misfit in completions.misfits(columns):
        found.append((int(rows[misfit.row]), int(columns.index[misfit.row]), misfit))
        if not misfit.is_doubt:
            break
    return tuple(found)


def _ignored(columns: Columns, carried: Carried) -> Counter[str]:
    """Count what no checker knows, without the carried events, which count in their own chunk."""
    found = Counter(facts.ignored(columns))
    if carried.events:
        found -= Counter(facts.ignored(Columns(packing.unpacked([carried.events]))))
    return found


def sent(chunk: Chunk, carried: Carried, values: I64) -> bytes:
    """Return the operations of a chunk that send one of these values, packed."""
    history, _ = _whole(chunk, carried)
    columns = Columns(history)
    operations = table_builder.operations_of(columns)
    number = np.full(len(columns.index), -1, dtype=np.int64)
    for ends in (operations.first, operations.last):
        number[ends] = np.arange(len(ends))
    number[len(carried.rows) + carried.moved] = -1
    sends = np.flatnonzero(columns.is_op(micro_ops.SEND))
    sends = sends[np.isin(columns.op_value[sends], values)] if len(sends) else sends
    wanted = np.unique(number[columns.event[sends]])
    return packing.packed(
        history.take(pa.array(np.flatnonzero(np.isin(number, wanted[wanted >= 0]))))
    )
