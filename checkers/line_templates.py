"""Recognizes lines of a history that differ from a known line only in their numbers.

Nearly all lines of a large history are sends and polls, and few of them differ in more than their
numbers: the digits of an index, of a time, of an offset, and of a partition's name. A template is
such a line without its numbers. It is decoded once, with numbers that say which one of the line
they are, so that only the numbers of all further lines need to be read.

Each list of polled records stands for lists of any length: a template has one record of each.
"""

import re
from itertools import count
from typing import ClassVar, Literal, NamedTuple

import msgspec

from checkers import pieces
from checkers.micro_ops import ABORT, DELAY, POLL, SEND
from model import json_fields

NONE = -1
"""Stands for the place of a number that a line does not have."""

_FIRST = 1_000_000
"""The number that stands for the first one of a line while its template is decoded."""
_NUMBER = re.compile(rb"0")
_DIGITS = re.compile(r"[0-9]+")


class _Send(msgspec.Struct, array_like=True, tag=SEND, forbid_unknown_fields=True):
    key: str
    value: int | tuple[int | None, int]


class _Poll(msgspec.Struct, array_like=True, tag=POLL, forbid_unknown_fields=True):
    polled: dict[str, list[tuple[int, int]]] | None = None
    kind: ClassVar[str] = POLL


class _Abort(msgspec.Struct, array_like=True, tag=ABORT, forbid_unknown_fields=True):
    kind: ClassVar[str] = ABORT


class _Delay(msgspec.Struct, array_like=True, tag=DELAY, forbid_unknown_fields=True):
    key: None
    ms: int
    kind: ClassVar[str] = DELAY


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """An event whose value consists of micro-operations that templates know."""

    index: int
    time_ns: int
    process: int
    type: Literal["invoke", "ok", "fail", "info"]
    f: Literal["send", "poll", "txn"]
    value: list[_Send | _Poll | _Abort | _Delay]
    error: str | msgspec.UnsetType | None = msgspec.UNSET


_LINE = msgspec.json.Decoder(_Line)


class Key(NamedTuple):
    """The name of a partition without the numbers in it."""

    texts: tuple[str, ...]
    """The texts around its numbers, of which there are at most two."""
    places: tuple[int, int]
    """The places of these numbers among the numbers of the line, or ``NONE``."""


class MicroOp(NamedTuple):
    """A micro-operation, with the places of its numbers."""

    kind: str
    key: Key | None
    offset: int = NONE
    value: int = NONE


class Records(NamedTuple):
    """A list of polled records."""

    micro_op: int
    """The index of its poll among the micro-operations of the line."""
    key: Key
    offset: int
    """The place of the offset of the last record; the next number is the value."""


class Template(NamedTuple):
    """What lines that differ only in their numbers have in common."""

    numbers: int
    """How many numbers such a line has, apart from those of all records but the last in a list."""
    heads: tuple[int, int, int]
    """The places of the index, the time and the process."""
    type: int
    f: str
    error: str | None
    micro_ops: tuple[MicroOp, ...]
    records: tuple[Records, ...]


class _UnfitError(Exception):
    """A line that has something that a template cannot express."""


def template(line: bytes) -> Template | None:
    """Return the template of a line, whose numbers are all 0; ``None`` for a line that is not plain
    sends and polls, or is not valid."""
    if b"\\" in line:  # digits may be a part of an escape sequence
        return None
    number = count(_FIRST)
    text = _NUMBER.sub(lambda _: b"%d" % next(number), line)
    try:
        found = _of(_LINE.decode(text), next(number) - _FIRST)
        json_fields.loads(text)  # raises an error for a field that an object has twice
    except (_UnfitError, msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return found


def _of(line: _Line, numbers: int) -> Template:
    found: list[int] = []

    def place(number: int) -> int:
        found.append(number - _FIRST)
        return found[-1]

    def key(name: str) -> Key:
        if "[" in name:  # might be mistaken for a list of records
            raise _UnfitError
        places = [place(int(digits)) for digits in _DIGITS.findall(name)]
        if len(places) > 2:
            raise _UnfitError
        first, second = [*places, NONE, NONE][:2]
        return Key(tuple(_DIGITS.split(name)), (first, second))

    heads = (place(line.index), place(line.time_ns), place(line.process))
    micro_ops: list[MicroOp] = []
    records: list[Records] = []
    for given in line.value:
        if isinstance(given, _Send):
            name = key(given.key)
            offset, value = given.value if isinstance(given.value, tuple) else (None, given.value)
            at = NONE if offset is None else place(offset)
            micro_ops.append(MicroOp(SEND, name, at, place(value)))
        elif isinstance(given, _Delay):
            micro_ops.append(MicroOp(DELAY, None, place(given.ms)))
        else:
            polled = given.polled if isinstance(given, _Poll) else None
            for name_of, pairs in (polled or {}).items():
                name = key(name_of)
                [(offset, value)] = pairs  # one record, or ValueError
                records.append(Records(len(micro_ops), name, place(offset)))
                if place(value) != records[-1].offset + 1:
                    raise _UnfitError
            micro_ops.append(MicroOp(given.kind, None))
    error = line.error if isinstance(line.error, str) else None
    # each number has one place; negative numbers, and digits in an error, do not
    if sorted(found) != list(range(numbers)) or "[" in (error or ""):
        raise _UnfitError
    return Template(
        numbers=numbers,
        heads=heads,
        type=pieces.TYPES.index(line.type),
        f=line.f,
        error=error,
        micro_ops=tuple(micro_ops),
        records=tuple(records),
    )
