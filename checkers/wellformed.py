"""Rules that a history has to satisfy before it can be judged, whichever file it came from.

Indices increase and times do not decrease; a process does one operation after another and none
after one that ended in doubt; offsets are not negative. A history that breaks one of these rules
would be judged by events that cannot have happened as it says. :mod:`checkers.completions` has
another rule.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from checkers import arrow, micro_ops, pieces, vocabulary
from checkers.columns import INVOKE, Columns, only
from checkers.kernels.rows import UNKNOWN, Bools
from model.op import CRASH, NEMESIS, RECOVER, UNRESPONSIVE

NO_OFFSET = (UNKNOWN, -1001)
"""What clients report in place of an unknown offset: the protocol's -1, and librdkafka's
``OFFSET_INVALID``. A polled record always has an offset, or null."""

_OK, _INFO = (pieces.TYPES.index(name) for name in ("ok", "info"))


class Broken(NamedTuple):
    """The first event that breaks a rule."""

    row: int
    """Its row in the history, from 0."""
    why: str


class _Events:
    """A history and its columns, as the rules read them."""

    def __init__(self, history: pa.Table, columns: Columns) -> None:
        self.index, self.time_ns, self.process = columns.index, columns.time_ns, columns.process
        self.type, self.f, self.f_names = columns.type, columns.f, columns.f_names
        self.columns = columns
        self.micro_ops = only(history["value"]).values

    def row_of(self, micro_op: int) -> int:
        """Return the row of a micro-operation's event."""
        return int(np.searchsorted(self.columns.micro_op_end, micro_op, side="right")) - 1


Rule = Callable[[_Events], Iterator[Broken]]


def broken(history: pa.Table, columns: Columns) -> Broken | None:
    """Return the first event that breaks a rule; ``None`` if the history can be judged."""
    events = _Events(history, columns)
    return min((found for rule in RULES for found in rule(events)), default=None)


def _first(rows: Bools, why: Callable[[int], str]) -> Iterator[Broken]:
    """Yield the first row of a mask, with the reason for it."""
    if rows.any():
        row = int(rows.argmax())
        yield Broken(row, why(row))


def _but_first(rows: Bools) -> Bools:
    """Return a mask of all rows, given one of those that have a row before them."""
    return np.concatenate((np.zeros(1, dtype=np.bool_), rows))


def index_follows(index: int, before: int) -> str:
    """Say that indices do not increase."""
    return f"the index {index} follows {before}: indices must increase"


def time_follows(time_ns: int, before_ns: int) -> str:
    """Say that times decrease."""
    return (
        f"the time {time_ns} ns follows {before_ns} ns: events must be in the order of their times"
    )


def continues(process: int, index: int) -> str:
    """Say that a process goes on after an event that ended in doubt."""
    return (
        f"process {process} continues after its event {index} ended in info: its operation may"
        " still be in progress, so another process must continue"
    )


def _indices(events: _Events) -> Iterator[Broken]:
    index = events.index
    yield from _first(index < 0, lambda row: f"the index {index[row]} is negative")
    yield from _first(
        _but_first(index[1:] <= index[:-1]),
        lambda row: index_follows(index[row], index[row - 1]),
    )


def _times(events: _Events) -> Iterator[Broken]:
    time_ns = events.time_ns
    yield from _first(time_ns < 0, lambda row: f"the time {time_ns[row]} ns is negative")
    yield from _first(
        _but_first(time_ns[1:] < time_ns[:-1]),
        lambda row: time_follows(time_ns[row], time_ns[row - 1]),
    )


def _processes(events: _Events) -> Iterator[Broken]:
    process = events.process
    yield from _first(
        process < NEMESIS,
        lambda row: (
            f"process {process[row]} is invalid: clients are numbered from 0, and the nemesis "
            f"is {NEMESIS}"
        ),
    )


def _types(events: _Events) -> Iterator[Broken]:
    yield from _first(
        events.type < 0, lambda row: f"the type must be one of {', '.join(pieces.TYPES)}"
    )


def _operations(events: _Events) -> Iterator[Broken]:
    """Check that each client invokes an operation, completes it, invokes the next, and so on."""
    order = events.columns.by_process
    if not len(order):
        return
    process, kind, f = (c.take(order) for c in (events.process, events.type, events.f))
    follows = _but_first(process[1:] == process[:-1])
    before = np.roll(kind, 1)
    invokes = kind == INVOKE
    answers = follows & (before == INVOKE)
    wrong = (invokes == answers) | (answers & (f != np.roll(f, 1))) | (follows & (before == _INFO))
    if not wrong.any():
        return
    index = events.index

    def each(wrong: Bools, why: Callable[[int, int], str]) -> Iterator[Broken]:
        places = np.flatnonzero(wrong)
        if len(places):
            place = int(places[order[places].argmin()])
            yield Broken(int(order[place]), why(int(order[place]), int(order[place - 1])))

    def process_of(row: int) -> str:
        return f"process {events.process[row]}"

    yield from each(
        ~invokes & ~answers,
        lambda row, _: f"{process_of(row)} completes an operation that it did not invoke",
    )
    yield from each(
        ~invokes & answers & (f != np.roll(f, 1)),
        lambda row, last: (
            f"{process_of(row)} completes {events.f_names[events.f[row]]}, but it invoked"
            f" {events.f_names[events.f[last]]} as event {index[last]}"
        ),
    )
    yield from each(
        invokes & answers,
        lambda row, last: (
            f"{process_of(row)} invoked event {index[row]} before its event {index[last]} was"
            " completed"
        ),
    )
    yield from each(
        invokes & follows & (before == _INFO),
        lambda row, last: continues(events.process[row], index[last]),
    )


