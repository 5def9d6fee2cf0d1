"""Exactly once: each input of a consume-transform-produce loop is in the committed output once.

A transaction of such a loop polls inputs, sends an output for each (``model.transform`` relates
them), and commits the positions behind what it polled. So the inputs that are processed are those
of the committed transactions, and each committed position says that everything before it is
processed.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from checkers.kernels.checker_runs import GaveUp
from checkers.kernels.found import Found, at
from checkers.kernels.history import History
from checkers.kernels.rows import FAIL, I64, OK, UNKNOWN
from checkers.kernels.steps import ANY, COMMIT, FETCH
from model import transform

Record = tuple[int, int]
"""Partition and offset."""
Input = tuple[int, int, int]
"""Offset, value and sending operation of a record that was acknowledged and read."""


class Work(NamedTuple):
    """A transaction that processed inputs."""

    op: int
    process: int
    group: int
    outcome: int
    is_proven: bool
    end_ns: int
    inputs: dict[Record, int]
    """The inputs that it committed as read, with their values."""
    places: dict[int, int]
    """The position that it committed, by partition."""
    is_shown: bool
    """Whether an output of it was read."""
    output_keys: frozenset[int]

    @property
    def is_certain(self) -> bool:
        return self.outcome == OK or self.is_proven


class Given(NamedTuple):
    """What is known of a whole history, of which some transactions are judged."""

    firm: Callable[[int, int], Sequence[Input]]
    """Return the inputs of a group in a partition, in the order of the log."""
    shown: Callable[[int, Sequence[Work]], Collection[int] | None]
    """Return the inputs of a group which have outputs, perhaps of transactions of which it is
    unknown what they processed; ``None`` if the outputs were not read to their ends."""


REPEATED = "values that were sent twice can be inputs or outputs"
"""Why nothing is found in a history that has such values."""


def kernel(history: History) -> list[Found]:
    """Find ``eos-mismatch``: an input that two committed transactions have processed, or none has.

    The second case needs a committed position behind the input. The variant is ``proven`` if a
    transaction is known to be committed only because an output of it was read.
    """
    commits = (history.steps.kind == COMMIT) & history.steps.txn
    if not commits.any():
        return []
    if history.repeated:
        raise GaveUp(REPEATED)
    inputs = firm(history)
    unsure = unsure_groups(history)

    def shown(group: int, works: Sequence[Work]) -> set[int] | None:
        return _shown(history, works) if group in unsure else set()

    return judge(history, works(history), Given(lambda _, key: inputs.get(key, ()), shown))


def judge(history: History, works: Sequence[Work], given: Given) -> list[Found]:
    """Return what :func:`kernel` finds about these transactions."""
    return [*_twice(history, works), *_never(history, works, given)]


def unsure_groups(history: History) -> set[int]:
    """Return the groups with transactions of which it is unknown what they processed."""
    steps = history.steps
    return set(steps.group[(steps.kind == COMMIT) & (steps.offset == ANY)].tolist())


def works(history: History) -> list[Work]:
    """Return the transactions whose outputs are those of their inputs: what others do is not
    known."""
    commits = np.flatnonzero((history.steps.kind == COMMIT) & history.steps.txn)
    steps, sends, polls = history.steps, history.sends, history.polls
    places: defaultdict[int, dict[int, int]] = defaultdict(dict)
    group = {}
    for row in commits.tolist():
        op = int(steps.op[row])
        group[op] = int(steps.group[row])
        if steps.offset[row] != ANY:
            places[op][int(history.step_key[row])] = int(steps.offset[row])
    ops = np.array(sorted(places), dtype=np.int64)
    shown = set(sends.op[np.unique(history.writer[history.writer >= 0])].tolist())
    polled = by_op(polls.op, ops)
    found = []
    for op, rows in by_op(sends.op, ops).items():
        delivered = polled.get(op, [])
        values = {int(polls.value[row]) for row in delivered}
        if {transform.input_of(value) for value in sends.value[rows].tolist()} != values:
            continue
        inputs = {
            (key, offset): int(polls.value[row])
            for row in delivered
            for key, offset in [(int(history.poll_key[row]), int(polls.offset[row]))]
            if offset < places[op].get(key, UNKNOWN)
        }
        row = rows[0]
        found.append(
            Work(
                op=op,
                process=int(sends.process[row]),
                group=group[op],
                outcome=int(sends.outcome[row]),
                is_proven=bool(sends.proven[rows].any()),
                end_ns=int(sends.end_ns[row]),
                inputs=inputs,
                places=places[op],
                is_shown=op in shown,
                output_keys=frozenset(history.send_key[rows].tolist()),
            )
        )
    return found


def by_op(column: I64, ops: I64) -> dict[int, list[int]]:
    """Return the rows of each of these operations."""
    found: dict[int, list[int]] = {}
    for row in np.flatnonzero(np.isin(column, ops)).tolist():
        found.setdefault(int(column[row]), []).append(row)
    return found


def _twice(history: History, works: Sequence[Work]) -> Iterable[Found]:
    dealt: defaultdict[tuple[int, Record], list[Work]] = defaultdict(list)
    for work in works:
        if work.is_certain:
            for record in work.inputs:
                dealt[work.group, record].append(work)
    shared: defaultdict[tuple[int, ...], list[Record]] = defaultdict(list)
    by_op = {work.op: work for work in works}
    for (_, record), several in dealt.items():
        if len(several) > 1:
            shared[tuple(work.op for work in several)].append(record)
    for ops, records in shared.items():
        several = [by_op[op] for op in ops]
        key, offset = records[0]
        committers = " and ".join(
            f"process {work.process} at {at(work.end_ns)}"
            + (" (in doubt, but an output was read)" if work.outcome != OK else "")
            for work in several
        )
        yield Found(
            anomaly="eos-mismatch",
            key=history.keys[key],
            group=history.groups[several[0].group].name,
            offset=offset,
            value=several[0].inputs[records[0]],
            variant="proven" if any(work.outcome != OK for work in several) else "",
            ops=ops,
            also=tuple(offset for _, offset in records),
            why=f"the outputs of {_inputs(len(records))} of {history.keys[key]}, from offset "
            f"{offset} (value {several[0].inputs[records[0]]}) on, were committed more than "
            f"once: by {committers}",
            folded=len(records) - 1,
        )


def _never(history: History, works: Sequence[Work], given: Given) -> Iterable[Found]:
    """Find inputs before a committed position that no committed transaction has processed.

    A transaction in doubt may have been committed, unless none of its outputs was read and the
    partitions of all of them were read to the end. If a group has transactions of which it is
    unknown what they processed, only inputs without any output count.
    """
    for group in sorted({work.group for work in works}):
        mine = [work for work in works if work.group == group]
        shown = given.shown(group, mine)
        if shown is None:
            continue
        possible = {
            record
            for work in mine
            if work.is_certain
            or work.is_shown
            or (work.outcome != FAIL and not work.output_keys <= history.finished)
            for record in work.inputs
        }
        for key in sorted({key for work in mine for key in work.places}):
            last = max(
                (work for work in mine if work.outcome == OK and key in work.places),
                key=lambda work: work.places[key],
                default=None,
            )
            first = _begin(history, group, key, mine)
            if last is None or first is None:
                continue
            left = [
                (offset, value, op)
                for offset, value, op in given.firm(group, key)
                if first <= offset < last.places[key]
                and (key, offset) not in possible
                and value not in shown
            ]
            if left:
                offset, value, op = left[0]
                yield Found(
                    anomaly="eos-mismatch",
                    key=history.keys[key],
                    group=history.groups[group].name,
                    offset=offset,
                    value=value,
                    ops=(op, last.op),
                    also=tuple(offset for offset, _, _ in left),
                    why=f"process {last.process} committed position {last.places[key]} of "
                    f"{history.keys[key]} at {at(last.end_ns)}, but {_inputs(len(left))} "
                    f"before it, from offset {offset} (value {value}) on, have no committed "
                    "output",
                    folded=len(left) - 1,
                )


def _shown(history: History, works: Sequence[Work]) -> set[int] | None:
    """Return the inputs of all records that were read from the topics of these transactions'
    outputs; ``None`` unless everything there was read."""
    topics = {history.keys[key].rpartition("-")[0] for work in works for key in work.output_keys}
    keys = [k for k, name in enumerate(history.keys) if name.rpartition("-")[0] in topics]
    if not history.finished.issuperset(keys):
        return None
    values: list[int] = history.polls.value[np.isin(history.poll_key, keys)].tolist()
    return {transform.input_of(value) for value in values}


def _begin(history: History, group: int, key: int, works: Sequence[Work]) -> int | None:
    """Return where the group began to read a partition, as far as operations report it."""
    offsets = history.steps.offset[begins(history, group, key)].tolist()
    offsets += [offset for work in works for k, offset in work.inputs if k == key]
    return min(offsets, default=None)


def begins(history: History, group: int, key: int) -> I64:
    """Return the rows of ``steps`` that report where a member began to read a partition."""
    steps = history.steps
    mine = (steps.group == group) & (history.step_key == key) & (steps.kind > FETCH)
    return np.flatnonzero(mine & (steps.offset != UNKNOWN))


def firm(history: History) -> dict[int, list[Input]]:
    """Return the records that were acknowledged and read, by partition and in the order of the log:
    offset, value and sending operation."""
    sends, polls = history.sends, history.polls
    rows = np.flatnonzero((history.writer >= 0) & (polls.offset != UNKNOWN))
    rows = rows[sends.outcome[history.writer[rows]] == OK]
    found: defaultdict[int, set[Input]] = defaultdict(set)
    for key, offset, value, op in zip(
        history.poll_key[rows].tolist(),
        polls.offset[rows].tolist(),
        polls.value[rows].tolist(),
        sends.op[history.writer[rows]].tolist(),
        strict=True,
    ):
        found[key].add((offset, value, op))
    return {key: sorted(records) for key, records in found.items()}


def _inputs(count: int) -> str:
    return "1 input" if count == 1 else f"{count} inputs"
