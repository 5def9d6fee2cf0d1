"""Rows about producers: records sent, and which process took over which transactional id."""

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from checkers import group_events, micro_ops
from checkers.columns import Columns
from checkers.kernels.arrays import I32, is_in
from checkers.kernels.compact import AllPolls, AllSends, Operations
from checkers.kernels.history import NO_ATTEMPTS, Attempts, Init
from checkers.kernels.rows import FAIL, I8, I64, INFO, OK, UNKNOWN, Bools

EARLY_NS = 2_000_000
"""How much too early a delay may end, given the resolution of clocks."""


def sends(columns: Columns, operations: Operations) -> tuple[AllSends, I32]:
    """Return the records that operations sent, and the micro-operation of each.

    A record is as the completion of its operation reports it. Records that only the invocation
    names were tried, too, and their outcome is unknown.
    """
    is_send = columns.is_op(micro_ops.SEND)
    rows, operation = columns.micro_ops(operations.last, is_send)
    rest, their_operation = _unreported(columns, operations, is_send, (rows, operation))
    in_doubt = np.zeros(len(rows), dtype=np.bool_)
    if len(rest):
        rows = np.concatenate((rows, rest))
        operation = np.concatenate((operation, their_operation))
        order = np.argsort(operation, kind="stable")
        in_doubt = (order >= len(in_doubt)).astype(np.bool_)
        rows, operation = rows[order], operation[order]
    outcome = operations.outcome.copy()
    outcome[_aborted(columns, operations.first)] = FAIL
    outcome = outcome.take(operation)
    outcome[in_doubt & (outcome == OK)] = INFO
    sends = AllSends(
        operations,
        operation,
        columns.op_key[rows],
        value=columns.op_value[rows],
        offset=columns.op_offset[rows],
        outcome=outcome,
        proven=np.zeros(len(rows), dtype=np.bool_),
    )
    return sends, rows


def _unreported(
    columns: Columns, operations: Operations, is_send: Bools, reported: tuple[I32, I32]
) -> tuple[I32, I32]:
    """Return the sends that only an invocation names, as rows of micro-operations, and the
    operation of each; ``reported`` are those of completions."""
    partial = _reported_in_part(columns, is_send, operations)
    if not len(partial):
        nothing = np.zeros(0, dtype=np.int32)
        return nothing, nothing
    rows, operation = columns.micro_ops(operations.first[partial], is_send)
    operation = partial[operation].astype(np.int32)
    of_partial = np.isin(reported[1], partial)
    known = set(_records(columns, *(column[of_partial] for column in reported)))
    unreported = [record not in known for record in _records(columns, rows, operation)]
    return rows[unreported], operation[unreported]


def _records(columns: Columns, rows: I32, operation: I32) -> Iterator[tuple[int, int, int]]:
    """Yield operation, partition and value of each of these sends."""
    said = (operation, columns.op_key[rows], columns.op_value[rows])
    return zip(*(column.tolist() for column in said), strict=True)


def _reported_in_part(columns: Columns, is_send: Bools, operations: Operations) -> I64:
    """Return the operations whose last event has fewer records than the first one."""
    before = np.zeros(len(is_send) + 1, dtype=np.int32)
    np.cumsum(is_send, out=before[1:])
    count = np.diff(before.take(columns.micro_op_end))
    return np.flatnonzero(count[operations.first] > count[operations.last])


def waits(columns: Columns, sends: AllSends, rows: I32) -> tuple[I64, I64] | None:
    """Return for each send an event after which it was made, and one after its operation's delays.

    They follow from the delays that the operation was to make. ``None`` where there are no delays.
    """
    if micro_ops.DELAY not in columns.op_names:
        return None
    delays = np.flatnonzero(columns.is_op(micro_ops.DELAY))
    waits = np.zeros(len(columns.op), dtype=np.int64)
    waits[delays] = np.maximum(columns.op_offset[delays], 0)
    waited = np.concatenate(([0], np.cumsum(waits))) * 1_000_000
    of = np.searchsorted(columns.micro_op_end, rows, side="right") - 1
    begin, end = columns.micro_op_end[of], columns.micro_op_end[of + 1]

    def after(place: I32) -> I64:
        passed = sends.start_ns + waited[place] - waited[begin] - EARLY_NS
        last = np.searchsorted(columns.time_ns, passed) - 1
        event: I64 = np.maximum(columns.index[np.maximum(last, 0)], sends.invoked)
        return event

    return after(rows), after(end)


