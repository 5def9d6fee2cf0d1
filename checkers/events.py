"""Turns events into columns: nested micro-operations become flat typed rows.

``history.parquet`` is this table. An event's ``value`` is a list of micro-operations with the
fields ``op, key, offset, value, records, name``, where ``key`` names a partition.

- A ``catch-up`` holds the position in ``offset`` and the high watermark in ``value``.
- Micro-operations of consumer groups (``commit``, ``commit-plainly``, ``committed``, ``assigned``,
  ``revoked``, ``lost``) hold the group in ``name``, the generation in ``value``, and a record per
  partition with its offset, whose ``value`` is the metadata of a commit.
- ``watermarks`` hold a record per log end, whose ``value`` is an index into ``WATERMARKS``.
- ``delete-records`` hold a record for the requested offset (``DELETED``), and one for the log start
  that the broker returned.

Other values (a fault's description), and what a process does once (``subscribe``, ``init``,
``leave``), are JSON in ``detail``.
"""

from array import array
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Never

import msgspec
import pyarrow as pa

from checkers import left_out, pieces, vocabulary
from checkers.kernels.rows import UNKNOWN
from checkers.kernels.steps import NO_METADATA
from checkers.micro_ops import (
    ASK,
    ASSIGN,
    BEYOND,
    COMMIT,
    COMMIT_PLAINLY,
    COMMITTED,
    DELETE_RECORDS,
    DELETED,
    POLL,
    REBALANCES,
    SEND,
    SETUP,
    WATERMARK,
    WATERMARKS,
)
from model.history import BadHistory
from model.op import NEMESIS

_TYPE_CODES = {name: code for code, name in enumerate(pieces.TYPES)}
_SEND = 0
"""The code of ``send`` among the names of micro-operations."""


class Event(msgspec.Struct, gc=False):
    """An event as a file has it, before its value is interpreted."""

    index: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
    time_ns: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
    process: Annotated[int, msgspec.Meta(ge=NEMESIS, le=(1 << 31) - 1)]
    type: Literal["invoke", "ok", "fail", "info"]
    f: str
    value: Any = msgspec.UNSET
    error: str | msgspec.UnsetType | None = msgspec.UNSET


_REQUIRED = 5  # fields of every event
SHAPE_ERRORS = (TypeError, ValueError, LookupError, OverflowError, AttributeError, RecursionError)
"""What is raised for a value that does not have the shape of micro-operations."""


class _Codes(dict[str, int]):
    """Codes for names, in the order of their first appearance."""

    def __missing__(self, name: object) -> int:
        if not isinstance(name, str):
            raise TypeError(f"{name!r} is not a name")
        code = self[name] = len(self)
        return code


def _column() -> "array[int]":
    return array("q")  # accepts integers of 64 bits, but also True and False


