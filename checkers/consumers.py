"""Rows about consumers: records polled, assignments, catch-ups, and events of groups."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from checkers import group_events, micro_ops, pieces
from checkers.columns import INVOKE, Columns, spread
from checkers.kernels.arrays import I32
from checkers.kernels.compact import AllPolls, Operations
from checkers.kernels.rows import I8, I64, OK, Bools, CatchUp
from checkers.kernels.steps import NO_STEPS, Group, Steps


def polls(columns: Columns, operations: Operations) -> AllPolls:
    """Return one row per record that was delivered."""
    rows, operation = columns.micro_ops(operations.last, columns.is_op(micro_ops.POLL))
    begin, stop = columns.record_end[rows], columns.record_end[rows + 1]
    length = stop - begin
    # Records are in the order of their polls, and most histories have no other records.
    all_of_them = length.sum() == len(columns.record_value)
    records = slice(None) if all_of_them else spread(begin, stop)[0]
    return AllPolls(
        operations,
        np.repeat(operation, length),
        columns.record_key[records],
        value=columns.record_value[records],
        offset=columns.record_offset[records],
    )


def assignments(columns: Columns, last: I32) -> tuple[I32, tuple[I64, I64, I64]]:
    """Return the events that assigned partitions, and what each assigned.

    The second part holds process, event and partition of each assigned partition. An assignment in
    doubt counts as made.
    """
    kinds = [code for code, name in enumerate(columns.f_names) if name in ("assign", "subscribe")]
    kind = columns.type[last]
    done = (kind != INVOKE) & (kind != pieces.TYPES.index("fail"))
    events: I32 = last[done & np.isin(columns.f[last], kinds)]
    rows, place = columns.micro_ops(events, columns.is_op(micro_ops.ASSIGN))
    at = events[place]
    process = columns.process[at].astype(np.int64)
    return events, (process, columns.index[at], columns.op_key[rows].astype(np.int64))


def catch_ups(
    columns: Columns, first: I32, last: I32, outcome: I8
) -> tuple[tuple[int, CatchUp, int, bool], ...]:
    """Return partition, catch-up, index of its invocation, and success of every attempt.

    An attempt succeeds at the high watermark. One that claims success at another position
    contradicts itself and does not count as successful.
    """
    rows, operation = columns.micro_ops(last, columns.is_op(micro_ops.CATCH_UP))
    ends, position = last[operation], columns.op_offset[rows]
    reached = (outcome[operation] == OK) & (position == columns.op_value[rows])
    facts = (
        columns.op_key[rows],
        columns.index[ends],
        columns.process[ends],
        position,
        columns.time_ns[ends],
        columns.index[first[operation]],
        reached,
    )
    return tuple(
        (key, CatchUp(op, process, position, time_ns), invoked, is_reached)
        for key, op, process, position, time_ns, invoked, is_reached in zip(
            *(column.tolist() for column in facts), strict=True
        )
    )


class GroupReports(NamedTuple):
    """What operations report about groups and about log ends."""

    micro: group_events.MicroOps
    setup: list[group_events.SetupEvent]
    polls: Bools
    """Whether each operation asks for records, or reports what was polled."""
    reports_polls: Bools
    """Whether each operation reports what was polled."""
    frozen_ns: I64


def group_reports(columns: Columns, operations: Operations) -> GroupReports | None:
    """Collect what operations report about groups and log ends; ``None`` if they report nothing."""
    wanted = columns.is_op(*group_events.KINDS)
    if not columns.group_names and not wanted.any():
        return None
    return reports_of(columns, operations)


def reports_of(columns: Columns, operations: Operations) -> GroupReports:
    """Return what operations report about groups and log ends, even if that is nothing."""
    first, last = operations.first, operations.last
    wanted, is_poll = columns.is_op(*group_events.KINDS), columns.is_op(micro_ops.POLL)
    polls, reports_polls = np.zeros(len(last), dtype=np.bool_), np.zeros(len(last), dtype=np.bool_)
    reports_polls[columns.micro_ops(last, is_poll)[1]] = True
    polls[columns.micro_ops(first, is_poll)[1]] = True
    polls |= reports_polls
    rows, operation = columns.micro_ops(last, wanted)
    is_commit = columns.is_op(micro_ops.COMMIT, micro_ops.COMMIT_PLAINLY)
    asked, asker = columns.micro_ops(first, is_commit)
    unreported = ~np.isin(asker, operation[is_commit[rows]])
    is_asked = np.concatenate((np.zeros(len(rows), np.bool_), np.ones(unreported.sum(), np.bool_)))
    rows = np.concatenate((rows, asked[unreported]))
    operation = np.concatenate((operation, asker[unreported]))
    order = np.argsort(operation, kind="stable")
    rows, operation, is_asked = rows[order], operation[order], is_asked[order]
    records, place = spread(columns.record_end[rows], columns.record_end[rows + 1])
    micro = group_events.MicroOps(
        kind=[columns.op_names[code] for code in columns.op[rows].tolist()],
        group=columns.op_group[rows].astype(np.int64),
        generation=columns.op_value[rows],
        operation=operation.astype(np.int64),
        is_asked=is_asked,
        place=place,
        key=columns.record_key[records].astype(np.int64),
        offset=columns.record_offset[records],
        value=columns.record_value[records],
        elsewhere=columns.elsewhere[rows],
    )
    setup = columns.setup(last)
    return GroupReports(micro, setup, polls, reports_polls, _frozen_ns(columns, first))


def group_steps(
    operations: Operations, reports: GroupReports | None, proven: I64, groups: Sequence[str]
) -> tuple[Steps, I64, tuple[Group, ...]]:
    """Return the events of groups and log ends, the partition of each row, and the groups.

    ``proven`` are operations in doubt that happened.
    """
    if reports is None:
        return NO_STEPS, np.zeros(0, dtype=np.int64), ()
    ops = group_ops(operations, reports)
    return group_events.steps(ops, reports.micro, reports.setup, groups, proven)


def group_ops(operations: Operations, reports: GroupReports) -> group_events.Ops:
    """Return operations with what they report about groups."""
    return group_events.Ops(
        op=operations.op,
        invoked=operations.invoked,
        process=operations.process.astype(np.int64),
        outcome=operations.outcome,
        txn=operations.txn,
        polls=reports.polls,
        reports_polls=reports.reports_polls,
        start_ns=operations.start_ns,
        end_ns=operations.end_ns,
        frozen_ns=reports.frozen_ns,
    )


def _frozen_ns(columns: Columns, first: I32) -> I64:
    """Return for how long each operation's process was frozen before it did anything, as its
    invocation asks for."""
    rows, operation = columns.micro_ops(first, columns.is_op(micro_ops.FREEZE))
    frozen = np.zeros(len(first), dtype=np.int64)
    frozen[operation] = columns.op_offset[rows] * 1_000_000
    return frozen
