"""What executors do to check exactly-once processing, of which each slice shows only a part.

The inputs of a partition are followed in its slice, which knows of each transaction that committed
positions there whether its outputs are those of its inputs. It names the transactions that dealt
with one input twice, and inputs that none is certain to have processed, with the transactions that
decide about them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from checkers import arrow, consumers, group_events, producers, table_builder
from checkers.columns import Columns, only
from checkers.distributed import slice_task
from checkers.distributed.slices import WORK
from checkers.kernels import outputs
from checkers.kernels.arrays import I32
from checkers.kernels.compact import Operations
from checkers.kernels.history import History
from checkers.kernels.outputs import Input
from checkers.kernels.rows import FAIL, I8, I64, OK, Bools
from checkers.kernels.steps import ANY, COMMIT
from model import transform

Records = Collection[tuple[str | None, int | None]]
"""Partitions and values."""
Place = tuple[str, str]
"""A group and a partition."""


class Known(NamedTuple):
    """What is known of a history when its transactions are examined."""

    happened: Mapping[int, frozenset[int]]
    """By slice, the operations in doubt that other slices have proven."""
    proven: frozenset[int]
    """The operations in doubt that happened."""
    gone: Records
    """The records that are left out: those that are blamed for where they are in a log."""


class Seen(NamedTuple):
    """What a slice shows of the transactions that process inputs."""

    suspects: frozenset[int]
    """The transactions on which findings depend."""
    others: frozenset[int]
    """Further operations of which findings speak."""
    inputs: Mapping[Place, Sequence[Input]]
    """Inputs that no transaction is certain to have processed."""
    unsure: frozenset[str]
    """The groups with transactions of which it is unknown what they processed."""
    outputs: Mapping[Place, frozenset[int]]
    """The partitions of outputs, each with its transactions if all of them failed."""


def works(columns: Columns, operations: Operations, gone: Records) -> I8:
    """Return for each whole operation how it ended if it is a transaction whose outputs are those
    of its inputs (an outcome and 1), and otherwise 0."""
    found = np.zeros(len(operations.first), dtype=np.int8)
    reports = consumers.reports_of(columns, operations)
    asks = group_events.committing(consumers.group_ops(operations, reports), reports.micro)
    if not len(asks):
        return found
    sends, _ = producers.sends(columns, operations)
    polls = consumers.polls(columns, operations)
    if gone:
        sends = sends.only(_stays(columns.keys, sends.key, sends.value, gone))
        polls = polls.only(_stays(columns.keys, polls.key, polls.value, gone))
    made, read = np.isin(sends.operation, asks), np.isin(polls.operation, asks)
    pairs = [
        np.unique(np.column_stack(pair), axis=0)
        for pair in (
            (sends.operation[made], _inputs(sends.value[made])),
            (polls.operation[read], polls.value[read]),
        )
    ]
    each, count = np.unique(np.concatenate(pairs), axis=0, return_counts=True)
    rows = np.flatnonzero(made)[::-1]
    found[sends.operation[rows]] = sends.outcome[rows] + 1
    found[each[count == 1, 0]] = 0
    return found


def _inputs(values: I64) -> I64:
    return np.array([transform.input_of(value) for value in values.tolist()], dtype=np.int64)


def _stays(keys: Sequence[str], key: I32, value: I64, gone: Records) -> Bools:
    """Return which rows are of other records."""
    stays = np.ones(len(value), dtype=np.bool_)
    for row in np.flatnonzero(np.isin(value, np.array([value for _, value in gone]))).tolist():
        stays[row] = (keys[int(key[row])], int(value[row])) not in gone
    return stays


class _Slice:
    """A slice, and how those of its transactions ended whose outputs are those of their inputs."""

    def __init__(self, known: Known, number: int, parts: Sequence[bytes]) -> None:
        events = slice_task.events_of(parts)
        index, work = arrow.numbers(only(events["index"])), arrow.numbers(only(events[WORK.name]))
        rows = np.flatnonzero(work)
        self.outcome = dict(zip(index[rows].tolist(), (work[rows] - 1).tolist(), strict=True))
        self.group_of = _groups(Columns(events))
        self.history: History = table_builder.build(Columns(events), known.happened.get(number, ()))
        if known.gone:
            self.history = self.history.without(known.gone)


def _groups(columns: Columns) -> dict[int, str]:
    """Return the group of each transaction that commits positions."""
    operations = table_builder.operations_of(columns)
    reports = consumers.reports_of(columns, operations)
    ops, micro = consumers.group_ops(operations, reports), reports.micro
    asks = set(group_events.committing(ops, micro).tolist())
    names = np.bincount(micro.place, minlength=len(micro.kind)) + micro.elsewhere
    return {
        int(ops.op[operation]): columns.group_names[group]
        for kind, operation, group, says in zip(
            micro.kind, micro.operation.tolist(), micro.group.tolist(), names.tolist(), strict=True
        )
        if kind == "commit" and says and operation in asks
    }


def examine(known: Known, number: int, parts: Sequence[bytes]) -> Seen:
    """Return what a slice shows."""
    slice_ = _Slice(known, number, parts)
    history, outcome = slice_.history, slice_.outcome
    certain = {op for op, how in outcome.items() if how == OK or op in known.proven}
    suspects, others = set[int](), set[int]()
    inputs: dict[Place, Sequence[Input]] = {}
    dealt: defaultdict[tuple[str, int, int], list[int]] = defaultdict(list)
    by_place: defaultdict[tuple[str, int], list[_Part]] = defaultdict(list)
    for part in _parts(slice_):
        by_place[part.group, part.key].append(part)
        if part.op in certain:
            for offset in part.offsets:
                dealt[part.group, part.key, offset].append(part.op)
    for ops in dealt.values():
        if len(ops) > 1:
            suspects.update(ops)
    firm = outputs.firm(history)
    code = {group.name: n for n, group in enumerate(history.groups)}
    for (group, key), mine in by_place.items():
        rows = outputs.begins(history, code[group], key)
        begin = rows[np.argsort(history.steps.offset[rows], kind="stable")[:1]]
        left = _left(_Place(mine, outcome, certain), firm.get(key, ()), history.steps.offset[begin])
        if left is not None:
            inputs[group, history.keys[key]], decide = left
            suspects |= decide
            others.update(history.steps.op[begin].tolist())
            others.update(op for *_, op in inputs[group, history.keys[key]])
    unsure = {history.groups[group].name for group in outputs.unsure_groups(history)}
    return Seen(frozenset(suspects), frozenset(others), inputs, frozenset(unsure), _outputs(slice_))


class _Part(NamedTuple):
    """A transaction, as far as it processed the inputs of one partition."""

    op: int
    group: str
    key: int
    place: int
    """The position that it committed."""
    offsets: frozenset[int]
    """The inputs before that position."""


def _parts(slice_: _Slice) -> Iterator[_Part]:
    steps, polls = slice_.history.steps, slice_.history.polls
    rows = (steps.kind == COMMIT) & steps.txn & (steps.offset != ANY)
    places: dict[tuple[int, int], int] = {}
    for row in np.flatnonzero(rows).tolist():
        op = int(steps.op[row])
        if op in slice_.outcome:
            places[op, int(slice_.history.step_key[row])] = int(steps.offset[row])
    ops = np.array(sorted({op for op, _ in places}), dtype=np.int64)
    polled = outputs.by_op(polls.op, ops)
    for (op, key), place in places.items():
        mine = [row for row in polled.get(op, ()) if slice_.history.poll_key[row] == key]
        offsets = {int(polls.offset[row]) for row in mine}
        before = frozenset(offset for offset in offsets if offset < place)
        yield _Part(op, slice_.group_of[op], key, place, before)


class _Place(NamedTuple):
    """The transactions that committed positions of a group in a partition."""

    parts: Sequence[_Part]
    outcome: Mapping[int, int]
    certain: Collection[int]


def _left(
    place: _Place, firm: Sequence[Input], begin: I64
) -> tuple[Sequence[Input], set[int]] | None:
    """Return the inputs before the last committed position that no transaction is certain to have
    processed, and the transactions that decide about them; ``None`` if there are none.

    ``begin`` is the lowest offset where a member is known to have begun to read, if any is.
    """
    acked = [part for part in place.parts if place.outcome[part.op] == OK]
    if not acked:
        return None
    last = min(acked, key=lambda part: (-part.place, part.op))
    sure = [part for part in place.parts if place.outcome[part.op] != FAIL and part.offsets]
    failed = [part for part in place.parts if place.outcome[part.op] == FAIL and part.offsets]
    lowest = min(sure, key=lambda part: min(part.offsets), default=None)
    bounds = [*begin.tolist(), *(min(part.offsets) for part in (lowest,) if part is not None)]
    bound = min(bounds, default=last.place)
    first = min([bound, *(min(part.offsets) for part in failed)])
    done = {offset for part in place.parts if part.op in place.certain for offset in part.offsets}
    left = [each for each in firm if first <= each[0] < last.place and each[0] not in done]
    if not left:
        return None
    offsets = {offset for offset, *_ in left}
    decide = {last.op, *(part.op for part in (lowest,) if part is not None)}
    decide |= {part.op for part in place.parts if not offsets.isdisjoint(part.offsets)}
    if min(offsets) < bound:
        decide |= {part.op for part in failed if min(part.offsets) < bound}
    return left, decide


def _outputs(slice_: _Slice) -> dict[Place, frozenset[int]]:
    sends = slice_.history.sends
    rows = np.flatnonzero(np.isin(sends.op, list(slice_.outcome)))
    pairs = {*zip(sends.op[rows].tolist(), sends.key[rows].tolist(), strict=True)}
    found: dict[Place, set[int]] = {}
    sure: set[Place] = set()
    for op, key in pairs:
        place = slice_.group_of[op], slice_.history.keys[key]
        found.setdefault(place, set()).add(op)
        if slice_.outcome[op] != FAIL:
            sure.add(place)
    return {place: frozenset(() if place in sure else ops) for place, ops in found.items()}


class Asked(NamedTuple):
    """What is asked of slices about suspects."""

    suspects: frozenset[int]
    values: frozenset[int]
    """The inputs of which it is asked whether they have an output that was read."""
    topics: frozenset[str]
    """The topics of outputs."""


class Near(NamedTuple):
    """What a slice shows of suspects."""

    ops: frozenset[int]
    """The operations that read their outputs, or that sent the same values."""
    shown: Mapping[str, frozenset[int]]
    """The inputs of which a partition has outputs that were read."""


def neighbours(known: Known, asked: Asked, number: int, parts: Sequence[bytes]) -> Near:
    """Return what a slice shows of suspects."""
    slice_ = _Slice(known, number, parts)
    history = slice_.history
    sends, polls = history.sends, history.polls
    suspects = np.array(sorted(asked.suspects), dtype=np.int64)
    read = np.flatnonzero(history.writer >= 0)
    read = read[np.isin(sends.op[history.writer[read]], suspects)]
    _, first = np.unique(history.writer[read], return_index=True)
    ops = {*polls.op[read[first]].tolist(), *_senders(parts, suspects)}
    shown: dict[str, frozenset[int]] = {}
    for key, name in enumerate(history.keys):
        if name.rpartition("-")[0] in asked.topics:
            values = polls.value[history.poll_key == key].tolist()
            shown[name] = asked.values.intersection(map(transform.input_of, values))
    return Near(frozenset(ops), shown)


def _senders(parts: Sequence[bytes], suspects: I64) -> set[int]:
    """Return the operations that sent the values that suspects sent."""
    columns = Columns(slice_task.events_of(parts))
    sends, _ = producers.sends(columns, table_builder.operations_of(columns))
    near = np.isin(sends.value, sends.value[np.isin(sends.op, suspects)])
    return set(sends.op[near].tolist())
