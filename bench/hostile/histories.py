"""Hostile histories: lines of JSON that are mutated byte by byte and field by field."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from bench.hostile.case import ANY, READS, REFUSES, Case, file

NAME = "history.jsonl"
EVENTS: list[dict[str, Any]] = [
    {
        "index": index,
        "time_ns": 10_000_000 * index,
        "process": process,
        "type": kind,
        "f": f,
        **rest,
    }
    for index, (process, kind, f, rest) in enumerate(
        [
            (0, "invoke", "create-topic", {"value": [["create-topic", "x", 2]]}),
            (0, "ok", "create-topic", {"value": [["create-topic", "x", 2]]}),
            (1, "invoke", "send", {"value": [["send", "x-0", 7]]}),
            (1, "ok", "send", {"value": [["send", "x-0", [0, 7]]]}),
            (-1, "invoke", "kill", {"value": {"id": 1, "phase": "apply", "targets": ["broker-1"]}}),
            (
                -1,
                "info",
                "kill",
                {
                    "value": {
                        "id": 1,
                        "phase": "apply",
                        "targets": ["broker-1"],
                        "effect": {"proved": True, "how": "gone"},
                    }
                },
            ),
            (3, "invoke", "init", {"value": [["init", "t"]]}),
            (3, "ok", "init", {"value": [["init", "t", [5, 0]]]}),
            (
                3,
                "invoke",
                "txn",
                {
                    "value": [
                        ["send", "x-0", 8],
                        ["delay", None, 5],
                        ["poll"],
                        ["commit", "g", {"x-0": 1}],
                    ]
                },
            ),
            (
                3,
                "ok",
                "txn",
                {
                    "value": [
                        ["send", "x-0", [1, 8]],
                        ["delay", None, 5],
                        ["poll", {"x-0": [[0, 7]]}],
                        ["commit", "g", {"x-0": 1}],
                    ]
                },
            ),
            (4, "invoke", "subscribe", {"value": [["subscribe", "h", ["x"], {"commit": "sync"}]]}),
            (4, "ok", "subscribe", {"value": [["subscribe", "h", ["x"], {"commit": "sync"}]]}),
            (4, "invoke", "poll", {"value": [["poll"]]}),
            (
                4,
                "ok",
                "poll",
                {"value": [["assigned", "h", 1, {"x-0": 0}], ["poll", {"x-0": [[0, 7], [1, 8]]}]]},
            ),
            (4, "invoke", "commit", {"value": [["commit", "h", {"x-0": [2, 3]}, "sync"]]}),
            (4, "ok", "commit", {"value": [["commit", "h", {"x-0": [2, 3]}, "sync"]]}),
            (5, "invoke", "committed", {"value": [["committed", "h", {"x-0": None}]]}),
            (5, "ok", "committed", {"value": [["committed", "h", {"x-0": [2, 3]}]]}),
            (4, "invoke", "freeze", {"value": [["freeze", "h", 5]]}),
            (4, "ok", "freeze", {"value": [["freeze", "h", 5]]}),
            (4, "invoke", "leave", {"value": [["leave", "h"]]}),
            (4, "ok", "leave", {"value": [["leave", "h"]]}),
            (5, "invoke", "watermarks", {"value": [["watermarks", "x-0"]]}),
            (
                5,
                "ok",
                "watermarks",
                {"value": [["watermarks", "x-0", {"start": 0, "stable": 3, "high": 3}]]},
            ),
            (-1, "invoke", "kill", {"value": {"id": 1, "phase": "heal"}}),
            (
                -1,
                "info",
                "kill",
                {
                    "value": {
                        "id": 1,
                        "phase": "heal",
                        "effect": {"proved": True, "how": "it answers"},
                    }
                },
            ),
            (6, "invoke", "assign", {"value": ["x-0"]}),
            (6, "ok", "assign", {"value": ["x-0"]}),
            (6, "invoke", "poll", {"value": [["poll"]]}),
            (6, "ok", "poll", {"value": [["poll", {"x-0": [[0, 7], [1, 8]]}]]}),
            (6, "invoke", "catch-up", {"value": [["catch-up", "x-0"]]}),
            (6, "ok", "catch-up", {"value": [["catch-up", "x-0", 3, 3]]}),
            (7, "invoke", "send", {"value": [["send", "x-0", 9]]}),
            (7, "fail", "send", {"value": [["send", "x-0", 9]], "error": "NotLeader"}),
        ]
    )
]
"""A valid history with most kinds of micro-operations."""

WRONG: dict[str, Any] = {
    "null": None,
    "true": True,
    "fraction": 1.5,
    "text": "surprise",
    "empty text": "",
    "list": [],
    "nested list": [[["deep"]]],
    "object": {},
    "negative": -7,
    "2^31": 1 << 31,
    "2^63": 1 << 63,
    "2^64": 1 << 64,
    "10^400": 10**400,
    "nan": float("nan"),
    "infinity": float("-inf"),
    "lone surrogate": "\ud800",
    "escape": "\x1b]0;owned\x07",
}
"""The values that replace every part of an event."""


def line(event: Any) -> bytes:
    """Return one line of a history."""
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


LINES = [line(event) for event in EVENTS]
TEXT = b"".join(LINES)


def check(name: str, content: bytes | str, **more: Any) -> Case:
    """Return a case that judges a bare history."""
    more = {"history": NAME, **more}
    path = more["history"]
    return Case(name, ("check", path, "--inline"), file(path, content), **more)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every part of a value, including the value itself."""
    yield path
    inner = value.items() if isinstance(value, dict) else ()
    for key, part in enumerate(value) if isinstance(value, list) else inner:
        yield from places(part, (*path, key))


