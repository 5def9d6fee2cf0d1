"""The operations and micro-operations that a history may hold, and the shape of each of them.

An operation of a client with another name is ignored as a whole, and so is a micro-operation with
another name: the evidence counts both. A known name with another shape is rejected.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from model.text import brief

NAMES_KEYS = ("assign", "subscribe")
"""Operations whose values may be lists of partitions, as in Jepsen's histories."""

WITH_MICRO_OPERATIONS = frozenset(
    (
        *NAMES_KEYS,
        "send",
        "poll",
        "txn",
        "init",
        "leave",
        "commit",
        "committed",
        "freeze",
        "catch-up",
        "watermarks",
        "create-topic",
        "alter-topic",
        "delete-topic",
        "delete-records",
        "ask",
    )
)

OPERATIONS = WITH_MICRO_OPERATIONS | {"crash"}
"""What a client may be asked to do (``f``)."""

MICRO_OPERATIONS = {
    "send": '["send", key, value], completed as ["send", key, [offset, value]]',
    "poll": '["poll"], completed as ["poll", {key: [[offset, value], …]}]',
    "subscribe": '["subscribe", group, [topic, …], {option: value}]',
    "init": '["init", transactional id, …]',
    "leave": '["leave", group]',
    "commit": '["commit", group, {key: offset}, how]',
    "commit-plainly": '["commit-plainly", group, {key: offset}]',
    "committed": '["committed", group, {key: offset}]',
    "assigned": '["assigned", group, generation, {key: offset}]',
    "revoked": '["revoked", group, generation, [key, …]]',
    "lost": '["lost", group, generation, [key, …]]',
    "abort": '["abort"]',
    "delay": '["delay", null, milliseconds]',
    "freeze": '["freeze", group, milliseconds]',
    "catch-up": '["catch-up", key], completed as ["catch-up", key, position, high watermark]',
    "watermarks": '["watermarks", key], completed as ["watermarks", key, {"high": offset, …}]',
    "create-topic": '["create-topic", topic, partitions]',
    "create-compacted": '["create-compacted", topic, partitions]',
    "compacted": '["compacted", topic]',
    "uncompacted": '["uncompacted", topic]',
    "delete-topic": '["delete-topic", topic]',
    "delete-records": '["delete-records", key, offset or -1], completed with the start of the log',
    "ask": '["ask", key, question], completed with the answer as text',
}
"""The shape of each micro-operation, as a message shows it."""

Check = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_number(value: Any) -> bool:
    return type(value) is int and -(1 << 63) <= value < 1 << 63


def _is_end(value: Any) -> bool:
    """An offset, or -1 for the high watermark."""
    return _is_number(value) and value >= -1


def _is_none(value: Any) -> bool:
    return value is None


def _are_texts(value: Any) -> bool:
    return type(value) is list and all(map(_is_text, value))


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _is_pair(value: Any) -> bool:
    return type(value) is list and len(value) == 2 and all(map(_or_none(_is_number), value))


def _are_places(value: Any) -> bool:
    """Return whether this maps partitions to an offset, to an offset with its metadata, or to
    null."""
    return type(value) is dict and all(
        place is None or _is_number(place) or _is_pair(place) for place in value.values()
    )


def _are_ends(value: Any) -> bool:
    return type(value) is dict and all(map(_or_none(_is_number), value.values()))


def _are_options(value: Any) -> bool:
    return type(value) is dict and all(map(_or_none(_is_text), value.values()))


_PLACES = _or_none(_are_places)
_KEYS = _or_none(_are_texts)
_NUMBER = _or_none(_is_number)

_ARGUMENTS: dict[str, tuple[tuple[Check, ...], tuple[Check, ...]]] = {
    "subscribe": ((_is_text, _are_texts), (_or_none(_are_options),)),
    "init": ((_is_text,), (_or_none(_is_pair),)),
    "leave": ((_is_text,), ()),
    "commit": ((_is_text, _PLACES), (_or_none(_is_text),)),
    "commit-plainly": ((_is_text, _PLACES), ()),
    "committed": ((_is_text, _PLACES), ()),
    "assigned": ((_is_text, _NUMBER, _PLACES), ()),
    "revoked": ((_is_text, _NUMBER, _KEYS), ()),
    "lost": ((_is_text, _NUMBER, _KEYS), ()),
    "abort": ((), ()),
    "delay": ((_is_none, _is_number), ()),
    "freeze": ((_is_text, _is_number), ()),
    "catch-up": ((_is_text,), (_NUMBER, _NUMBER)),
    "watermarks": ((_is_text,), (_or_none(_are_ends),)),
    "create-topic": ((_is_text,), (_is_number,)),
    "create-compacted": ((_is_text,), (_is_number,)),
    "compacted": ((_is_text,), ()),
    "uncompacted": ((_is_text,), ()),
    "delete-topic": ((_is_text,), ()),
    "delete-records": ((_is_text, _is_end), (_NUMBER,)),
    "ask": ((_is_text, _is_text), (_is_text,)),
}
"""The required arguments of each micro-operation, and the optional ones. Sends and polls, of which
there are many, are checked where they are read."""


def fits(micro_op: list[Any]) -> bool:
    """Return whether a micro-operation of a known name has its shape."""
    needed, more = _ARGUMENTS[micro_op[0]]
    given = micro_op[1:]
    if not len(needed) <= len(given) <= len(needed) + len(more):
        return False
    checks = (*needed, *more)[: len(given)]
    return all(check(value) for check, value in zip(checks, given, strict=True))


class Misfit(ValueError):
    """A value that does not have the shape of micro-operations; the message says what is wrong."""


def misfit(given: Any, error: Exception) -> str:
    """Return one sentence that says how a value differs from what it has to be."""
    if isinstance(error, RecursionError):
        return "the value is nested too deeply"
    shown = _shown(given)
    if isinstance(error, OverflowError):
        return f"{shown} has a number of more than 64 bits"
    if isinstance(error, Misfit):
        return f"{shown} is not a valid value: {error}"
    name = given[0] if isinstance(given, list) and given and isinstance(given[0], str) else None
    if name in MICRO_OPERATIONS:
        return f"{shown} does not have the shape {MICRO_OPERATIONS[name]}"
    return f"{shown} is not a list of micro-operations"


def _shown(given: Any) -> str:
    return brief(msgspec.json.encode(given, enc_hook=repr).decode())
