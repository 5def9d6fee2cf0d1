"""A slice of a history: the operations that concern some partitions, reduced to these.

Kernels for a partition find in a slice what they find in the whole history, because a slice has
every operation that names one of its partitions, with all that it says about these. It also has
what concerns every partition: faults, assignments, what was done to topics, and the operations of
members of groups that :mod:`checkers.distributed.group_context` names. Of a micro-operation of a
group it has the records of its own partitions, and a note that there were others.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from checkers import arrow, micro_ops
from checkers.columns import Columns, ints, only, spread
from checkers.distributed.group_context import Context
from checkers.distributed.kept import Kept
from checkers.group_events import NAMES, OF_GROUPS
from checkers.kernels.arrays import is_in
from checkers.kernels.compact import Operations
from checkers.kernels.rows import I8, I64, Bools
from checkers.pieces import SCHEMA
from checkers.vocabulary import NAMES_KEYS

SHARED = (
    micro_ops.ASSIGN,
    micro_ops.CREATE_COMPACTED,
    micro_ops.DELETE_TOPIC,
)
"""Micro-operations that concern partitions which they do not name: an assignment gives up all that
it leaves out, and a topic stands for its partitions."""
ELSEWHERE = pa.field("elsewhere", pa.list_(pa.int8()))
"""A column that slices of a history with groups have besides those of a history: for each
micro-operation of an event, what :attr:`checkers.columns.Columns.elsewhere` holds."""
WORK = pa.field("work", pa.int8())
"""A column of slices that are examined for exactly-once processing: for the last event of each
operation, what :func:`checkers.distributed.output_task.works` returns."""
_NOWHERE = -2
_FLAT = [name for name in SCHEMA.names if name != "value"]


class Slicer:
    """Cuts a chunk of a history, in which operations are whole, into slices.

    ``slice_of`` is the number of the slice of each partition of ``columns.keys``, and ``count`` how
    many there are. Of the partitions in ``kept``, slices have only some records, besides those that
    the operations ``ops`` sent, and all that events of groups say. ``context`` is what slices need
    of members of groups; ``None`` in a history without groups. ``works`` is the column ``WORK`` by
    operation, if slices are to have it.
    """

    def __init__(
        self,
        history: pa.Table,
        columns: Columns,
        operations: Operations,
        slice_of: I64,
        count: int,
        kept: Mapping[int, Kept],
        ops: I64,
        context: Context | None = None,
        works: I8 | None = None,
    ) -> None:
        self._history, self._columns = history, columns
        self._count = count
        value = only(history["value"])
        self._micro_ops = value.values
        self._records = self._micro_ops.field("records").values
        key = ints(self._micro_ops.field("key").indices)
        self._key_slice = np.append(slice_of, -1)[key]
        """The slice of each micro-operation; -1 for those without a partition."""
        self._key_slice[columns.is_op(micro_ops.FREEZE)] = -1  # it names a group
        self._is_shared = columns.is_op(*SHARED)
        self._record_slice = slice_of[columns.record_key]
        self._operation = operations.of_events()
        self._is_of_group = columns.is_op(*OF_GROUPS)
        for code, records in kept.items():
            sends = np.flatnonzero((key == code) & columns.is_op(micro_ops.SEND))
            is_out = self._are_left_out(operations, sends, records)
            if len(ops):
                of = operations.op[self._operation[columns.event[sends]]]
                is_out &= ~is_in(of, ops)
            self._key_slice[sends[is_out]] = _NOWHERE
            polled = np.flatnonzero(columns.record_key == code)
            micro_op = np.searchsorted(columns.record_end, polled, side="right") - 1
            polled = polled[~self._is_of_group[micro_op]]
            left_out = ~records.has(columns.record_offset[polled])
            self._record_slice[polled[left_out]] = _NOWHERE
        self._context, self._work = context, None
        if works is not None:
            self._work = np.zeros(len(self._operation), dtype=np.int8)
            self._work[operations.last] = works
        self._in = self._members(len(operations.first))

    def _are_left_out(self, operations: Operations, sends: I64, kept: Kept) -> Bools:
        """Return which sends are left out. An invocation names no offsets: its sends are needed
        only where the completion reports fewer of them, and those that it reports are not."""
        columns = self._columns
        left_out = ~kept.has(columns.op_offset[sends])
        event = columns.event[sends]
        of = self._operation[event]
        asked = (event == operations.first[of]) & (event != operations.last[of])
        events = columns.event[columns.is_op(micro_ops.SEND)]
        count = np.bincount(events, minlength=len(columns.index))
        is_partial = (count[operations.first] > count[operations.last])[of]
        left_out |= asked
        if kept.unplaced:
            gone = columns.op_value[sends[left_out & ~asked]]
            asked &= is_partial
            left_out[asked] = np.isin(columns.op_value[sends[asked]], gone)
        return left_out

    def _members(self, operations: int) -> Bools:
        """Return which operations (columns) belong to which slice (rows).

        The last column stands for the nemesis, whose events have -1 as their operation.
        """
        columns = self._columns
        members = np.zeros((self._count, operations + 1), dtype=np.bool_)
        of = self._operation[columns.event]
        named = np.flatnonzero(self._key_slice >= 0)
        members[self._key_slice[named], of[named]] = True
        length = np.diff(columns.record_end)
        is_somewhere = self._record_slice >= 0
        members[self._record_slice[is_somewhere], np.repeat(of, length)[is_somewhere]] = True
        members[:, of[self._is_shared]] = True
        kinds = [code for code, name in enumerate(columns.f_names) if name in NAMES_KEYS]
        members[:, self._operation[np.isin(columns.f, kinds)]] = True
        members[:, operations] = True
        if self._context is not None:
            members[:, self._context.everywhere] = True
            for row in members:
                row[self._context.companion[row[self._context.operation]]] = True
        return members

    def slices(self, wanted: Iterable[int], moved: I64) -> Iterator[tuple[int, pa.Table]]:
        """Yield the number and the events of some slices, without the ``moved`` rows, which another
        chunk has."""
        stays = np.ones(len(self._operation), dtype=np.bool_)
        stays[moved] = False
        for number in wanted:
            yield (
                number,
                self._slice(number, np.flatnonzero(self._in[number][self._operation] & stays)),
            )

    def _slice(self, number: int, rows: I64) -> pa.Table:
        columns = self._columns
        end = columns.micro_op_end
        inner, event = spread(end[rows], end[rows + 1])
        of = self._key_slice[inner]
        kept = (of == number) | (of == -1) | self._is_shared[inner]
        inner, event = inner[kept], event[kept]
        records, micro_op = spread(columns.record_end[inner], columns.record_end[inner + 1])
        mine = self._record_slice[records] == number
        left_of = micro_op[~mine]
        records, micro_op = records[mine], micro_op[mine]
        found = _taken(self._micro_ops, inner, {
            "records": _lists(_taken(self._records, records, {}), micro_op, len(inner))
        })  # fmt: skip
        events = {name: self._history[name].take(arrow.column(rows)) for name in _FLAT}
        events["value"] = _lists(found, event, len(rows))
        schema = SCHEMA
        if self._context is not None:
            elsewhere = self._elsewhere(inner, left_of)
            events[ELSEWHERE.name] = _lists(arrow.column(elsewhere), event, len(rows))
            schema = schema.append(ELSEWHERE)
        if self._work is not None:
            events[WORK.name] = arrow.column(self._work[rows])
            schema = schema.append(WORK)
        return pa.table([events[name] for name in schema.names], schema=schema)

    def _elsewhere(self, inner: I64, left_of: I64) -> I8:
        """Return which micro-operations name partitions that are left out, given the place of the
        micro-operation of each record that is."""
        found = np.zeros(len(inner), dtype=np.int8)
        found[left_of[self._is_of_group[inner[left_of]]]] = NAMES
        return found


def _taken(column: pa.StructArray, rows: I64, changed: dict[str, pa.Array]) -> pa.StructArray:
    """Return some rows of a column of structures, with other values of some fields."""
    places = arrow.column(rows)
    fields = list(column.type)
    return pa.StructArray.from_arrays(
        [
            changed[field.name] if field.name in changed else column.field(field.name).take(places)
            for field in fields
        ],
        fields=fields,
    )


def _lists(values: pa.Array, owner: I64, count: int) -> pa.ListArray:
    """Return lists of values, given for each value the number of its list, in order."""
    ends = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=count))))
    return pa.ListArray.from_arrays(arrow.column(ends.astype(np.int32)), values)