def _aborted(columns: Columns, first: I32) -> Bools:
    """Return which operations were to end in an abort. Their records did not happen, even without
    an answer, because only their own producer could have had them committed."""
    aborted = np.zeros(len(first), dtype=np.bool_)
    if micro_ops.ABORT in columns.op_names:
        aborted[columns.micro_ops(first, columns.is_op(micro_ops.ABORT))[1]] = True
    return aborted


def proven(sends: AllSends, polls: AllPolls, happened: Collection[int] = ()) -> Bools:
    """Return which rows are of operations in doubt that happened, because an ok poll read one of
    their values (Jepsen's ``must-have-committed?``), or because that is known (``happened``)."""
    doubt: Bools = sends.outcome == INFO
    if not doubt.any():
        return doubt
    near = np.flatnonzero((polls.outcome == OK) & is_in(polls.value, sends.value[doubt]))
    read = set(zip(polls.key[near].tolist(), polls.value[near].tolist(), strict=True))
    ops = {
        op
        for key, value, op in zip(
            sends.key[doubt].tolist(),
            sends.value[doubt].tolist(),
            sends.op[doubt].tolist(),
            strict=True,
        )
        if (key, value) in read
    }
    ops.update(happened)
    return doubt & np.isin(sends.op, np.array(sorted(ops), dtype=np.int64))


def inits(columns: Columns, first: I32, last: I32, outcome: I8) -> tuple[Init, ...]:
    """Return the takeovers of transactional ids that succeeded, in the order of events."""
    return tuple(
        Init(
            transactional_id=setup.what[1],
            process=int(columns.process[last[setup.operation]]),
            invoked=int(columns.index[first[setup.operation]]),
            op=int(columns.index[last[setup.operation]]),
            start_ns=int(columns.time_ns[first[setup.operation]]),
            end_ns=int(columns.time_ns[last[setup.operation]]),
        )
        for setup in columns.setup(last)
        if _takes_id(setup) and outcome[setup.operation] == OK
    )


def attempts(columns: Columns, first: I32, last: I32, outcome: I8) -> Attempts:
    """Return the operations that needed a transactional id."""
    inits = _inits(columns, last)
    if not inits and not columns.is_txn(last).any():
        return NO_ATTEMPTS
    number = {name: code for code, name in enumerate(dict.fromkeys(inits.values()))}
    id_of = {process: number[name] for process, name in ids(columns, last)}
    _, sending = columns.micro_ops(first, columns.is_op(micro_ops.SEND))
    is_use = np.zeros(len(first), dtype=np.bool_)
    is_use[sending] = columns.is_txn(last[sending])
    is_use[list(inits)] = True
    rows = np.flatnonzero(is_use)
    begin, end = first[rows], last[rows]
    aborts = [code for code, name in enumerate(columns.error_names) if name == "aborted"]
    process = columns.process[end]
    return Attempts(
        transactional_id=mapped(process, id_of),
        process=process,
        op=columns.index[end],
        succeeded=(outcome[rows] == OK) | np.isin(columns.error[end], aborts),
        start_ns=columns.time_ns[begin],
        end_ns=columns.time_ns[end],
    )


def mapped(process: I32 | I64, id_of: Mapping[int, int]) -> I64:
    """Return the number of each process's transactional id; UNKNOWN without one."""
    known = np.array(sorted(id_of), dtype=np.int64)
    numbers = np.array([*(id_of[each] for each in known.tolist()), UNKNOWN], dtype=np.int64)
    place = np.searchsorted(known, process)
    is_known = np.append(known, -1)[place] == process
    return numbers[np.where(is_known, place, len(known))]


def ids(columns: Columns, last: I32) -> list[tuple[int, str]]:
    """Return each process that asked for a transactional id, with that id, in order."""
    return [(int(columns.process[last[row]]), name) for row, name in _inits(columns, last).items()]


def _inits(columns: Columns, last: I32) -> dict[int, str]:
    """Return the transactional id that each ``init`` asked for, by operation."""
    return {s.operation: str(s.what[1]) for s in columns.setup(last) if _takes_id(s)}


def _takes_id(setup: group_events.SetupEvent) -> bool:
    return bool(setup.what[0] == "init")