class EventColumns:
    """The columns of a history while it is read, one event after another."""

    def __init__(self) -> None:
        self.names, self.errors, self.ops, self.keys = _Codes(), _Codes(), _Codes(), _Codes()
        self.groups = _Codes()
        self.fields = 0  # names in JSON objects, each counted once for its object
        self.unknown: Counter[str] = Counter()  # fields that are ignored
        assert self.ops[SEND] == _SEND, "the first name has the first number"
        self._begin()

    def _begin(self) -> None:
        """Begin a piece, whose rows count from 0."""
        self.index, self.time_ns, self.process = _column(), _column(), _column()
        self.type, self.f, self.error = _column(), _column(), _column()
        self.named, self.op_group = _column(), _column()  # rows with a group, the groups
        self.details: dict[int, str] = {}
        self.op_end, self.op, self.op_key = _column(), _column(), _column()
        self.op_offset, self.op_value, self.op_records_end = _column(), _column(), _column()
        self.record_key, self.record_offset, self.record_value = _column(), _column(), _column()
        self.no_value = _column()  # rows of micro-operations without a number

    def sibling(self) -> "EventColumns":
        """Return empty columns that use the same codes, and count the same ignored fields."""
        other = EventColumns()
        other.names, other.errors, other.ops, other.keys = (
            self.names,
            self.errors,
            self.ops,
            self.keys,
        )
        other.groups, other.unknown = self.groups, self.unknown
        return other

    def add(self, events: list[Event]) -> None:
        """Add events. Raises one of ``SHAPE_ERRORS`` midway when a value has another shape."""
        self.index.extend([event.index for event in events])
        self.time_ns.extend([event.time_ns for event in events])
        self.process.extend([event.process for event in events])
        self.type.extend([_TYPE_CODES[event.type] for event in events])
        names, errors = self.names, self.errors
        self.f.extend([names[event.f] for event in events])
        self.error.extend([errors[e.error] if type(e.error) is str else -1 for e in events])
        self.fields += sum(
            _REQUIRED + (e.value is not msgspec.UNSET) + (e.error is not msgspec.UNSET)
            for e in events
        )
        # Two thirds of judging a history inline is spent in this loop: hence the local names.
        keys, op, op_key, op_records_end = self.keys, self.op, self.op_key, self.op_records_end
        op_offset, op_value, op_end = self.op_offset, self.op_value, self.op_end
        known = vocabulary.OPERATIONS
        for event in events:
            value = event.value
            if type(value) is list and event.process != NEMESIS and event.f in known:
                if event.f in SETUP and value and type(value[0]) is list:
                    self._add_detail(value)
                    value = ()
                for micro_op in value:
                    if micro_op[0] == SEND:
                        _, key, sent = micro_op
                        if type(sent) is list:
                            offset, sent = sent
                            op_offset.append(UNKNOWN if offset is None else offset)
                            if type(offset) is bool:
                                raise TypeError
                        else:
                            op_offset.append(UNKNOWN)
                        if type(sent) is not int:
                            refuse("the value of a record must be a whole number")
                        op.append(_SEND)
                        op_key.append(keys[key])
                        op_value.append(sent)
                        op_records_end.append(len(self.record_key))
                    else:
                        self._add(micro_op, event.f)
            elif value is not None and value is not msgspec.UNSET:
                if event.process == NEMESIS:
                    self._add_detail(value)
                elif event.f in vocabulary.WITH_MICRO_OPERATIONS:
                    refuse("a value must be a list of micro-operations")
                else:
                    self.fields += _names(value)
            op_end.append(len(op))

    def _add_detail(self, value: Any) -> None:
        """Keep a value whole, as JSON, for the event that is added next."""
        self.details[len(self.op_end)] = msgspec.json.encode(value).decode()
        self.fields += _names(value)

    def _add(self, micro_op: Any, f: str) -> None:
        if micro_op[0] == POLL:
            if len(micro_op) > 1 and micro_op[1] is not None:
                _, polled = micro_op
                self.fields += len(polled)
                self._add_records(polled)
            self._add_other(POLL)
            self.op_records_end.append(len(self.record_key))
            return
        self.fields += _names(micro_op)
        if type(micro_op) is str:
            if f not in vocabulary.NAMES_KEYS:
                refuse(f"only {' and '.join(vocabulary.NAMES_KEYS)} have keys without values")
            self._add_other(ASSIGN, micro_op)
        elif micro_op[0] not in vocabulary.MICRO_OPERATIONS:
            self._add_other(micro_op[0])
        elif not vocabulary.fits(micro_op):
            raise TypeError
        elif micro_op[0] in (COMMIT, COMMIT_PLAINLY, COMMITTED):
            self._add_places(micro_op[0], micro_op[1], None, micro_op[2])
        elif micro_op[0] in REBALANCES:
            self._add_places(*micro_op)
        elif micro_op[0] == WATERMARK:
            self._add_watermarks(*micro_op)
        elif micro_op[0] == ASK:
            self._add_other(ASK)
        elif micro_op[0] == DELETE_RECORDS:
            self._add_deletion(*micro_op)
        else:
            self._add_other(*micro_op)
        self.op_records_end.append(len(self.record_key))

    def _add_records(self, polled: dict[str, list[list[Any]]]) -> None:
        for key, records in polled.items():
            if type(records) is not list:
                raise TypeError
            offsets = [UNKNOWN if offset is None else offset for offset, _ in records]
            values = [value for _, value in records]
            # In a column of offsets, a negative one looks like one that was not stated.
            if min(offsets, default=0) < 0 and any(o is not None and o < 0 for o, _ in records):
                refuse("the offset of a record must not be negative")
            if bool in map(type, values) or bool in map(type, offsets):
                refuse("true and false are not numbers")
            self.record_key.extend([self.keys[key]] * len(records))
            self.record_offset.extend(offsets)
            self.record_value.extend(values)

    def _add_places(
        self,
        kind: str,
        group: str,
        generation: int | None,
        places: dict[str, Any] | list[str] | None,
    ) -> None:
        """Add one record per partition of a group, with its offset and its metadata where they are
        given."""
        offsets = places if isinstance(places, dict) else dict.fromkeys(places or ())
        for key, offset in offsets.items():
            self._add_place(key, *(offset if type(offset) is list else (offset, NO_METADATA)))
        self.named.append(len(self.op))
        self.op_group.append(self.groups[group])
        self._add_other(kind, None, None, generation)

    def _add_watermarks(self, kind: str, key: str, ends: dict[str, Any] | None = None) -> None:
        self.unknown.update(name for name in ends or () if name not in WATERMARKS)
        for place, name in enumerate(WATERMARKS):
            if ends and ends.get(name) is not None:
                self._add_place(key, ends[name], place)
        self._add_other(kind, key)

    def _add_deletion(self, kind: str, key: str, asked: int, start: int | None = None) -> None:
        if asked < 0:  # Kafka's DeleteRecords: all below the high watermark, which the answer has
            asked = BEYOND if start is None else start
        self._add_place(key, asked, DELETED)
        if start is not None:
            self._add_place(key, start, WATERMARKS.index("start"))
        self._add_other(kind, key)

    def _add_place(self, key: str, offset: int | None, value: int) -> None:
        self.record_key.append(self.keys[key])
        self.record_offset.append(UNKNOWN if offset is None else offset)
        self.record_value.append(value)

    def _add_other(
        self, kind: str, key: str | None = None, first: int | None = None, second: int | None = None
    ) -> None:
        """Add the columns of a micro-operation other than a send; of an unknown one, only its
        name."""
        if second is None:
            self.no_value.append(len(self.op))
        self.op.append(self.ops[kind])
        self.op_key.append(-1 if key is None else self.keys[key])
        self.op_offset.append(UNKNOWN if first is None else first)
        self.op_value.append(0 if second is None else second)

    def piece(self) -> pieces.Piece:
        """Return what was added since the last piece."""
        columns = {name: column for name, column in vars(self).items() if type(column) is array}
        piece = pieces.piece(columns, self.details)
        self._begin()
        return piece

    def known(self) -> dict[str, list[str]]:
        """Return all names so far, by their kind."""
        return {name: list(getattr(self, name)) for name in set(pieces.NAMED.values())}

    def finish(self, part: pieces.Part) -> pieces.Part:
        """Complete a part with the remaining events and with the names."""
        part.add(self.piece())
        part.names, part.unknown = self.known(), self.unknown
        return part