def _offsets(events: _Events) -> Iterator[Broken]:
    """Check that no offset is negative, except those that stand for an unknown offset."""
    columns = events.columns
    offset = events.micro_ops.field("offset")
    stated = arrow.numbers(offset)
    below = np.flatnonzero(stated < 0)
    if len(below):
        below = below[arrow.is_valid(offset)[below] & ~np.isin(stated[below], NO_OFFSET)]
    for at in below[:1].tolist():
        name = columns.op_names[columns.op[at]]
        yield Broken(events.row_of(at), f"{name} has the negative number {offset[at]}")
    below = np.flatnonzero(columns.record_offset < 0)
    if not len(below):
        return
    of = np.searchsorted(columns.record_end, below, side="right") - 1
    polled = columns.is_op(micro_ops.POLL)[of]
    number = columns.record_offset[below]
    offsets = events.micro_ops.field("records").values.field("offset")
    is_there = arrow.is_valid(offsets)[below]
    for at in np.flatnonzero(is_there & (polled | ~np.isin(number, NO_OFFSET)))[:1].tolist():
        what = "a polled record" if polled[at] else columns.op_names[columns.op[of[at]]]
        yield Broken(events.row_of(int(of[at])), f"{what} has the negative offset {number[at]}")


def _catch_ups(events: _Events) -> Iterator[Broken]:
    """Check that a catch-up succeeds only at the high watermark."""
    columns = events.columns
    rows = np.flatnonzero(columns.is_op(micro_ops.CATCH_UP))
    rows = rows[columns.op_offset[rows] < columns.op_value[rows]]
    at = np.searchsorted(columns.micro_op_end, rows, side="right") - 1
    for row, event in zip(rows.tolist(), at.tolist(), strict=True):
        if events.type[event] == _OK:
            yield Broken(
                event,
                f"the catch-up of {columns.keys[columns.op_key[row]]} succeeded at position"
                f" {columns.op_offset[row]}, below its high watermark {columns.op_value[row]}",
            )
            return


def _details(events: _Events) -> Iterator[Broken]:
    """Check that values kept as JSON have the shape that checkers rely on."""
    rules = {CRASH: _crash, RECOVER: _recovery, UNRESPONSIVE: _silence}
    detail = events.columns.detail
    says = np.diff(events.columns.micro_op_end) > 0
    yield from _first(
        says & (events.process == NEMESIS),
        lambda row: (
            "the nemesis must not have micro-operations; the data of a fault belongs in its detail"
        ),
    )
    setup = [code for code, name in enumerate(events.f_names) if name in micro_ops.SETUP]
    has_none = (events.process != NEMESIS) & ~np.isin(events.f, setup)
    yield from _first(
        has_none & arrow.is_valid(detail),
        lambda row: (
            f"{events.f_names[events.f[row]]} has a detail, which only the nemesis and "
            f"{', '.join(micro_ops.SETUP)} may have"
        ),
    )
    for row in np.flatnonzero(arrow.is_valid(detail)).tolist():
        text = detail[row].as_py()
        try:
            value = msgspec.json.decode(text)
        except (msgspec.MsgspecError, RecursionError):
            yield Broken(row, "its detail is not JSON")
            return
        if events.process[row] != NEMESIS:
            why = _once(value)
        elif not isinstance(value, dict):
            continue
        else:
            rule = rules.get(events.f_names[events.f[row]])
            why = (rule and rule(value)) or _fault(value)
        if why is not None:
            yield Broken(row, why)
            return


def _once(value: Any) -> str | None:
    """Return what is wrong with a ``subscribe``, ``init`` or ``leave``."""
    for micro_op in value if isinstance(value, list) else [value]:
        match micro_op:
            case [str(name), *_] if name in micro_ops.SETUP:
                if not vocabulary.fits(micro_op):
                    return vocabulary.misfit(micro_op, TypeError())
            case str():
                pass
            case [str(), *_]:
                pass
            case _:
                return vocabulary.misfit(micro_op, TypeError())
    return None


def _crash(value: dict[str, Any]) -> str | None:
    """Return what is wrong with the report of a node that exited by itself."""
    if type(value.get("status")) is not int:
        return f"the exit status of a crash must be a whole number, not {value.get('status')!r}"
    if not isinstance(value.get("node"), str):
        return f"a crash must name its node, not {value.get('node')!r}"
    return None


def _silence(value: dict[str, Any]) -> str | None:
    """Return what is wrong with the report of a node that answered nothing."""
    if not isinstance(value.get("node"), str):
        return f"an unresponsive node must be named, not {value.get('node')!r}"
    if type(value.get("for_s")) not in (int, float):
        return f"for_s must be a number of seconds, not {value.get('for_s')!r}"
    return None


def _recovery(value: dict[str, Any]) -> str | None:
    recovered = value.get("recovered")
    return (
        None
        if isinstance(recovered, bool)
        else f"recovered must be true or false, not {recovered!r}"
    )


def _fault(value: dict[str, Any]) -> str | None:
    """Return what is wrong with a fault; other events of a nemesis have no id."""
    if "id" in value and (type(value["id"]) is not int or abs(value["id"]) >= 1 << 63):
        return f"the id of a fault must be a whole number, not {value['id']!r}"
    effect = value.get("effect")
    if isinstance(effect, dict) and not isinstance(effect.get("proved"), bool):
        return f"proved, in a fault's effect, must be true or false, not {effect.get('proved')!r}"
    return None


RULES: tuple[Rule, ...] = (
    _indices,
    _times,
    _processes,
    _types,
    _operations,
    _offsets,
    _catch_ups,
    _details,
)
