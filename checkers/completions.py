"""Checks that each completion fits its invocation: a client can only answer what it was asked.

An operation that succeeded repeats every record and partition of its invocation, and names no
others. One that failed, or that ended in doubt, may name fewer. An incomplete invocation cannot be
compared: one without a value, or with a micro-operation that no checker knows, may have sent
anything. An operation may poll more often than its invocation says.

One mismatch is a case of its own: an acknowledgement of as many records of the same partitions, but
with other values. Jepsen believes the completion, and so do the checkers; but either event may be
wrong, so the verdict is at best ``unknown``. A history with any other mismatch is rejected.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from checkers import micro_ops, pieces, vocabulary
from checkers.columns import Columns, Rows, spread
from checkers.kernels.arrays import I32
from checkers.kernels.rows import I64, Bools
from checkers.threads import mapped

_OK = pieces.TYPES.index("ok")

_COMPARED = (
    micro_ops.SEND,
    micro_ops.POLL,
    micro_ops.CATCH_UP,
    micro_ops.COMMIT,
    micro_ops.COMMITTED,
    micro_ops.DELETE_RECORDS,
    micro_ops.DELETE_TOPIC,
    micro_ops.FREEZE,
    micro_ops.WATERMARK,
    "create-topic",
    micro_ops.CREATE_COMPACTED,
)
"""Micro-operations that a completion repeats, with a result where there is one. Clients add others:
the partitions that they were assigned or lost, and the commits of rebalance listeners."""


class Misfit(NamedTuple):
    """A completion that does not fit its invocation."""

    row: int
    why: str
    is_doubt: bool = False
    """Whether the completion can be believed; otherwise the history is rejected."""


PAIRS = 1 << 16
"""Number of operations compared together, small enough to keep their columns small."""

U64 = NDArray[np.uint64]


def misfits(columns: Columns, threads: int = 1) -> Iterator[Misfit]:
    """Yield the completions that do not fit; in each block, up to the first that is rejected.

    Several threads may compare different blocks.
    """
    first, last = columns.pairs
    yield from _once(columns, first, last)
    says = np.diff(columns.micro_op_end)[first] > 0
    strange = np.flatnonzero(~columns.is_op(*vocabulary.MICRO_OPERATIONS, micro_ops.ASSIGN))
    if len(strange):
        says &= ~np.isin(first, columns.event[strange])
    first, last = first[says], last[says]
    compared = _compared(columns)

    def of_block(begin: int) -> list[Misfit]:
        pairs = first[begin : begin + PAIRS], last[begin : begin + PAIRS]
        return list(_of_block(columns, compared, *pairs))

    begins = range(0, len(last), PAIRS)
    for found in mapped(of_block, begins, threads if len(begins) > 1 else 1):
        yield from found


def _compared(columns: Columns) -> Bools:
    """Return which micro-operations are compared. Commits are compared only in operations that ask
    for commits, because clients add commits to other operations."""
    compared = columns.is_op(*_COMPARED)
    commits = np.flatnonzero(columns.is_op(micro_ops.COMMIT))
    if len(commits):
        codes = [code for code, name in enumerate(columns.f_names) if name == micro_ops.COMMIT]
        compared[commits] = np.isin(columns.f[columns.event[commits]], codes)
    return compared


def _of_block(columns: Columns, compared: Bools, first: I32, last: I32) -> Iterator[Misfit]:
    """Yield the completions of one block that do not fit, up to the first that is rejected."""
    (requested, requester), (reported, reporter) = (
        _rows(columns, compared, each) for each in (first, last)
    )
    is_same = np.array_equal(requester, reporter)
    if is_same and _are_alike(columns, requested, reported):
        return
    requested_marks, reported_marks = _marks(columns, requested), _marks(columns, reported)
    if is_same:
        different = np.unique(requester[requested_marks != reported_marks])
    else:
        count, counted = (
            np.bincount(place, minlength=len(last)) for place in (requester, reporter)
        )
        unequal = count != counted
        same = requested_marks[~unequal[requester]] != reported_marks[~unequal[reporter]]
        unequal[requester[~unequal[requester]][same]] = True
        different = np.flatnonzero(unequal & ((columns.type[last] == _OK) | (counted > 0)))
    for place in different.tolist():
        mine, theirs = (
            slice(*np.searchsorted(places, (place, place + 1))) for places in (requester, reporter)
        )
        events = int(first[place]), int(last[place])
        found = _misfit(
            columns,
            *events,
            _by_mark(requested_marks, requested, mine),
            _by_mark(reported_marks, reported, theirs),
        )
        if found is not None:
            yield found
            if not found.is_doubt:
                return


def _rows(columns: Columns, compared: Bools, events: I32) -> tuple[I64, I64]:
    """Return the rows of the compared micro-operations of these events, and the index of each one's
    event."""
    rows, place = spread(columns.micro_op_end[events], columns.micro_op_end[events + 1])
    wanted = compared[rows]
    return rows[wanted], place[wanted]


def _are_alike(columns: Columns, requested: I64, reported: I64) -> bool:
    """Return whether it is certain that each micro-operation asks for the same in both events.

    ``False`` means nothing: commits are not compared here.
    """
    op = columns.op.take(requested)
    sends, commits = (
        [code for code, name in enumerate(columns.op_names) if name in names]
        for names in ((micro_ops.SEND,), (micro_ops.COMMIT, micro_ops.COMMITTED))
    )
    if (op != columns.op.take(reported)).any() or np.isin(op, commits).any():
        return False
    if (columns.op_key[requested] != columns.op_key[reported]).any():
        return False
    sent = np.flatnonzero(np.isin(op, sends))
    values = (columns.op_value[rows.take(sent)] for rows in (requested, reported))
    return np.array_equal(*values)


def _by_mark(marks: U64, rows: I64, part: slice) -> list[tuple[int, int]]:
    return list(zip(marks[part].tolist(), rows[part].tolist(), strict=True))


def _misfit(
    columns: Columns,
    first: int,
    last: int,
    requested: list[tuple[int, int]],
    reported: list[tuple[int, int]],
) -> Misfit | None:
    """Return what is wrong with one completion, given the (mark, row) pairs of both events."""
    process = f"process {columns.process[last]}"
    invocation = f"its invocation, event {columns.index[first]},"
    requested_marks, reported_marks = (
        Counter(mark for mark, _ in each) for each in (requested, reported)
    )
    row_of = dict(requested) | dict(reported)
    polls = {mark for mark, row in row_of.items() if _is_named(columns, row, micro_ops.POLL)}
    more = {
        mark: count
        for mark, count in (reported_marks - requested_marks).items()
        if mark not in polls & {*requested_marks}
    }
    missing = requested_marks - reported_marks
    if more:
        is_doubt = (
            columns.type[last] == _OK
            and (sent := _sends(columns, more, row_of)) is not None
            and sent == _sends(columns, missing, row_of)
        )
        what = _named(columns, row_of[next(iter(more))])
        return Misfit(
            last, f"{process} completes {what}, which {invocation} does not ask for", is_doubt
        )
    if missing and columns.type[last] == _OK:
        what = _named(columns, row_of[next(iter(missing))])
        return Misfit(last, f"{process} succeeds without {what}, which {invocation} asks for")
    return None


def _is_named(columns: Columns, row: int, name: str) -> bool:
    return bool(columns.op_names[columns.op[row]] == name)


def _sends(
    columns: Columns, marks: Mapping[int, int], row_of: Mapping[int, int]
) -> "Counter[int] | None":
    """Count the records that these micro-operations send, by partition; ``None`` if one is no
    send."""
    found: Counter[int] = Counter()
    for mark, count in marks.items():
        if not _is_named(columns, row_of[mark], micro_ops.SEND):
            return None
        found[int(columns.op_key[row_of[mark]])] += count
    return found


def _named(columns: Columns, row: int) -> str:
    """Describe a micro-operation for a message."""
    name = columns.op_names[columns.op[row]]
    code = int(columns.op_key[row])
    key = columns.keys[code] if code >= 0 else ""
    if name == micro_ops.SEND:
        return f"the send of value {columns.op_value[row]} to {key}"
    group = int(columns.op_group[row])
    of = key or (columns.group_names[group] if group >= 0 else "")
    return f"the {name} of {of}" if of else f"a {name}"


def _marks(columns: Columns, rows: Rows) -> U64:
    """Return a hash of what each of these micro-operations asks for, without its result."""
    if not len(rows):
        return np.zeros(0, dtype=np.uint64)
    is_send = _is(columns, rows, micro_ops.SEND)
    marks = _mixed(columns.op[rows], columns.op_key[rows])
    marks = _mixed(marks, np.where(is_send, columns.op_value[rows], 0))
    grouped = np.flatnonzero(_is(columns, rows, micro_ops.COMMIT, micro_ops.COMMITTED))
    if not len(grouped):
        return marks
    marks[grouped] = _mixed(marks[grouped], columns.op_group[rows[grouped]])
    of_groups = rows[grouped]
    records, place = spread(columns.record_end[of_groups], columns.record_end[of_groups + 1])
    commits = _is(columns, of_groups, micro_ops.COMMIT)[place]
    inner = _mixed(columns.record_key[records], np.zeros(len(records), dtype=np.int64))
    for numbers in (columns.record_offset, columns.record_value):
        inner = _mixed(inner, np.where(commits, numbers[records], 0))
    np.add.at(marks, grouped[place], inner)  # the order of partitions has no meaning
    return marks


def _is(columns: Columns, rows: Rows, *names: str) -> Bools:
    """Return which of these micro-operations have one of these names."""
    codes = [code for code, name in enumerate(columns.op_names) if name in names]
    return np.isin(columns.op[rows], codes)


def _mixed(first: Any, second: Any) -> U64:
    """Hash two columns into one: equal pairs get equal numbers, and other pairs hardly ever do."""
    mixed = first.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + second.astype(np.uint64)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    found: U64 = mixed ^ (mixed >> np.uint64(32))
    return found


def _once(columns: Columns, first: I32, last: I32) -> Iterator[Misfit]:
    """Yield the first completion that does not fit a ``subscribe``, ``init`` or ``leave``."""
    codes = [code for code, name in enumerate(columns.f_names) if name in micro_ops.SETUP]
    of_these = np.isin(columns.f[last], codes)
    for begin, end in zip(first[of_these].tolist(), last[of_these].tolist(), strict=True):
        requested, reported = _what(columns, begin), _what(columns, end)
        is_keys = bool(columns.micro_op_end[begin] < columns.micro_op_end[begin + 1])
        if (
            requested == reported
            or not (requested or is_keys)
            or (reported is None and columns.type[end] != _OK)
        ):
            continue
        name = columns.f_names[columns.f[end]]
        does = f"completes another {name} than"
        if reported is None:
            does = f"succeeds without the {name} that"
        invocation = f"its invocation, event {columns.index[begin]}, asks for"
        yield Misfit(end, f"process {columns.process[end]} {does} {invocation}")
        return


def _what(columns: Columns, row: int) -> list[list[Any]] | None:
    """Return the transactional ids, groups and topics that an event names; ``None`` if it names
    none."""
    text = columns.detail[row].as_py()
    try:
        value = msgspec.json.decode(text) if text else None
    except (msgspec.MsgspecError, RecursionError):
        return None
    if not isinstance(value, list):
        return None
    found = [
        each for each in value if isinstance(each, list) and each and each[0] in micro_ops.SETUP
    ]
    return [each[: 3 if each[0] == "subscribe" else 2] for each in found] or None