def put(value: Any, path: tuple[Any, ...], part: Any) -> Any:
    """Return a copy with another value at this path."""
    if not path:
        return part
    changed = copy.deepcopy(value)
    inside = changed
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = part
    return changed


def wrong_types() -> Iterator[Case]:
    """Yield histories in which every part of every event is replaced by something else.

    A string in place of a string and a number in place of a number may give another valid history;
    every other replacement must be refused or mentioned.
    """
    for row, event in enumerate(EVENTS):
        for path in places(event):
            for name, wrong in WRONG.items():
                at = ".".join(map(str, path)) or "the event"
                lines = [*LINES]
                lines[row] = line(put(event, path, wrong))
                yield check(
                    f"line {row + 1}, {at}: {name}",
                    b"".join(lines),
                    may=ANY if may_stay(event, path, wrong) else REFUSES,
                )


def may_stay(event: dict[str, Any], path: tuple[Any, ...], wrong: Any) -> bool:
    """Return whether the history can be valid, or have an anomaly, with this value at that path."""
    before: Any = event
    for step in path:
        before = before[step]
    nemesis = event["process"] == -1
    if path[:1] == ("value",) and nemesis:
        return path[1:] != ("id",) or isinstance(wrong, int)  # the rest is only for readers
    if path == ("error",):
        return wrong is None or isinstance(wrong, str)
    if isinstance(before, str) and isinstance(wrong, str):
        return path not in (("type",),)
    if type(before) is int and type(wrong) is int:
        return abs(wrong) < 1 << 63 and path != ("process",)
    if wrong is None:
        return isinstance(before, dict | list | None) or _may_be_null(event, path)
    if event["type"] == "ok" and len(path) == 3 and type(wrong) is int and abs(wrong) < 1 << 63:
        return event["value"][path[1]][0] == "send"  # another value
    if event["f"] == "committed" and len(path) == 4 and type(wrong) is int:
        return True  # an offset without metadata
    return isinstance(before, dict | list | None) and type(wrong) is type(before)


def _may_be_null(event: dict[str, Any], path: tuple[Any, ...]) -> bool:
    """Return whether null at this path stands for a value that the client did not report.

    Clients may leave out offsets, generations, positions, ends of logs, options, the way of
    committing, and the parts of an answer to ``init``.
    """
    if path[:1] != ("value",) or len(path) < 3:
        return False
    name, place = event["value"][path[1]][0], path[2:]
    if name == "send":
        return place == (2, 0)
    if name == "poll":
        return len(place) == 4 and place[3] == 0
    return {
        "init": place[0] == 2,
        "assigned": place[0] in (2, 3),
        "commit": place[0] in (2, 3),
        "committed": place[0] == 2,
        "watermarks": place[0] == 2,
        "catch-up": place[0] in (2, 3),
        "subscribe": place[0] == 3,
    }.get(name, False)


def truncated() -> Iterator[Case]:
    """Yield histories in which the last line is torn, or an earlier one."""
    for row, text in enumerate(LINES):
        for at in sorted({*range(1, len(text), 7), len(text) - 1}):
            name = f"line {row + 1} is cut behind {at} bytes"
            begin = b"".join(LINES[:row]) + text[:at]
            whole = at == len(text) - 1
            if row:
                mentions = "" if whole else "is torn and was left out"
                yield check(f"{name}, the end", begin, may=READS, mentions=mentions)
            if not whole:
                yield check(name, begin + b"\n" + b"".join(LINES[row + 1 :]))


def mutated(rng: random.Random, count: int) -> Iterator[Case]:
    """Yield histories in which single bytes are changed, doubled, flipped or removed."""
    for number in range(count):
        text = bytearray(TEXT)
        for _ in range(rng.choice((1, 1, 2, 5))):
            at = rng.randrange(len(text))
            match rng.randrange(4):
                case 0:
                    text[at] = rng.randrange(256)
                case 1:
                    text.insert(at, text[at])
                case 2:
                    del text[at]
                case _:
                    text[at] ^= 1 << rng.randrange(8)
        yield check(f"mutated bytes {number}", bytes(text), may=ANY)
