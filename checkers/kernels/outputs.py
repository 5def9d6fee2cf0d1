"""Exactly once: each input of a consume-transform-produce loop is in the committed output once.

A transaction of such a loop polls inputs, sends an output for each (``model.transform`` relates
them), and commits the positions behind what it polled. So the inputs that are processed are those
of the committed transactions, and each committed position says that everything before it is
processed.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
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


class _Work(NamedTuple):
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


def kernel(history: History) -> list[Found]:
    """Find ``eos-mismatch``: an input that two committed transactions have processed, or none has.

    The second case needs a committed position behind the input. The variant is ``proven`` if a
    transaction is known to be committed only because an output of it was read.
    """
    commits = (history.steps.kind == COMMIT) & history.steps.txn
    if not commits.any():
        return []
    if history.repeated:
        raise GaveUp("values that were sent twice can be inputs or outputs")
    works = _works(history, np.flatnonzero(commits))
    return [*_twice(history, works), *_never(history, works)]


def _works(history: History, commits: I64) -> list[_Work]:
    """Return the transactions whose outputs are those of their inputs: what others do is not
    known."""
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
    polled = _by_op(polls.op, ops)
    found = []
    for op, rows in _by_op(sends.op, ops).items():
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
            _Work(
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


def _by_op(column: I64, ops: I64) -> dict[int, list[int]]:
    """Return the rows of each of these operations."""
    found: dict[int, list[int]] = {}
    for row in np.flatnonzero(np.isin(column, ops)).tolist():
        found.setdefault(int(column[row]), []).append(row)
    return found


def _twice(history: History, works: Sequence[_Work]) -> Iterable[Found]:
    dealt: defaultdict[tuple[int, Record], list[_Work]] = defaultdict(list)
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


def _never(history: History, works: Sequence[_Work]) -> Iterable[Found]:
    """Find inputs before a committed position that no committed transaction has processed.

    A transaction in doubt may have been committed, unless none of its outputs was read and the
    partitions of all of them were read to the end. If a group has transactions of which it is
    unknown what they processed, only inputs without any output count.
    """
    steps = history.steps
    unsure = set(steps.group[(steps.kind == COMMIT) & (steps.offset == ANY)].tolist())
    firm = _firm(history)
    for group in sorted({work.group for work in works}):
        mine = [work for work in works if work.group == group]
        shown: set[int] = set()
        if group in unsure:
            outputs = _outputs(history, mine)
            if outputs is None:
                continue
            shown = {transform.input_of(value) for value in outputs}
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
                for offset, value, op in firm.get(key, ())
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


def _outputs(history: History, works: Sequence[_Work]) -> list[int] | None:
    """Return all values that were read from the topics of these transactions' outputs; ``None``
    unless everything there was read."""
    topics = {history.keys[key].rpartition("-")[0] for work in works for key in work.output_keys}
    keys = [k for k, name in enumerate(history.keys) if name.rpartition("-")[0] in topics]
    if not history.finished.issuperset(keys):
        return None
    values: list[int] = history.polls.value[np.isin(history.poll_key, keys)].tolist()
    return values


def _begin(history: History, group: int, key: int, works: Sequence[_Work]) -> int | None:
    """Return where the group began to read a partition, as far as operations report it."""
    steps = history.steps
    mine = (steps.group == group) & (history.step_key == key) & (steps.kind > FETCH)
    offsets = steps.offset[mine & (steps.offset != UNKNOWN)].tolist()
    offsets += [offset for work in works for k, offset in work.inputs if k == key]
    return min(offsets, default=None)


def _firm(history: History) -> dict[int, list[tuple[int, int, int]]]:
    """Return the records that were acknowledged and read, by partition and in the order of the log:
    offset, value and sending operation."""
    sends, polls = history.sends, history.polls
    rows = np.flatnonzero((history.writer >= 0) & (polls.offset != UNKNOWN))
    rows = rows[sends.outcome[history.writer[rows]] == OK]
    found: defaultdict[int, set[tuple[int, int, int]]] = defaultdict(set)
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
