"""Builds the tables of a history: events are joined into operations and interpreted."""

import copy
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from checkers import consumers, facts, history_file, memory, producers, threads, uniqueness
from checkers.columns import INVOKE, Columns
from checkers.kernels.arrays import I32, distinct, order_of_rows
from checkers.kernels.compact import AllSends, Operations
from checkers.kernels.faults import healed_ns
from checkers.kernels.rows import FAIL, I64, INFO, OK
from checkers.tables import Tables
from model.op import NEMESIS

_OUTCOMES = np.array([INFO, OK, FAIL, INFO], dtype=np.int8)
"""Outcome by type of an operation's last event: one that has only an invocation is in doubt."""


def of_history(history: pa.Table, source: Path | None = None, count: int = 1) -> Tables:
    """Return the tables of a history. With two threads, it is checked while they are built.

    Raises :class:`~model.history.BadHistory` as :func:`checkers.history_file.checked` does.
    """
    columns = Columns(history)
    _ = columns.pairs  # both need them
    same = copy.copy(columns)  # keeps what the other drops
    doubts, tables = threads.both(
        lambda: history_file.checked(history, same, source),
        lambda: build(columns, count=count),
        count,
    )
    return replace(tables, doubts=doubts)


def build(columns: Columns, happened: Collection[int] = (), count: int = 1) -> Tables:
    """Return the tables of a history, and drop its columns on the way.

    ``happened`` are the last events of operations in doubt which are known to have happened, though
    this part of a history may not show it. Unless the caller keeps the history, each column is
    freed after its last use. ``count`` is the number of threads.
    """
    operations = operations_of(columns)
    memory.release()
    first, last, outcome = operations.first, operations.last, operations.outcome
    polls, (sends, sent_rows) = threads.both(
        lambda: consumers.polls(columns, operations),
        lambda: producers.sends(columns, operations),
        count,
    )
    compacted = facts.compacted(columns)
    deleted = facts.deleted(columns, last[outcome != FAIL])
    ignored = facts.ignored(columns)
    assign_events, assigned = consumers.assignments(columns, last)
    catch_ups = consumers.catch_ups(columns, first, last, outcome)
    attempts = producers.attempts(columns, first, last, outcome)
    reports = consumers.group_reports(columns, operations)
    columns.forget_groups()
    memory.release()
    waits = producers.waits(columns, sends, sent_rows)
    columns.forget_micro_ops()
    repeated = uniqueness.repeated(sends, polls, compacted)
    if repeated is not None:
        sends, polls = sends.only(repeated.sends), polls.only(repeated.polls)
        waits = waits and (waits[0][repeated.sends], waits[1][repeated.sends])
    sends = replace(sends, proven=producers.proven(sends, polls, happened))
    group_steps, step_key, groups = consumers.group_steps(
        operations, reports, _proven(sends, happened), columns.group_names
    )
    faults = facts.faults(columns)
    tables = Tables(
        keys=columns.keys,
        operations=operations,
        sends=sends,
        polls=polls,
        waits=waits,
        inits=producers.inits(columns, first, last, outcome),
        assigned=assigned,
        assignments=(columns.process[assign_events].astype(np.int64), columns.index[assign_events]),
        catch_ups=catch_ups,
        faults=faults,
        crashes=facts.crashes(columns),
        silences=facts.silences(columns),
        compacted=compacted,
        deleted=deleted,
        recovered=facts.recovered(columns),
        attempts=attempts,
        steps=group_steps,
        step_key=step_key,
        groups=groups,
        finished=frozenset(),
        healed_ns=healed_ns([fault.to_ns for fault in faults]),
        repeated=() if repeated is None else repeated.values,
        ignored=ignored,
        unknown=columns.unknown,
        torn=columns.torn,
        doubts=columns.doubts,
    )
    tables = replace(tables, finished=frozenset(tables.caught_up()))
    memory.release()
    return tables


def _proven(sends: AllSends, happened: Collection[int]) -> I64:
    """Return the operations in doubt that are known to have happened."""
    return distinct(np.append(sends.op[sends.proven], np.array(sorted(happened), dtype=np.int64)))


def operations_of(columns: Columns) -> Operations:
    """Return the operations of clients, each with the rows of its first and its last event."""
    first, last = _ends(columns)
    columns.forget_order()
    return Operations(
        event_index=columns.index,
        event_ns=columns.time_ns,
        first=first,
        last=last,
        process=columns.process[last],
        f=columns.f_names,
        f_code=columns.f[last],
        outcome=_OUTCOMES[columns.type[last]],
        completed=columns.type[last] != INVOKE,
        txn=columns.is_txn(last),
    )


def _ends(columns: Columns) -> tuple[I32, I32]:
    """Return the rows of the first and of the last event of each operation, by the last one."""
    first, last = columns.pairs
    is_alone = columns.process != NEMESIS
    is_alone[first] = is_alone[last] = False
    rows = np.flatnonzero(is_alone).astype(np.int32)
    if not len(rows):
        return first, last
    first, last = np.concatenate((first, rows)), np.concatenate((last, rows))
    by_last = order_of_rows(last, len(columns.process))
    return first.take(by_last), last.take(by_last)
