"""The operations and micro-operations that a history may hold, and what each of them looks like.

An operation of a client with another name is ignored as a whole, and so is a micro-operation with
another name: the evidence counts both. What has a known name and another shape is refused.
"""

from typing import Any

import msgspec

NAMES_KEYS = ("assign", "subscribe")
"""Operations whose values may be lists of keys, as Jepsen has them."""

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
    )
)

OPERATIONS = WITH_MICRO_OPERATIONS | {"crash"}
"""What a client is asked to do (``f``)."""

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
    "delete-records": '["delete-records", key, offset], completed with the start of the log',
}
"""The shape of each micro-operation, as a message shows it."""

_SHOWN_MAX = 80


class Misfit(ValueError):
    """A value that has not the shape of micro-operations; the message says what is wrong."""


def misfit(given: Any, error: Exception) -> str:
    """One sentence that says how a value differs from what it has to be."""
    if isinstance(error, RecursionError):
        return "the value is nested too deeply"
    shown = _shown(given)
    if isinstance(error, OverflowError):
        return f"{shown} holds a number of more than 64 bits"
    if isinstance(error, Misfit):
        return f"{shown} is no such value: {error}"
    name = given[0] if isinstance(given, list) and given and isinstance(given[0], str) else None
    if name in MICRO_OPERATIONS:
        return f"{shown} does not have the shape {MICRO_OPERATIONS[name]}"
    return f"{shown} is no list of micro-operations"


def _shown(given: Any) -> str:
    text = msgspec.json.encode(given, enc_hook=repr).decode()
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 1] + "…"