def refuse(why: str) -> Never:
    """Reject a value of another shape."""
    raise vocabulary.Misfit(why)


def _names(value: Any) -> int:
    """Count the names in the JSON objects of a value."""
    inner = value.values() if type(value) is dict else value if type(value) is list else ()
    return (len(value) if type(value) is dict else 0) + sum(map(_names, inner))


def table(events: Iterable[Event]) -> pa.Table:
    """Return events as one table. Raises :class:`BadHistory` when a value does not have the shape
    of micro-operations."""
    columns = EventColumns()
    for event in events:
        add_one(columns, event)
    return assembled(columns.finish(pieces.Part()))


def add_one(columns: EventColumns, event: Event) -> None:
    """Add one event. Raises :class:`BadHistory` with what is wrong in its value."""
    try:
        columns.add([event])
    except SHAPE_ERRORS as error:
        value = event.value if isinstance(event.value, list) else []
        wrong = next((micro_op for micro_op in value if not _fits(event, micro_op)), event.value)
        raise BadHistory(f"event {event.index}: {vocabulary.misfit(wrong, error)}") from error


def _fits(event: Event, micro_op: Any) -> bool:
    try:
        EventColumns().add([msgspec.structs.replace(event, value=[micro_op])])
    except SHAPE_ERRORS:
        return False
    return True


def assembled(*parts: pieces.Part, torn: str | None = None) -> pa.Table:
    """Return the table of all parts, with notes on what was left out."""
    fields = sum((part.unknown for part in parts), Counter[str]())
    return left_out.noted(pieces.table(*parts), torn, fields)
