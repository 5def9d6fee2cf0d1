"""Cuts a batch into parts, one for each partition: what an executor does with a batch first."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from checkers import arrow, events, jsonl, table_builder
from checkers.columns import Columns, only
from checkers.distributed import packing, slices
from model.batch import Batch

_NONE = np.zeros(0, dtype=np.int64)


class Part(NamedTuple):
    """The events of a batch that concern a partition, and what is known at its end."""

    events: bytes
    """Packed; invocations of open operations come again with the batch that completes them."""
    number: int
    """The number of the batch."""
    now_ns: int
    open_event: int
    open_ns: int


def cut(batch: Batch) -> Iterator[tuple[str, Part]]:
    """Yield a part for every partition that the batch or an earlier one names."""
    history = _events(batch)
    columns = Columns(history)
    keys = tuple(dict.fromkeys((*columns.keys, *batch.keys, *batch.new_keys)))
    slice_of = np.arange(len(columns.keys))
    slicer = slices.Slicer(
        history,
        columns,
        table_builder.operations_of(columns),
        slice_of,
        len(keys),
        {},
        _NONE,
    )
    wanted = {*batch.keys, *batch.new_keys}
    numbers = [number for number, key in enumerate(keys) if key in wanted]
    known = batch.number, batch.now_ns, batch.open_event, batch.open_ns
    for number, found in slicer.slices(numbers, _NONE):
        yield keys[number], Part(packing.packed(found), *known)


def _events(batch: Batch) -> pa.Table:
    """Return the events of a batch, after those that it needs from earlier ones."""
    lines = [*batch.context, *batch.carried]
    before = events.table(jsonl.EVENT.decode(line) for line in lines)
    mine, _ = jsonl.read_range(Path(batch.path), batch.begin, batch.end)
    return merged([before, mine])


def merged(tables: list[pa.Table]) -> pa.Table:
    """Return the events of several tables in the order of their indices, each event once."""
    whole = packing.joined(tables)
    index, first = np.unique(arrow.numbers(only(whole["index"])), return_index=True)
    if len(index) == whole.num_rows and (np.diff(first) > 0).all():
        return whole
    return packing.joined([whole.take(arrow.column(first))])
